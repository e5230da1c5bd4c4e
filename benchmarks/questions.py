"""Questions in SQL by chance, and their true answers by SQLite on the rows themselves.

A question is drawn from a seed, a schema and the real rows: conditions name values that occur. That
is fine for a benchmark, which has the rows anyway; no method that answers sees them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aquatint.columns import RANGED
from aquatint.schema import Schema

Truths = dict[tuple[str, ...], float]
"""One answer for each group, by the names of its categories; `()` where nothing is grouped."""


@dataclass(frozen=True)
class Asked:
    """One question.

    Attributes
    ----------
    kind
        What is asked for.
    text
        The question in SQL.
    unit
        What an error is divided by: the number of rows, the column's range, or 1.
    keys
        The columns that are grouped by.
    """

    kind: str
    text: str
    unit: float
    keys: tuple[str, ...] = ()


class _Pairs:
    """Sums of two columns where both are there, for aggregates that SQLite lacks."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float]] = []

    def step(self, x: float | None, y: float | None) -> None:
        if x is not None and y is not None:
            self.found.append((x, y))


class _Covariance(_Pairs):
    def finalize(self) -> float | None:
        values = np.array(self.found, dtype=float)
        return float(np.cov(values.T)[0, 1]) if len(values) > 1 else None


class _Deviation(_Pairs):
    def step(self, x: float | None) -> None:
        super().step(x, 0.0)

    def finalize(self) -> float | None:
        values = np.array(self.found, dtype=float)
        return float(values[:, 0].std()) if len(values) else None


@contextmanager
def database(rows: pd.DataFrame) -> Iterator[sqlite3.Connection]:
    """Put rows into a database of SQLite, as the table `data`."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_aggregate("covar_samp", 2, _Covariance)
        connection.create_aggregate("stddev", 1, _Deviation)
        rows.to_sql("data", connection, index=False)
        yield connection


def truths(connection: sqlite3.Connection, asked: Asked) -> Truths:
    """Ask SQLite."""
    lines = connection.execute(asked.text).fetchall()
    return {
        tuple(map(str, line[:-1])): math.nan if line[-1] is None else float(line[-1])
        for line in lines
    }


def quoted(name: str) -> str:
    """Write a column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def select(what: str, where: Sequence[str] = (), keys: Sequence[str] = ()) -> str:
    """Write a question."""
    names = [quoted(key) for key in keys]
    text = f"select {', '.join([*names, what])} from data"
    text += f" where {' and '.join(where)}" if where else ""
    return text + (f" group by {', '.join(names)}" if names else "")


