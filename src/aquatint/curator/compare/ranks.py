"""The private rank test: one noisy statistic against those of labels that were dealt out anew.

Let T₀ be the statistic of the data and T₁, …, T_B the same for labels that were dealt out anew, and
let each of them move by at most Δ between neighbouring datasets. With independent Laplace noise of
scale 2Δ/ε on each, M_i = T_i + Z_i, the test rejects when

    1 + #{i ≥ 1 : M_i ≥ M₀} ≤ α(B + 1).

*Level.* If nothing differs, T₀, …, T_B are exchangeable, and so are M₀, …, M_B: the rank of M₀ is
uniform up to ties, which count against rejection. The level is at most α, for any number of rows.

*Privacy* (Schrab et al. 2024, dpMMD; the argument here is shorter). Only the decision leaves. Hold
Z₁, …, Z_B fixed and let q be the k-th largest of M₁, …, M_B for k = ⌊α(B + 1)⌋: the test rejects
when T₀ + Z₀ > q. An order statistic moves by no more than the largest move of what is ordered, so
q moves by at most Δ, and T₀ − q by at most 2Δ. So P[Z₀ > q − T₀] changes by a factor of at most
exp(2Δ / (2Δ/ε)) = e^ε, and so does its complement, whatever Z₁, …, Z_B are; hence also on average
over them. The decision is ε-DP. Nothing of this holds for the rank itself or for any M_i.

A positive δ would buy next to nothing here: a decision that is ξ-DP is (ε, δ)-DP for
ξ = log((e^ε + δ)/(1 − δ)), which is ε + 10⁻⁵ for δ = 10⁻⁵. So these tests spend ε alone.
"""

from __future__ import annotations

from math import ceil, floor, inf, nextafter

import numpy as np

from aquatint.accounting import Noised
from aquatint.comparison import CompareError

LEAST = 199
"""So many statistics at least are dealt anew: fewer lose power."""
_ROUNDING = 1e-9


def how_many(alpha: float, asked: int | None) -> int:
    """Settle B; too few for the level are refused, because they could never reject."""
    if asked is None:
        return max(LEAST, ceil(3 / alpha) - 1)
    if floor(alpha * (asked + 1) + _ROUNDING) < 1:
        msg = (
            f"{asked} permutations can never reject at level {alpha:g}, since the smallest "
            f"p-value is 1/{asked + 1}: ask for at least {ceil(1 / alpha - _ROUNDING) - 1}"
        )
        raise CompareError(msg)
    return asked


def noise_for(sensitivity: int, count: int, epsilon: float) -> Noised:
    """Give the noise of `count` statistics that each move by at most `sensitivity` steps.

    What is accounted for is T₀ against the threshold, which moves by twice that.
    """
    l1 = 2 * sensitivity
    scale = nextafter(l1 / epsilon, inf) * (1 + 1e-12)
    return Noised(count, scale, l2_squared=l1**2, l1=l1)


def rejects(noisy: np.ndarray, alpha: float) -> bool:
    """Decide by the rank of the first noisy statistic among all; ties count against rejection."""
    beaten_by = int((noisy[1:] >= noisy[0]).sum())
    return 1 + beaten_by <= floor(alpha * len(noisy) + _ROUNDING)
