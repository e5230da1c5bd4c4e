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
from itertools import accumulate, combinations
from math import prod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, one_hot

MANY = 1_000
"""With more sets than this, cells are found for all of them at once, not set by set."""


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
    groups
        Columns whose cells are merged before they are counted: for each, the group of every cell,
        numbered from 0 without gaps. A row still has one 1 in each set, so no norm changes.
    """

    columns: tuple[tuple[str, int], ...]
    sets: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
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
        for name, group in self.groups:
            if len(group) != known.get(name) or set(group) != set(range(len(set(group)))):
                msg = (
                    f"the groups of column {name!r} must give each cell a number from 0, "
                    "without gaps"
                )
                raise PlanError(msg)
        if len(dict(self.groups)) < len(self.groups):
            msg = "the cells of a column are grouped once"
            raise PlanError(msg)

    @cached_property
    def merged(self) -> dict[str, tuple[int, ...]]:
        """The group of every cell, for the columns whose cells are merged."""
        return dict(self.groups)

    @cached_property
    def counted(self) -> dict[str, int]:
        """How many cells of each column are counted apart: its groups, or else its cells."""
        grouped = {name: max(group) + 1 for name, group in self.groups}
        return dict(self.columns) | grouped

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each set."""
        known = self.counted
        return tuple(prod(known[name] for name in s) for s in self.sets)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the cells of each set begin."""
        return tuple(accumulate(self.sizes[:-1], initial=0))

    @cached_property
    def dim(self) -> int:
        return sum(self.sizes)

    @property
    def ones(self) -> int:
        return len(self.sets)

    @property
    def bound(self) -> Bound:
        return Bound(dim=self.dim, l1=self.ones, l2_squared=self.ones, low=0, high=1)

    @cached_property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(n for s in self.sets for n in s), frozenset()

    @property
    def tile(self) -> int:
        # A tile writes out every count: no more of them than rows by sets, that is, than counting.
        return max(256, 2**19 // self.ones, min(self.dim // self.ones, 2**23 // self.ones))

    def __call__(self, rows: Rows) -> Tensor:
        return torch.cat([self._outer(rows, s) for s in self.sets], dim=1)

    def _outer(self, rows: Rows, columns: tuple[str, ...]) -> Tensor:
        out = self._hot(rows, columns[0])
        for name in columns[1:]:
            out = (out[:, :, None] * self._hot(rows, name)[:, None, :]).flatten(1)
        return out

    def _hot(self, rows: Rows, name: str) -> Tensor:
        hot = one_hot(rows, name, dict(self.columns)[name])
        if name not in self.merged:
            return hot
        place = torch.tensor(self.merged[name], device=hot.device)
        return hot.new_zeros(len(hot), self.counted[name]).index_add(1, place, hot)

    def grouped(self, rows: Rows, name: str) -> Tensor:
        code = rows.codes[name]
        if name not in self.merged:
            return code
        return torch.tensor(self.merged[name], dtype=torch.int32, device=code.device)[code.long()]

    def cells(self, rows: Rows) -> Tensor:
        known = self.counted
        codes = {name: self.grouped(rows, name) for name in self.reads[0]}
        if self.ones > MANY:
            return self._many_cells(codes)
        device = rows.codes[self.sets[0][0]].device
        out = torch.empty(self.ones, len(rows), dtype=torch.int32, device=device)
        for place, (start, columns) in enumerate(zip(self.offsets, self.sets, strict=True)):
            line = out[place]
            line.copy_(codes[columns[0]])
            for name in columns[1:]:
                line.mul_(known[name]).add_(codes[name])
            line.add_(start)
        return out.T

    def _many_cells(self, codes: Mapping[str, Tensor]) -> Tensor:
        """Do the same for all sets of one size at a time."""
        matrix = torch.stack([codes[name] for name, _ in self.columns if name in codes])
        out = matrix.new_empty(self.ones, matrix.shape[1])
        for parts in self._by_size:
            places, lines, sizes, starts = (part.to(matrix.device) for part in parts)
            found = matrix[lines[:, 0]]
            for line, size in zip(lines.T[1:], sizes.T[1:], strict=True):
                found.mul_(size[:, None]).add_(matrix[line])
            out[places] = found.add_(starts[:, None])
        return out.T

    @cached_property
    def _by_size(self) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """The sets of each size: their places, the lines and sizes of their columns, offsets."""
        used = [name for name, _ in self.columns if name in self.reads[0]]
        line = {name: place for place, name in enumerate(used)}
        out = []
        for size in sorted({len(s) for s in self.sets}):
            places = [i for i, s in enumerate(self.sets) if len(s) == size]
            chosen = [self.sets[i] for i in places]
            lines = torch.tensor([[line[n] for n in s] for s in chosen])
            sizes = torch.tensor([[self.counted[n] for n in s] for s in chosen], dtype=torch.int32)
            starts = torch.tensor([self.offsets[i] for i in places], dtype=torch.int32)
            out.append((torch.tensor(places), lines, sizes, starts))
        return out

    def spec(self) -> Spec:
        place = {name: index for index, (name, _) in enumerate(self.columns)}
        grouped = {"groups": [[n, list(g)] for n, g in self.groups]} if self.groups else {}
        return {
            "kind": self.kind,
            "columns": [list(c) for c in self.columns],
            "sets": [[place[name] for name in s] for s in self.sets],
            **grouped,
        }

    def merge(self, groups: Mapping[str, tuple[int, ...]]) -> Marginals:
        """Count the same sets over merged cells, for the columns of this map that are given.

        Groups are of the columns' own cells. Cells that are merged already stay together.
        """
        for name, before in self.groups:
            after = groups.get(name, before)
            if len(set(zip(before, after, strict=False))) > len(set(before)):
                msg = f"the cells of column {name!r} are merged already: none can be told apart"
                raise PlanError(msg)
        both = {**self.merged, **groups}
        used = tuple((n, tuple(both[n])) for n, _ in self.columns if n in both)
        return Marginals(self.columns, self.sets, used)

    def add_up(self, counts: np.ndarray, merged: Marginals) -> np.ndarray:
        """Turn counts of this map into those of `merged`, the same sets over merged cells."""
        if not merged.groups:
            return counts
        out = np.zeros(merged.dim, dtype=counts.dtype)
        into = {name: self._into(merged, name) for name, _ in self.columns}
        for start, size, offset, columns in zip(
            self.offsets, self.sizes, merged.offsets, self.sets, strict=True
        ):
            place = np.zeros(1, dtype=np.int64)
            for name in columns:
                group = into[name]
                place = (place[:, None] * merged.counted[name] + group[None, :]).reshape(-1)
            np.add.at(out, offset + place, counts[start : start + size])
        return out

    def _into(self, merged: Marginals, name: str) -> np.ndarray:
        """Give the group of `merged` that each cell or group of a column here lies in."""
        cells = range(dict(self.columns)[name])
        first = np.unique(self.merged.get(name, cells), return_index=True)[1]
        return np.array(merged.merged.get(name, cells))[first]

    def keep(self, counts: np.ndarray, places: Iterable[int]) -> tuple[Marginals, np.ndarray]:
        """Keep some of the sets, by their places, with their counts."""
        kept = sorted(int(place) for place in places)
        sets = tuple(self.sets[place] for place in kept)
        used = {name for columns in sets for name in columns}
        groups = tuple((name, group) for name, group in self.groups if name in used)
        parts = [counts[self.offsets[i] : self.offsets[i] + self.sizes[i]] for i in kept]
        return Marginals(self.columns, sets, groups), np.concatenate(parts)

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        return {columns: place for place, columns in enumerate(self.sets)}

    def set_slice(self, columns: Iterable[str]) -> slice:
        """Locate the cells of one set in the vector."""
        place = self._places[tuple(columns)]
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