class Chance:
    """Questions about one table, drawn one after another from a seed."""

    def __init__(self, rows: pd.DataFrame, schema: Schema, seed: int) -> None:
        self.rows, self.schema = rows, schema
        self.rng = np.random.default_rng(seed)
        self.numbers = [n for n, c in schema.columns.items() if isinstance(c, RANGED)]
        self.names = [n for n in schema.columns if n not in self.numbers]

    def width(self, column: str) -> float:
        """Give a column's declared range."""
        low, high = self.schema.columns[column].limits
        return float(high - low)

    def value(self, column: str) -> Any:
        """Draw a value that occurs."""
        present = self.rows[column].dropna()
        return present.iloc[int(self.rng.integers(len(present)))]

    def columns(self, count: int, among: Sequence[str] | None = None) -> list[str]:
        """Draw columns, none twice."""
        found = among if among is not None else list(self.schema.columns)
        places = self.rng.choice(len(found), min(count, len(found)), replace=False)
        return [found[place] for place in places]

    def condition(self, column: str) -> str:
        """Draw a condition on a column: a category or two, a range, or one end of it."""
        name = quoted(column)
        if column in self.names:
            first, second = (_text(self.value(column)) for _ in range(2))
            forms = (f"= {first}", f"= {first}", f"in ({first}, {second})", f"<> {first}")
            return f"{name} {forms[int(self.rng.integers(4))]}"
        low, high = sorted(_number(self.value(column)) for _ in range(2))
        forms = (f"between {low!r} and {high!r}", f"<= {high!r}", f">= {low!r}")
        return f"{name} {forms[int(self.rng.integers(3))]}"

    def where(self, count: int, leave: Sequence[str] = ()) -> list[str]:
        """Draw conditions on so many columns, those to leave excepted."""
        among = [name for name in self.schema.columns if name not in leave]
        return [self.condition(column) for column in self.columns(count, among)]

    def plain(self, kind: str) -> Iterator[Asked]:
        """Give every question of a kind once, in random order; then such of some rows only."""
        for columns, where in self._choices(kind):
            names = [quoted(column) for column in columns]
            width = math.prod(self.width(column) for column in columns)
            title = f"{kind}, 1 predicate" if where else kind
            if kind == "mean":
                yield Asked(title, select(f"avg({names[0]})", where), width)
            elif kind == "second moment":
                yield Asked(title, select(f"avg({names[0]} * {names[0]})", where), width**2)
            elif kind == "covariance":
                yield Asked(title, select(f"covar_samp({', '.join(names)})", where), width)
            elif kind == "cdf":
                at = _number(self.value(columns[0]))
                what = f"avg(case when {names[0]} <= {at!r} then 1 else 0 end)"
                yield Asked(title, select(what, where), 1)

    def _choices(self, kind: str) -> Iterator[tuple[list[str], list[str]]]:
        while kind == "cdf":
            yield self.columns(1, self.numbers), []
        found = [[name] for name in self.numbers]
        if kind == "covariance":
            places = zip(*np.triu_indices(len(self.numbers), 1), strict=True)
            found = [[self.numbers[a], self.numbers[b]] for a, b in places]
        for place in self.rng.permutation(len(found)):
            yield found[place], []
        while True:
            columns = found[int(self.rng.integers(len(found)))]
            yield columns, self.where(1, columns)

    def count(self, predicates: int) -> Asked:
        """Draw a question for a number of rows."""
        words = f"count, {predicates} predicate" + ("s" if predicates > 1 else "")
        return Asked(words, select("count(*)", self.where(predicates)), len(self.rows))

    def share(self) -> Asked:
        """Draw a question for a share among some rows."""
        first = self.columns(1)
        what = f"avg(case when {self.condition(first[0])} then 1.0 else 0.0 end)"
        return Asked("share", select(what, self.where(int(self.rng.integers(1, 3)), first)), 1)

    def average(self) -> Asked:
        """Draw a question for an average among some rows."""
        column = self.columns(1, self.numbers)
        where = self.where(int(self.rng.integers(4)), column)
        return Asked("average", select(f"avg({quoted(column[0])})", where), self.width(column[0]))

    def deviation(self) -> Asked:
        """Draw a question for a standard deviation among some rows."""
        column = self.columns(1, self.numbers)
        where = self.where(int(self.rng.integers(3)), column)
        what = f"stddev({quoted(column[0])})"
        return Asked("deviation", select(what, where), self.width(column[0]))

    def grouped(self) -> Asked:
        """Draw a question for a count or an average in every group."""
        key, column = self.columns(1, self.names), self.columns(1, self.numbers)
        where = self.where(int(self.rng.integers(1, 3)), [*key, *column])
        if self.rng.random() < 0.5:
            text, unit = select("count(*)", where, key), float(len(self.rows))
            return Asked("counts by group", text, unit, tuple(key))
        text, unit = select(f"avg({quoted(column[0])})", where, key), self.width(column[0])
        return Asked("averages by group", text, unit, tuple(key))

    def mixed(self) -> Iterator[Asked]:
        """Give questions of all kinds, for ever: two fifths are counts."""
        forms: list[Callable[[], Asked]] = [self.share, self.average, self.deviation, self.grouped]
        while True:
            if self.rng.random() < 0.4:
                yield self.count(int(self.rng.integers(1, 4)))
            else:
                yield forms[int(self.rng.choice(4, p=(0.25, 0.3, 0.2, 0.25)))]()


def _number(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def _text(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"
