"""Expectations given noisy counts: a model corrected by what was counted, with its uncertainty.

Let a question tell J cells of the table apart, and let the model give them shares p. The rows in
them, as a vector c, are thought of as

    c ~ N(n·p, diag(d) − (1 − s²/Δ)·d·dᵀ/Δ),    d = τ²·n²·p + κ²·σ²,    Δ = Σ d,

where n ± s is the number of rows and σ the noise on each cell's own count. Every function f of a
row may be off by τ times its own standard deviation, and since the model was fitted to noisy counts
each cell by κ of their noise besides. To the covariance comes n²·t·tᵀ for each tilt t, a direction
in which the model may be off by more; tilts leave the number of rows alone. The counts of the
release are y = A·c + noise. What is known of c then is Gaussian too. Its mean is the estimate of
M2M (Theorem 1) with the model as prior ψ and, if there are no tilts and κ is zero, λ = σ²/(τ·n)²:
f's expectation is corrected by a·(y − what the model expects), where a is the ridge regression of f
on what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aquatint.analyst.query.conditioning import Before, Seen, condition

RARE = 1e-9
LEAST_SPREAD = 1e-7


@dataclass(frozen=True, eq=False)
class Observed:
    """Noisy sums over sets of cells.

    Attributes
    ----------
    part
        The set that each of the J cells is in.
    sums
        The noisy number of rows in each set.
    variance
        Of the noise of each.
    columns
        How many columns were counted together.
    """

    part: np.ndarray
    sums: np.ndarray
    variance: np.ndarray
    columns: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was counted, against what the model expects, over the J cells of a question.

    Attributes
    ----------
    seen
        The counts of every table above the model's.
    own_noise
        The variance of the noise on each cell's own count.
    """

    seen: Seen
    own_noise: np.ndarray


def gather(shares: np.ndarray, rows: float, observed: Sequence[Observed]) -> Evidence:
    """Put together what several tables tell; it serves for any doubt."""
    p = _above_zero(shares)
    above = [
        t.sums - np.bincount(t.part, weights=rows * p, minlength=len(t.sums)) for t in observed
    ]
    seen = Seen([t.part for t in observed], above, [t.variance for t in observed])
    return Evidence(seen, _own_noise(p, observed))


def _above_zero(shares: np.ndarray) -> np.ndarray:
    p = np.maximum(shares, RARE)
    return np.asarray(p / p.sum())


@dataclass(frozen=True)
class Doubt:
    """How far the model may be off.

    Attributes
    ----------
    tau
        In units of the standard deviation of whatever is asked.
    kappa
        In units of the noise on the counts that it was fitted to.
    """

    tau: float
    kappa: float


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known of the number of rows and of averages over them.

    Attributes
    ----------
    mean
        The best estimates of the averages and, last, of the number of rows: shape (m + 1,).
    covariance
        Of the errors, shape (m + 1, m + 1).
    noise
        The part of it that comes from the noise of the release.
    surprise
        How far the counts moved the averages, in standard deviations of how far they would if the
        model were off as much as was doubted: the root of the mean square.
    """

    mean: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    surprise: float


def believe(
    shares: np.ndarray,
    rows: float,
    variance: float,
    evidence: Evidence,
    functions: np.ndarray,
    doubt: Doubt,
    tilts: np.ndarray | None = None,
) -> Belief:
    """Give what is known of averages over the rows, and of their number.

    Parameters
    ----------
    shares
        The model's share of each of the J cells.
    rows, variance
        The number of rows, and how uncertain it is.
    evidence
        What was counted.
    functions
        Their values in each cell, shape (J, m).
    doubt
        How far the model may be off.
    tilts
        Directions in which it may be off by more, in shares of the rows: shape (J, t).
    """
    p = _above_zero(shares)
    spread = (doubt.tau * rows) ** 2 * p + doubt.kappa**2 * evidence.own_noise
    more = np.zeros((len(p), 0)) if tilts is None else rows * tilts
    before = Before(spread, max(variance, (LEAST_SPREAD * rows) ** 2), more)
    # Functions are centred: what an average owes to the number of rows cancels before rounding.
    centre = p @ functions
    asked = np.column_stack([functions - centre, np.ones(len(p))])
    after = condition(before, evidence.seen, asked)
    sums = rows * (p @ asked) + after.moved
    total = max(float(sums[-1]), 1.0)
    to_average = np.diag(np.append(np.full(len(centre), 1 / total), 1.0))
    to_average[:-1, -1] = -sums[:-1] / total**2
    prior = (after.explained + np.diag(after.covariance))[:-1]
    expected = np.maximum(after.explained[:-1], 1e-12 * prior)
    known = prior > 1e-18 * rows**2
    pulls = after.moved[:-1][known] ** 2 / expected[known]
    return Belief(
        np.append(centre + sums[:-1] / total, total),
        to_average @ after.covariance @ to_average.T,
        to_average @ after.noise @ to_average.T,
        float(np.sqrt(pulls.mean())) if known.any() else 0.0,
    )


def _own_noise(shares: np.ndarray, observed: Sequence[Observed]) -> np.ndarray:
    """Give the variance of the noise on each cell's count, by the tables of most columns.

    A cell that was counted only together with others has its share of their noise.
    """
    most = max(((table.columns, len(table.sums)) for table in observed), default=(0, 0))
    found = np.full(len(shares), np.inf)
    for table in observed:
        if (table.columns, len(table.sums)) == most:
            whole = np.bincount(table.part, weights=shares, minlength=len(table.sums))
            here = table.variance[table.part] * (shares / whole[table.part]) ** 2
            found = np.minimum(found, here)
    return found if observed else np.zeros(len(shares))
