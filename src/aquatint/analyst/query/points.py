"""The values of a column as finitely many points, so that a function of it is a plain vector.

A category is one point. A bin of numbers is cut at every constant that a question compares it with,
so that no piece straddles one, and into a few pieces besides. Each piece is two points, its mean
plus and minus its standard deviation: sums over them are exact for polynomials of degree two, and
of degree three where its density is even.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.inside import moments_between, rates, share_below
from aquatint.columns import RANGED, Boolean

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
    rate = rates(left, left + width, mass)
    if whole:  # above c and from c on are different whole numbers
        cuts = [edge for cut in cuts for edge in (np.ceil(cut), np.floor(cut) + 1)]
    single = width <= column.point * 1.001 if not whole else np.zeros(len(left), dtype=bool)
    steps = left[:, None] + width[:, None] * (np.arange(1, PIECES) / PIECES)
    inner = np.append(steps[~single].reshape(-1), cuts)
    cell = np.searchsorted(left, inner, side="right") - 1
    kept = (left[cell] < inner) & (inner < left[cell] + width[cell]) & ~single[cell]
    edges = np.append(left, inner[kept])
    edges = np.unique(np.append(np.ceil(edges) if whole else edges, left[-1] + width[-1]))
    cell = np.searchsorted(left, edges[:-1], side="right") - 1
    first, last = ((edges[i : len(edges) - 1 + i] - left[cell]) / width[cell] for i in (0, 1))
    share = share_below(rate[cell], last) - share_below(rate[cell], first)
    mean, variance = moments_between(rate[cell], first, last)
    mean, variance = left[cell] + mean * width[cell], variance * width[cell] ** 2
    if whole:
        # A number is a whole one and, independent of it, a part of a step: that is taken off.
        part, spread = moments_between(rate / width, np.zeros(len(left)), np.ones(len(left)))
        mean, variance = mean - part[cell], variance - spread[cell]
    two = ~single[cell]
    lowest, highest = edges[:-1], np.where(two, edges[1:] - whole, edges[:-1])
    if not whole:  # real numbers lie on neither end, which a question may exclude
        lowest, highest = (
            np.where(two, np.nextafter(end, other), end)
            for end, other in ((lowest, highest), (highest, lowest))
        )
    low, high, below = _two(mean, variance, lowest, highest)
    return (
        np.append(low, high[two]),
        np.append(cell, cell[two]),
        np.append(np.where(two, share * below, 1.0), (share * (1 - below))[two]),
    )


def _two(
    mean: np.ndarray, variance: np.ndarray, lowest: np.ndarray, highest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give two points with a mean and a variance, between limits; and the share of the lower one.

    They have a half each, unless one would lie beyond a limit: then that one lies at the limit, and
    shares follow. The other cannot be beyond then, for nothing between limits a and b with a mean m
    has a greater variance than (m − a)·(b − m).
    """
    mean = np.clip(mean, lowest, highest)
    spread = np.sqrt(np.clip(variance, 0, (mean - lowest) * (highest - mean)))
    low, high, below = mean - spread, mean + spread, np.full(len(mean), 0.5)
    for limit, away, beyond in (
        (lowest, mean - lowest, low < lowest),
        (highest, highest - mean, high > highest),
    ):
        gap = away + spread**2 / np.maximum(away, 1e-300)
        share = np.where(gap > 0, 1 - away / np.maximum(gap, 1e-300), 1.0)
        up = limit is lowest
        low = np.where(beyond, limit if up else limit - gap, low)
        high = np.where(beyond, limit + gap if up else limit, high)
        below = np.where(beyond, share if up else 1 - share, below)
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest), below
