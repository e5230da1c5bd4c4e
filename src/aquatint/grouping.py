"""Merging rare cells before a second round of counting, by what the first round published.

Counts over merged cells have the same sensitivity as counts over fine ones, so they carry the same
noise and more signal. Which cells to merge is read off *noisy* histograms: that is post-processing
and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from aquatint.columns import RANGED, Ordered, even_bins
from aquatint.errors import PlanError
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import histograms, on_simplex
from aquatint.release.model import Block
from aquatint.schema import Schema

MOST_CLASSES = 16
"""The classes of a label with at most so many stay apart: they are what is asked about most."""
FEWEST = 4
"""However strong the noise, a column keeps about this many groups of equal weight: thousands of
noisy tables together still tell what one of them cannot."""
ENOUGH = 6
"""A column with an order that would have fewer groups than this gets smaller ones,"""
SMALLER = (0.75, 0.56, 0.42, 0.32)
"""of these parts of the smallest group that was asked for, one after the other,"""
WORTH = 0.3
"""as long as they have this part of the rows that make a group worth its noise."""
EVEN = 32
"""Of bins of the default plan, those that cut one of so many even ones again"""
PIECES = (1 / 4, 1 / 8, 1 / 16, 1 / 32, 0.0)
"""begin a group only if the one before has such a part of the rows: the first with which there are
`ENOUGH` groups."""


def merged(fine: Marginals, before: Iterable[Block], schema: Schema, least: float) -> Marginals:
    """Merge the cells of every column into groups of at least `least` rows, where it has so many.

    Parameters
    ----------
    fine
        The map over the schema's own cells, or over coarser ones.
    before
        The noisy blocks that are published already; they hold the columns' histograms.
    schema
        Says which columns have an order: only neighbours are merged there.
    least
        The smallest group that is worth its noise, in rows; `WORTH` of it is for columns with an
        order that would have fewer than `ENOUGH` groups.
    """
    known = histograms(before)
    groups = {}
    for name, cells in fine.columns:
        if name not in fine.reads[0] or (name == schema.label and cells <= MOST_CLASSES):
            continue
        if name not in known:
            msg = f"cells of column {name!r} cannot be merged: no earlier block has its histogram"
            raise PlanError(msg)
        counts, _ = known[name]
        total = max(float(counts.sum()), 1.0)
        coarse = np.array(fine.merged.get(name, range(cells)))
        shares = np.bincount(coarse, weights=on_simplex(counts / total))
        wanted = min(least / total, 1 / FEWEST)
        column = schema.columns[name]
        if isinstance(column, (*RANGED, Ordered)):
            present = len(shares) - int(column.missing)
            first = np.unique(coarse, return_index=True)[1]
            finer = _finer(column)[first[:present]]
            group = _runs(shares, wanted, WORTH * least / total, present, finer)
        else:
            group = _rare(shares, wanted)
        if max(group) + 1 < cells:
            groups[name] = tuple(int(g) for g in group[coarse])
    return fine.merge(groups)


def _finer(column: Any) -> np.ndarray:
    """Say which cells of a column begin where the default plan cut an even bin again.

    The cells of a single point are its own, and so are the bins that a schema declares.
    """
    if not isinstance(column, RANGED) or not isinstance(column.bins, list):
        return np.zeros(column.present_cells, dtype=bool)
    edges, even = np.array(column.bins), even_bins(column, EVEN)
    if isinstance(even, int) or not np.isin(even, edges).all():
        return np.zeros(column.present_cells, dtype=bool)
    point = np.diff(edges) <= column.point * 1.001
    after = np.append(False, point[:-1])
    return np.asarray(~np.isin(edges[:-1], even) & ~point & ~after)


def _runs(
    shares: np.ndarray, wanted: float, worth: float, present: int, finer: np.ndarray
) -> np.ndarray:
    """Merge neighbours; where that leaves few groups, cut even bins, then let groups be smaller.

    Most rows of a skewed column lie in one cell. Its tail is lighter than a group should be, and
    would go with that cell: nothing would be told of the column, though a rare class may lie there.
    All rows of a column with generous bounds lie in a few even bins, and the finer ones are needed.
    Where they are not, groups of fine cells would tell more detail than the noise is worth.
    """
    steps = [(wanted, piece) for piece in PIECES]
    steps += [(part * wanted, 0.0) for part in SMALLER if part * wanted >= worth]
    for least, piece in steps:
        before = np.where(finer, max(piece, least), least)
        group = _neighbours(shares, least, present, before)
        if group[:present].max() + 1 >= ENOUGH:
            break
    return group


def _neighbours(
    shares: np.ndarray, wanted: float, present: int, before: np.ndarray | None = None
) -> np.ndarray:
    """Walk up the cells and close a group when it is heavy enough and the rest is too.

    For each cell, `before` says how heavy a group has to be that ends there. Missing, the last
    cell, is no neighbour of the largest value: it stays apart.
    """
    least = np.full(present, wanted) if before is None else before
    group = np.zeros(len(shares), dtype=np.int64)
    current, weight = 0, 0.0
    rest = np.cumsum(shares[:present][::-1])[::-1]
    for cell in range(present):
        if weight >= least[cell] and rest[cell] >= wanted:
            current, weight = current + 1, 0.0
        group[cell] = current
        weight += shares[cell]
    group[present:] = current + 1
    return group


def _rare(shares: np.ndarray, wanted: float) -> np.ndarray:
    """Keep the frequent cells apart, heaviest first, and put the others into one group.

    Where nothing is frequent, as among many equal cells, the heaviest few stay apart all the same.
    """
    order = np.argsort(-shares, kind="stable")
    frequent = int((shares >= wanted).sum())
    kept = order[: max(frequent, min(FEWEST - 1, len(shares) - 1) if not frequent else 0)]
    group = np.full(len(shares), len(kept), dtype=np.int64)
    group[kept] = np.arange(len(kept))
    return group


def best_sets(fine: Marginals, before: Iterable[Block], count: int) -> Marginals:
    """Choose the sets that are furthest from independence in what is published already.

    Of a set of two columns or more, the first two are compared with what they would be if they were
    independent given the rest. The score is the sum of squared differences less what the noise
    alone would give. The map comes back with the merged cells of the block that was looked at.
    """
    for block in before:
        seen = block.map
        if isinstance(seen, Marginals) and seen.sets == fine.sets:
            scores = [
                _dependence(seen, s, block.sum[seen.set_slice(s)], float(block.stderr[0]))
                for s in seen.sets
            ]
            kept = sorted(np.argsort(scores)[-count:])
            return Marginals(seen.columns, tuple(seen.sets[i] for i in kept), seen.groups)
    msg = "no earlier block counts the same sets: the best of them cannot be chosen"
    raise PlanError(msg)


def _dependence(
    seen: Marginals, columns: tuple[str, ...], counts: np.ndarray, deviation: float
) -> float:
    sizes = [seen.counted[name] for name in columns]
    table = counts.reshape(sizes[0], sizes[1] if len(sizes) > 1 else 1, -1)
    total = np.maximum(table.sum((0, 1)), deviation)
    apart = table.sum(1)[:, None] * table.sum(0)[None, :] / total
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1) * table.shape[2]
    return float((((table - apart) / deviation) ** 2).sum() - freedom)
