"""Questions and conditions by pointing and clicking: written as SQL, so that one can read on."""

from __future__ import annotations

import json
import re
from typing import Any

from aquatint.columns import RANGED, Boolean, Date, Datetime
from aquatint.errors import DataError
from aquatint.schema import Schema
from aquatint.web.forms import Form

PLACES = range(3)
"""How many conditions a form has room for."""
RANGES = {"=": "is", ">=": "is at least", "<=": "is at most", "missing": "is missing"}
CHOICES = {"=": "is", "<>": "is not", "missing": "is missing"}
STATISTICS = {
    "count": "number of rows",
    "avg": "average",
    "median": "median",
    "stddev": "standard deviation",
    "sum": "sum",
}
FUNCTIONS = (
    *("count(*)", "avg(", "sum(", "median(", "quantile(", "stddev(", "var(", "corr("),
    *(
        "covar_samp(",
        "count(distinct ",
        "case when ",
        "select ",
        "from data ",
        "where ",
        "group by ",
    ),
    *(
        "having ",
        "order by ",
        "limit ",
        "between ",
        "in (",
        "is null",
        "is not null",
        "and ",
        "or ",
    ),
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = frozenset(
    (
        *("select", "from", "where", "group", "by", "having", "order", "limit", "and", "or", "not"),
        *("in", "is", "null", "between", "like", "case", "when", "then", "else", "end", "as", "on"),
        *("distinct", "true", "false", "join", "left", "right", "union", "all", "asc", "desc"),
    )
)
MOST_WORDS = 5_000


def name_in_sql(name: str) -> str:
    """Write a column's name, in quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def value_in_sql(column: Any, value: str) -> str:
    """Write a value as the column's kind wants it."""
    if isinstance(column, Boolean):
        return "true" if value.lower() in {"true", "yes", "1"} else "false"
    if isinstance(column, RANGED) and not isinstance(column, (Date, Datetime)):
        try:
            return repr(float(value)) if not float(value).is_integer() else str(int(float(value)))
        except (ValueError, OverflowError):
            msg = f"{value[:40]!r} is not a number"
            raise DataError(msg) from None
    return _text(value)


def ways(column: Any) -> dict[str, str]:
    """Give the ways in which a column can be compared, and what they are called."""
    found = RANGES if isinstance(column, RANGED) else CHOICES
    return {way: said for way, said in found.items() if way != "missing" or column.missing}


def condition(schema: Schema, form: Form) -> str | None:
    """Read the conditions of a form as one text in SQL; None if there is none."""
    parts = []
    for place in PLACES:
        name = form.text(f"column{place}")
        if not name:
            continue
        if name not in schema.columns:
            msg = f"there is no column {name[:80]!r}"
            raise DataError(msg)
        column = schema.columns[name]
        way = form.choice(f"way{place}", ways(column), "=")
        value = form.text(f"value{place}")
        if way == "missing":
            parts.append(f"{name_in_sql(name)} is null")
        elif not value:
            msg = f"give the value that {name!r} is compared with, or leave the column out"
            raise DataError(msg)
        else:
            parts.append(f"{name_in_sql(name)} {way} {value_in_sql(column, value)}")
    return " and ".join(parts) or None


def question(schema: Schema, form: Form) -> str:
    """Write the question that was put together from lists."""
    what = form.choice("statistic", STATISTICS, "count")
    column, group = form.text("of"), form.text("group")
    for name in (column, group):
        if name and name not in schema.columns:
            msg = f"there is no column {name[:80]!r}"
            raise DataError(msg)
    if what != "count" and not column:
        msg = f"choose the column of which to give the {STATISTICS[what]}"
        raise DataError(msg)
    said = "count(*) as people" if what == "count" else f"{what}({name_in_sql(column)}) as {what}"
    if group and isinstance(schema.columns[group], RANGED):
        msg = f"{group!r} has numbers, which make no groups: choose a column with categories"
        raise DataError(msg)
    key = name_in_sql(group) if group else ""
    where = condition(schema, form)
    # Nothing executes this text: it is parsed, and answered from the release alone.
    asked = f"select {key}, {said} from data" if key else f"select {said} from data"  # noqa: S608
    asked += f" where {where}" if where else ""
    return asked + (f" group by {key}" if key else "")


def words(schema: Schema) -> str:
    """Give what a question can be completed with, as JSON: columns, categories, functions."""
    found = [{"word": name_in_sql(n), "kind": c.kind} for n, c in schema.columns.items()]
    for name, column in schema.columns.items():
        categories = getattr(column, "categories", [])
        found += [{"word": _text(str(one)), "kind": name} for one in categories[:200]]
    found += [{"word": function, "kind": ""} for function in FUNCTIONS]
    return json.dumps(found[:MOST_WORDS], ensure_ascii=False)
