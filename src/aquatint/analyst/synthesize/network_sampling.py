"""Rows from a trained generator, exactly conditional where a condition is given.

Given the generator's input the columns are independent, so the probability that a row satisfies a
condition is known before it is drawn. Inputs are kept with that probability, and the columns drawn
from what the condition leaves of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri
from torch import Tensor

from aquatint.analyst.synthesize import draw
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.network_heads import Choice, Head, Interval, below, split, to_place
from aquatint.analyst.synthesize.network_model import Generator
from aquatint.analyst.where import Condition, limits_of
from aquatint.columns import Date, Integer, Numeric
from aquatint.errors import DataError
from aquatint.schema import Schema

CHUNK = 8_192
RAREST = 1e-4
"""Conditions that fewer rows satisfy are refused."""
TRIED_AT_ONCE = 2**14
FEWEST_TRIED, MOST_TRIED = 2**16, 2**18
"""So many inputs are tried before a condition is refused, and at most. If too few fit, some serve
for several rows, which still differ: the columns are drawn anew."""


@dataclass(frozen=True)
class Inputs:
    """Inputs of the generator, in the order of their classes."""

    noise: np.ndarray
    component: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.label)

    def take(self, index: np.ndarray | slice) -> Inputs:
        """Take some of them."""
        return Inputs(self.noise[index], self.component[index], self.label[index])


@dataclass(frozen=True, eq=False)
class Sampler:
    """A generator with what is needed to draw from it."""

    schema: Schema
    heads: Mapping[str, Head]
    generator: Generator
    label: str | None
    shares: np.ndarray

    def draw(
        self, count: int, given: Mapping[str, Condition], rng: np.random.Generator
    ) -> pd.DataFrame:
        """Draw rows that satisfy the conditions."""
        kept = {n: kept_of(self.schema.columns[n], h, given.get(n)) for n, h in self.heads.items()}
        wanted = given.get(self.label or "")
        shares = self.shares * (1.0 if wanted is None else wanted.weights)
        if not shares.sum() > 0:
            raise _too_rare(0.0)
        restricted = [name for name in self.heads if name in given]
        inputs = (
            self._matching(shares, count, {n: kept[n] for n in restricted}, rng)
            if restricted and count
            else self._inputs(shares, count, rng)
        )
        codes, places = self._columns(inputs, kept, given, rng)
        limits = limits_of(given)
        table = decode(self.schema, codes, rng, places=places, limits=limits)
        for name, (low, high) in limits.items():
            if isinstance(self.schema.columns[name], Numeric):
                table[name] = table[name].clip(low, high)  # rounding may step over a limit
        return table.iloc[rng.permutation(count)].reset_index(drop=True)

    def _inputs(self, shares: np.ndarray, count: int, rng: np.random.Generator) -> Inputs:
        """Draw inputs with labels and components in their shares."""
        with torch.no_grad():
            joint = shares[:, None] * self.generator.shares().double().numpy()
        chosen = draw.components(joint.flatten(), count, rng)
        noise = rng.standard_normal((count, self.generator.latent), dtype=np.float32)
        return Inputs(noise, chosen % joint.shape[1], chosen // joint.shape[1])

    def _matching(
        self, shares: np.ndarray, count: int, kept: Mapping[str, Kept], rng: np.random.Generator
    ) -> Inputs:
        """Draw inputs in proportion to the chance that their row satisfies the conditions."""
        pools, chances, found, tried = [], [], 0.0, 0
        while found < count and tried < max(MOST_TRIED, 4 * count):
            pool = self._inputs(shares, TRIED_AT_ONCE, rng)
            fits = np.concatenate([self._chance(part, kept) for part in _chunks(pool)])
            tried, found = tried + len(pool), found + float(fits.sum())
            if tried >= FEWEST_TRIED and found < RAREST * tried:
                raise _too_rare(found / tried)
            pools.append(pool.take(fits > 0))
            chances.append(fits[fits > 0])
        parts = zip(*((p.noise, p.component, p.label) for p in pools), strict=True)
        pool = Inputs(*(np.concatenate(part) for part in parts))
        chosen = draw.components(np.concatenate(chances), count, rng)
        return pool.take(chosen)

    def _chance(self, inputs: Inputs, kept: Mapping[str, Kept]) -> np.ndarray:
        parts = split(self.heads, self._outputs(inputs))
        fits = np.ones(len(inputs))
        for name, some in kept.items():
            fits = fits * chance(self.heads[name], parts[name], some)
        return fits

    def _columns(
        self,
        inputs: Inputs,
        kept: Mapping[str, Kept],
        given: Mapping[str, Condition],
        rng: np.random.Generator,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Draw every column; the points within a class and component are evenly spaced."""
        group = inputs.label * self.generator.components + inputs.component
        size = self.generator.classes * self.generator.components
        points = {n: draw.shuffled_points(group, size, rng) for n in self.schema.columns}
        codes = {n: np.zeros(len(inputs), dtype=np.int64) for n in self.schema.columns}
        places: dict[str, np.ndarray] = {}
        for start in range(0, len(inputs), CHUNK):
            some = slice(start, start + CHUNK)
            parts = split(self.heads, self._outputs(inputs.take(some)))
            for name, head in self.heads.items():
                cell, place = draw_column(head, parts[name], kept[name], points[name][some])
                codes[name][some] = cell
                if place is not None:
                    places.setdefault(name, np.zeros(len(inputs)))[some] = place
        for name, column in self.schema.columns.items():
            if name == self.label:
                codes[name] = inputs.label
            elif name not in self.heads:
                even = np.arange(column.cells) < column.present_cells
                weights = given[name].weights if name in given else even.astype(float)
                codes[name] = draw.components(weights, len(inputs), rng)
                rng.shuffle(codes[name])
        return codes, places

    def _outputs(self, inputs: Inputs) -> Tensor:
        with torch.no_grad():
            arrays = (inputs.noise, inputs.component, inputs.label)
            out: Tensor = self.generator(*map(torch.from_numpy, arrays))
        return out


