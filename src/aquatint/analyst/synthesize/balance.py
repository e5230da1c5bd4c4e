"""Rows whose pairs of values come out as the model has them, not as chance has it.

`draw` hands every component its rows, and the values of each column in their shares. Which of them
meet in a row is left to chance, and where a release has little noise that chance is the greater
part of what is wrong with a synthetic table. So two rows of one component trade their values of a
column wherever that brings the counts of pairs of columns, class by class, closer to what the model
expects. In a component columns are independent: any such arrangement of its values is as likely as
any other. Only the luck of the draw is taken out.

Shares of a component's few rows are no whole numbers, and which are rounded up is chance as well.
Over hundreds of components that adds up, in single columns too. So rows also move: from a value
that their component has rounded up to one that it has rounded down, where that helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np

from aquatint.progress import track

MOST_COUNTS = 16_000_000
"""Counts of pairs that are kept in memory, four bytes each."""
MOST_CLASSES = 16
"""A label with more cells is a column like any other."""
SWEEPS = 3
"""How often each column is gone through."""
MOVES = 3
"""How often each time one row of every component may move, before rows trade."""
MOST_LOOKUPS = 400_000_000
"""Where this many counts were looked up, it ends: chance matters less the more rows there are."""
TINY = 1e-300
NEAR = 1e-4
"""A count that is so near its share, in rows, is at it."""
FEWEST = 32
"""Trades that are looked at together, at least; otherwise as many as the root of the rows. Each one
assumes that the others are not made, which few of them hardly upset."""


def fits(sizes: Mapping[str, int], label: str | None) -> bool:
    """Whether the counts of all pairs of cells can be kept, class by class of the label."""
    return _counts(sizes, _common(sizes, label)) <= MOST_COUNTS


def balance(
    codes: Mapping[str, np.ndarray],
    chances: Mapping[str, np.ndarray],
    weights: np.ndarray,
    component: np.ndarray,
    label: str | None,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Let rows of one component trade values, or move, until pairs are as the model expects them.

    Parameters
    ----------
    codes
        For each column the cell of every row. No component gets further from its share of a cell
        than it was, or than one row.
    chances
        For each column, how likely each cell is in every component, up to a factor: (K, cells).
    weights
        The components' weights.
    component
        The component of every row, in rising order.
    label
        The column by whose classes pairs are counted, if there is one; its values stay.
    rng
        Chooses which rows meet.

    Returns
    -------
        The cells of every row afterwards; as they were, where counts do not fit in memory.
    """
    sizes = {name: part.shape[1] for name, part in chances.items()}
    common = _common(sizes, label)
    names = [name for name in codes if name != common]
    count = len(component)
    if len(names) < 2 or count < 2 or _counts(sizes, common) > MOST_COUNTS:
        return dict(codes)
    rows = _rows(codes, chances, weights, names, common)
    batch = max(FEWEST, isqrt(count))
    passes = min(SWEEPS * len(names), MOST_LOOKUPS // (2 * count * (len(names) - 1)))
    columns = np.concatenate([rng.permutation(len(names)) for _ in range(SWEEPS)])
    columns = columns[: max(passes, 1)]
    held = np.bincount(component, minlength=len(weights))[:, None]
    shares = [held * _shares(chances[name]) for name in names]
    with track("drawing", len(columns)) as advance:
        for column in columns:
            for _ in range(MOVES):
                cells = rows.cells[:, column] - rows.starts[column]
                moved, to = _moves(cells, component, shares[column], rng)
                for start in range(0, len(moved), batch):
                    part = slice(start, start + batch)
                    rows.move(int(column), moved[part], to[part])
            first, second = _partners(component, rng)
            apart = rows.cells[first, column] != rows.cells[second, column]
            first, second = first[apart], second[apart]
            for start in range(0, len(first), batch):
                rows.trade(int(column), first[start : start + batch], second[start : start + batch])
            advance(1)
    starts = rows.starts
    after = {name: rows.cells[:, i] - starts[i] for i, name in enumerate(names)}
    return {name: after.get(name, code) for name, code in codes.items()}


@dataclass(frozen=True)
class _Rows:
    """Rows on their way, and how far their pairs are from the model.

    Attributes
    ----------
    cells
        For each row and column the place of its cell among those of all columns, shape (n, d).
    starts
        The place of each column's first cell.
    tables
        Where the counts of each row's class begin, shape (n,).
    surplus
        How many rows more than expected have two cells, for each class: classes · D · D numbers.
    width
        D, the cells of all columns together.
    """

    cells: np.ndarray
    starts: np.ndarray
    tables: np.ndarray
    surplus: np.ndarray
    width: int

    def trade(self, column: int, first: np.ndarray, second: np.ndarray) -> None:
        """Let rows trade their values of a column, two by two, where the squared surplus falls.

        A count that rises from s adds 2s + 1 to the squares, one that falls takes 2s − 1 off. Each
        other column of the two rows has two counts that rise and two that fall, unless the rows
        have the same value there and are of one class.
        """
        others = np.delete(np.arange(self.cells.shape[1]), column)
        mine, yours = self.cells[first][:, others], self.cells[second][:, others]
        here, there = self.tables[first, None], self.tables[second, None]
        a, b = self.cells[first, column, None], self.cells[second, column, None]
        rising = (here, b, mine), (there, a, yours)
        falling = (here, a, mine), (there, b, yours)
        change = np.full(mine.shape, 2.0, dtype=np.float32)
        for pair in rising:
            change += self.surplus[self._place(*pair)]
        for pair in falling:
            change -= self.surplus[self._place(*pair)]
        change[(mine == yours) & (here == there)] = 0.0
        better = change.sum(1) < 0
        self.cells[first[better], column] = b[better, 0]
        self.cells[second[better], column] = a[better, 0]
        for pairs, step in ((rising, 1.0), (falling, -1.0)):
            for table, one, other in pairs:
                kept = table[better], one[better], other[better]
                np.add.at(self.surplus, self._place(*kept), np.float32(step))
                np.add.at(self.surplus, self._place(kept[0], kept[2], kept[1]), np.float32(step))

    def move(self, column: int, chosen: np.ndarray, to: np.ndarray) -> None:
        """Let rows change their value of a column where the squared surplus of pairs falls.

        Many rows that move at once would overshoot. So no more of them leave a value, or come to
        it, than its own surplus in their class asks for, or one.
        """
        starts = self.starts
        others = np.delete(np.arange(self.cells.shape[1]), column)
        theirs, here = self.cells[chosen][:, others], self.tables[chosen, None]
        a, b = self.cells[chosen, column, None], (starts[column] + to)[:, None]
        rising, falling = (self._place(here, value, theirs) for value in (b, a))
        change = (self.surplus[rising] - self.surplus[falling] + 1).sum(1)
        better = np.nonzero(change < 0)[0]
        narrow = others[np.argmin(np.diff(starts)[others])]
        mine, its = (slice(starts[i], starts[i + 1]) for i in (column, narrow))
        tables = self.surplus.reshape(-1, self.width, self.width)
        alone = tables[:, mine, its].sum(2).reshape(-1)
        line = here // self.width**2 * (mine.stop - mine.start)
        group = line + np.hstack([a, b]) - mine.start
        asked = np.maximum(alone[group[better]] * (1, -1), 1)
        fits = [_turn(one) < most for one, most in zip(group[better].T, asked.T, strict=True)]
        kept = better[fits[0] & fits[1]]
        self.cells[chosen[kept], column] = b[kept, 0]
        for value, step in ((b, 1.0), (a, -1.0)):
            for one, other in ((value, theirs), (theirs, value)):
                place = self._place(here[kept], one[kept], other[kept])
                np.add.at(self.surplus, place, np.float32(step))

    def _place(self, table: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(table + one * self.width + other)


def _rows(
    codes: Mapping[str, np.ndarray],
    chances: Mapping[str, np.ndarray],
    weights: np.ndarray,
    names: list[str],
    common: str | None,
) -> _Rows:
    """Line up the rows, and count their pairs against what the model expects."""
    sizes = [chances[name].shape[1] for name in names]
    starts = np.cumsum([0, *sizes])
    width = int(starts[-1])
    count = len(codes[names[0]])
    cells = np.stack([codes[name] + start for name, start in zip(names, starts, strict=False)], 1)
    seen = np.concatenate([_shares(chances[name]) for name in names], 1)
    share = (weights / weights.sum()).astype(np.float32)
    classes = np.zeros(count, np.int64) if common is None else codes[common]
    mixed = share[None] if common is None else share * _shares(chances[common]).T
    surplus = np.stack([(seen * -count * line[:, None]).T @ seen for line in mixed])
    for i, j in combinations(range(len(names)), 2):
        shape = (len(mixed), sizes[i], sizes[j])
        place = np.ravel_multi_index((classes, codes[names[i]], codes[names[j]]), shape)
        found = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape)
        left, right = (slice(starts[k], starts[k + 1]) for k in (i, j))
        surplus[:, left, right] += found
        surplus[:, right, left] += found.transpose(0, 2, 1)
    return _Rows(cells, starts, classes * width**2, surplus.reshape(-1), width)


def _partners(component: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Put the rows of every component together two by two, in random order."""
    order = np.argsort(component + rng.random(len(component)))
    sizes = np.bincount(component)
    half = sizes[component] // 2
    place = np.arange(len(component))
    first = place[place - (np.cumsum(sizes) - sizes)[component] < half]
    mixed = rng.permutation(first)
    return order[mixed], order[mixed + half[mixed]]


def _moves(
    cells: np.ndarray, component: np.ndarray, shares: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Choose a row of every component to move, from a cell above its share to one below.

    `shares` has what each component should have of every cell, in rows. Which cells is drawn in
    proportion to how far above and below they are; the rows come in random order.
    """
    size = shares.shape[1]
    counts = np.bincount(component * size + cells, minlength=shares.size).reshape(shares.shape)
    before, after = (_pick(part, rng) for part in (counts - shares, shares - counts))
    uneven = (before >= 0) & (after >= 0)
    order = rng.permutation(len(cells))
    order = order[uneven[component[order]] & (cells[order] == before[component[order]])]
    _, first = np.unique(component[order], return_index=True)
    chosen = rng.permutation(order[first])
    return chosen, after[component[chosen]]


def _pick(above: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a cell for each line in proportion to what is above zero; -1 where nothing is."""
    line = np.cumsum(np.where(above > NEAR, above, 0.0), axis=1)
    point = rng.random((len(line), 1)) * line[:, -1:]
    return np.where(line[:, -1] > 0, np.argmax(line > point, axis=1), -1)


def _turn(group: np.ndarray) -> np.ndarray:
    """Say of every entry how many of the same group come before it."""
    order = np.argsort(group, kind="stable")
    found = np.empty(len(group), dtype=np.int64)
    found[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return found


def _shares(chances: np.ndarray) -> np.ndarray:
    total = np.maximum(chances.sum(1, keepdims=True), TINY)
    return np.asarray(chances / total, dtype=np.float32)


def _common(sizes: Mapping[str, int], label: str | None) -> str | None:
    """Give the label, if its classes are few and their counts fit in memory."""
    if label is None or sizes[label] > MOST_CLASSES:
        return None
    return label if _counts(sizes, label) <= MOST_COUNTS else None


def _counts(sizes: Mapping[str, int], common: str | None) -> int:
    classes = 1 if common is None else sizes[common]
    return classes * sum(size for name, size in sizes.items() if name != common) ** 2
