"""From averages over the rows to a statistic with its interval, and where its error comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from aquatint.analyst.query.moments import Moments
from aquatint.analyst.query.statistics import Statistic

How = Literal["exact linear", "m2m", "model"]
Source = Literal["noise", "bins", "model"]
DRAWS = 1_024
EXACT = 1e-9


@dataclass(frozen=True)
class Answer:
    """One number with its interval.

    Attributes
    ----------
    value
        The estimate.
    low, high
        The 95 % interval.
    stderr
        The standard error.
    how
        ``exact linear``: the release counted just this. ``m2m``: it counted it in cells that the
        question cuts, or through other features. ``model``: it never counted all these columns
        together, so a model fills in; then the interval is a rule of thumb.
    mostly
        Where most of the error comes from: the release's ``noise``, values inside ``bins`` that
        were not told apart, or the ``model``.
    """

    value: float
    low: float
    high: float
    stderr: float
    how: How
    mostly: Source


def answer(statistic: Statistic, moments: Moments, level: float = 0.95) -> Answer:
    """Put a statistic together from its averages, errors carried along by draws from them."""
    value = _values(statistic, moments.mean[None])[0]
    if not np.isfinite(value):
        return Answer(*[float("nan")] * 4, how=_how(moments), mostly="noise")
    parts = {
        name: _spread(statistic, moments.mean, covariance)
        for name, covariance in (
            ("noise", moments.noise),
            ("bins", moments.bins),
            ("model", moments.model),
        )
    }
    drawn = _values(statistic, _draws(moments.mean, moments.covariance))
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    mostly: Source = max(parts, key=lambda name: parts[name])  # type: ignore[assignment]
    return Answer(
        float(value),
        float(min(low, value)),
        float(max(high, value)),
        float((high - low) / (2 * ndtri((1 + level) / 2))),
        _how(moments),
        mostly,
    )


def _how(moments: Moments) -> How:
    if not moments.counted.all():
        return "model"
    cut = np.diag(moments.bins) > EXACT * np.diag(moments.noise)
    return "m2m" if cut.any() else "exact linear"


def _values(statistic: Statistic, moments: np.ndarray) -> np.ndarray:
    return np.asarray(statistic.value(moments[:, :-1], np.maximum(moments[:, -1], 1.0)))


def _draws(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Draw averages, evenly spread rather than by chance: the same question, the same interval."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    size, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = size > 1e-10
    root = scale[:, None] * axes[:, kept] * np.sqrt(size[kept])
    points = qmc.Sobol(root.shape[1], seed=0).random(DRAWS) if kept.any() else np.zeros((1, 0))
    return np.asarray(mean + ndtri(np.clip(points, 1e-9, 1 - 1e-9)) @ root.T)


def _spread(statistic: Statistic, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Give the part of the variance that one source of error makes, to first order."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    moved = deviation > 0
    steps = np.diag(deviation)[moved]
    above, below = (_values(statistic, mean + sign * steps) for sign in (1, -1))
    slope = np.zeros(len(mean))
    slope[moved] = np.nan_to_num((above - below) / 2) / deviation[moved]
    return float(slope @ covariance @ slope)
