"""Functions of a row as sums of products of functions of single columns.

Under a product distribution the expectation of a product is the product of the expectations, so a
mixture of products gives that of any such sum in closed form. Conditions are functions too: one
where they hold and zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from aquatint.errors import DataError

MOST_TERMS = 2_000
Factors = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Function:
    """Σ_t a_t·Π_c g_tc(x_c), every g a vector over the points of its column.

    Attributes
    ----------
    constant
        The term without columns.
    terms
        The factors of every other term, its coefficient multiplied in.
    """

    constant: float = 0.0
    terms: tuple[Factors, ...] = field(default=())

    def __add__(self, other: Function | float) -> Function:
        if not isinstance(other, Function):
            return Function(self.constant + other, self.terms)
        return Function(self.constant + other.constant, _gathered(self.terms + other.terms))

    def __mul__(self, other: Function | float) -> Function:
        if not isinstance(other, Function):
            scaled = tuple(_scaled(t, other) for t in self.terms) if other else ()
            return Function(self.constant * other, scaled)
        if len(self.terms) * len(other.terms) > MOST_TERMS:
            raise _too_long()
        terms = [_product(a, b) for a in self.terms for b in other.terms]
        terms += [_scaled(t, other.constant) for t in self.terms if other.constant]
        terms += [_scaled(t, self.constant) for t in other.terms if self.constant]
        return Function(self.constant * other.constant, _gathered(tuple(terms)))

    def __sub__(self, other: Function | float) -> Function:
        return self + other * -1.0

    @property
    def size(self) -> float:
        """A bound on how large it can be."""
        largest = (prod(np.abs(v).max() for v in term.values()) for term in self.terms)
        return abs(self.constant) + float(sum(largest))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(name for term in self.terms for name in term)


def of_column(name: str, values: np.ndarray) -> Function:
    """Give a function of one column."""
    return Function(0.0, ({name: np.asarray(values, dtype=float)},))


def _product(left: Factors, right: Factors) -> Factors:
    both = dict(left)
    for name, vector in right.items():
        both[name] = both[name] * vector if name in both else vector
    return both


def _scaled(term: Factors, times: float) -> Factors:
    name = next(iter(term))
    return {**term, name: term[name] * times}


def _gathered(terms: tuple[Factors, ...]) -> tuple[Factors, ...]:
    """Put terms of the same single column together, and drop those that are zero."""
    single: dict[str, np.ndarray] = {}
    rest = []
    for term in terms:
        if any(not vector.any() for vector in term.values()):
            continue
        if len(term) > 1:
            rest.append(term)
            continue
        ((name, vector),) = term.items()
        single[name] = single[name] + vector if name in single else vector
    if len(rest) > MOST_TERMS:
        raise _too_long()
    return (*({name: vector} for name, vector in single.items() if vector.any()), *rest)


def _too_long() -> DataError:
    return DataError(f"the question has more than {MOST_TERMS:,} parts: ask several shorter ones")


class Predicate:
    """A condition in SQL's logic of three values: where it is true, and where it is false.

    Where a value is missing it may be neither. Each side is put together when it is first asked
    for: the one that a question does not need may be much the longer.
    """

    def __init__(
        self, true: Function | Callable[[], Function], false: Function | Callable[[], Function]
    ) -> None:
        self._true, self._false = true, false

    @cached_property
    def true(self) -> Function:
        """One where it is true."""
        return self._true if isinstance(self._true, Function) else self._true()

    @cached_property
    def false(self) -> Function:
        """One where it is false."""
        return self._false if isinstance(self._false, Function) else self._false()

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(
            lambda: self.true * other.true,
            lambda: self.false + other.false - self.false * other.false,
        )

    def __or__(self, other: Predicate) -> Predicate:
        return ~(~self & ~other)

    def __invert__(self) -> Predicate:
        return Predicate(lambda: self.false, lambda: self.true)


ALWAYS = Predicate(Function(1.0), Function(0.0))


@dataclass(frozen=True)
class Value:
    """A number that a row has: zero where it is missing, and where it is there."""

    number: Function
    present: Function = Function(1.0)

    def __add__(self, other: Value) -> Value:
        return Value(
            self.number * other.present + other.number * self.present, self.present * other.present
        )

    def __mul__(self, other: Value) -> Value:
        return Value(self.number * other.number, self.present * other.present)

    def __neg__(self) -> Value:
        return Value(self.number * -1.0, self.present)

    def where(self, condition: Predicate) -> Value:
        """Make it missing where the condition does not hold."""
        return Value(self.number * condition.true, self.present * condition.true)

    def otherwise(self, condition: Predicate, other: Value) -> Value:
        """Give the number where the condition holds and the other one elsewhere (SQL's case)."""
        rest = Function(1.0) - condition.true
        return Value(
            self.number * condition.true + other.number * rest,
            self.present * condition.true + other.present * rest,
        )
