"""√q, the statistic of paired tests in the form whose sensitivity is small.

For pairs z_i = φ(x_i) − φ(y_i), w their mean and Λ = (1/n) Σ z_i z_iᵀ, uncentred, the statistic of
Raj et al. (2019, eq. 1) is s = n·q/(1 − q) with q = wᵀ(Λ + γI)⁻¹w < 1, up to a rescaling of γ: the
same test. Theorem 1 of the paper, which bounds how far s moves, is false: with J = 1, n = 10⁴,
γ = 10⁻³ and all z = 1, one pair that becomes z = −1 moves s/n by 286, where the theorem has 1.6.
√q, which is monotone in s, does have a small sensitivity.

*Theorem.* Let one record of either sample be replaced, ‖z‖ ≤ b and ‖z − z'‖ ≤ b for what it was
and becomes. Then √q moves by at most (1/n)·max over t in [0, 1] of

    t(1 − t²)·b²/(2γ) + √(1 − t²)·b/√γ.

*Proof.* √q = max over β of β·w/√(βᵀ(Λ + γI)β). Take the maximiser with βᵀ(Λ + γI)β = 1, so that
β·w = t = √q. By Jensen (β·w)² ≤ βᵀΛβ, hence γ‖β‖² ≤ 1 − t². Let z become z', u = β·z, u' = β·z'.
At the same β the neighbour has √q' ≥ (t + (u' − u)/n)/√(1 + (u'² − u²)/n). If u'² ≤ u² the root is
at most 1 and √q' ≥ t − |u' − u|/n (trivially so if the right side is negative). Otherwise, with
e = (u'² − u²)/n ≥ 0 and 1/√(1 + e) ≥ 1 − e/2, √q' ≥ t − |u' − u|/n − t·e/2, where a negative
numerator makes the right side negative too and √q' ≥ 0 above it. In both,
√q − √q' ≤ (|u' − u| + t·u'²/2)/n, and |u' − u|, |u'| ≤ b‖β‖ ≤ b·√((1 − t²)/γ). Both datasets can
take either role, so the bound holds for the absolute difference. ∎

Replacing z_i by s_i·z_i with fixed signs s_i changes neither Λ nor any of these norms, so the
bound holds for every fixed choice of signs as well. With γ = ridge·b² it is free of b.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
from scipy.linalg import solve_triangular

from aquatint.comparison import CompareError
from aquatint.curator.compare.samples import Samples
from aquatint.progress import track

STEPS = 2**40
"""√q, which lies between 0 and 1, is counted in steps of 1/STEPS."""
RIDGE = 0.06
"""γ as a share of b²; for five locations this is γ = 0.3."""
LEAST_RIDGE = 1e-3
MOST_FEATURES = 200
_CELLS = 20_000


def root_bound(ridge: float) -> float:
    """Bound n times the sensitivity of √q, from above.

    The maximum over t is taken over narrow intervals, with each factor at its larger end.
    """
    t = np.linspace(0, 1, _CELLS + 1)
    rest = 1 - t[:-1] ** 2
    return float((t[1:] * rest / (2 * ridge) + np.sqrt(rest / ridge)).max()) * (1 + 1e-12)


def sensitivity(rows: int, ridge: float, features: int) -> int:
    """Bound how far one record moves ⌊STEPS·√q⌋, computed in floating point, in steps.

    Λ + γI has its eigenvalues between γ and b² + γ, a condition number of at most 1 + 1/ridge. The
    Cholesky factor and the triangular solution are those of a matrix that differs by a part in
    2⁵³/(J(3J + 2)) of the largest eigenvalue (Higham 2002, theorem 10.4 and §8.1), and √q ≤ 1, so
    √q errs by less than 8J²·2⁻⁵³·(1 + 1/ridge), with room to spare for J ≥ 1. Two errors and one
    step of rounding are added.
    """
    error = 8 * (features + 1) ** 2 * 2.0**-53 * (1 + 1 / ridge)
    return ceil((root_bound(ridge) / rows + 2 * error) * STEPS) + 1


def check_ridge(ridge: float, features: int, test: str) -> None:
    """Refuse what the bound on rounding does not cover."""
    if not LEAST_RIDGE <= ridge <= 1:
        msg = f"the ridge is a share of the largest squared distance, {LEAST_RIDGE:g} to 1"
        raise CompareError(msg)
    if features > MOST_FEATURES:
        msg = (
            f"{test} inverts a matrix of all features, at most {MOST_FEATURES}, got {features}: "
            "give it a map with fewer, or use permutation"
        )
        raise CompareError(msg)


def roots(pairs: np.ndarray, means: np.ndarray, samples: Samples, ridge: float) -> np.ndarray:
    """Give ⌊STEPS·√q⌋ for each mean, int64, with the Λ of the pairs.

    Parameters
    ----------
    pairs
        The z_i in steps, shape (n, J): whole numbers.
    means
        n·w in steps for every choice of signs, shape (choices, J).
    """
    rows, squared = len(pairs), float(samples.coarse.distance_squared)
    moments = pairs.T @ pairs / rows
    matrix = moments + ridge * squared * np.eye(len(moments))
    lower = np.linalg.cholesky(matrix)
    found = solve_triangular(lower, (means / rows).T, lower=True)
    whole: np.ndarray = np.floor(np.sqrt((found**2).sum(axis=0)) * STEPS).astype(np.int64)
    return whole


def pairs_of(
    samples: Samples, coins: Callable[[int], np.ndarray], *, progress: bool = False
) -> np.ndarray:
    """Read both samples and pair their rows at random: z_i in steps, float64, shape (n, J).

    At random, because two files in the same order would make pairs that are not independent.
    Which rows are paired has nothing to do with what they hold, so any pairing is private.
    """
    rows, dim = samples.sizes[0], samples.coarse.map.dim
    held = np.empty((2, rows, dim), dtype=np.float32)
    with track("comparing rows", 2 * rows, show=progress) as advance:
        for side in (0, 1):
            start = 0
            for encoded in samples.rows(side):
                held[side, start : start + len(encoded)] = samples.coarse.integers(encoded)
                start += len(encoded)
                advance(len(encoded))
    seed = int.from_bytes(coins(16).tobytes(), "little")
    mixed = np.random.default_rng(seed).permutation(rows)
    pairs: np.ndarray = held[0].astype(np.float64) - held[1, mixed]
    return pairs
