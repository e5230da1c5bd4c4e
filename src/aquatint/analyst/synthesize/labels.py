"""The label of drawn rows, handed out with as little chance as possible.

Drawn independently, labels would vary around the model's law as coins do, and a classifier that
learns from the rows would learn that too. Here rows get their labels one after another, in random
order. The law of each is tilted against the labels of which rows like it have had more than was
expected: rows with the same value in a column, in a pair of columns, or with like chances. So every
such count ends close to what the law expects. The tilt is linear in the excess, whose expectation
is zero, so that the chances of a row stay what they were as long as nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

MOST_VALUES = 8_000_000
"""Labels stay as they were drawn in tables with more rows times columns: they would take minutes,
and chance is small by itself among so many rows."""
MOST_SETS, MOST_CELLS = 300, 2_000_000
"""So many sets of columns are balanced, every column before pairs, with so many counts of pairs."""
MOST_TURNS = 10_000
"""Rows get their labels in so many turns: of many rows, some at a time."""
FULL = 100
"""More sets than this do not pull harder together."""
LIKE = 50
"""Into so many groups of equal size rows are divided by their chances."""
AT_ONCE = 4096
TINY = 1e-12


@dataclass(frozen=True)
class Sets:
    """Which columns are balanced together.

    Attributes
    ----------
    codes
        Every row's code in every column; the last column is a constant zero, shape (rows, columns).
    first, second
        The columns of each set; a single column has the constant one as its second.
    size
        How many codes the second column has.
    start
        Where each set's cells begin.
    cells
        How many there are in all.
    """

    codes: np.ndarray
    first: np.ndarray
    second: np.ndarray
    size: np.ndarray
    start: np.ndarray
    cells: int

    def places(self, rows: np.ndarray | slice) -> np.ndarray:
        """Give the cell of each row in each set, shape (rows, sets)."""
        codes = self.codes[rows]
        return np.asarray(codes[:, self.first] * self.size + codes[:, self.second] + self.start)


def law_of_label(
    weights: np.ndarray,
    tables: Mapping[str, np.ndarray],
    rows: Mapping[str, np.ndarray],
    label: str,
) -> np.ndarray:
    """Give a mixture's p(label | rest of the row), shape (rows, classes).

    Bayes' rule: a component counts by its weight times the chance of the row's other columns in it.

    Parameters
    ----------
    weights
        The components' weights, shape (K,).
    tables
        For each column the chance of its atoms in every component, shape (K, atoms).
    rows
        Every column's atoms, of the label too: it stays where no label has a chance to speak of.
    label
        The column whose law is wanted.
    """
    classes = (tables[label] / tables[label].max()).astype(np.float32)
    begin = np.log(np.maximum(weights, 1e-30)).astype(np.float32)
    logs = {
        name: np.ascontiguousarray(np.log(np.maximum(table, TINY)).T, np.float32)
        for name, table in tables.items()
        if name != label
    }
    law = np.empty((len(rows[label]), classes.shape[1]))
    for some in _parts(len(law)):
        joint = np.repeat(begin[None], len(law[some]), 0)
        for name, table in logs.items():
            joint += table[rows[name][some]]
        joint -= joint.max(1, keepdims=True)
        law[some] = np.exp(joint) @ classes
    unknown = np.flatnonzero(law.sum(1) < TINY)
    law[unknown, rows[label][unknown]] = 1.0
    return np.asarray(law / law.sum(1, keepdims=True))


def balanced(
    law: np.ndarray, columns: Mapping[str, np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Hand out labels.

    Parameters
    ----------
    law
        The chance of each label in each row, shape (rows, classes).
    columns
        The codes of the other columns, from 0 on.
    rng
        Draws labels and the order of the rows, and the pairs if there are too many.

    Returns
    -------
        A label for each row, never one without a chance.
    """
    sets = _sets([*columns.values(), _alike(law)], law.shape[1], rng)
    spread = np.ones((sets.cells, law.shape[1]))
    for some in _parts(len(law)):
        place, chance = sets.places(some), law[some]
        np.add.at(spread, place, (chance * (1 - chance))[:, None])
    pull = min(1.0, FULL / len(sets.first)) / np.sqrt(spread)
    ahead = np.zeros_like(spread)
    points, found = rng.random(len(law)), np.empty(len(law), dtype=np.int64)
    for rows in np.array_split(rng.permutation(len(law)), max(1, min(len(law), MOST_TURNS))):
        place, chance = sets.places(rows), law[rows]
        tilt = (ahead[place] * pull[place]).sum(1)
        tilt -= (chance * tilt).sum(1, keepdims=True)  # chances still add up to one
        tilt /= np.maximum(np.abs(tilt).max(1, keepdims=True), 1)  # and none is below zero
        line = np.cumsum(chance * (1 - tilt), axis=1)
        found[rows] = chosen = (points[rows, None] * line[:, -1:] >= line).sum(1)
        excess = -chance
        excess[np.arange(len(rows)), chosen] += 1
        np.add.at(ahead, place, excess[:, None])
    return found


def _sets(columns: list[np.ndarray], classes: int, rng: np.random.Generator) -> Sets:
    """Choose the sets: every column, and pairs in random order while there is room."""
    rows, single = len(columns[0]), len(columns)
    sizes = np.array([*(int(column.max(initial=0)) + 1 for column in columns), 1])
    pairs = np.array(list(combinations(range(single - 1), 2)), dtype=np.int64).reshape(-1, 2)
    pairs = rng.permutation(pairs[sizes[pairs].prod(1) <= rows])[: max(MOST_SETS - single, 0)]
    pairs = pairs[np.cumsum(sizes[pairs].prod(1)) * classes <= MOST_CELLS]
    alone = np.stack([np.arange(single), np.full(single, single)], 1)
    first, second = np.concatenate([alone, pairs]).T
    cells = sizes[first] * sizes[second]
    codes = np.stack([*columns, np.zeros(rows)], 1).astype(np.int32)
    return Sets(codes, first, second, sizes[second], np.cumsum(cells) - cells, int(cells.sum()))


def _alike(law: np.ndarray) -> np.ndarray:
    """Put rows with the same likeliest label and like chances of it into groups of equal size."""
    group = np.empty(len(law), dtype=np.int64)
    group[np.lexsort((law.max(1), law.argmax(1)))] = np.arange(len(law)) * LIKE // max(len(law), 1)
    return group


def _parts(count: int) -> Iterator[slice]:
    return (slice(first, first + AT_ONCE) for first in range(0, count, AT_ONCE))
