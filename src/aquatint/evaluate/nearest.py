"""Whether synthetic rows sit closer to the rows they were made from than other real rows do.

Synthetic rows that repeat training rows lie on top of them. Rows that were never seen show how near
two rows come by chance: synthetic rows should be no nearer. This is a check of a finished table, by
one attack among many; what is promised rests on the noise and not on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aquatint.evaluate.tables import Encoded, Grid
from aquatint.extras import need

MOST_ROWS = 5_000
"""Of each table, at most so many rows are looked at."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """Distances to the nearest training row, and how they compare.

    Attributes
    ----------
    synthetic, unseen
        For each synthetic row and each row that was kept apart, its distance to the nearest
        training row. Numbers count by their place between the bounds, categories as equal or not.
    closer
        The share of synthetic rows nearer to a training row than to any of as many rows kept apart;
        a half if nothing was repeated. Ties count half.
    chance
        Two standard deviations of that share, if nothing was repeated.
    copies, copies_unseen
        The share of synthetic rows, and of rows kept apart, equal to a training row.
    """

    synthetic: np.ndarray
    unseen: np.ndarray
    closer: float
    chance: float
    copies: float
    copies_unseen: float


def nearest(
    train: Encoded, unseen: Encoded, synthetic: Encoded, grid: Grid, *, seed: int = 0
) -> Nearest:
    """Compare distances to training rows with distances to as many rows kept apart."""
    dice = np.random.default_rng(seed)
    size = min(train.rows, unseen.rows, MOST_ROWS)
    known, other = (_points(table, grid, size, dice) for table in (train, unseen))
    drawn = _points(synthetic, grid, min(synthetic.rows, MOST_ROWS), dice)
    to_known, to_other = _distances(known, drawn), _distances(other, drawn)
    between = _distances(known, other)
    same = np.isclose(to_known, to_other)
    closer = np.where(same, 0.5, to_known < to_other)
    return Nearest(
        to_known,
        between,
        float(closer.mean()),
        2 * 0.5 / len(drawn) ** 0.5,
        float((to_known < 1e-9).mean()),
        float((between < 1e-9).mean()),
    )


def _points(table: Encoded, grid: Grid, size: int, dice: np.random.Generator) -> np.ndarray:
    """Give rows as points: two rows with different categories are one apart in that column."""
    rows = dice.choice(table.rows, size, replace=False)
    parts = []
    for name, cells in grid.cells.items():
        if name in grid.ranged:
            value = table.values[name][rows]
            gone = np.isnan(value)
            parts.append(np.column_stack([np.where(gone, 0.5, value), gone]))
        else:
            parts.append(np.eye(cells)[table.codes[name][rows]] / 2**0.5)
    return np.concatenate(parts, axis=1)


def _distances(of: np.ndarray, to: np.ndarray) -> np.ndarray:
    search = need("sklearn.neighbors").NearestNeighbors(n_neighbors=1).fit(of)
    return np.asarray(search.kneighbors(to)[0][:, 0])
