"""Counts of cells: one-hot columns, pairs, triples, and the row count itself.

Every map here is a counting map: a row has exactly one 1 in each of its column sets. With s sets
the norms are therefore attained by every row, ‖φ‖₁ = s and ‖φ‖₂² = s, and two rows that differ in
every set are √(2s) apart. One-hot of all d columns is M2M's HIST sketch (s = d); all pairs with all
singles is the squared sum kernel (s = d(d+1)/2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, one_hot


@dataclass(frozen=True)
class Count(FeatureMap):
    """The constant 1: its sum is the number of rows."""

    kind: ClassVar[str] = "count"

    @property
    def dim(self) -> int:
        return 1

    @property
    def ones(self) -> int:
        return 1

    @property
    def bound(self) -> Bound:
        return Bound(dim=1, l1=1, l2_squared=1, low=0, high=1)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset()

    def __call__(self, rows: Rows) -> Tensor:
        return torch.ones(len(rows), 1)

    def cells(self, rows: Rows) -> Tensor:
        return torch.zeros(len(rows), 1, dtype=torch.int32)

    def spec(self) -> Spec:
        return {"kind": self.kind}


@dataclass(frozen=True)
class Marginals(FeatureMap):
    """One-hot indicators of the joint cell of each chosen set of columns.

    Parameters
    ----------
    columns
        The columns with their numbers of cells.
    sets
        The column sets to count: ``("age",)`` is a histogram, ``("age", "sex")`` a pair.
    """

    columns: tuple[tuple[str, int], ...]
    sets: tuple[tuple[str, ...], ...]
    kind: ClassVar[str] = "marginals"

    def __post_init__(self) -> None:
        known = dict(self.columns)
        if len(known) < len(self.columns) or not all(count >= 1 for count in known.values()):
            msg = "each column is named once, with at least one cell"
            raise PlanError(msg)
        if not self.sets or any(not s or len(set(s)) < len(s) for s in self.sets):
            msg = "each set of columns must name at least one column, and none twice"
            raise PlanError(msg)
        if len({frozenset(s) for s in self.sets}) < len(self.sets):
            msg = "the same set of columns is asked for twice: count it once"
            raise PlanError(msg)
        for name in {n for s in self.sets for n in s} - known.keys():
            msg = f"column {name!r} has no declared number of cells"
            raise PlanError(msg)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each set."""
        known = dict(self.columns)
        return tuple(prod(known[name] for name in s) for s in self.sets)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the cells of each set begin."""
        starts = [0]
        for size in self.sizes[:-1]:
            starts.append(starts[-1] + size)
        return tuple(starts)

    @property
    def dim(self) -> int:
        return sum(self.sizes)

    @property
    def ones(self) -> int:
        return len(self.sets)

    @property
    def bound(self) -> Bound:
        return Bound(dim=self.dim, l1=self.ones, l2_squared=self.ones, low=0, high=1)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(n for s in self.sets for n in s), frozenset()

    @property
    def tile(self) -> int:
        return max(256, 2**19 // self.ones)

    def __call__(self, rows: Rows) -> Tensor:
        known = dict(self.columns)
        return torch.cat([self._outer(rows, s, known) for s in self.sets], dim=1)

    @staticmethod
    def _outer(rows: Rows, columns: tuple[str, ...], known: Mapping[str, int]) -> Tensor:
        out = one_hot(rows, columns[0], known[columns[0]])
        for name in columns[1:]:
            hot = one_hot(rows, name, known[name])
            out = (out[:, :, None] * hot[:, None, :]).flatten(1)
        return out

    def cells(self, rows: Rows) -> Tensor:
        known = dict(self.columns)
        device = rows.codes[self.sets[0][0]].device
        out = torch.empty(self.ones, len(rows), dtype=torch.int32, device=device)
        for place, (start, columns) in enumerate(zip(self.offsets, self.sets, strict=True)):
            line = out[place]
            line.copy_(rows.codes[columns[0]])
            for name in columns[1:]:
                line.mul_(known[name]).add_(rows.codes[name])
            line.add_(start)
        return out.T

    def spec(self) -> Spec:
        place = {name: index for index, (name, _) in enumerate(self.columns)}
        return {
            "kind": self.kind,
            "columns": [list(c) for c in self.columns],
            "sets": [[place[name] for name in s] for s in self.sets],
        }

    def set_slice(self, columns: Iterable[str]) -> slice:
        """Locate the cells of one set in the vector."""
        place = self.sets.index(tuple(columns))
        return slice(self.offsets[place], self.offsets[place] + self.sizes[place])


def marginals(cells: Mapping[str, int], sets: Iterable[Iterable[str]]) -> Marginals:
    """Count the joint cells of the chosen column sets."""
    chosen = tuple(tuple(s) for s in sets)
    used = {name for s in chosen for name in s}
    return Marginals(tuple((n, c) for n, c in cells.items() if n in used), chosen)


def onehot(cells: Mapping[str, int]) -> Marginals:
    """Count the cells of every column on its own (M2M's HIST)."""
    return marginals(cells, ((name,) for name in cells))


def pairs(cells: Mapping[str, int], chosen: Iterable[tuple[str, str]] | None = None) -> Marginals:
    """Count the joint cells of all, or of the chosen, pairs of columns."""
    return marginals(cells, combinations(cells, 2) if chosen is None else chosen)


def triples(cells: Mapping[str, int], chosen: Iterable[tuple[str, str, str]]) -> Marginals:
    """Count the joint cells of the chosen triples of columns."""
    return marginals(cells, chosen)
