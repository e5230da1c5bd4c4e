"""Conditions of a question, as functions of a row: one where they hold, zero elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, singledispatchmethod
from typing import Any

import numpy as np
from sqlglot import expressions as sql

from aquatint.analyst.literals import (
    cells_of,
    check_known,
    column_of,
    literal_of,
    number_of,
    quoted,
)
from aquatint.analyst.query.functions import ALWAYS, Predicate, of_column
from aquatint.analyst.query.points import Points, points_of
from aquatint.columns import RANGED, Boolean
from aquatint.errors import DataError
from aquatint.schema import Schema

COMPARED: dict[type, Callable[..., Any]] = {
    sql.LT: np.less,
    sql.LTE: np.less_equal,
    sql.GT: np.greater,
    sql.GTE: np.greater_equal,
    sql.EQ: np.equal,
    sql.NEQ: np.not_equal,
}
SWAPPED: dict[type, Any] = {sql.LT: sql.GT, sql.LTE: sql.GTE, sql.GT: sql.LT, sql.GTE: sql.LTE}


@dataclass(frozen=True)
class Conditions:
    """Reads the conditions of one question.

    Attributes
    ----------
    schema
        What is public about the table.
    tree
        The whole question: its constants cut the bins of the columns they are compared with.
    masses
        The share of rows in each cell of each ranged column, if known.
    """

    schema: Schema
    tree: Any
    masses: Mapping[str, np.ndarray]

    @cached_property
    def cuts(self) -> dict[str, list[float]]:
        """The constants that each ranged column is compared with."""
        found: dict[str, list[float]] = {}
        for node in self.tree.find_all(*COMPARED, sql.Between, sql.In):
            sides = list(node.iter_expressions())
            for side in sides:
                column = self.schema.columns.get(side.name) if _is_column(side) else None
                if isinstance(column, RANGED):
                    plain = (s for s in sides if isinstance(s, (sql.Literal, sql.Neg)))
                    numbers = [number_of(side.name, column, literal_of(s)) for s in plain]
                    found.setdefault(side.name, []).extend(numbers)
        return found

    @cached_property
    def known(self) -> dict[str, Points]:
        """The points of the columns that were asked about so far."""
        return {}

    def points(self, name: str) -> Points:
        """Give the points of a column."""
        if name not in self.known:
            column = column_of(self.schema, name)
            self.known[name] = points_of(column, self.cuts.get(name, ()), self.masses.get(name))
        return self.known[name]

    def in_cell(self, name: str, cell: int) -> Predicate:
        """Give the condition that a column is in one of its cells."""
        holds = self.points(name).cell == cell
        return Predicate(of_column(name, holds), of_column(name, ~holds))

    def predicate(self, tree: Any) -> Predicate:
        """Read a condition."""
        if tree.args.get("negate"):
            plain = tree.copy()
            plain.set("negate", None)
            return ~self._said(plain)
        return self._said(tree)

    @singledispatchmethod
    def _said(self, tree: Any) -> Predicate:
        """Read a comparison of one column with plain values; what is more has its own reader."""
        check_known(tree)
        if type(tree) in COMPARED and not _is_column(tree.this):
            swapped = SWAPPED.get(type(tree), type(tree))
            tree = swapped(this=tree.expression, expression=tree.this)
        if not _is_column(tree.this):
            msg = f"cannot use {quoted(tree.sql())} as a condition: compare a column with a value"
            raise DataError(msg)
        name = tree.this.name
        if isinstance(column_of(self.schema, name), RANGED):
            return self._where(name, self._ranged(name, tree))
        return self._where(name, self._listed(name, tree)[self.points(name).cell])

    @_said.register
    def _(self, tree: sql.Paren) -> Predicate:
        return self.predicate(tree.this)

    @_said.register
    def _(self, tree: sql.And) -> Predicate:
        return self.predicate(tree.this) & self.predicate(tree.expression)

    @_said.register
    def _(self, tree: sql.Or) -> Predicate:
        return self.predicate(tree.this) | self.predicate(tree.expression)

    @_said.register
    def _(self, tree: sql.Not) -> Predicate:
        return ~self.predicate(tree.this)

    @_said.register
    def _(self, tree: sql.Boolean) -> Predicate:
        return ALWAYS if tree.this else ~ALWAYS

    @_said.register
    def _(self, tree: sql.Column) -> Predicate:
        if not isinstance(column_of(self.schema, tree.name), Boolean):
            msg = f"column {tree.name!r} is not true or false: compare it with a value"
            raise DataError(msg)
        return self._where(tree.name, self.points(tree.name).values == 1)

    @_said.register
    def _(self, tree: sql.Is) -> Predicate:
        if not _is_column(tree.this) or not isinstance(tree.expression, sql.Null):
            raise no_condition(tree, "is null or is not null")
        absent = ~self.points(tree.this.name).present
        return Predicate(of_column(tree.this.name, absent), of_column(tree.this.name, ~absent))

    def _where(self, name: str, holds: np.ndarray) -> Predicate:
        """Leave missing values out: they are neither equal to anything nor different from it."""
        present = self.points(name).present
        return Predicate(of_column(name, holds & present), of_column(name, ~holds & present))

    def _ranged(self, name: str, tree: Any) -> np.ndarray:
        column, values = self.schema.columns[name], self.points(name).values

        def bound(part: Any) -> float:
            return number_of(name, column, literal_of(part))

        with np.errstate(invalid="ignore"):
            if isinstance(tree, sql.Between):
                low, high = bound(tree.args["low"]), bound(tree.args["high"])
                return np.asarray((values >= low) & (values <= high))
            if type(tree) in COMPARED:
                return np.asarray(COMPARED[type(tree)](values, bound(tree.expression)))
        if isinstance(tree, sql.In) and tree.expressions:
            return np.isin(values, [bound(e) for e in tree.expressions])
        raise no_condition(tree, "=, <, <=, >, >=, between or in")

    def _listed(self, name: str, tree: Any) -> np.ndarray:
        names = self.schema.cell_names(name)
        if isinstance(tree, (sql.Like, sql.ILike)):
            pattern = str(literal_of(tree.expression)).lower()
            return np.array([is_like(name.lower(), pattern) for name in names])
        if isinstance(tree, sql.In) and tree.expressions:
            wanted = [literal_of(e) for e in tree.expressions]
        elif isinstance(tree, (sql.EQ, sql.NEQ)):
            wanted = [literal_of(tree.expression)]
        else:
            raise no_condition(tree, "=, in or like")
        chosen = np.zeros(len(names), dtype=bool)
        chosen[cells_of(self.schema, name, wanted)] = True
        return ~chosen if isinstance(tree, sql.NEQ) else chosen


def is_like(text: str, pattern: str) -> bool:
    """Match SQL's % and _ in time that grows with the lengths' product, whoever wrote the pattern.

    Where a letter does not fit, the last % takes one letter more; earlier ones need no second try.
    """
    at = place = back = 0
    wild = -1
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            wild, back = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif wild >= 0:
            back += 1
            at, place = back, wild + 1
        else:
            return False
    return not pattern[place:].strip("%")


def _is_column(tree: Any) -> bool:
    return isinstance(tree, sql.Column)


def no_condition(tree: Any, use: str) -> DataError:
    """Say what a condition can be."""
    return DataError(f"cannot use {quoted(tree.sql())} as a condition: use {use}")
