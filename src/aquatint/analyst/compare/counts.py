"""How likely a difference of two shares is when a cell holds few rows, so that Gauss is no guide.

The numbers of rows of a cell are binomial. Where few rows are expected and noise is small beside
them, their tails are far heavier than a Gaussian's, the more so the more unequal the two sides are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import erfc

_HALVINGS, _NEAR = 60, 1e-9
_STEPS = np.linspace(0.0, 1.0, 200, endpoint=False)[1:]
_MOST, _WHOLE = 500.0, 1 - 1e-9


@dataclass(frozen=True)
class Cells:
    """Cells with a share p of the rows on both sides, and D, the difference of what is counted.

    D = (k/n)·A − (k/m)·B + noise, where A and B are binomial with n/k and m/k draws: rows count by
    k together if up to k are one person's. Its cumulant generating function is
    K(θ) = (n/k)·log(1 + p(e^{kθ/n} − 1)) + (m/k)·log(1 + p(e^{−kθ/m} − 1)) + vθ²/2.

    Attributes
    ----------
    share
        p of each cell.
    noise
        v, the variance of the Gaussian noise on D.
    rows
        n and m.
    together
        k.
    """

    share: np.ndarray
    noise: np.ndarray
    rows: tuple[float, float]
    together: float = 1.0

    def turned(self) -> Cells:
        """Give the cells of −D."""
        return replace(self, rows=self.rows[::-1])

    def cumulants(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give K(θ), K'(θ) and K''(θ); θ may have further axes at its end."""
        more = (...,) + (None,) * (theta.ndim - self.share.ndim)
        p, v = self.share[more], self.noise[more]
        total, slope, bend = v * theta**2 / 2, v * theta, np.broadcast_to(v, theta.shape)
        for sign, rows in zip((1.0, -1.0), self.rows, strict=True):
            turn = np.clip(sign * self.together * theta / rows, -_MOST, _MOST)
            grown = 1 + p * np.expm1(turn)
            tilted = p * np.exp(turn) / grown
            total = total + rows / self.together * np.log(grown)
            slope = slope + sign * tilted
            bend = bend + self.together / rows * tilted * (1 - tilted)
        return total, slope, bend

    @cached_property
    def kurtosis(self) -> np.ndarray:
        """The excess kurtosis of D: nearly 0 where noise or many rows make it Gaussian."""
        fourth = sum((self.together / rows) ** 3 for rows in self.rows)
        shape = self._one * np.abs(1 - 6 * self._one)
        return np.asarray(shape * fourth / self._variance**2)

    @cached_property
    def skewness(self) -> np.ndarray:
        """The skewness of D, without its sign: 0 for two sides of one size."""
        first, second = ((self.together / rows) ** 2 for rows in self.rows)
        shape = self._one * np.abs(1 - 2 * self.share)
        return np.asarray(shape * abs(first - second) / self._variance**1.5)

    @cached_property
    def _one(self) -> np.ndarray:
        """The variance of one row."""
        return np.asarray(self.share * (1 - self.share))

    @cached_property
    def _variance(self) -> np.ndarray:
        sampling = sum(self.together / rows for rows in self.rows)
        return np.asarray(self._one * sampling + self.noise)

    @cached_property
    def deviation(self) -> np.ndarray:
        """The standard deviation of D."""
        return np.asarray(np.sqrt(self._variance))

    def far_from_gaussian(self, size: np.ndarray) -> np.ndarray:
        """Say where a Gaussian's tail, a standard deviation out or more, is off by over a tenth.

        It is by the skewness, by the kurtosis, or by half a step where D goes in steps of one row.
        Noise blurs these: only the first harmonic counts, and its share of them is left.
        """
        z = np.maximum(np.abs(size) / self.deviation, 1.0)
        step = self.together / min(self.rows)
        steps = step / self.deviation / 2 * np.exp(-2 * np.pi**2 * self.noise / step**2)
        off = self.skewness * z**3 / 6 + self.kurtosis * z**4 / 24 + steps * z
        return np.asarray(off > 0.1)

    def only(self, some: np.ndarray) -> Cells:
        """Give some of the cells."""
        return replace(self, share=self.share[some], noise=self.noise[some])

    def saddle(self, size: np.ndarray) -> np.ndarray:
        """Solve K'(θ) = size for sizes above zero, by halving and Newton's steps.

        K' grows, and for θ > 0 it is at least vθ and at least q − p with q the first side's
        tilted share: so the solution is at most size/v, and at most where q = p + size.
        """
        share = np.minimum(self.share, _WHOLE)
        sure = np.minimum(share + size, 1 - (1 - _WHOLE) / 2)
        odds = np.log(sure * (1 - share) / (share * (1 - sure)))
        low = np.zeros_like(size)
        high = np.minimum(
            size / np.maximum(self.noise, 1e-300), odds * self.rows[0] / self.together
        )
        theta = high
        for _ in range(_HALVINGS):
            _, slope, bend = self.cumulants(theta)
            low, high = np.where(slope < size, theta, low), np.where(slope < size, high, theta)
            step = theta - (slope - size) / bend
            step = np.where((step > low) & (step < high), step, (low + high) / 2)
            if bool((np.abs(step - theta) <= _NEAR * theta).all()):
                break
            theta = step
        return np.asarray(theta)


def two_sided(cells: Cells, size: np.ndarray) -> np.ndarray:
    """Approximate P(abs(D) ≥ size): Lugannani & Rice's formula for whole numbers, on both sides.

    It is good however few rows are expected, and up to four times too large where noise blurs the
    whole numbers (Lugannani & Rice 1980; Daniels 1987, §6). Within a standard deviation, where it
    is not, the bound is 1.
    """
    tails = np.ones_like(size)
    out = size >= cells.deviation
    far, beyond = cells.only(out), size[out]
    tails[out] = _upper(far, beyond) + _upper(far.turned(), beyond)
    return np.asarray(np.minimum(1.0, tails))


def _upper(cells: Cells, size: np.ndarray) -> np.ndarray:
    theta = cells.saddle(size)
    total, _, bend = cells.cumulants(theta)
    w = np.sqrt(np.maximum(2 * (theta * size - total), 1e-12))
    span = cells.together / cells.rows[0]
    u = -np.expm1(-theta * span) / span * np.sqrt(bend)
    density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(erfc(w / np.sqrt(2)) / 2 + density * np.maximum(1 / u - 1 / w, 0.0))


def bounded(
    cells: Cells, size: np.ndarray, laplaces: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Bound P(abs(D) ≥ size) with Laplace noise besides: Chernoff's bound, on both sides.

    As in `tails.two_sided`, any θ gives a valid bound, and so does the best of a grid.
    """
    widest = np.max([np.broadcast_to(scale, size.shape) for scale, _ in laplaces], axis=0)
    theta = _STEPS / np.maximum(widest, 1e-300)[..., None]
    extra = -theta * size[..., None]
    for scale, times in laplaces:
        part = np.broadcast_to(scale, size.shape)[..., None] * theta
        extra = extra - np.broadcast_to(times, size.shape)[..., None] * np.log1p(-(part**2))
    sides = [(one.cumulants(theta)[0] + extra).min(axis=-1) for one in (cells, cells.turned())]
    return np.asarray(np.minimum(1.0, np.exp(sides).sum(axis=0)))
