"""Numbers of a row and statistics of all rows, from SQL; whatever is not listed here is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatchmethod
from math import inf
from typing import Any

import numpy as np
from sqlglot import expressions as sql

from aquatint.analyst.literals import column_of, quoted
from aquatint.analyst.query import statistics as st
from aquatint.analyst.query.conditions import COMPARED, Conditions, no_condition
from aquatint.analyst.query.functions import Function, Predicate, Value, of_column
from aquatint.analyst.query.statistics import Statistic
from aquatint.columns import RANGED
from aquatint.errors import DataError

SAID = (*COMPARED, sql.And, sql.Or, sql.Not, sql.In, sql.Between, sql.Is, sql.Like, sql.ILike)
OF_ONE: dict[type, Callable[[Value], Statistic]] = {
    sql.Avg: st.average,
    sql.Sum: st.total,
    sql.Variance: st.variance,
    sql.VariancePop: st.variance,
    sql.Stddev: st.deviation,
    sql.StddevSamp: st.deviation,
    sql.StddevPop: st.deviation,
}
OF_TWO: dict[type, Callable[[Value, Value], Statistic]] = {
    sql.Corr: st.correlation,
    sql.CovarSamp: st.covariance,
    sql.CovarPop: st.covariance,
}
QUANTILES = (sql.Quantile, sql.ApproxQuantile, sql.PercentileCont)
OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "mean": lambda x: sql.Avg(this=x),
    "var": lambda x: sql.Variance(this=x),
    "std": lambda x: sql.Stddev(this=x),
    "covariance": lambda x, y: sql.CovarSamp(this=x, expression=y),
    "quantile_cont": lambda x, level: sql.Quantile(this=x, quantile=level),
}
ARITHMETIC: dict[type, Callable[..., Any]] = {
    sql.Add: np.add,
    sql.Sub: np.subtract,
    sql.Mul: np.multiply,
    sql.Div: st.ratio,
}


@dataclass(frozen=True)
class Expressions:
    """Reads the numbers and statistics of one question, whose conditions are read already."""

    conditions: Conditions

    @singledispatchmethod
    def value(self, tree: Any) -> Value:
        """Read an expression that gives a number for every row."""
        if isinstance(tree, (*SAID, sql.Boolean)):
            said = self.conditions.predicate(tree)
            return Value(said.true, said.true + said.false)
        msg = f"cannot compute {quoted(tree.sql())} for a row: use columns, numbers, + - * and case"
        raise DataError(msg)

    @value.register
    def _(self, tree: sql.Paren) -> Value:
        return self.value(tree.this)

    @value.register
    def _(self, tree: sql.Neg) -> Value:
        return -self.value(tree.this)

    @value.register
    def _(self, tree: sql.Literal) -> Value:
        return Value(Function(finite(tree)))

    @value.register
    def _(self, tree: sql.Null) -> Value:  # noqa: ARG002
        return Value(Function(), Function())

    @value.register
    def _(self, tree: sql.Add) -> Value:
        return self.value(tree.this) + self.value(tree.expression)

    @value.register
    def _(self, tree: sql.Sub) -> Value:
        return self.value(tree.this) + -self.value(tree.expression)

    @value.register
    def _(self, tree: sql.Mul) -> Value:
        return self.value(tree.this) * self.value(tree.expression)

    @value.register
    def _(self, tree: sql.Div) -> Value:
        by = self.value(tree.expression).number
        if by.terms or by.constant == 0:
            msg = (
                f"cannot divide by {quoted(tree.expression.sql())} in each row: "
                "divide by a number, or divide averages"
            )
            raise DataError(msg)
        return self.value(tree.this) * Value(Function(1 / by.constant))

    @value.register
    def _(self, tree: sql.Column) -> Value:
        points = self.conditions.points(tree.name)
        known = ~np.isnan(points.values)
        if not known.any():
            msg = f"column {tree.name!r} has categories and no numbers: count it, or group by it"
            raise DataError(msg)
        numbers = of_column(tree.name, np.where(known, points.values, 0.0))
        return Value(numbers, Function(1.0) if known.all() else of_column(tree.name, known))

    @value.register
    def _(self, tree: sql.Case) -> Value:
        if tree.this is not None:
            msg = "write case with conditions: case when sex = 'Female' then 1 else 0 end"
            raise DataError(msg)
        default = tree.args.get("default")
        found = self.value(default) if default is not None else Value(Function(), Function())
        for branch in reversed(tree.args["ifs"]):
            chosen = self.value(branch.args["true"])
            found = chosen.otherwise(self.conditions.predicate(branch.this), found)
        return found

    def statistic(self, tree: Any, where: Predicate) -> Statistic:
        """Read an expression over all rows that satisfy a condition."""
        if isinstance(tree, (sql.Paren, sql.Alias)):
            return self.statistic(tree.this, where)
        if isinstance(tree, sql.Neg):
            return self.statistic(tree.this, where).then(np.negative)
        if isinstance(tree, sql.Literal):
            return st.constant(finite(tree))
        if type(tree) in ARITHMETIC:
            sides = self.statistic(tree.this, where), self.statistic(tree.expression, where)
            return sides[0].joined(sides[1], ARITHMETIC[type(tree)])
        return self._aggregate(tree, where)

    def kept(self, tree: Any, where: Predicate) -> Statistic:
        """Read a condition on statistics, as in having: one where it holds, zero elsewhere."""
        if isinstance(tree, sql.Paren):
            return self.kept(tree.this, where)
        if isinstance(tree, (sql.And, sql.Or)):
            join = np.logical_and if isinstance(tree, sql.And) else np.logical_or
            return self.kept(tree.this, where).joined(self.kept(tree.expression, where), join)
        if isinstance(tree, sql.Not):
            return self.kept(tree.this, where).then(np.logical_not)
        if type(tree) in COMPARED:
            sides = self.statistic(tree.this, where), self.statistic(tree.expression, where)
            return sides[0].joined(sides[1], COMPARED[type(tree)])
        raise no_condition(tree, "comparisons of statistics, like count(*) > 100, after having")

    def _aggregate(self, tree: Any, where: Predicate) -> Statistic:
        if isinstance(tree, sql.Anonymous) and tree.name.lower() in OTHER_NAMES:
            try:
                tree = OTHER_NAMES[tree.name.lower()](*tree.expressions)
            except TypeError:
                msg = f"{tree.name} has another number of arguments than {quoted(tree.sql())}"
                raise DataError(msg) from None
        if isinstance(tree, sql.WithinGroup):
            tree = _plain_quantile(tree)
        if isinstance(tree, sql.Count) and isinstance(tree.this, sql.Distinct):
            return self._distinct(tree.this, where)
        if isinstance(tree, sql.Count):
            return st.count(self._counted(tree.this).where(where))
        if type(tree) in OF_ONE:
            return OF_ONE[type(tree)](self.value(tree.this).where(where))
        if type(tree) in OF_TWO:
            sides = self.value(tree.this), self.value(tree.expression)
            return OF_TWO[type(tree)](sides[0].where(where), sides[1].where(where))
        if isinstance(tree, (*QUANTILES, sql.Median)):
            return self._quantile(tree, where)
        if isinstance(tree, (sql.Min, sql.Max)):
            level = 0.01 if isinstance(tree, sql.Min) else 0.99
            msg = (
                f"{tree.key} shows a single row and cannot be private: "
                f"ask for quantile({tree.this.sql()}, {level})"
            )
            raise DataError(msg)
        msg = (
            f"cannot answer {quoted(tree.sql())} from a release: use count, sum, avg, var, stddev, "
            "covar_samp, corr, quantile or median"
        )
        raise DataError(msg)

    def _distinct(self, tree: Any, where: Predicate) -> Statistic:
        """Read what is counted once each: the categories of a column, for those are declared."""
        (column, *more) = tree.expressions
        name = column.name if isinstance(column, sql.Column) else ""
        if more or not name or isinstance(column_of(self.conditions.schema, name), RANGED):
            msg = (
                "how many different values there are can be told of declared categories only: "
                "count one such column, or group by it"
            )
            raise DataError(msg)
        points = self.conditions.points(name)
        cells = np.nonzero(points.present)[0]
        return st.distinct(name, cells, where, len(points.present))

    def _counted(self, tree: Any) -> Value:
        """Read what is counted: rows, a column of any kind, or an expression."""
        if isinstance(tree, sql.Star):
            return Value(Function(1.0))
        if isinstance(tree, sql.Column):
            present = self.conditions.points(tree.name).present
            there = Function(1.0) if present.all() else of_column(tree.name, present)
            return Value(there, there)
        return self.value(tree)

    def _quantile(self, tree: Any, where: Predicate) -> Statistic:
        level = 0.5
        if not isinstance(tree, sql.Median):
            given = tree.args.get("quantile") or tree.args.get("expression")
            level = finite(given) if isinstance(given, sql.Literal) else inf
        if not 0 <= level <= 1 or not isinstance(tree.this, sql.Column):
            msg = f"cannot answer {quoted(tree.sql())}: write quantile(age, 0.25), level 0 to 1"
            raise DataError(msg)
        self.value(tree.this)  # refuses a column without numbers
        return st.quantile(tree.this.name, self.conditions.points(tree.this.name), level, where)


def _plain_quantile(tree: Any) -> Any:
    """Read standard SQL's percentile_cont(0.25) within group (order by age) as a quantile."""
    order = getattr(tree.expression, "expressions", [])
    rising = len(order) == 1 and not order[0].args.get("desc")
    if not isinstance(tree.this, (sql.PercentileCont, sql.PercentileDisc)) or not rising:
        return tree
    return sql.Quantile(this=order[0].this, quantile=tree.this.this)


def finite(tree: Any) -> float:
    """Read a number that can be computed with."""
    try:
        number = float(tree.this) if tree.is_number else inf
    except (TypeError, ValueError):
        number = inf
    if not abs(number) < 1e100:
        msg = f"{quoted(tree.sql())} is not a number that can be used: give a plain one"
        raise DataError(msg)
    return number
