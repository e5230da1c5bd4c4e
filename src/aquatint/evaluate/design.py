"""Tables as matrices for classifiers: fitted on the rows that train, never on those that test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aquatint.errors import DataError
from aquatint.evaluate.tables import Encoded, Grid

_ROOM = 2**28
"""The most numbers in a matrix: 2 GiB in float64."""


@dataclass(frozen=True)
class Design:
    """How rows become numbers: ranges first, then whether they are missing, then categories.

    Missing values of a range become the median of the training rows, with an indicator where the
    schema allows them. Ranges are then scaled to mean 0 and deviation 1. Category cells come from
    the schema, so a cell that the training rows lack has its column all the same.

    Attributes
    ----------
    grid
        The cells.
    target
        The column left out, because it is predicted.
    medians, means, deviations
        Of the training rows, for each ranged column.
    """

    grid: Grid
    target: str
    medians: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    @classmethod
    def fit(cls, table: Encoded, grid: Grid, target: str) -> Design:
        """Learn medians, means and deviations from the training rows."""
        columns = [table.values[name] for name in grid.ranged]
        medians = np.array([_median(column) for column in columns])
        filled = [np.where(np.isnan(c), m, c) for c, m in zip(columns, medians, strict=True)]
        means = np.array([f.mean() for f in filled])
        deviations = np.array([f.std() for f in filled])
        return cls(grid, target, medians, means, np.where(deviations > 0, deviations, 1.0))

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns with categories, without the target."""
        return tuple(name for name in self.grid.listed if name != self.target)

    def one_hot(self, table: Encoded) -> np.ndarray:
        """Give scaled ranges, indicators and one-hot cells, shape (rows, width)."""
        sizes = [self.grid.cells[name] for name in self.categorical]
        head = self._ranges(table)
        width = head.shape[1] + sum(sizes)
        if table.rows * width > _ROOM:
            msg = (
                f"one-hot coding takes {width:,} columns for {table.rows:,} rows, more than fits "
                "in memory: leave out the column with the most categories, or give fewer rows"
            )
            raise DataError(msg)
        matrix = np.zeros((table.rows, width))
        matrix[:, : head.shape[1]] = head
        start = head.shape[1]
        for name, size in zip(self.categorical, sizes, strict=True):
            matrix[np.arange(table.rows), start + table.codes[name]] = 1.0
            start += size
        return matrix

    def ordinal(self, table: Encoded) -> tuple[np.ndarray, list[bool]]:
        """Give scaled ranges, indicators and the cells as numbers, and which columns are cells."""
        head = self._ranges(table)
        cells = [table.codes[name][:, None].astype(float) for name in self.categorical]
        marks = [False] * head.shape[1] + [True] * len(cells)
        return np.concatenate([head, *cells], axis=1), marks

    def _ranges(self, table: Encoded) -> np.ndarray:
        columns, indicators = [], []
        for place, name in enumerate(self.grid.ranged):
            value = table.values[name]
            absent = np.isnan(value)
            filled = np.where(absent, self.medians[place], value)
            columns.append((filled - self.means[place]) / self.deviations[place])
            if self.grid.schema.columns[name].missing:
                indicators.append(absent.astype(float))
        parts = [*columns, *indicators]
        return np.stack(parts, axis=1) if parts else np.zeros((table.rows, 0))


def _median(column: np.ndarray) -> float:
    present = column[~np.isnan(column)]
    return float(np.median(present)) if len(present) else 0.5
