"""How likely a difference is when nothing differs: tails of Gaussian and Laplace sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi

import numpy as np
from scipy.special import chdtrc, erfc, fdtrc, ndtri

_ANGLES = np.cos((np.arange(64) + 0.5) * pi / 64) ** 2
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_STEPS = np.linspace(0.0, 1.0, 200, endpoint=False)[1:]
LEAST_VARIANCE = 1e-9
"""A coordinate with less of the variance of the functions it is made of is left out."""
LEAST_FREEDOM = 4
"""So many degrees of freedom for each coordinate, or noise drowns the covariance."""


def two_sided(
    size: np.ndarray, variance: np.ndarray, laplaces: Sequence[tuple[np.ndarray, np.ndarray]] = ()
) -> np.ndarray:
    """Bound P(abs(X) ≥ size) for X a Gaussian plus independent Laplace variables.

    Without Laplace parts it is exact. With them it is Chernoff's bound, 2·min exp(K(θ) − θ·size)
    with K(θ) = vθ²/2 − Σ log(1 − b²θ²): any θ gives a valid one, so a grid of them will do.

    Parameters
    ----------
    size
        The sizes of the differences.
    variance
        v, the variance of the Gaussian part of each.
    laplaces
        Scales b, and how many variables have each of them, one of each for every difference.
    """
    size, variance = np.broadcast_arrays(np.abs(size), variance)
    if not laplaces:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(size > 0, size / np.sqrt(variance), 0.0)
        return np.asarray(erfc(z / np.sqrt(2.0)))
    widest = np.max([np.broadcast_to(scale, size.shape) for scale, _ in laplaces], axis=0)
    theta = _STEPS / np.maximum(widest, 1e-300)[..., None]
    exponent = variance[..., None] * theta**2 / 2 - theta * size[..., None]
    for scale, times in laplaces:
        part = np.broadcast_to(scale, size.shape)[..., None] * theta
        exponent -= np.broadcast_to(times, size.shape)[..., None] * np.log1p(-(part**2))
    return np.asarray(np.minimum(1.0, 2 * np.exp(exponent.min(axis=-1))))


def two_squares(size: np.ndarray, large: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Give P(large·Z₁² + small·Z₂² ≥ size) for independent standard normal Z₁, Z₂.

    In polar coordinates the radius integrates out: the mean over the angle θ of
    exp(−size/2(large·cos²θ + small·sin²θ)).
    """
    spread = large[..., None] * _ANGLES + small[..., None] * (1 - _ANGLES)
    return np.asarray(np.exp(-size[..., None] / (2 * spread)).mean(axis=-1))


def sum_of_squares(size: float, data: float, noise: float, count: int) -> float:
    """Bound P(Σ θ_i·Z_i² ≥ size) where Σ θ_i = data + count·noise and no θ_i is below noise.

    How `data` divides between the count directions is not known. All of it in one is the worst
    division if size ≥ 3·data + (count + 4)·noise; below that, 1 is given.

    *Proof.* Let φ be the characteristic function of Q = Σ θ_i·Z_i². ∂φ/∂θ_i = it·φ/(1 − 2itθ_i), so
    the tail at x grows with θ_i at the rate f_i(x), the density of Q + θ_i·χ²₂. The characteristic
    functions of two of these differ by φ·2it(θ₁ − θ₂)/((1 − 2itθ₁)(1 − 2itθ₂)), hence
    f₁(x) − f₂(x) = −2(θ₁ − θ₂)·f'(x), f the density of W = Q + θ₁·χ²₂ + θ₂·χ²₂ (as in
    Székely & Bakirov 2003). W is a sum of gamma variables, so it is self-decomposable and has one
    mode (Yamazato 1978). There w·f(w) = ∫ f(w − y)k(y)dy with ∫ k = E W and f(w − y) ≤ f(w), so the
    mode is at most E W = Σθ + 2(θ₁ + θ₂) ≤ 3·data + (count + 4)·noise. Beyond it f' ≤ 0: moving
    mass from the smaller of two θ to the larger makes the tail no lighter. ∎
    """
    if not size >= 3 * data + (count + 4) * noise:
        return 1.0
    large = data + noise
    if noise <= 0:
        return float(erfc(np.sqrt(size / large / 2))) if large > 0 else 0.0
    end = np.sqrt(size / large)
    z = end * (_NODES + 1) / 2
    rest = chdtrc(count - 1, np.maximum(size - large * z**2, 0.0) / noise)
    inner = end * np.sum(_WEIGHTS * rest * np.exp(-(z**2) / 2)) / np.sqrt(2 * pi)
    return float(min(1.0, inner + erfc(end / np.sqrt(2.0))))


def joint(
    difference: np.ndarray, covariance: np.ndarray, deviation: float = 0.0, rows: float = inf
) -> float:
    """Give how likely so large a T = d'C⁻¹d is for a Gaussian d, where C itself is noisy.

    With C known T ~ χ²_J. For C estimated from ν + 1 rows it is Hotelling's: T(ν−J+1)/νJ ~ F with
    J and ν−J+1 degrees of freedom, and C⁻½ĈC⁻½ is off by (J² + J)/ν in squared Frobenius norm.
    Noise of standard deviation β on the entries of C puts it off by
    β²((tr C⁻¹)² + tr C⁻² − Σ(C⁻¹)²_jj), so it leaves that many degrees of freedom.

    Where it leaves fewer than 4J, noise drowns the covariance and F, with next to no freedom, would
    find nothing. There C is padded by β√J, about half the reach of the noise's eigenvalues, and
    taken as known. Which of the two it is depends on C alone and not on d. Padded so, a simulation
    over spectra rejected at most .7 % at a level of 1 %.

    Parameters
    ----------
    difference
        d.
    covariance
        C, as estimated.
    deviation
        β.
    rows
        From how many rows C was estimated.
    """
    size = len(difference)
    inverse = np.linalg.inv(covariance)
    statistic = float(difference @ inverse @ difference)
    diagonal = np.diag(inverse)
    off = diagonal.sum() ** 2 + (inverse**2).sum() - (diagonal**2).sum()
    drowned = deviation**2 * off / (size**2 + size)
    if drowned * LEAST_FREEDOM * size > 1:
        padded = covariance + deviation * np.sqrt(size) * np.eye(size)
        return joint(difference, padded, 0.0, rows)
    lost = drowned + 1 / max(rows - 2, 1)
    if lost < 1e-9:
        return float(chdtrc(size, statistic))
    freedom = max(1 / lost, size)
    rest = freedom - size + 1
    return float(fdtrc(size, rest, statistic * rest / (freedom * size)))


def independent(difference: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn to uncorrelated coordinates, without those that the others all but determine.

    Where nearly all rows are in one cell, smooth functions of the cells are nearly collinear. Their
    covariance is then singular as far as floating point can tell, and its inverse is arbitrary.
    What is left is Gaussian with the covariance that is given, and has fewer degrees of freedom.
    """
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > LEAST_VARIANCE
    return vectors[:, kept].T @ (difference / scale), np.diag(values[kept])


def in_deviations(pvalue: float) -> float:
    """Give the two-sided normal deviate of a p-value, to put all statistics on one scale.

    >>> round(in_deviations(0.05), 2)
    1.96
    """
    return max(0.0, float(-ndtri(max(pvalue, 1e-300) / 2)))


def positive(matrix: np.ndarray) -> np.ndarray:
    """Project a symmetric matrix on the positive semidefinite ones: the nearest by Frobenius."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
