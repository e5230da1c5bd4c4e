"""The cells of a column, put together where a question cannot tell them apart.

A question reads a column through a few vectors over its cells. Cells where all of these agree are
one level, so that the joint distribution of the columns that a question reads is a small table even
when the columns have many cells. Counts over other groups of cells are added up until they are
counts of levels, or of several levels together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one column.

    Attributes
    ----------
    of_atom
        The level of every atom.
    count
        How many there are.
    """

    of_atom: np.ndarray
    count: int

    def coarser(self) -> Levels:
        """Put neighbouring levels together, two by two."""
        return Levels(self.of_atom // 2, (self.count + 1) // 2)

    def mean(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Average values of atoms over each level, by the atoms' shares of rows."""
        weight = np.bincount(self.of_atom, weights=shares, minlength=self.count)
        total = np.bincount(self.of_atom, weights=shares * values, minlength=self.count)
        return np.asarray(total / np.maximum(weight, 1e-300))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Add up values of atoms, on the last axis, over each level."""
        out = np.zeros((*values.shape[:-1], self.count))
        np.add.at(out.T, self.of_atom, values.T)
        return out


def levels_of(vectors: Sequence[np.ndarray]) -> Levels:
    """Tell atoms apart where some vector does; levels are numbered along the first vector."""
    stacked = np.stack(vectors)
    size = np.maximum(np.abs(stacked).max(1, keepdims=True), 1e-300)
    rounded = np.rint(stacked / size / CLOSE)
    distinct, level = np.unique(rounded, axis=1, return_inverse=True)
    return Levels(np.asarray(level.reshape(-1)), distinct.shape[1])


@dataclass(frozen=True, eq=False)
class Meeting:
    """What groups of a table and levels of a question have in common: both add up to it."""

    of_group: np.ndarray
    of_level: np.ndarray
    count: int


def meeting(levels: Levels, atom_of_cell: np.ndarray, group_of_cell: np.ndarray) -> Meeting:
    """Find the finest sets of cells that are unions of levels and unions of groups both."""
    level = levels.of_atom[atom_of_cell]
    groups = int(group_of_cell.max()) + 1
    size = levels.count + groups
    touching = coo_array(
        (np.ones(len(level)), (level, levels.count + group_of_cell)), shape=(size, size)
    )
    count, part = connected_components(touching, directed=False)
    return Meeting(part[levels.count :], part[: levels.count], int(count))
