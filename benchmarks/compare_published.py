"""The private tests as they were published: **not private**, here only to stand beside ours.

What is wrong with them, and with the code that the paper's figures were made with:

* TCS: Theorem 1 is false. `counterexample` moves the statistic by hundreds of times the claim.
* TCMC and NTE with SCF: the noise of the mean is √2 too small, that of the covariance 2 or more.
* All: places and widths are taken from private rows, for nothing.
* TCMC and NTE: the null distributions leave out that the covariance is noisy.

Noise is by the analytic Gaussian mechanism; mean and covariance get half of ε and of δ each. κ is
1, as in the code, where the paper has k ≤ κ/2 and so κ = 2 for a Gaussian kernel: the code's noise
is half of what is printed, and its tests have more power.
"""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np
from compare_plain import REGULAR, statistic

from aquatint.accounting import gaussian_mu

KAPPA = 1.0
TCS_REGULAR = 1e-3
"""γ of TCS (§6)."""
FLOOR = 1e-4
"""The least eigenvalue that the code leaves to a noisy covariance."""
DRAWS = 100_000


def mean_sensitivity(rows: int, features: int, kappa: float = KAPPA) -> float:
    """Give κ√J/n (eq. 3)."""
    return kappa * sqrt(features) / rows


def covariance_sensitivity(rows: int, features: int, kappa: float = KAPPA) -> float:
    """Give κ²J/(n − 1), of the second moment of the differences, as in the code."""
    return kappa**2 * features / (rows - 1)


def statistic_sensitivity(
    rows: int, features: int, regular: float = TCS_REGULAR, kappa: float = KAPPA
) -> float:
    """Give 4κ²J√J/(nγ)·(1 + κ²J/(n − 1)): Theorem 1, which is false."""
    lead = 4 * kappa**2 * features * sqrt(features) / (rows * regular)
    return lead * (1 + kappa**2 * features / (rows - 1))


def counterexample(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Give differences z of one feature that break Theorem 1: all 1, and one of them 0 instead.

    One row of one sample is replaced: k(x, t) = 1 becomes 0, where k(y, t) = 0 throughout.
    """
    before = np.ones((rows, 1))
    after = before.copy()
    after[0] = 0.0
    return before, after


def tcmc(differences: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator) -> float:
    """Perturb mean and covariance (§3.1), against a weighted sum of χ² (§5.1); give p."""
    rows, size = differences.shape
    mu = gaussian_mu(epsilon / 2, delta / 2)
    noise = mean_sensitivity(rows, size) / mu
    mean = differences.mean(axis=0) + noise * rng.standard_normal(size)
    moment = differences.T @ differences / (rows - 1)
    moment = moment + _symmetric(covariance_sensitivity(rows, size) / mu, size, rng)
    spread = _mended(moment - rows / (rows - 1) * np.outer(mean, mean))
    inner = spread + REGULAR * np.eye(size)
    found = rows * mean @ np.linalg.solve(inner, mean)
    values = np.linalg.eigvalsh(spread)
    return _weighted(float(found), (values + rows * noise**2) / (values + REGULAR))


def tcs(differences: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator) -> float:
    """Perturb the statistic (§3.2), against χ² plus the noise (§5.2); give p."""
    rows, size = differences.shape
    noise = statistic_sensitivity(rows, size) / gaussian_mu(epsilon, delta)
    found = statistic(differences, TCS_REGULAR) + noise * rng.standard_normal()
    squares, normals = _draws(size)
    return _beyond(squares.sum(axis=1) + noise * normals, found)


def nte(
    first: np.ndarray, second: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator
) -> float:
    """Perturb the means and covariances of both owners apart (§4, §5.3); give p."""
    size = first.shape[1]
    mu = gaussian_mu(epsilon / 2, delta / 2)
    told = [_owner(features, mu, rng) for features in (first, second)]
    (mean_a, spread_a, noise_a), (mean_b, spread_b, noise_b) = told
    n, m = len(first), len(second)
    factor = n * m / (n + m)
    pooled = ((n - 1) * spread_a + (m - 1) * spread_b) / (n + m - 2)
    inner = pooled + REGULAR * np.eye(size)
    gap = mean_a - mean_b
    found = factor * gap @ np.linalg.solve(inner, gap)
    law = spread_a / n + spread_b / m + (noise_a**2 + noise_b**2) * np.eye(size)
    values = np.linalg.eigvals(factor * np.linalg.solve(inner, law)).real
    return _weighted(float(found), values)


def _owner(
    features: np.ndarray, mu: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Give what one owner tells: mean, covariance, and the noise of the mean."""
    rows, size = features.shape
    noise = mean_sensitivity(rows, size) / mu
    mean = features.mean(axis=0) + noise * rng.standard_normal(size)
    moment = features.T @ features / (rows - 1)
    moment = moment + _symmetric(covariance_sensitivity(rows, size) / mu, size, rng)
    return mean, _mended(moment - rows / (rows - 1) * np.outer(mean, mean)), noise


def _symmetric(scale: float, size: int, rng: np.random.Generator) -> np.ndarray:
    upper = np.triu(scale * rng.standard_normal((size, size)))
    return upper + np.triu(upper, 1).T


def _mended(spread: np.ndarray) -> np.ndarray:
    """Raise eigenvalues that noise made too small."""
    values, vectors = np.linalg.eigh(spread)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


@cache
def _draws(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw χ² and normal variables for the null distributions, once."""
    rng = np.random.default_rng(size)
    return rng.standard_normal((DRAWS, size)) ** 2, rng.standard_normal(DRAWS)


def _weighted(found: float, weights: np.ndarray) -> float:
    return _beyond(_draws(len(weights))[0] @ weights, found)


def _beyond(null: np.ndarray, found: float) -> float:
    return float((1 + (null >= found).sum()) / (1 + len(null)))
