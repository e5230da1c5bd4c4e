"""The noisy joint counts of a release, added up to the columns that a question reads.

Every released table that holds some of those columns tells their joint counts once more: tables
over the same columns and groups of cells are averaged with weights one over their variance, which
is what least squares does. Tables that share no column with the question still tell the number of
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aquatint.features import Count
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import counting_parts
from aquatint.release.model import Release

Groups = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """Noisy joint counts over groups of cells.

    Attributes
    ----------
    columns
        Their columns.
    groups
        For each of these, the group of every cell.
    counts
        One axis for each column.
    variance
        Of the noise of every count.
    """

    columns: tuple[str, ...]
    groups: tuple[Groups, ...]
    counts: np.ndarray
    variance: float

    def onto(self, columns: Iterable[str]) -> Table:
        """Add up over all other columns."""
        kept = [name for name in columns if name in self.columns]
        axes = [self.columns.index(name) for name in kept]
        other = tuple(i for i in range(len(self.columns)) if i not in axes)
        summed = self.counts.sum(axis=other)
        order = np.argsort(np.argsort(axes))
        return Table(
            tuple(kept),
            tuple(self.groups[i] for i in axes),
            np.asarray(summed.transpose(order)),
            self.variance * float(np.prod([self.counts.shape[i] for i in other])),
        )


class Counted:
    """All joint counts of a release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self._known: dict[tuple[int, tuple[str, ...]], Table] = {}

    @cached_property
    def tables(self) -> list[Table]:
        """Every released table, as it is."""
        found = []
        for block in self.release.blocks:
            for part, counts, deviation in counting_parts(block):
                groups = _groups(part)
                found += [_table(part, s, groups, counts, deviation) for s in part.sets]
        return found

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """In which tables each column is: of a wide release, few of very many."""
        found: dict[str, list[int]] = {}
        for place, table in enumerate(self.tables):
            for name in table.columns:
                found.setdefault(name, []).append(place)
        return found

    def _with(self, columns: Iterable[str]) -> list[int]:
        """Give the places of the tables that hold one of the columns, or several."""
        return sorted({place for name in columns for place in self._places.get(name, ())})

    @cached_property
    def _totals(self) -> np.ndarray:
        """What every table adds up to, and the variance of that: shape (tables, 2)."""
        found = [(float(t.counts.sum()), t.variance * t.counts.size) for t in self.tables]
        return np.array(found).reshape(-1, 2)

    def over(self, columns: tuple[str, ...]) -> list[Table]:
        """Give what is known of some columns' joint counts: independent tables, pooled."""
        pooled: dict[tuple[tuple[str, ...], tuple[Groups, ...]], tuple[np.ndarray, float]] = {}
        for place in self._with(columns):
            table = self.tables[place]
            common = tuple(name for name in columns if name in table.columns)
            if (place, common) not in self._known:
                self._known[place, common] = table.onto(common)
            part = self._known[place, common]
            sums, weight = pooled.get((common, part.groups), (np.zeros(()), 0.0))
            pooled[common, part.groups] = (
                sums + part.counts / part.variance,
                weight + 1 / part.variance,
            )
        return [Table(*key, s / weight, 1 / weight) for key, (s, weight) in pooled.items()]

    def rows(self, columns: tuple[str, ...]) -> tuple[float, float]:
        """Give the number of rows and its variance, from all but the tables of these columns."""
        if self.release.rows is not None:
            return float(self.release.rows), 0.0
        counted = [
            (float(b.sum[0]), float(b.stderr[0]) ** 2)
            for b in self.release.blocks
            if isinstance(b.map, Count)
        ]
        apart = np.delete(self._totals, self._with(columns), axis=0)
        value, variance = np.concatenate([np.array(counted).reshape(-1, 2), apart]).T
        total = float((1 / variance).sum())
        return max(float((value / variance).sum()) / total, 1.0), 1 / total


def _groups(part: Marginals) -> dict[str, Groups]:
    return {name: tuple(part.merged.get(name, range(cells))) for name, cells in part.columns}


def _table(
    part: Marginals,
    columns: tuple[str, ...],
    groups: Mapping[str, Groups],
    counts: np.ndarray,
    deviation: float,
) -> Table:
    shape = [part.counted[name] for name in columns]
    of_cells = tuple(groups[name] for name in columns)
    return Table(columns, of_cells, counts[part.set_slice(columns)].reshape(shape), deviation**2)
