"""Drawing rows from a mixture with as little chance as possible.

Independent draws would add the noise of a bootstrap to that of the release. Instead components get
their share of the rows up to one (systematic sampling), and within a component every column's
values are handed out in their shares and shuffled: all expectations stay, the variance goes.
"""

from __future__ import annotations

import numpy as np

from aquatint.errors import DataError


def check_count(count: int) -> None:
    """Refuse a negative number of rows."""
    if count < 0:
        msg = f"cannot draw {count} rows: give a number from 0 on"
        raise DataError(msg)


def components(weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Give each row a component, in rising order."""
    points = (np.arange(count) + rng.random()) / max(count, 1)
    cumulated = np.cumsum(weights) / weights.sum()
    found = np.searchsorted(cumulated, points, side="right")
    return np.asarray(np.minimum(found, len(weights) - 1))


def shuffled_points(component: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Give each row a point of the unit interval: evenly spaced, in random order, by component."""
    count = np.bincount(component, minlength=size)
    start = np.cumsum(count) - count
    order = np.argsort(component + rng.random(len(component)))
    rank = np.empty(len(component))
    rank[order] = np.arange(len(component)) - start[component[order]]
    return np.asarray((rank + rng.random(size)[component]) / np.maximum(count, 1)[component])


def choose(
    probabilities: np.ndarray, component: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Choose a column's atom for every row, given the component; rows are in order of component."""
    size, atoms = probabilities.shape
    cumulated = np.cumsum(probabilities, axis=1)
    cumulated /= cumulated[:, -1:]
    points = shuffled_points(component, size, rng)
    # One sorted line of all components' thresholds turns the search into a single one.
    line = (cumulated + np.arange(size)[:, None]).reshape(-1)
    found = np.searchsorted(line, component + np.minimum(points, 1 - 1e-9), side="right")
    return np.asarray(np.minimum(found - component * atoms, atoms - 1))


def divide(
    atom: np.ndarray, of_cell: np.ndarray, within: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Choose a cell inside every row's atom, in the cells' shares."""
    order = np.argsort(of_cell, kind="stable")
    count = int(of_cell.max()) + 1
    if count == len(of_cell):
        return np.asarray(order[atom])
    point = shuffled_points(atom, count, rng)
    # The cells in order of atom, each atom's shares running from its number to the next.
    line = np.cumsum(within[order])
    first = np.searchsorted(of_cell[order], np.arange(count))
    before = np.concatenate([[0.0], line])[first]
    span = np.append(before[1:], line[-1]) - before
    found = np.searchsorted(
        line, before[atom] + np.minimum(point, 1 - 1e-9) * span[atom], side="right"
    )
    last = np.append(first[1:], len(order)) - 1
    return np.asarray(order[np.clip(found, first[atom], last[atom])])
