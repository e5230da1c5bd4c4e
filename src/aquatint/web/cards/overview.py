"""Overview: what the release promises, every column at a glance, and what it answers well."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from starlette.responses import Response

from aquatint.analyst.query.answers import Answer
from aquatint.analyst.query.describe import Described, readable, short_number
from aquatint.columns import RANGED, Image, Ordered, bin_edges
from aquatint.release.card import NOT_COVERED, promise, technical
from aquatint.release.histograms import histograms
from aquatint.release.manifest import assumed_public
from aquatint.report import charts
from aquatint.web.cards import equivalents
from aquatint.web.cards.opened import Opened
from aquatint.web.pages import Visit

MOST_BARS = 12
MANY_COLUMNS = 60
"""From so many columns on, charts go without the words that a pointer shows."""
NORMAL = 1.96


def page(visit: Visit, opened: Opened) -> Response:
    """Show the card, the columns as far as they are known, and what to expect."""
    release = opened.release
    return visit.show(
        "overview.html",
        opened=opened,
        promise=promise(release),
        facts=technical(release),
        public=assumed_public(release),
        not_covered=NOT_COVERED,
        blocks=release.blocks,
        same=equivalents.shown(opened.path),
        **_columns(opened),
    )


def columns(visit: Visit, opened: Opened) -> Response:
    """Show the columns again, better known once the model is fitted."""
    return visit.show("_columns.html", opened=opened, **_columns(opened))


def _columns(opened: Opened) -> dict[str, Any]:
    if opened.table and opened.asking.ready:
        shown = [_described(one, opened) for one in opened.asking.result]
    else:
        shown = _counted(opened)
    return {"columns": shown, "job": opened.asking}


def _described(one: Described, opened: Opened) -> dict[str, Any]:
    """Show a column by what the model and the counts say together."""
    told = [
        (name, _written(one.column, name, found.value), _between(one.column, name, found))
        for name, found in one.statistics.items()
        if name != "missing"
    ]
    missing = one.statistics.get("missing")
    if missing is not None:
        ends = f"{charts.percent(max(missing.low, 0))} to {charts.percent(missing.high)}"
        told.append(("missing", charts.percent(max(missing.value, 0)), ends))
    return _shown(opened, one.name, one.histogram, told)


def _written(column: Any, name: str, number: float) -> str:
    """Write a date as a date, but its deviation in days as a number."""
    return short_number(number) if name == "standard deviation" else readable(column, number)


def _between(column: Any, name: str, found: Answer) -> str:
    return " to ".join(_written(column, name, end) for end in (found.low, found.high))


def _counted(opened: Opened) -> list[dict[str, Any]]:
    """Show columns by their own noisy counts alone: at once, without a model."""
    release, rows = opened.release, max(opened.release.count, 1.0)
    known = histograms(release.blocks)
    shown: list[dict[str, Any]] = []
    for name, column in release.schema.columns.items():
        if name not in known:
            shown.append({"name": name, "kind": column.kind, "chart": None, "told": []})
            continue
        counts, deviation = known[name]
        share, wide = counts / rows, NORMAL * deviation / rows
        ends = {"low": share - wide, "high": share + wide}
        table = pd.DataFrame({"value": share, **ends}, index=release.schema.cell_names(name))
        shown.append(_shown(opened, name, table, []))
    return shown


def _shown(
    opened: Opened, name: str, cells: pd.DataFrame, told: list[tuple[str, str, str]]
) -> dict[str, Any]:
    """Draw a column's cells; numbers as a histogram, categories as bars."""
    schema = opened.release.schema
    column = schema.columns[name]
    if isinstance(column, Image):
        return {"name": name, "kind": column.kind, "chart": None, "told": told}
    tips = len(schema.columns) < MANY_COLUMNS
    ends = {k: np.maximum(cells[k].to_numpy(dtype=float), 0.0) for k in ("value", "low", "high")}
    title = f"Distribution of {name}, with 95 % intervals"
    if isinstance(column, RANGED):
        inside = [part[: column.present_cells] for part in ends.values()]
        form = partial(readable, column)
        chart = charts.histogram(bin_edges(column), *inside, title=title, at=form, tips=tips)
    else:
        order = np.arange(len(cells))
        if not isinstance(column, Ordered):
            order = np.argsort(-ends["value"], kind="stable")
        kept = order[:MOST_BARS]
        labels = [str(cells.index[i]) for i in kept]
        parts = [part[kept] for part in ends.values()]
        chart = charts.bars(labels, *parts, title=title, tips=tips)
        if len(order) > MOST_BARS:
            told = [*told, ("not shown", f"{len(order) - MOST_BARS:,} more categories", "")]
    return {"name": name, "kind": column.kind, "chart": chart, "told": told}
