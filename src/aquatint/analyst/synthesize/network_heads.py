"""What a generator says of each column: which of a list of points, or where in an interval.

Given its input, the columns of a generated row are independent. So every mean of features that a
release holds is known from the heads, exactly or by a draw that has a gradient, and rows are drawn
from the same heads afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.columns import RANGED, Boolean, Date, Integer, Ordered, bin_edges
from aquatint.features.base import FeatureMap
from aquatint.schema import Schema

MOST_POINTS = 128
"""Whole numbers with at most so many values are chosen one by one, so spikes stay spikes."""
MOST_VALUE_COLUMNS = 64
"""In wider tables whole numbers are drawn from an interval: choices would cost too much."""
STRETCH = 0.02
"""The sigmoid reaches this much beyond the unit interval and is cut off, so that a column can put
its mass on a bound."""
NARROW = -3.0
"""The logarithm of the scale that intervals start from: a wide start blurs all modes into one."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A column chosen from a list of points by a softmax.

    Attributes
    ----------
    cell
        The cell of every point.
    cells
        How many cells the column has.
    place
        Every point's place in the unit interval, NaN for missing; None for a column without one.
    """

    cell: Tensor
    cells: int
    place: Tensor | None = None

    @property
    def width(self) -> int:
        """How many outputs of the network the head takes."""
        return len(self.cell)

    @cached_property
    def one_by_one(self) -> bool:
        """Whether the points are the cells themselves."""
        return self.width == self.cells


@dataclass(frozen=True, eq=False)
class Interval:
    """A column drawn from the unit interval, u = sigmoid(a + s·ε) with Gaussian ε.

    Attributes
    ----------
    edges
        Where one cell ends and the next begins, both ends of the range left out.
    missing
        Whether a value may be missing; the head then has an output for it.
    """

    edges: Tensor
    missing: bool

    @property
    def width(self) -> int:
        """How many outputs of the network the head takes."""
        return 2 + self.missing


Head = Choice | Interval


def heads_of(
    schema: Schema, codes: frozenset[str], values: frozenset[str], label: str | None
) -> dict[str, Head]:
    """Choose a head for every column that a release tells something about, but for the label."""
    seen = [name for name in schema.columns if name in codes | values and name != label]
    few = len(values) <= MOST_VALUE_COLUMNS
    return {name: _head(schema.columns[name], name in values, few) for name in seen}


def _head(column: Any, as_value: bool, few: bool) -> Head:
    if not isinstance(column, RANGED):
        ranked = isinstance(column, (Ordered, Boolean))
        return Choice(torch.arange(column.cells), column.cells, _ranks(column) if ranked else None)
    if not as_value:
        return Choice(torch.arange(column.cells), column.cells)
    if few and isinstance(column, (Integer, Date)) and column.steps <= MOST_POINTS:
        return _whole_numbers(column)
    low, high = column.limits
    half = 0.5 if isinstance(column, (Integer, Date)) else 0.0
    edges = (np.array(bin_edges(column))[1:-1] - half - low) / (high - low)
    return Interval(torch.from_numpy(edges).float(), column.missing)


def _ranks(column: Any) -> Tensor:
    """Place the categories as the encoder does, by rank."""
    count = column.present_cells
    ranks = torch.arange(count) / max(1, count - 1)
    return torch.cat([ranks, torch.full((column.cells - count,), torch.nan)])


def _whole_numbers(column: Any) -> Choice:
    numbers = column.limits[0] + np.arange(column.steps)
    cell = np.searchsorted(np.ceil(bin_edges(column)[1:-1]), numbers, side="right")
    place = np.arange(column.steps) / max(1, column.steps - 1)
    if column.missing:
        cell, place = np.append(cell, column.present_cells), np.append(place, np.nan)
    return Choice(torch.from_numpy(cell), column.cells, torch.from_numpy(place).float())


@dataclass(frozen=True, eq=False)
class SoftRows:
    """A batch of generated rows before anything is chosen, differentiable.

    Attributes
    ----------
    count
        The number of rows.
    weight
        How much each row counts, shape (n, 1); one on average.
    points
        For each choice, the probability of every point, shape (n, points).
    places
        For each interval, a draw of its place, shape (n,).
    present
        For each interval that may miss a value, the probability that it does not.
    cells
        For each column, the probability of every cell, shape (n, cells).
    features
        What has been computed of feature maps already.
    """

    count: int
    weight: Tensor
    points: Mapping[str, Tensor]
    places: Mapping[str, Tensor]
    present: Mapping[str, Tensor]
    cells: Mapping[str, Tensor]
    features: dict[FeatureMap, Tensor] = field(default_factory=dict)


class Cells(dict[str, Tensor]):
    """The probabilities of cells, computed for the columns that are asked for."""

    def __init__(self, heads: Mapping[str, Head], outputs: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.heads, self.outputs = heads, outputs

    def __missing__(self, name: str) -> Tensor:
        self[name] = cell_probabilities(self.heads[name], self.outputs[name])
        return self[name]


def split(heads: Mapping[str, Head], outputs: Tensor) -> dict[str, Tensor]:
    """Hand each head its outputs of the network."""
    parts = torch.split(outputs, [head.width for head in heads.values()], dim=1)
    return dict(zip(heads, parts, strict=True))


def soften(
    heads: Mapping[str, Head],
    outputs: Tensor,
    noise: Tensor,
    weight: Tensor,
    given: Mapping[str, Tensor] | None = None,
) -> SoftRows:
    """Turn the network's outputs into soft rows.

    Parameters
    ----------
    heads, outputs
        The heads, and the outputs of the network for all of them.
    noise
        A Gaussian column for every head.
    weight
        How much each row counts.
    given
        The cells of columns that are known already: the label.
    """
    parts = split(heads, outputs)
    points, places, present = {}, {}, {}
    for place, (name, head) in enumerate(heads.items()):
        if isinstance(head, Choice):
            points[name] = torch.softmax(parts[name], dim=1)
            continue
        places[name] = to_place(parts[name], noise[:, place])
        if head.missing:
            present[name] = torch.sigmoid(parts[name][:, 2])
    cells = Cells(heads, parts)
    cells.update(given or {})
    return SoftRows(len(outputs), weight, points, places, present, cells)


def scale_of(outputs: Tensor) -> Tensor:
    """Give the scale s of an interval."""
    return torch.exp((outputs[:, 1] + NARROW).clamp(-6.0, 1.0))


def to_place(outputs: Tensor, noise: Tensor) -> Tensor:
    """Give the place u for Gaussian noise ε."""
    wide = torch.sigmoid(outputs[:, 0] + scale_of(outputs) * noise)
    return (wide * (1 + 2 * STRETCH) - STRETCH).clamp(0.0, 1.0)


def below(outputs: Tensor, place: Tensor) -> Tensor:
    """Give the probability that an interval's value lies below each place, shape (n, places)."""
    wide = torch.logit(((place + STRETCH) / (1 + 2 * STRETCH)).clamp(1e-6, 1 - 1e-6))
    out: Tensor = torch.special.ndtr((wide - outputs[:, :1]) / scale_of(outputs)[:, None])
    return out


def cell_probabilities(head: Head, outputs: Tensor) -> Tensor:
    """Give the probability of every cell, shape (n, cells)."""
    if isinstance(head, Choice):
        points = torch.softmax(outputs, dim=1)
        if head.one_by_one:
            return points
        return points.new_zeros(len(points), head.cells).index_add(1, head.cell, points)
    ends = torch.zeros(len(outputs), 1, device=outputs.device)
    cumulated = torch.cat([ends, below(outputs, head.edges), ends + 1], dim=1)
    cells = cumulated.diff(dim=1)
    if not head.missing:
        return cells
    present = torch.sigmoid(outputs[:, 2:])
    return torch.cat([cells * present, 1 - present], dim=1)


def moved(heads: Mapping[str, Head], device: torch.device | str) -> dict[str, Head]:
    """Put the heads' tables on a device."""
    out: dict[str, Head] = {}
    for name, head in heads.items():
        if isinstance(head, Interval):
            out[name] = Interval(head.edges.to(device), head.missing)
        else:
            place = None if head.place is None else head.place.to(device)
            out[name] = Choice(head.cell.to(device), head.cells, place)
    return out
