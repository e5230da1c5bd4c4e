"""Ways in which a model may be wrong by more than elsewhere: rows where the noise hides them.

No share of rows is negative, so a model that was fitted to noisy counts has some rows in many cells
that hold none: little in each, and together enough to pull correlations towards zero and tails
outwards. So what a model has in cells below the noise is doubted as a whole: all of it may be too
much, or as much again be missing, everywhere alike or in one direction of each column more than in
the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aquatint.analyst.query.posterior import Observed
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED, Ordered


def sides(model: Mixture) -> dict[str, np.ndarray]:
    """Give, for each column with an order, −1 for cells below the middle row and 1 for those above.

    A missing value is on no side.
    """
    out = {}
    for name, column in model.schema.columns.items():
        if isinstance(column, (*RANGED, Ordered)):
            share = model.histogram(name)
            present = np.arange(column.cells) < column.cells - bool(column.missing)
            known = np.where(present, share, 0.0)
            place = np.cumsum(known) - known / 2
            out[name] = np.where(present, np.sign(place - known.sum() / 2), 0.0)
    return out


def hidden(shares: np.ndarray, rows: float, observed: Sequence[Observed]) -> np.ndarray:
    """Give the share of rows in each cell that lies below the noise of what counted it."""
    most = max(((table.columns, len(table.sums)) for table in observed), default=(0, 0))
    out = np.zeros(len(shares))
    for table in observed:
        if (table.columns, len(table.sums)) == most:
            whole = np.bincount(table.part, weights=rows * shares, minlength=len(table.sums))
            below = np.sqrt(table.variance) / np.maximum(whole, 1e-300)
            out = np.maximum(out, shares * np.minimum(below[table.part], 1.0))
    return out


def tilts(shares: np.ndarray, below: np.ndarray, signs: Sequence[np.ndarray]) -> np.ndarray:
    """Give the directions: the hidden rows as they are, and with each sign. The rows stay as many.

    Parameters
    ----------
    shares
        The model's share of each of the J cells.
    below
        What of it is hidden.
    signs
        For each direction, the side of every cell, between −1 and 1.
    """
    found = np.stack([below, *(below * sign for sign in signs)], 1)
    return np.asarray(found - shares[:, None] * found.sum(0) / shares.sum())
