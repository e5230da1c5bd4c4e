"""From averages over the rows to a statistic with its interval, and where its error comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from aquatint.analyst.query.evenly import evenly
from aquatint.analyst.query.moments import How, Moments
from aquatint.analyst.query.statistics import Statistic

Source = Literal["noise", "bins", "model"]
DRAWS = 1_024


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
        nothing = float("nan")
        return Answer(nothing, nothing, nothing, nothing, _how(moments), "noise")
    drawn = _values(statistic, _draws(moments.mean, moments.covariance))
    drawn = np.sort(drawn[np.isfinite(drawn)])
    ends = np.array([(1 - level) / 2, (1 + level) / 2]) * (len(drawn) - 1)
    low, high = np.interp(ends, np.arange(len(drawn)), drawn)
    sources = get_args(Source)
    parts = _spreads(statistic, moments.mean, [getattr(moments, name) for name in sources])
    return Answer(
        float(value),
        float(min(low, value)),
        float(max(high, value)),
        float((high - low) / (2 * ndtri((1 + level) / 2))),
        _how(moments),
        sources[int(np.argmax(parts))],
    )


def _how(moments: Moments) -> How:
    """Give the least direct way in which some part was answered."""
    ways = get_args(How)
    return max(moments.how, key=ways.index, default="exact linear")


def _values(statistic: Statistic, moments: np.ndarray) -> np.ndarray:
    return np.asarray(statistic.value(moments[:, :-1], np.maximum(moments[:, -1], 1.0)))


def _draws(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Draw averages, evenly spread rather than by chance: the same question, the same interval."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    moved = deviation > 0
    scale = deviation[moved]
    size, axes = np.linalg.eigh(covariance[np.ix_(moved, moved)] / np.outer(scale, scale))
    kept = size > 1e-10
    root = np.zeros((len(mean), int(kept.sum())))
    root[moved] = scale[:, None] * axes[:, kept] * np.sqrt(size[kept])
    return np.asarray(mean + _normal(root.shape[1]) @ root.T)


@lru_cache(maxsize=16)
def _normal(size: int) -> np.ndarray:
    if size == 0:
        return np.zeros((1, 0))
    return np.asarray(ndtri(np.clip(evenly(size, DRAWS), 1e-9, 1 - 1e-9)))


def _spreads(
    statistic: Statistic, mean: np.ndarray, covariances: Sequence[np.ndarray]
) -> np.ndarray:
    """Give the part of the variance that each source of error makes, to first order."""
    several = np.stack(covariances)
    deviation = np.sqrt(np.maximum(np.diagonal(several, axis1=1, axis2=2), 0.0))
    source, place = np.nonzero(deviation)
    steps = np.zeros((len(source), len(mean)))
    steps[np.arange(len(source)), place] = deviation[source, place]
    values = _values(statistic, np.concatenate([mean + steps, mean - steps]))
    change = (values[: len(source)] - values[len(source) :]) / 2
    slope = np.zeros(deviation.shape)
    slope[source, place] = np.where(np.isfinite(change), change, 0.0) / deviation[source, place]
    return np.asarray(((slope[:, None, :] @ several)[:, 0] * slope).sum(1))
