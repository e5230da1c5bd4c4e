"""Tails of weighted sums of chi-squares: public maths on numbers that carry noise already."""

from __future__ import annotations

from math import pi

import numpy as np
from scipy.integrate import quad

DRAWS = 200_000


def weighted_tail(value: float, weights: np.ndarray) -> float:
    """Give P[Σ_j w_j·χ²_j > value] by Imhof's (1961) integral.

    1/2 + (1/π)·∫₀^∞ sin θ(u)/(u·ρ(u)) du, with θ(u) = ½ Σ arctan(w_j u) − ½ value·u and
    ρ(u) = Π (1 + w_j²u²)^¼. The answer is held between 0 and 1.
    """
    scale = float(weights.max())
    shares, place = weights / scale, value / scale

    def integrand(u: float) -> float:
        theta = 0.5 * float(np.arctan(shares * u).sum()) - 0.5 * place * u
        return float(np.sin(theta)) / (u * float(np.prod((1 + (shares * u) ** 2) ** 0.25)))

    found, _ = quad(integrand, 0, np.inf, limit=2_000)
    return float(min(1.0, max(0.0, 0.5 + found / pi)))


def simulated_tail(value: float, weights: np.ndarray) -> float:
    """Give the same by simulation with fixed draws; the observation counts as one of them."""
    rng = np.random.default_rng(0)
    drawn = rng.chisquare(1, (DRAWS, len(weights))) @ weights
    return (1 + int((drawn >= value).sum())) / (1 + DRAWS)
