"""Statistics as functions of expectations, so that one set of expectations answers them all.

avg(x) is E[x]/E[x is there], var(x) a difference of such, and so on: a statistic names the
functions whose expectations it needs and says how to put them together. Expectations come with any
number of dimensions in front, such as one line for each of many models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from aquatint.analyst.query.functions import ALWAYS, Function, Predicate, Value, of_column
from aquatint.analyst.query.points import Points

Combine = Callable[[np.ndarray, np.ndarray | float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Statistic:
    """What is asked of the rows as a whole.

    Attributes
    ----------
    functions
        The functions whose expectations are needed, m of them.
    value
        Gives the statistic from the expectations, shape (…, m), and the number of rows.
    """

    functions: tuple[Function, ...]
    value: Combine

    def then(self, change: Callable[[np.ndarray], np.ndarray]) -> Statistic:
        """Apply a function of one number."""
        return Statistic(self.functions, lambda e, n: change(self.value(e, n)))

    def joined(
        self, other: Statistic, join: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> Statistic:
        """Join two statistics by a function of two numbers."""
        split = len(self.functions)
        return Statistic(
            self.functions + other.functions,
            lambda e, n: join(self.value(e[..., :split], n), other.value(e[..., split:], n)),
        )


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divide; nothing by nothing is not a number."""
    sound = np.abs(below) > 1e-12
    return np.where(sound, above / np.where(sound, below, 1.0), np.nan)


def constant(number: float) -> Statistic:
    """Give a number that needs no rows."""
    return Statistic((), lambda e, n: np.full(e.shape[:-1], number))  # noqa: ARG005


def count(value: Value) -> Statistic:
    """Count the rows where a value is there; a noisy count below zero is zero."""
    return Statistic((value.present,), lambda e, n: np.maximum(n * e[..., 0], 0.0))


def distinct(name: str, cells: Iterable[int], where: Predicate, size: int) -> Statistic:
    """Count the categories that some row has: those with at least half a row, by the estimates."""

    def one(cell: int) -> np.ndarray:
        line = np.zeros(size)
        line[cell] = 1.0
        return line

    functions = tuple(of_column(name, one(cell)) * where.true for cell in cells)
    return Statistic(functions, lambda e, n: (e * np.asarray(n)[..., None] >= 0.5).sum(-1))


def total(value: Value) -> Statistic:
    """Add a value up over the rows."""
    return Statistic((value.number,), lambda e, n: n * e[..., 0])


def average(value: Value) -> Statistic:
    """Average a value over the rows where it is there."""
    return Statistic(
        (value.number, value.present),
        lambda e, n: ratio(e[..., 0], e[..., 1]),  # noqa: ARG005
    )


def first() -> Statistic:
    """Give the first expectation as it is."""
    return Statistic((), lambda e, n: e[..., 0])  # noqa: ARG005


def mean_of(function: Function, where: Predicate = ALWAYS) -> Statistic:
    """Average a function over the rows that satisfy a condition."""
    return average(Value(function).where(where))


def covariance(left: Value, right: Value) -> Statistic:
    """Give the covariance of two values over the rows where both are there."""
    both = left * right
    functions = (
        both.number,
        left.number * right.present,
        right.number * left.present,
        both.present,
    )

    def value(e: np.ndarray, _: np.ndarray | float) -> np.ndarray:
        product, first, second = (ratio(e[..., i], e[..., 3]) for i in range(3))
        return np.asarray(product - first * second)

    return Statistic(functions, value)


def variance(value: Value) -> Statistic:
    """Give the variance; a noisy one below zero is zero."""
    return covariance(value, value).then(lambda v: np.maximum(v, 0.0))


def deviation(value: Value) -> Statistic:
    """Give the standard deviation."""
    return variance(value).then(np.sqrt)


def correlation(left: Value, right: Value) -> Statistic:
    """Give Pearson's correlation over the rows where both values are there."""
    left, right = (
        Value(a.number * b.present, a.present * b.present)
        for a, b in ((left, right), (right, left))
    )
    spread = deviation(left).joined(deviation(right), np.multiply)
    return covariance(left, right).joined(spread, lambda c, s: np.clip(ratio(c, s), -1, 1))


def quantile(name: str, points: Points, level: float, where: Predicate) -> Statistic:
    """Give a quantile of a column over the rows that satisfy a condition.

    The distribution function is known at the points of the column; between them it is linear.
    """
    order = np.argsort(points.values, kind="stable")
    order = order[points.present[order] & ~np.isnan(points.values[order])]
    values = points.values[order]
    one = np.eye(len(points.values))[order]
    functions = tuple(of_column(name, line) * where.true for line in one)

    def value(e: np.ndarray, _: np.ndarray | float) -> np.ndarray:
        mass = np.maximum(e, 0.0)
        rising = np.cumsum(mass, -1)
        whole = rising[..., -1:]
        middle = ratio(rising - mass / 2, np.broadcast_to(whole, rising.shape))
        lines = middle.reshape(-1, middle.shape[-1])
        found = [np.interp(level, line, values) for line in lines]
        return np.where(whole[..., 0] > 0, np.reshape(found, middle.shape[:-1]), np.nan)

    return Statistic(functions, value)
