"""Ask: a question in SQL or from lists, an answer with intervals as a table and a picture."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from starlette.responses import Response

from aquatint.analyst.query.describe import short_number
from aquatint.analyst.query.text import LEGEND
from aquatint.columns import RANGED
from aquatint.errors import DataError
from aquatint.reporting import charts
from aquatint.web.cards import equivalents, filters
from aquatint.web.cards.opened import Opened
from aquatint.web.forms import Form
from aquatint.web.pages import Visit

MOST_LINES = 500
MOST_POINTS = 40


def page(visit: Visit, opened: Opened) -> Response:
    """Show the form."""
    return visit.show("ask.html", **_form(opened, visit.asked("sql")), answer=None)


def _form(opened: Opened, sql: str) -> dict[str, Any]:
    schema = opened.release.schema
    kinds = {n: isinstance(c, RANGED) for n, c in schema.columns.items()}
    grouped = [n for n, ranged in kinds.items() if not ranged]
    label = schema.label if schema.label in grouped else (grouped or [""])[0]
    first = filters.question(schema, Form({"group": [label]}))
    return {
        "opened": opened,
        "sql": sql or first,
        "words": filters.words(schema),
        "statistics": filters.STATISTICS,
        "numbers": [n for n, ranged in kinds.items() if ranged],
        "groups": grouped,
        "places": filters.PLACES,
        "ways": {**filters.RANGES, **filters.CHOICES},
    }


def sql_of(opened: Opened, form: Form) -> str:
    """Give the question of a form, typed or put together."""
    if form.text("by") == "lists":
        return filters.question(opened.release.schema, form)
    sql = form.text("sql")
    if not sql:
        msg = "write a question, such as: select count(*) from data"
        raise DataError(msg)
    return sql


def answered(opened: Opened, sql: str) -> pd.DataFrame:
    """Answer a question."""
    with opened.lock:
        return opened.query.sql(sql)


def answer(visit: Visit, opened: Opened) -> Response:
    """Answer, or say how far the fit is that the answer waits for."""
    sql = sql_of(opened, visit.form)
    if not opened.asking.over:
        shown: dict[str, Any] = {"job": opened.asking, "again": {"sql": sql}}
    else:
        shown = {"job": None, **_shown(opened, sql)}
    if visit.partial:
        return visit.show("_answer.html", opened=opened, **shown)
    return visit.show("ask.html", **_form(opened, sql), answer=shown)


def _shown(opened: Opened, sql: str) -> dict[str, Any]:
    found = answered(opened, sql)
    keys = list(found.columns[: list(found.columns).index("statistic")])
    lines = [
        {
            "keys": [str(line[key]) for key in keys],
            "statistic": line["statistic"],
            "value": short_number(line["value"]),
            "interval": f"{short_number(line['low'])} to {short_number(line['high'])}",
            "how": line["how"],
            "mostly": line["mostly"],
        }
        for line in found.head(MOST_LINES).to_dict("records")
    ]
    return {
        "sql": sql,
        "keys": keys,
        "lines": lines,
        "more": max(0, len(found) - MOST_LINES),
        "charts": _charts(found, keys),
        "legend": LEGEND,
        "same": equivalents.asked(opened.path, sql),
    }


def _charts(found: pd.DataFrame, keys: list[str]) -> list[tuple[str, str]]:
    """Draw each statistic over its groups, if there are not too many."""
    drawn = []
    for statistic, lines in found.groupby("statistic", sort=False):
        part = lines.head(MOST_POINTS)
        labels = [
            ", ".join(str(v) for v in line) or str(statistic) for line in part[keys].to_numpy()
        ]
        ends = part["value"], part["low"], part["high"]
        title = f"{statistic}, with 95 % intervals"
        chart = charts.points_with_intervals(labels, *ends, title=title, form=short_number)
        drawn.append((str(statistic), chart))
    return drawn[:6]


def download(visit: Visit, opened: Opened) -> Response:
    """Give the answer as CSV, as ``aquatint query -o`` writes it."""
    text = io.StringIO()
    answered(opened, sql_of(opened, visit.form)).to_csv(text, index=False)
    return visit.download(text.getvalue().encode(), f"{opened.name}-answer.csv", "text/csv")


def value(visit: Visit, opened: Opened) -> Response:
    """Give the inputs of one condition, as they suit the column that was chosen."""
    schema = opened.release.schema
    place = next((p for p in filters.PLACES if visit.asked("place") == str(p)), 0)
    name = visit.asked(f"column{place}")
    column = schema.columns.get(name)
    choices = None if column is None or isinstance(column, RANGED) else schema.cell_names(name)
    return visit.show(
        "_condition.html",
        place=place,
        column=column,
        ways=filters.ways(column) if column else {**filters.RANGES, **filters.CHOICES},
        choices=choices[: column.present_cells][:1000] if choices and column else choices,
    )
