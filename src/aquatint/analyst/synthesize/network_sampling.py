"""Rows from a trained generator, exactly conditional where a condition is given.

Given the generator's input the columns are independent, so the probability that a row satisfies a
condition is known before it is drawn. Inputs are kept with that probability, and the columns drawn
from what the condition leaves of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from aquatint.analyst.synthesize import draw
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.network_draw import Kept, chance, draw_column, kept_of
from aquatint.analyst.synthesize.network_heads import Head, split
from aquatint.analyst.synthesize.network_model import Generator
from aquatint.analyst.where import Condition
from aquatint.columns import Numeric
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
        limits = {
            n: (c.low, c.high) for n, c in given.items() if np.isfinite([c.low, c.high]).all()
        }
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
