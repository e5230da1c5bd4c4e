"""Reading SQL that anyone may have written: names of columns, plain values, nothing that runs."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from math import isnan
from typing import Any, TypeVar

import sqlglot
from sqlglot import expressions as sql

from aquatint.columns import Date, Datetime
from aquatint.errors import DataError
from aquatint.schema import Schema

Read = TypeVar("Read")
MAX_TEXT = 10_000
MAX_DEPTH = 100
KNOWN = {"this", "expression", "expressions", "low", "high"}
WHOLE = re.compile(r"\.0+$")


def read_sql(
    text: str, what: str, example: str, walk: Callable[[Any], Read], into: Any = None
) -> Read:
    """Parse SQL and walk its tree; what is too long or too deep to be meant is refused."""
    if len(text) > MAX_TEXT:
        msg = f"the {what} is longer than {MAX_TEXT:,} characters: shorten it"
        raise DataError(msg)
    try:
        if (
            text.count("(") > MAX_DEPTH
            or text.count("-") > 10 * MAX_DEPTH
            or text.count(".") > 1000
        ):
            raise RecursionError
        return walk(sqlglot.parse_one(text, into=into))
    except (sqlglot.errors.SqlglotError, RecursionError):
        msg = f"cannot read the {what} {quoted(text)}: write it like {example}"
        raise DataError(msg) from None


def quoted(value: Any) -> str:
    """Quote what someone wrote, as far as an error message has room for it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def column_of(schema: Schema, name: str) -> Any:
    """Find a column by its name."""
    if name not in schema.columns:
        known = ", ".join(list(schema.columns)[:20])
        msg = f"there is no column {quoted(name)}: the release has {known}"
        raise DataError(msg)
    return schema.columns[name]


def cells_of(schema: Schema, name: str, values: Iterable[Any]) -> list[int]:
    """Find the cells of categories by their names; another case, or 3.0 for 3, will do as well."""
    names = schema.cell_names(name)
    places = {n.lower(): i for i, n in enumerate(names)} | {n: i for i, n in enumerate(names)}
    found = []
    for value in values:
        text = str(value)
        said = (text, text.lower(), WHOLE.sub("", text))
        place = next((places[way] for way in said if way in places), None)
        if place is None:
            known = ", ".join(names[:20])
            msg = f"column {name!r} has no category {quoted(str(value))}: it has {known}"
            raise DataError(msg)
        found.append(place)
    return found


def check_known(tree: Any) -> None:
    """Refuse a comparison that says more than is read of it, such as a flag of a newer parser."""
    more = {name for name, part in tree.args.items() if part} - KNOWN
    if more:
        msg = f"cannot use {quoted(tree.sql())} as a condition: leave out {', '.join(sorted(more))}"
        raise DataError(msg)


def number_of(name: str, column: Any, value: Any) -> float:
    """Read a bound in the column's own numbers: days and seconds since 1970 for dates."""
    try:
        if isinstance(column, Date):
            day = value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
            return float((day - dt.date(1970, 1, 1)).days)
        if isinstance(column, Datetime):
            moment = (
                value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
            )
            return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
        number = float(value)
        if isnan(number) or isinstance(value, bool):
            raise ValueError
        return number
    except (TypeError, ValueError, OverflowError):
        msg = f"column {name!r} cannot be compared with {quoted(value)}: give one of its own kind"
        raise DataError(msg) from None


def literal_of(part: Any) -> Any:
    """Read a plain value."""
    if isinstance(part, sql.Neg) and isinstance(part.this, sql.Literal) and part.this.is_number:
        return f"-{part.this.this}"
    if isinstance(part, sql.Boolean):
        return part.this
    if isinstance(part, sql.Literal):
        return part.this
    if isinstance(part, sql.Column) and isinstance(part.this, sql.Identifier):
        return part.name  # "Female" in double quotes is read as a name
    msg = f"cannot compare with {quoted(part.sql())}: give a plain value"
    raise DataError(msg)
