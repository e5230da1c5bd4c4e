"""Maximum mean discrepancy of two tables: a Gaussian kernel through random Fourier features.

The kernel is k(x, y) = exp(−‖x − y‖²/2ℓ²). A row x holds the ranged columns between 0 and 1, and
the one-hot cells of every other column over √2, so that any two rows differ by at most 1 in each
column. For φ(x) = (cos ωx, sin ωx)/√m with m draws ω ~ N(0, ℓ⁻²), E[φ(x)·φ(y)] = k(x, y)
(DP-MERF, eq. 4), so that MMD² ≈ ‖mean φ(X) − mean φ(Y)‖² (eq. 3) in one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.tables import Encoded, Grid
from aquatint.progress import Advance, track

FEATURES = 1_000
_CHUNK = 2_048


@dataclass(frozen=True)
class Discrepancy:
    """A maximum mean discrepancy, and what two samples of one distribution would show.

    Attributes
    ----------
    mmd
        The distance of the two mean embeddings: 0 for equal tables, at most √2.
    floor
        √((1/n + 1/m)(1 − ‖μ‖²)): about the distance of two samples of these sizes of the real
        distribution. A generator cannot be told from a perfect one below it.
    """

    mmd: float
    floor: float


def mmd(
    real: Encoded,
    synthetic: Encoded,
    grid: Grid,
    *,
    features: int = FEATURES,
    length_scale: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Discrepancy:
    """Estimate the maximum mean discrepancy of two tables in time linear in their rows.

    Parameters
    ----------
    real, synthetic
        The tables.
    grid
        The cells of both.
    features
        How many Fourier features, half of them cosines; the error falls as 1/√features.
    length_scale
        ℓ; by default √columns/2, at which typical rows of a table have a kernel of about one half.
        It depends on the schema alone, so scores of different generators compare.
    seed
        Draws the frequencies.
    progress
        Whether to show progress on standard error.
    """
    if features < 2 or features % 2:
        msg = f"features must be even and at least 2, got {features}"
        raise EvaluationError(msg)
    scale = sqrt(len(grid.schema.columns)) / 2 if length_scale is None else length_scale
    if not scale > 0:
        msg = f"the length scale must be positive, got {scale}"
        raise EvaluationError(msg)
    draws = _frequencies(grid, features // 2, scale, seed)
    with track("comparing embeddings", real.rows + synthetic.rows, show=progress) as advance:
        ours, theirs = (_embedding(t, draws, advance) for t in (real, synthetic))
    spread = (1 / real.rows + 1 / synthetic.rows) * max(0.0, 1 - float(ours @ ours))
    return Discrepancy(float(np.linalg.norm(ours - theirs)), sqrt(spread))


def _frequencies(grid: Grid, count: int, scale: float, seed: int) -> dict[str, np.ndarray]:
    """Draw what each cell adds to the m phases: for a range, per unit of its value."""
    dice = np.random.default_rng(seed)
    draws = {}
    for name, cells in grid.cells.items():
        if name in grid.ranged:
            along, across = dice.standard_normal((2, count)) / scale
            # A missing value lies off the line, at distance 1 from both bounds.
            draws[name] = np.stack([along, along / 2 + sqrt(0.75) * across])
        else:
            draws[name] = dice.standard_normal((cells, count)) / (scale * sqrt(2))
    return {name: draw.astype(np.float32) for name, draw in draws.items()}


def _embedding(table: Encoded, draws: dict[str, np.ndarray], advance: Advance) -> np.ndarray:
    """Give the mean of the features over the rows, cosines first."""
    count = next(iter(draws.values())).shape[1]
    total = np.zeros(2 * count)
    for start in range(0, table.rows, _CHUNK):
        some = slice(start, start + _CHUNK)
        phase = np.zeros((len(range(*some.indices(table.rows))), count), dtype=np.float32)
        for name, draw in draws.items():
            if name in table.values:
                value = table.values[name][some, None].astype(np.float32)
                phase += np.where(np.isnan(value), draw[1], value * draw[0])
            else:
                phase += draw[table.codes[name][some]]
        total[:count] += np.cos(phase).sum(axis=0, dtype=np.float64)
        total[count:] += np.sin(phase).sum(axis=0, dtype=np.float64)
        advance(len(phase))
    return total / (table.rows * sqrt(count))
