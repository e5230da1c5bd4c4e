"""The mean embedding of a mixture of products, in closed form for maps of numbers too.

Within a component the columns are independent, so the mean of a product of features is the product
of their means. A Fourier feature is a product over columns, a cosine reads one column or is a
product over two, a Hermite feature reads one column, and in each the mean over a component is a sum
over cells: its probabilities times the feature's mean in the cell. The latter is computed once:
exactly for waves, which may be shorter than a cell, and as an average over points of the cell for
Hermite's polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.atoms import Atoms, widths_and_edges
from aquatint.analyst.synthesize.excess import above_floor
from aquatint.analyst.synthesize.terms import Term
from aquatint.columns import RANGED
from aquatint.features.algebra import ByLabel, Product, Scaled
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.features.hermite import Hermite
from aquatint.features.marginals import Count, Marginals
from aquatint.schema import Schema

POINTS = 8
"""Points of a cell over which a feature is averaged, at least."""
ALL_POINTS = 256
"""Points of a column with few cells, in all of them together."""


def has_closed_form(leaf: FeatureMap) -> bool:
    """Whether the mean of a leaf over a mixture of products is known in closed form."""
    if isinstance(leaf, Scaled):
        return has_closed_form(leaf.inner)
    if isinstance(leaf, ByLabel):
        return has_closed_form(leaf.inner) and leaf.label not in _columns(leaf.inner)
    if isinstance(leaf, Product):
        apart = not _columns(leaf.left) & _columns(leaf.right)
        return apart and has_closed_form(leaf.left) and has_closed_form(leaf.right)
    return isinstance(leaf, (Fourier, Cosines, Hermite, Marginals, Count))


def _columns(part: FeatureMap) -> frozenset[str]:
    """Give the columns that a map reads, as cells or as numbers."""
    return part.reads[0] | part.reads[1]


@dataclass(frozen=True)
class Cells:
    """The probabilities of every column's cells in every component, shape (K, cells) each."""

    schema: Schema
    atoms: Atoms
    probabilities: Tensor

    def __getitem__(self, name: str) -> Tensor:
        seen = self.probabilities[:, self.atoms.slices[name]]
        atom = self.atoms.of_cell[name]
        if len(atom) == seen.shape[1]:
            return seen[:, torch.from_numpy(atom)]
        return seen[:, torch.from_numpy(atom)] * torch.from_numpy(self.atoms.within[name]).float()


class Means:
    """The mean of a feature map's inner parts in each component, shape (K, dim)."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._tables: dict[tuple[int, str], Tensor] = {}

    def __call__(self, part: FeatureMap, cells: Cells) -> Tensor:
        """Give the mean in every component."""
        if isinstance(part, Scaled):
            return self(part.inner, cells) * part.weight
        if isinstance(part, Product):
            return outer(self(part.left, cells), self(part.right, cells))
        if isinstance(part, (Fourier, Cosines, Hermite)):
            return self._numbers(part, cells)
        if isinstance(part, Marginals):
            return torch.cat(
                [reduce(outer, [counted(part, n, cells) for n in s]) for s in part.sets], 1
            )
        return torch.ones(len(cells.probabilities), 1)

    def _numbers(self, part: Fourier | Cosines | Hermite, cells: Cells) -> Tensor:
        if isinstance(part, Fourier):
            return self._fourier(part, cells)
        if isinstance(part, Cosines):
            return self._cosines(part, cells)
        return self._hermite(part, cells)

    def _fourier(self, part: Fourier, cells: Cells) -> Tensor:
        """Multiply the columns' characteristic functions; a missing value makes the row zero."""
        mean: Tensor | None = None
        for place, name in enumerate(part.columns):
            waves = partial(_waves, frequencies=part.frequencies[place])
            table = self._table(part, name, waves)
            column = cells[name].to(table.dtype) @ table
            mean = column if mean is None else mean * column
        if mean is None:
            return torch.zeros(len(cells.probabilities), part.dim)
        return torch.cat([mean.real, mean.imag], 1) * sqrt(2 / part.features)

    def _cosines(self, part: Cosines, cells: Cells) -> Tensor:
        """Average each column's cosines over its cells; those of a pair are multiplied."""
        halves = part.orders(cells.probabilities) / 2
        means = partial(_cosine_means, frequencies=halves)
        waves = [cells[name] @ self._table(part, name, means) for name in part.columns]
        return part.products(torch.stack(waves, 1))

    def _hermite(self, part: Hermite, cells: Cells) -> Tensor:
        """Average each column's features over its cells; the map is ordered by c first."""
        lines = []
        for place, name in enumerate(part.columns):

            def means(column: Any, place: int = place) -> Tensor:
                points = _points(column)
                u = points.flatten()
                features = part(Rows({}, dict.fromkeys(part.columns, u), len(u)))
                by_column = features.reshape(*points.shape, part.order + 1, -1)
                return by_column[..., place].mean(1)

            lines.append(cells[name] @ self._table(part, name, means))
        return torch.stack(lines, 2).flatten(1)

    def _table(self, part: FeatureMap, name: str, means: Callable[[Any], Tensor]) -> Tensor:
        """Give a column's feature means in each of its cells; a missing value has zeros."""
        key = (id(part), name)
        if key not in self._tables:
            column = self.schema.columns[name]
            present = means(column)
            missing = present.new_zeros(int(column.missing), present.shape[1])
            self._tables[key] = torch.cat([present, missing])
        return self._tables[key]


