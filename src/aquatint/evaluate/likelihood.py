"""Samples under a known Gaussian mixture: the 5 × 5 grid of DP-MERF Fig. 1 and DP-HP Fig. 2.

Where the true density is known, the negative log-likelihood of generated samples says how many lie
where no data is; it does not see dropped modes, so those are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.special import logsumexp

from aquatint.errors import DataError


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """A labelled mixture of C round Gaussians with equal weights (DP-MERF, eq. 20).

    p(x, y) = Σ_{j ∈ C_y} (1/C) N(x | μ_j, s² I). The paper writes the covariance as σI with
    σ = 0.2; its code draws with the standard deviation s = 0.2, and so does this.

    Attributes
    ----------
    centres
        The means μ, shape (C, d).
    labels
        The class of each mean, shape (C,).
    deviation
        The standard deviation s.
    """

    centres: np.ndarray
    labels: np.ndarray
    deviation: float

    def sample(self, per_mode: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw as many points from every mode, with their labels."""
        dice = np.random.default_rng(seed)
        shape = (per_mode, *self.centres.shape)
        points = self.centres + self.deviation * dice.standard_normal(shape)
        return points.reshape(-1, shape[-1]), np.tile(self.labels, per_mode)


def five_by_five() -> GaussianMixture:
    """Give the papers' mixture: 25 modes on whole numbers, 5 classes, s = 0.2.

    Classes follow each other along a row, and each row starts two classes after the one before, so
    that no class has two modes in a row or column.
    """
    down, along = np.divmod(np.arange(25), 5)
    return GaussianMixture(
        np.stack([down, along], axis=1).astype(float), (2 * down + along) % 5, 0.2
    )


def negative_log_likelihood(
    points: np.ndarray, labels: np.ndarray, mixture: GaussianMixture, *, as_published: bool = False
) -> float:
    """Give the mean of −log p(x, y) over the samples; lower is better, up to that of real samples.

    Parameters
    ----------
    points
        Samples, shape (n, d).
    labels
        Their classes, shape (n,).
    mixture
        The true distribution.
    as_published
        Use the papers' normaliser 1/(√(2π) s), which is that of one dimension, in place of
        1/(√(2π) s)^d. In two dimensions with s = 0.2 this adds 0.691 to every sample. The papers
        print the sum over the samples: times 100,000 generated ones for DP-MERF. (Their code also
        gives infinity where the density underflows; this does not.)
    """
    points, labels = np.asarray(points, dtype=float), np.asarray(labels)
    _check_samples(points, labels, mixture)
    count, dimensions = mixture.centres.shape
    width = 1 if as_published else dimensions
    constant = log(count) + width * log(2 * pi * mixture.deviation**2) / 2
    total = 0.0
    for label in np.unique(labels):
        centres = mixture.centres[mixture.labels == label]
        exponents = -_squares(points[labels == label], centres) / (2 * mixture.deviation**2)
        total -= float(logsumexp(exponents, axis=1).sum())
    return total / len(points) + constant


def modes_covered(
    points: np.ndarray,
    mixture: GaussianMixture,
    labels: np.ndarray | None = None,
    *,
    share: float = 0.01,
    within: float = 3.0,
) -> int:
    """Count the modes that have at least a share of all samples nearby.

    Real samples put 0.0396 of all near each of 25 modes: 1/25, and 98.9 % of it within 3 s.

    Parameters
    ----------
    points
        Samples, shape (n, d).
    mixture
        The true distribution.
    labels
        Their classes; with them a mode counts only samples of its own class.
    share
        The share of all samples that a mode needs.
    within
        What is near: at most this many standard deviations away.
    """
    points = np.asarray(points, dtype=float)
    tags = np.zeros(len(points)) if labels is None else np.asarray(labels)
    wanted = np.zeros(len(mixture.labels)) if labels is None else mixture.labels
    _check_samples(points, tags, mixture if labels is not None else None)
    near = _squares(points, mixture.centres) <= (within * mixture.deviation) ** 2
    found = (near & (tags[:, None] == wanted)).sum(axis=0) / len(points)
    return int((found >= share).sum())


def _squares(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Give squared distances, shape (points, centres)."""
    squares: np.ndarray = ((points[:, None, :] - centres) ** 2).sum(axis=2)
    return squares


def _check_samples(points: np.ndarray, labels: np.ndarray, mixture: GaussianMixture | None) -> None:
    if points.ndim != 2 or len(points) == 0 or labels.shape != (len(points),):
        msg = "give samples of shape (n, d) with n > 0, and labels of shape (n,)"
        raise DataError(msg)
    if mixture is not None and not np.isin(labels, mixture.labels).all():
        msg = "some labels are not among the mixture's classes: give class numbers as it has them"
        raise DataError(msg)
