"""Merging rare cells before a second round of counting, by what the first round published.

Counts over merged cells have the same sensitivity as counts over fine ones, so they carry the same
noise and more signal. Which cells to merge is read off *noisy* histograms: that is post-processing
and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from aquatint.columns import RANGED, Ordered
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
            group = _runs(shares, wanted, WORTH * least / total, present)
        else:
            group = _rare(shares, wanted)
        if max(group) + 1 < cells:
            groups[name] = tuple(int(g) for g in group[coarse])
    return fine.merge(groups)


def _runs(shares: np.ndarray, wanted: float, worth: float, present: int) -> np.ndarray:
    """Merge neighbours; where that leaves few groups, let them be smaller.

    Most rows of a skewed column lie in one cell. Its tail is lighter than a group should be, and
    would go with that cell: nothing would be told of the column, though a rare class may lie there.
    """
    group = _neighbours(shares, wanted, present)
    for part in SMALLER:
        if group[:present].max() + 1 >= ENOUGH or part * wanted < worth:
            break
        group = _neighbours(shares, part * wanted, present)
    return group


def _neighbours(shares: np.ndarray, wanted: float, present: int) -> np.ndarray:
    """Walk up the cells and close a group when it is heavy enough and the rest is too.

    Missing, the last cell, is no neighbour of the largest value: it stays apart.
    """
    group = np.zeros(len(shares), dtype=np.int64)
    current, weight = 0, 0.0
    rest = np.cumsum(shares[:present][::-1])[::-1]
    for cell in range(present):
        if weight >= wanted and rest[cell] >= wanted:
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