def _waves(column: Any, frequencies: Tensor) -> Tensor:
    """Give the mean of exp(2πi·f·u) over each cell, exactly, shape (cells, frequencies).

    Over an interval of width w around m it is exp(2πi·f·m)·sinc(f·w). Over n points at a distance h
    it is Dirichlet's kernel in the place of sinc: sinc(f·n·h)/sinc(f·h).
    """
    middle, width, step = (torch.from_numpy(part)[:, None] for part in _spans(column))
    one = torch.sinc(frequencies * step)
    ratio = torch.sinc(frequencies * width) / torch.where(one.abs() < 1e-9, 1.0, one)
    in_phase = torch.cos(torch.pi * frequencies * (width - step))  # the limit where sinc(f·h) is 0
    mean = torch.where(one.abs() < 1e-9, in_phase, ratio)
    return (torch.exp(2j * torch.pi * frequencies * middle) * mean).to(torch.complex64)


def _cosine_means(column: Any, frequencies: Tensor) -> Tensor:
    """Give the mean of cos(2π·f·u) over each cell, exactly, shape (cells, frequencies)."""
    return _waves(column, frequencies).real.contiguous()


def _spans(column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give each cell's middle and width in the unit interval, and the distance of its values.

    The distance is zero where values lie everywhere; n points at a distance h have width n·h.
    """
    if not isinstance(column, RANGED):
        count = column.present_cells
        return np.linspace(0, 1, max(count, 2))[:count], np.zeros(count), np.zeros(count)
    left, width, whole = widths_and_edges(column)
    low, high = column.limits
    step = np.full(len(left), 1.0 if whole else 0.0)
    middle = left + (width - step) / 2 - low
    return middle / (high - low), width / (high - low), step / (high - low)


def outer(left: Tensor, right: Tensor) -> Tensor:
    """Multiply every feature of each row with every other's, shape (n, left · right)."""
    return (left[:, :, None] * right[:, None, :]).flatten(1)


def counted(part: Marginals, name: str, cells: Mapping[str, Tensor] | Cells) -> Tensor:
    """Give the probabilities of the groups of cells that a map counts apart, shape (n, groups)."""
    fine = cells[name]
    if name not in part.merged:
        return fine
    place = torch.tensor(part.merged[name], device=fine.device)
    return fine.new_zeros(len(fine), part.counted[name]).index_add(1, place, fine)


def _points(column: Any) -> Tensor:
    """Give points of each cell in the unit interval, evenly spaced, shape (cells, points)."""
    if not isinstance(column, RANGED):
        return torch.from_numpy(_spans(column)[0]).float()[:, None]
    left, width, whole = widths_and_edges(column)
    low, high = column.limits
    count = max(POINTS, ALL_POINTS // len(left))
    share = (np.arange(count) + 0.5) / count
    number = left[:, None] + share * width[:, None]
    number = np.floor(number) if whole else number
    return torch.from_numpy(np.clip((number - low) / (high - low), 0, 1)).float()


@dataclass(frozen=True)
class Embedding(Term):
    """Any leaf with a closed form; by class, if it is conditional on a label."""

    schema: Schema
    atoms: Atoms
    leaf: FeatureMap
    target: Tensor
    deviation: float
    means: Means

    def __call__(  # noqa: D102
        self,
        weights: Tensor,
        probabilities: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        if weights.ndim > 1:
            fits = zip(weights, probabilities, strict=True)
            return torch.stack([self(w, p, generator) for w, p in fits]).sum()
        cells = Cells(self.schema, self.atoms, probabilities)
        leaf = self.leaf
        if isinstance(leaf, ByLabel):
            mixed = (weights[:, None] * cells[leaf.label]).T @ self.means(leaf.inner, cells)
        elif isinstance(leaf, Product):
            left = self.means(leaf.left, cells) * weights[:, None]
            mixed = (left.T @ self.means(leaf.right, cells)).reshape(1, -1)
        else:
            mixed = weights[None, :] @ self.means(leaf, cells)
        squares = (((mixed - self.target.reshape(mixed.shape)) / self.deviation) ** 2).sum(1)
        return above_floor(squares, torch.full_like(squares, mixed.shape[1]))


def embedding_term(
    leaf: FeatureMap,
    shares: np.ndarray,
    deviation: float,
    schema: Schema,
    atoms: Atoms,
) -> Embedding:
    """Turn a leaf's noisy mean embedding into a term."""
    target = torch.from_numpy(np.ascontiguousarray(shares, dtype=np.float32))
    return Embedding(schema, atoms, leaf, target, deviation, Means(schema))
