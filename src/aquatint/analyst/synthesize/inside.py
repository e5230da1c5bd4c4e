"""How values lie inside a bin: an exponential density, as its neighbours tell.

In place t of a bin, from 0 at its left edge to 1 at its right one, the density is in proportion to
exp(r·t). A histogram of a skewed column whose bins grow like its values, or whose last bin is far
wider than its tail, is then followed inside its bins too, where an even density would put most
values far too far out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aquatint.analyst.synthesize.atoms import POSSIBLE, widths_and_edges
from aquatint.analyst.where import Condition
from aquatint.columns import RANGED

STEEPEST = 0.5
"""How far an inner bin's density may be from its middle at its ends: neighbours are noisy."""
FLAT = 1e-6
"""A rate below this is none."""
SHORT_OF_ALL = float(np.nextafter(-1.0, 0.0))
"""Where the logarithm of one plus a number still is one."""


def rates(left: np.ndarray, right: np.ndarray, mass: np.ndarray | None) -> np.ndarray:
    """Give the rate r of every bin.

    Between an inner bin and its neighbours the density is half way from the one's to the other's,
    as far as it may be. An outermost bin that has less density than its neighbour is a tail, which
    falls as it does from the neighbour to itself.
    """
    count = len(left)
    if mass is None or count < 2:
        return np.zeros(count)
    width = np.maximum(right - left, 1e-300)
    held = np.maximum(mass[:count], 1e-300)
    density = np.maximum(held / width, 1e-300)
    between = (density[:-1] + density[1:]) / 2
    first, last = (
        np.clip(end / density, 1 - STEEPEST, 1 + STEEPEST)
        for end in (np.append(density[0], between), np.append(between, density[-1]))
    )
    found = np.log(last / first)
    for end, inner, sign in ((count - 1, count - 2, -1.0), (0, 1, 1.0)):
        if density[end] < density[inner]:
            found[end] = sign * tail(width, held, end, inner)
    return np.asarray(found)


def tail(width: np.ndarray, held: np.ndarray, last: int, before: int) -> float:
    """Give how many times its scale a tail is long, if it falls as from the bin before it.

    An exponential tail with scale ℓ holds exp(h/ℓ) − 1 times as much in the stretch of width h
    before it as in itself: that ratio gives ℓ.
    """
    return float(width[last] / width[before] * np.log1p(held[before] / held[last]))


def share_below(rate: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Give the share of its bin that lies below each place.

    >>> share_below(np.array([0.0, np.log(3)]), np.array([0.5, 0.5])).round(3)
    array([0.5  , 0.366])
    """
    return _from_the_higher_end(
        rate, place, lambda fall, near: np.expm1(fall * near) / np.expm1(fall)
    )


def place_of(rate: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Give the place below which that share of the bin lies: the inverse of `share_below`.

    >>> place_of(np.array([0.0, np.log(3)]), np.array([0.5, 0.366])).round(3)
    array([0.5, 0.5])
    """
    found = _from_the_higher_end(
        rate,
        share,
        lambda fall, near: np.log1p(np.maximum(near * np.expm1(fall), SHORT_OF_ALL)) / fall,
    )
    return np.asarray(np.clip(found, 0.0, 1.0))


def _from_the_higher_end(
    rate: np.ndarray, given: np.ndarray, curve: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Take a curve of falling densities, seen from where they are highest: nothing overflows."""
    steep = np.abs(rate) > FLAT
    fall = -np.where(steep, np.abs(rate), 1.0)
    bent = curve(fall, np.where(rate > 0, 1 - given, given))
    return np.asarray(np.where(steep, np.where(rate > 0, 1 - bent, bent), given))


def moments_between(
    rate: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give the mean and the variance of the place, between two places of each bin.

    >>> mean, variance = moments_between(np.zeros(1), np.zeros(1), np.ones(1))
    >>> (12 * variance).round(3), mean
    (array([1.]), array([0.5]))
    """
    length = last - first
    along = rate * length
    curved = np.abs(along) > 1e-2
    # Of exp(−z·t) on [0, 1], seen from the end where most lies; with a small z by its series.
    z = np.where(curved, np.abs(along), 1.0)
    empty = np.exp(-z)
    near = np.where(curved, 1 / z - empty / (1 - empty), 0.5 - np.abs(along) / 12)
    spread = np.where(curved, 1 / z**2 - empty / (1 - empty) ** 2, 1 / 12 - along**2 / 240)
    mean = np.where(along > 0, 1 - near, near)
    return first + mean * length, np.maximum(spread, 0.0) * length**2


def share_met(column: Any, mass: np.ndarray, condition: Condition) -> np.ndarray:
    """Give the share of every cell that meets a condition, by the density inside its bins.

    A little is shared by width, so that no admitted value is impossible.
    """
    if not isinstance(column, RANGED):
        return condition.weights
    left, width, whole = widths_and_edges(column)
    rate = rates(left, left + width, mass)
    # A whole number stands for the stretch up to the next one.
    ends = np.clip(
        (np.array([condition.low, condition.high + whole]) - left[:, None]) / width[:, None], 0, 1
    )
    first, last = (share_below(rate, end) for end in ends.T)
    even = condition.weights[: len(left)]
    some = (1 - POSSIBLE) * np.maximum(last - first, 0.0) + POSSIBLE * even
    found = np.where((even > 0) & (even < 1), some, even)
    return np.append(found, condition.weights[len(left) :])
