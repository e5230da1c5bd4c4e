"""The default plan for a table: one rule for all of them.

Its settings were chosen on development tables that no result is reported on: docs/results/tables.md
names them and the trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from math import copysign, floor, log
from typing import Any

from aquatint.accounting import Budget
from aquatint.columns import (
    RANGED,
    Date,
    Datetime,
    Integer,
    Numeric,
    bin_edges,
    even_bins,
)
from aquatint.errors import PlanError
from aquatint.features import Count, onehot
from aquatint.features.grid import grid_of
from aquatint.features.marginals import Marginals, marginals
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.schema import Schema

BINS = (32, 16, 8, 4)
"""Bins of a range: the first number for histograms and for each column with the label; for other
joint counts, the first number with which they fit in memory."""
FINER = (3.5, 2.5, 1.5, *(part / 2**n for n in range(6) for part in (0.75, 0.5)))
HALVES = tuple(1 / 2**n for n in range(1, 7))
FINEST = tuple(1 / 4**n for n in range(4, 7))
"""So far from the dense place of a range, in widths of the 32 bins, it is cut again: FINER and
FINEST on one side of a bound, HALVES and FINEST on both sides of an inner zero,"""
ROOM = 1 / 8
"""unless another cut is within this part of that distance."""
MOST_CELLS = 20_000_000
"""Joint counts are summed over fine cells before these are merged: so many fit in memory."""
WIDE_COLUMN = 2_000
"""Columns with more cells than this have a histogram only."""
FEW_CLASSES = 3
MOST_CLASSES = 16
COUNT_SHARE = 0.01
FIRST_SHARE = 0.2
LEAST_FIRST, MOST_FIRST = 0.15, 0.5
"""The histograms' share before, and between which limits once the number of rows is published."""
MOST_FIRST_WIDE = 0.4
"""The upper limit where columns are counted by label too, which tells their shapes once more."""
MERGE = 10.0
"""Cells are merged until each group holds this many standard deviations of the noise in rows."""
MANY_COLUMNS = 50
"""With so many columns, or more than a few classes, each column's pair with the label is counted on
its own too,"""
LABEL_MERGE = 5.0
"""over groups of so many standard deviations,"""
CLASSES_SHARE, MOST_SHARE, MANY_SHARE = 1 / 3, 1 / 2, 2 / 3
"""with so much of the joint counts' share: where classes are many, where they are too many for
pairs by label, and where columns are many; docs/results/notes.md has the trials."""


def plan(schema: Schema) -> Plan:
    """Choose the default blocks for a table, from its schema alone.

    The histograms of the columns come first. Then, over cells that those histograms show to be
    worth telling apart, the joint counts of all pairs of columns; with a label, of every pair
    together with the label, which costs no more. How the budget is divided between the two is
    settled by ε and the noisy number of rows (`rebalanced`).
    """
    if schema.images:
        msg = "images need a recipe: dp_mepf, dp_merf or dp_hp"
        raise PlanError(msg)
    ranged = {n: c for n, c in schema.columns.items() if isinstance(c, RANGED)}
    settled = schema.with_bins({n: _edges(c) for n, c in ranged.items()})
    cells, label = settled.cells(), settled.label
    classes = None if label in ranged and cells[label] > MOST_CLASSES else label
    joint = {name: count for name, count in cells.items() if count <= WIDE_COLUMN}
    free = {n: settled.columns[n] for n, c in ranged.items() if c.bins is None}
    for bins in BINS:
        groups = {n: _coarser(c, bins) for n, c in free.items() if n in joint}
        counted = joint | {name: max(group) + 1 for name, group in groups.items()}
        if _joint_cells(counted, classes) <= MOST_CELLS:
            coarse = {n: group for n, group in groups.items() if counted[n] < joint[n]}
            found = _joint_blocks(joint, classes, coarse)
            break
    else:
        found = _label_pairs(joint, label)
    return Plan(settled, _table_blocks(settled, cells, found), rebalance=bool(found))