def _chunks(inputs: Inputs) -> list[Inputs]:
    return [inputs.take(slice(i, i + CHUNK)) for i in range(0, len(inputs), CHUNK)]


def _too_rare(rate: float) -> DataError:
    msg = (
        f"about {rate:.1g} of the model's rows satisfy the conditions, fewer than one in "
        f"{1 / RAREST:,.0f}: loosen them"
    )
    return DataError(msg)


@dataclass(frozen=True)
class Kept:
    """What a condition leaves of a column.

    Attributes
    ----------
    points
        Of a choice, the share of every point; of an interval, whether values and whether missing.
    low, high
        Of an interval, the places between which its values lie.
    """

    points: np.ndarray
    low: float = -inf
    high: float = inf


def kept_of(column: Any, head: Head, condition: Condition | None) -> Kept:
    """Say what a condition leaves of a column; without one, everything."""
    if isinstance(head, Interval):
        return Kept(np.ones(2)) if condition is None else _kept_interval(column, condition)
    if condition is None:
        return Kept(np.ones(head.width))
    weights = condition.weights[head.cell.numpy()]
    if isinstance(column, (Integer, Date)) and head.place is not None and condition.low > -inf:
        number = column.limits[0] + np.arange(column.steps)
        weights[: column.steps] = (number >= condition.low) & (number <= condition.high)
    return Kept(weights)


def _kept_interval(column: Any, condition: Condition) -> Kept:
    present = float(condition.weights[: column.present_cells].max() > 0)
    absent = float(condition.weights[column.present_cells :].sum())
    low, high = column.limits
    first, last = condition.low, condition.high
    if isinstance(column, (Integer, Date)) and np.isfinite([first, last]).all():
        first, last = ceil(first) - 0.5, floor(last) + 0.5
    return Kept(
        np.array([present, absent]),
        -inf if first <= low else (first - low) / (high - low),
        inf if last >= high else (last - low) / (high - low),
    )


def chance(head: Head, outputs: Tensor, kept: Kept) -> np.ndarray:
    """Give the probability that each row's column is among what is kept, shape (n,)."""
    if isinstance(head, Choice):
        return np.asarray(torch.softmax(outputs, 1).double().numpy() @ kept.points)
    value, missing, _, _ = _interval(head, outputs, kept)
    return np.asarray(value + missing)


def draw_column(
    head: Head, outputs: Tensor, kept: Kept, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Draw the cell of every row, and its place if the head knows it, from uniform points."""
    if isinstance(head, Choice):
        shares = torch.softmax(outputs, 1).double().numpy() * kept.points
        chosen = _invert(shares, points)
        cell = head.cell.numpy()[chosen]
        return cell, None if head.place is None else head.place.nan_to_num(0.0).numpy()[chosen]
    value, missing, first, last = _interval(head, outputs, kept)
    share = value / np.maximum(value + missing, 1e-300)
    absent = points >= share
    within = np.minimum(points / np.maximum(share, 1e-300), 1.0)
    level = np.clip(first + within * (last - first), 1e-12, 1 - 1e-12)
    place = to_place(outputs, torch.from_numpy(ndtri(level)).float()).double().numpy()
    place = np.clip(place, max(kept.low, 0.0), min(kept.high, 1.0))
    cell = np.searchsorted(head.edges.numpy(), place, side="right")
    return np.where(absent, len(head.edges) + 1, cell), place


def _interval(
    head: Interval, outputs: Tensor, kept: Kept
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give the chances of a value and of none that are kept, and the levels between which."""
    ends = below(outputs, torch.tensor([min(max(kept.low, 0.0), 1.0), min(kept.high, 1.0)]))
    first, last = ends.double().numpy().T
    first = first if kept.low > -inf else np.zeros(len(first))
    last = last if kept.high < inf else np.ones(len(last))
    present = torch.sigmoid(outputs[:, 2]).double().numpy() if head.missing else np.ones(len(first))
    value = present * (last - first) * kept.points[0]
    return value, (1 - present) * kept.points[1], first, last


def _invert(shares: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Choose a point for every row by the inverse of its cumulated shares."""
    cumulated = np.cumsum(shares, axis=1)
    below_point = cumulated <= (points * cumulated[:, -1])[:, None]
    chosen = np.minimum(below_point.sum(1), shares.shape[1] - 1)
    # Rounding may end on a point of share zero behind the last one: step back to one that has any.
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(chosen, last))
