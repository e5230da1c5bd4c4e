"""Conditions on columns, as a mapping or as SQL: which cells satisfy them, and how much of each.

``{"sex": "Female", "age": (30, 50)}`` and ``"sex = 'Female' and age between 30 and 50"`` say the
same. A list means any of, a pair of numbers means between, None means missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
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
    read_sql,
)
from aquatint.columns import RANGED, Boolean, Date, Integer, bin_edges
from aquatint.errors import DataError
from aquatint.schema import Schema

Where = Mapping[str, Any] | str


@dataclass(frozen=True)
class Condition:
    """What one column has to satisfy.

    Attributes
    ----------
    weights
        For every cell of the column, the share of it that satisfies the condition.
    low, high
        For a ranged column, the numbers between which its values lie, both included.
    open_low, open_high
        Whether the end itself is excluded.
    """

    weights: np.ndarray
    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False

    def __and__(self, other: Condition) -> Condition:
        low, high = max(self.low, other.low), min(self.high, other.high)
        open_low = any(c.open_low and c.low == low for c in (self, other))
        open_high = any(c.open_high and c.high == high for c in (self, other))
        return Condition(np.minimum(self.weights, other.weights), low, high, open_low, open_high)


def conditions(schema: Schema, where: Where | None) -> dict[str, Condition]:
    """Give the condition on each column that is restricted."""
    if where is None:
        return {}
    if isinstance(where, str):
        found = _from_sql(schema, where)
    elif not _is_mapping(where):
        msg = "give conditions as text, or as a mapping from columns to values"
        raise DataError(msg)
    else:
        found = {name: _from_value(schema, name, value) for name, value in where.items()}
    for name, condition in found.items():
        spec = schema.columns[name]
        if isinstance(spec, RANGED) and condition.low > -inf:
            ends = (condition.low, condition.high, condition.open_low, condition.open_high)
            again = _between(schema, name, *ends)
            kept = np.where(condition.weights > 0, again.weights, 0.0)
            found[name] = replace(again, weights=kept)
        if not found[name].weights.any():
            msg = (
                f"no value of column {name!r} satisfies the condition: check it against the schema"
            )
            raise DataError(msg)
    return found


def limits_of(given: Mapping[str, Condition]) -> dict[str, tuple[float, float]]:
    """Give the range of each column that is restricted to one, both ends included."""
    return {n: (c.low, c.high) for n, c in given.items() if isfinite(c.low) and isfinite(c.high)}


def _is_mapping(where: Any) -> bool:
    return isinstance(where, Mapping) and all(isinstance(name, str) for name in where)


def _from_value(schema: Schema, name: str, value: Any) -> Condition:
    column = column_of(schema, name)
    if value is None:
        return _missing(schema, name)
    if isinstance(value, (list, set, frozenset)):
        return _any_of(schema, name, list(value))
    if isinstance(value, tuple):
        if len(value) != 2 or not isinstance(column, RANGED):
            msg = f"column {name!r}: a pair means between, and goes with numbers and dates only"
            raise DataError(msg)
        low, high = (number_of(name, column, v) for v in value)
        return _between(schema, name, low, high)
    return _any_of(schema, name, [value])


def _missing(schema: Schema, name: str) -> Condition:
    column = column_of(schema, name)
    weights = np.zeros(column.cells)
    weights[column.present_cells :] = 1.0
    return Condition(weights)


def _any_of(schema: Schema, name: str, values: list[Any]) -> Condition:
    column = column_of(schema, name)
    if isinstance(column, RANGED):
        if not isinstance(column, (Integer, Date)):
            msg = f"ask for a range of column {name!r}, with between: single values have no share"
            raise DataError(msg)
        if len(values) != 1:
            msg = f"ask for one value of column {name!r}, or for a range, with between"
            raise DataError(msg)
        number = number_of(name, column, values[0])
        if not number.is_integer():
            msg = f"no value of column {name!r} is {quoted(values[0])}: give a whole number"
            raise DataError(msg)
        return _between(schema, name, number, number)
    weights = np.zeros(column.cells)
    weights[cells_of(schema, name, values)] = 1.0
    return Condition(weights)


def _between(
    schema: Schema,
    name: str,
    low: float,
    high: float,
    open_low: bool = False,
    open_high: bool = False,
) -> Condition:
    column = column_of(schema, name)
    edges = np.array(bin_edges(column))
    left, right = edges[:-1].copy(), edges[1:].copy()
    bottom, top = column.limits
    # An end beyond the bounds excludes nothing.
    open_low, open_high = open_low and low >= bottom, open_high and high <= top
    low, high = max(low, bottom), min(high, top)
    if isinstance(column, (Integer, Date)):
        left, right = np.ceil(left), np.ceil(right)
        right[-1] = top + 1
        low = float(np.floor(low) + 1 if open_low else np.ceil(low))
        high = float(np.ceil(high) - 1 if open_high else np.floor(high))
        open_low = open_high = False
        share = (np.minimum(right, high + 1) - np.maximum(left, low)) / (right - left)
    else:
        share = (np.minimum(right, high) - np.maximum(left, low)) / (right - left)
        point = right - left <= column.point * 1.001
        above = left > low if open_low else left >= low
        below = left < high if open_high else left <= high
        share = np.where(point, above & below, share)
    weights = np.zeros(column.cells)
    weights[: column.present_cells] = np.clip(share, 0, 1) if low <= high else 0.0
    return Condition(weights, low, high, open_low, open_high)


def _from_sql(schema: Schema, text: str) -> dict[str, Condition]:
    example = "sex = 'Female' and age >= 30"
    return read_sql(
        text, "condition", example, lambda tree: _walk(schema, tree), into=sql.Condition
    )


def _walk(schema: Schema, tree: Any) -> dict[str, Condition]:
    if isinstance(tree, sql.Paren):
        return _walk(schema, tree.this)
    if isinstance(tree, sql.And):
        found = _walk(schema, tree.this)
        for name, condition in _walk(schema, tree.expression).items():
            found[name] = found[name] & condition if name in found else condition
        return found
    if isinstance(tree, sql.Not) and isinstance(tree.this, sql.Is):
        name, missing = _leaf(schema, tree.this)
        return {name: Condition(1 - missing.weights)}
    if isinstance(tree, (sql.Or, sql.Not)):
        return _one_column(schema, tree)
    if isinstance(tree, sql.Column):
        return {tree.name: _is_true(schema, tree.name)}
    name, condition = _leaf(schema, tree)
    return {name: condition}


def _is_true(schema: Schema, name: str) -> Condition:
    """Handle a column that stands alone, as in ``ill and age >= 30``."""
    if not isinstance(column_of(schema, name), Boolean):
        msg = f"column {name!r} is not true or false: compare it with a value"
        raise DataError(msg)
    return _any_of(schema, name, [True])


def _one_column(schema: Schema, tree: Any) -> dict[str, Condition]:
    """Handle or and not, which work on the cells of one column without an order."""
    sides = [tree.this] if isinstance(tree, sql.Not) else [tree.this, tree.expression]
    found = [_walk(schema, side) for side in sides]
    names = {name for side in found for name in side}
    if len(names) != 1 or isinstance(schema.columns[next(iter(names))], RANGED):
        msg = (
            "or and not work within one column of categories: join conditions on different "
            "columns with and, and give ranges with between"
        )
        raise DataError(msg)
    name = names.pop()
    cells = [side[name].weights for side in found]
    if isinstance(tree, sql.Not):
        return {name: _but(schema, name, cells[0])}
    return {name: Condition(np.maximum(*cells))}


def _but(schema: Schema, name: str, weights: np.ndarray) -> Condition:
    """Give all other cells; as in SQL, a missing value is not different from anything."""
    others = 1 - weights
    others[column_of(schema, name).present_cells :] = 0.0
    return Condition(others)


def _leaf(schema: Schema, tree: Any) -> tuple[str, Condition]:
    column = tree.this
    if not isinstance(column, sql.Column):
        msg = f"cannot use {quoted(tree.sql())} as a condition: compare a column with a value"
        raise DataError(msg)
    check_known(tree)
    name = column.name
    spec = column_of(schema, name)
    if isinstance(tree, sql.Is) and isinstance(tree.expression, sql.Null):
        return name, _missing(schema, name)
    if isinstance(tree, sql.In) and tree.expressions:
        return name, _any_of(schema, name, [literal_of(e) for e in tree.expressions])
    if isinstance(tree, sql.EQ):
        return name, _any_of(schema, name, [literal_of(tree.expression)])
    if isinstance(tree, sql.NEQ) and not isinstance(spec, RANGED):
        equal = _any_of(schema, name, [literal_of(tree.expression)])
        return name, _but(schema, name, equal.weights)
    if not isinstance(spec, RANGED):
        msg = f"column {name!r} has no numbers to compare with: use = or in"
        raise DataError(msg)
    return name, _range(schema, name, tree)


def _range(schema: Schema, name: str, tree: Any) -> Condition:
    def bound(part: Any) -> float:
        return number_of(name, schema.columns[name], literal_of(part))

    if isinstance(tree, sql.Between):
        return _between(schema, name, bound(tree.args["low"]), bound(tree.args["high"]))
    if isinstance(tree, (sql.GT, sql.GTE)):
        low, strict = bound(tree.expression), isinstance(tree, sql.GT)
        return _between(schema, name, low, inf, open_low=strict)
    if isinstance(tree, (sql.LT, sql.LTE)):
        high, strict = bound(tree.expression), isinstance(tree, sql.LT)
        return _between(schema, name, -inf, high, open_high=strict)
    msg = f"cannot use {quoted(tree.sql())} as a condition: use =, <, <=, >, >=, between or in"
    raise DataError(msg)
