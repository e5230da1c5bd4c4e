"""Atoms: the cells that a release lets a model tell apart, and how each divides into fine cells.

Blocks may merge the cells of a column, each in its own way. Two cells that no joint count tells
apart are one atom: a model has one probability for it, and within it the fine cells follow the
column's own histogram.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aquatint.analyst.synthesize.smoothing import even, falling, smooth
from aquatint.columns import RANGED, Date, Integer, Ordered, bin_edges
from aquatint.features import leaves
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import counting_parts, histograms, on_simplex, unscaled
from aquatint.release.model import Block, Release
from aquatint.schema import Schema

POSSIBLE = 1e-6
"""This share of an atom is spread by width, so that no admitted value is impossible: a cell that
noise made look empty can still be asked for in a condition."""

HIDDEN = 0.02
"""A cell that noise hides is taken to hold at least this many standard deviations of it in rows: an
empty tail of a column is seldom the truth."""


@dataclass(frozen=True)
class Atoms:
    """The atoms of every column, side by side in one vector.

    Attributes
    ----------
    of_cell
        For each column, the atom of every cell.
    within
        For each column, every cell's share of its atom; the shares of an atom add up to one.
    """

    of_cell: dict[str, np.ndarray]
    within: dict[str, np.ndarray]

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each column's atoms lie."""
        out, start = {}, 0
        for name, atom in self.of_cell.items():
            count = int(atom.max()) + 1
            out[name] = slice(start, start + count)
            start += count
        return out

    @cached_property
    def total(self) -> int:
        """How many atoms all columns have together."""
        return sum(s.stop - s.start for s in self.slices.values())

    def spread(self, name: str, probabilities: np.ndarray) -> np.ndarray:
        """Give the probabilities of a column's cells from those of its atoms, on the last axis."""
        return np.asarray(probabilities[..., self.of_cell[name]] * self.within[name])


def atoms_of(release: Release) -> tuple[Atoms, np.ndarray]:
    """Find the atoms of a release, and the share of rows that each seems to hold."""
    joint = _joint_groupings(release.blocks)
    known = histograms(release.blocks)
    of_cell, within, shares = {}, {}, []
    dense = _read_finely(release)
    for name, column in release.schema.columns.items():
        cells = column.cells
        atom = np.arange(cells) if name in dense else _refine(joint.get(name, []), cells)
        counts, deviation = known.get(name, (np.full(cells, release.count / cells), 0.0))
        total = max(float(counts.sum()), 1.0)
        of_cell[name] = atom
        within[name] = _within(release.schema, name, counts, deviation, atom)
        shares.append(on_simplex(np.bincount(atom, weights=counts) / total))
    return Atoms(of_cell, within), np.concatenate(shares)


def _read_finely(release: Release) -> frozenset[str]:
    """Find the columns whose every cell matters to a map that is not a plain count."""
    dense = [
        leaf
        for block in release.blocks
        for leaf in leaves(block.map)
        if not isinstance(unscaled(leaf)[0], Marginals)
    ]
    return frozenset[str]().union(*(leaf.reads[0] | leaf.reads[1] for leaf in dense))


def _joint_groupings(blocks: Iterable[Block]) -> dict[str, list[np.ndarray]]:
    found: dict[str, list[np.ndarray]] = {}
    for block in blocks:
        for part, _, _ in counting_parts(block):
            cells = dict(part.columns)
            for name in {n for s in part.sets if len(s) > 1 for n in s}:
                group = part.merged.get(name, tuple(range(cells[name])))
                found.setdefault(name, []).append(np.array(group))
    return found


def _refine(groupings: list[np.ndarray], cells: int) -> np.ndarray:
    """Tell two cells apart when any grouping does; a single grouping's own numbers are kept."""
    if not groupings:
        return np.zeros(cells, dtype=np.int64)
    _, atom = np.unique(np.stack(groupings), axis=1, return_inverse=True)
    return np.asarray(atom.reshape(-1), dtype=np.int64)


def _within(
    schema: Schema, name: str, counts: np.ndarray, deviation: float, atom: np.ndarray
) -> np.ndarray:
    """Divide each atom into its cells by the noisy histogram, as far as it can be believed."""
    column = schema.columns[name]
    shrunk = smooth if isinstance(column, (*RANGED, Ordered)) else even
    width = _widths(column)
    expected = _expected(column, width, counts, deviation, atom)
    out = np.ones(len(counts))
    for group in range(int(atom.max()) + 1):
        cells = np.nonzero(atom == group)[0]
        if len(cells) == 1:
            continue
        found = shrunk(counts[cells], deviation, expected[cells])
        total, by_width = float(found.sum()), width[cells] / width[cells].sum()
        usual = expected[cells] / expected[cells].sum()
        shares = on_simplex(found / total) if total > 0 else usual
        hidden = HIDDEN * deviation / max(total, deviation, 1.0)
        shares = np.maximum(shares, hidden * len(cells) * usual)
        out[cells] = (1 - POSSIBLE) * shares / shares.sum() + POSSIBLE * by_width
    return out


def _expected(
    column: Any, width: np.ndarray, counts: np.ndarray, deviation: float, atom: np.ndarray
) -> np.ndarray:
    """Give what the cells of an atom are shrunk towards: their widths, or a tail that falls.

    The outermost cells of a range are merged because few rows are there, and those lie close to the
    rest: a tail is taken to fall as it does from the next atom to this one.
    """
    out = width.astype(float)
    if not isinstance(column, RANGED):
        return out
    inside = np.arange(len(width) - bool(column.missing))
    for cells in (inside, inside[::-1]):
        outermost = cells[atom[cells] == atom[cells[0]]]
        rest = cells[atom[cells] != atom[cells[0]]]
        if len(outermost) == 1 or len(rest) == 0:
            continue
        next_to = rest[atom[rest] == atom[rest[0]]]
        seen = max(float(counts[outermost].sum()), deviation * len(outermost) ** 0.5 / 2)
        before = float(counts[next_to].sum())
        if before > 0:
            tail = outermost[::-1]
            share = falling(width[tail], float(width[next_to].sum()), before / seen)
            out[tail] = share * width[tail].sum()
    return out


def widths_and_edges(column: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Give the lower edge and the width of a ranged column's bins, and whether it has steps.

    With steps, a bin holds the whole numbers from its lower edge on, as many as its width.
    """
    edges = np.array(bin_edges(column))
    whole = isinstance(column, (Integer, Date))
    if whole:
        edges = np.ceil(edges)
        edges[-1] = column.limits[1] + 1
    return edges[:-1], np.diff(edges), whole


def _widths(column: Any) -> np.ndarray:
    """How much of the range each cell covers; cells without an order count alike."""
    if not isinstance(column, RANGED):
        return np.ones(column.cells)
    _, width, _ = widths_and_edges(column)
    return np.append(width, np.mean(width)) if column.missing else width