def _coarser(column: Any, bins: int) -> tuple[int, ...]:
    """Put neighbouring bins together, in stretches of equal width; missing stays apart.

    Next to the dense place a stretch is still cut, at greater and greater ratios.
    """
    cells, present = column.cells, column.present_cells
    if bins == BINS[0] or present <= bins:
        return tuple(range(cells))
    low, high = column.limits
    width, ratio = (high - low) / bins, (BINS[0] / bins) ** 2

    def stretch(edge: float) -> tuple[int, float]:
        away = (edge - _dense(column)) / width
        near = 0 < abs(away) < 1 - 1e-9
        finer = copysign(1 + floor(-log(abs(away), ratio)), -away) if near else 0.0
        return floor((edge - low) / width + 1e-9), finer

    found = [stretch(edge) for edge in bin_edges(column)[:-1]]
    number = {place: i for i, place in enumerate(dict.fromkeys(found))}
    group = [number[place] for place in found]
    return (*group, *range(len(number), len(number) + cells - present))


def _dense(column: Any) -> float:
    """Say where most values of a skewed column lie: at zero, or at the lower bound."""
    low, high = column.limits
    return 0.0 if low + column.point <= 0 < high - column.point else float(low)


def _edges(column: Numeric | Integer | Date | Datetime) -> int | list[float]:
    """Cut a range into bins of equal width; whole numbers, if few enough, each get their own.

    The lower bound and zero get a bin for themselves: there lie the values of those who have none,
    and those that were clipped. Next to zero, or to the lower bound where zero is not within the
    bounds, the range is cut finer and finer: there lie most values of a skewed column, and all
    values of one whose bounds are generous. Cells that are not needed are merged later.
    """
    even = even_bins(column, BINS[0])
    if isinstance(even, int):
        return even
    low, high = column.limits
    whole = isinstance(column, (Integer, Date))
    one, dense, width = column.point, _dense(column), (high - low) / BINS[0]
    edges = {end for point in {low, dense} for end in (point, point + one)} | {high}
    edges |= {edge for edge in even if all(abs(edge - known) >= one for known in edges)}
    for part in (FINER if dense - low < width else HALVES) + FINEST:
        for cut in (dense - part * width, dense + part * width):
            place, room = (float(floor(cut)), one) if whole else (cut, 0.0)
            room = max(room, ROOM * part * width)
            if low < place < high and all(abs(place - edge) >= room for edge in edges):
                edges.add(place)
    return sorted(edges)


def _joint_cells(cells: Mapping[str, int], label: str | None) -> int:
    """Count the cells of all pairs, times the classes of a label that goes with each of them."""
    others = [count for name, count in cells.items() if name != label]
    pairs = (sum(others) ** 2 - sum(count**2 for count in others)) // 2
    classes = cells.get(label, 1) if label is not None else 1
    if classes > MOST_CLASSES:
        return pairs + classes * sum(others)
    return pairs * (classes + (classes > FEW_CLASSES)) + classes * sum(others)


def _joint_blocks(
    cells: Mapping[str, int], label: str | None, coarse: Mapping[str, tuple[int, ...]]
) -> list[PlannedBlock]:
    """Choose the joint counts; shares are relative to each other."""

    def block(name: str, sets: Iterable[tuple[str, ...]], share: float = 1.0) -> PlannedBlock:
        counted = marginals(cells, sets)
        used = {n: group for n, group in coarse.items() if n in counted.reads[0]}
        return PlannedBlock(name, counted.merge(used), share, MERGE)

    pairs = list(combinations(cells, 2))
    if not pairs:
        return []
    if label is None or label not in cells or len(cells) < 3:
        return [block("pairs", pairs)]
    others, found = [pair for pair in pairs if label not in pair], []
    if cells[label] > FEW_CLASSES:
        # A pair that is added up over many classes is noisy: it is counted on its own too.
        found.append(block("pairs", others))
    if cells[label] <= MOST_CLASSES:
        found.append(block("pairs by label", [(*pair, label) for pair in others]))
    share = _label_share(len(cells), cells[label])
    if share:
        # What one column tells of the label drowns in many pairs, or many classes, of coarse cells.
        single = marginals(cells, [(name, label) for name in cells if name != label])
        relative = len(found) * share / (1 - share)
        found.insert(0, PlannedBlock("columns by label", single, relative, LABEL_MERGE))
    return found


