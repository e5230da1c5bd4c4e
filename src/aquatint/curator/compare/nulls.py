"""Tails of weighted sums of chi-squares: public maths on numbers that carry noise already."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

DRAWS, TERMS = 200_000, 200_000


def weighted_tail(value: float, weights: np.ndarray) -> float:
    """Give P[X ≥ value] for X = Σ_j w_j·χ²_j by inverting its characteristic function.

    P[X < x] = 1/2 − Σ_k Im(φ(u_k)·e^{−iu_k x})/(π(k + ½)) with u_k = (k + ½)·h is exact but for the
    chance that X is more than 2π/h away from x (Davies 1973), here more than 100 deviations, and
    for the terms that are left off. The answer is held between 0 and 1.
    """
    mean, spread = float(weights.sum()), sqrt(2 * float((weights**2).sum()))
    k = np.arange(TERMS) + 0.5
    u = k * 2 * pi / (abs(value - mean) + mean + 100 * spread)
    angle, size = -u * value, np.zeros(TERMS)
    for weight in weights:
        angle += np.arctan(2 * weight * u) / 2
        size += np.log1p((2 * weight * u) ** 2) / 4
    below = 0.5 - float((np.exp(-size) * np.sin(angle) / k).sum()) / pi
    return min(1.0, max(0.0, 1 - below))


def simulated_tail(value: float, weights: np.ndarray) -> float:
    """Give the same by simulation with fixed draws; the observation counts as one of them."""
    rng = np.random.default_rng(0)
    drawn = rng.chisquare(1, (DRAWS, len(weights))) @ weights
    return (1 + int((drawn >= value).sum())) / (1 + DRAWS)
