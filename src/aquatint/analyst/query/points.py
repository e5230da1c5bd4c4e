"""The values of a column as finitely many points, so that a function of it is a plain vector.

A category is one point. A bin of numbers is cut at every constant that a question compares it with,
so that no piece straddles one, and into a few pieces besides. Each piece is two points, its mean
plus and minus its standard deviation: sums over them are exact for polynomials up to degree three.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.decode import slopes
from aquatint.columns import POINT, RANGED, Boolean

PIECES = 4
"""Into so many pieces a bin is cut, at least, if it has room."""


@dataclass(frozen=True, eq=False)
class Points:
    """The points of one column.

    Attributes
    ----------
    values
        Their numbers: days and seconds since 1970 for dates, one and zero for true and false, NaN
        where there is no number.
    cell
        The cell of the column that each lies in.
    share
        The share of its cell that each stands for; those of a cell add up to one.
    present
        Whether a point is a value at all, not a missing one.
    """

    values: np.ndarray
    cell: np.ndarray
    share: np.ndarray
    present: np.ndarray

    def means(self, vector: np.ndarray) -> np.ndarray:
        """Average a vector over the points of every cell."""
        return np.bincount(self.cell, weights=self.share * vector)


def points_of(column: Any, cuts: Iterable[float] = (), mass: np.ndarray | None = None) -> Points:
    """Give the points of a column.

    Parameters
    ----------
    column
        The column, its bins settled.
    cuts
        Constants that it is compared with.
    mass
        The share of rows in each cell, if known: values lean towards the heavier neighbour.
    """
    if not isinstance(column, RANGED):
        values = np.full(column.cells, np.nan)
        if isinstance(column, Boolean):
            values[:2] = 0.0, 1.0
        elif all(isinstance(c, int) for c in column.categories):
            values[: len(column.categories)] = column.categories
        cell = np.arange(column.cells)
        return Points(values, cell, np.ones(column.cells), cell < column.present_cells)
    values, cell, share = _pieces(column, sorted(set(cuts)), mass)
    absent = column.cells - column.present_cells
    return Points(
        np.append(values, np.full(absent, np.nan)),
        np.append(cell, np.arange(column.present_cells, column.cells)),
        np.append(share, np.ones(absent)),
        np.append(np.ones(len(values), dtype=bool), np.zeros(absent, dtype=bool)),
    )


def _pieces(
    column: Any, cuts: list[float], mass: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, width, whole = widths_and_edges(column)
    start, end = slopes(left, left + width, mass)
    if whole:  # above c and from c on are different whole numbers
        cuts = [edge for cut in cuts for edge in (np.ceil(cut), np.floor(cut) + 1)]
    low, high = column.limits
    values: list[np.ndarray] = []
    cells: list[np.ndarray] = []
    shares: list[np.ndarray] = []
    for cell, (first, size) in enumerate(zip(left, width, strict=True)):
        if not whole and size <= POINT * (high - low) * 1.001:
            values.append(np.array([first]))
            shares.append(np.ones(1))
            cells.append(np.array([cell]))
            continue
        inside = [cut for cut in cuts if first < cut < first + size]
        edges = np.unique([*first + size * np.linspace(0, 1, PIECES + 1), *inside])
        edges = np.unique(np.ceil(edges)) if whole else edges
        place, length = (edges - first) / size, np.diff(edges)
        below = start[cell] * place + (end[cell] - start[cell]) * place**2 / 2
        share = np.diff(below) / below[-1]
        middle = edges[:-1] + (length - whole) / 2
        spread = np.sqrt(np.maximum(length**2 - whole, 0.0) / 12)
        values.append(np.concatenate([middle - spread, middle + spread]))
        shares.append(np.concatenate([share, share]) / 2)
        cells.append(np.full(2 * len(share), cell))
    return np.concatenate(values), np.concatenate(cells), np.concatenate(shares)