def _label_share(columns: int, classes: int) -> float:
    """Say which part of the joint counts' share goes to each column with the label alone."""
    if columns >= MANY_COLUMNS:
        return MANY_SHARE
    if classes > MOST_CLASSES:
        return MOST_SHARE
    return CLASSES_SHARE if classes > FEW_CLASSES else 0.0


def _label_pairs(cells: Mapping[str, int], label: str | None) -> list[PlannedBlock]:
    """Fall back, for a table too wide for all pairs, to each column with the label."""
    if label is None or label not in cells or len(cells) < 2:
        return []
    chosen, room = [], MOST_CELLS
    for name in sorted((n for n in cells if n != label), key=lambda n: cells[n]):
        room -= cells[name] * cells[label]
        if room >= 0:
            chosen.append((name, label))
    if not chosen:
        return []
    return [PlannedBlock("columns by label", marginals(cells, chosen), 1.0, LABEL_MERGE)]


def _table_blocks(
    schema: Schema, cells: Mapping[str, int], joint: list[PlannedBlock]
) -> tuple[PlannedBlock, ...]:
    counted = 0.0 if schema.privacy.replaces else COUNT_SHARE
    total = sum(block.share for block in joint)
    first = FIRST_SHARE if joint else 1.0
    blocks = [PlannedBlock("columns", onehot(cells), first * (1 - counted))]
    for block in joint:
        share = block.share / total * (1 - first) * (1 - counted)
        blocks.append(replace(block, share=share))
    if counted:
        blocks.insert(0, PlannedBlock("count", Count(), counted))
    return tuple(blocks)


def rebalanced(plan: Plan, budget: Budget, rows: float) -> Plan:
    """Divide the budget anew between the histograms and the joint counts over merged cells.

    The weaker the joint counts are against the number of rows, the more of the budget goes to the
    histograms, from 15 to 50 percent, or to 40 if columns are counted by label too: the rule was
    chosen on development tables, see docs/results/tables.md. `rows` is public or noisy, so the
    choice is post-processing; the shares still add up to one, so the whole spends the same budget.
    """
    noise = noise_of(plan, budget)
    weakest = max(
        parts[0].scale / grid_of(block.map).steps
        for block, parts in zip(plan.blocks, noise, strict=True)
        if block.merge is not None
    )
    strength = log(max(weakest, 1e-300) / max(rows, 1.0) / 0.001) / log(8)
    return _divided(plan, LEAST_FIRST + (MOST_FIRST - LEAST_FIRST) * strength)


def extremes(plan: Plan) -> tuple[Plan, ...]:
    """Give the plans between which `rebalanced` chooses, or the plan itself if it is settled."""
    if not plan.rebalance:
        return (plan,)
    return _divided(plan, LEAST_FIRST), _divided(plan, MOST_FIRST)


def _by_label(block: PlannedBlock, label: str | None) -> bool:
    """Whether a block counts single columns by label."""
    counts = block.map
    return isinstance(counts, Marginals) and all(len(s) == 2 and label in s for s in counts.sets)


def _divided(plan: Plan, wanted: float) -> Plan:
    wide = any(_by_label(block, plan.schema.label) for block in plan.blocks)
    first = min(max(wanted, LEAST_FIRST), MOST_FIRST_WIDE if wide else MOST_FIRST)
    late = sum(block.share for block in plan.blocks if block.adaptive)
    early = sum(b.share for b in plan.blocks if not b.adaptive and not isinstance(b.map, Count))
    both = late + early

    def share(block: PlannedBlock) -> float:
        if isinstance(block.map, Count):
            return block.share
        if not block.adaptive:
            return block.share / early * first * both
        return block.share / late * (1 - first) * both

    blocks = tuple(replace(block, share=share(block)) for block in plan.blocks)
    return replace(plan, blocks=blocks, rebalance=False)
