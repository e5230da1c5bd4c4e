"""The charts of a report: columns, pairs of columns, and correlations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from aquatint.analyst.query.describe import Described, readable, short_number
from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED, Column, Date, Datetime
from aquatint.reporting.charts import (
    bars,
    brief,
    heat_map,
    histogram,
    percent,
    points_with_intervals,
)
from aquatint.reporting.svg import Format

BARS = 12
"""The most categories drawn of a column; the rest are one bar."""
SIDE = 12
"""The most cells a pair's heat map has on a side."""
_SHORT = {"standard deviation": "s.d."}


def column_chart(one: Described, *, tips: bool = True) -> str:
    """Draw a column's distribution: a range as steps, categories as bars."""
    title = f"Distribution of {one.name}, with 95 % intervals"
    ranged = isinstance(one.column, RANGED)
    # A missing value has no place on an axis, but among categories it is a bar like another.
    frame = one.histogram.iloc[: one.column.present_cells] if ranged else one.histogram
    value, low, high = frame.loc[:, "value":"high"].to_numpy(dtype=float).T
    value, low = np.maximum(value, 0.0), np.maximum(low, 0.0)
    if ranged:
        at, edges = axis_form(one.column), edges_of(one.column)
        return histogram(edges, value, low, high, title=title, at=at, tips=tips)
    labels, parts = most_common([str(n) for n in frame.index], [value, low, high])
    return bars(labels, *parts, title=title, tips=tips)


def axis_form(column: Column) -> Format:
    """Give how a place on a column's axis is written: a date as a date, and numbers short."""
    return partial(readable, column) if isinstance(column, (Date, Datetime)) else brief


def spread_form(column: Column) -> Format:
    """Give how a difference of a column's numbers is written: of dates, in days."""
    if not isinstance(column, (Date, Datetime)):
        return short_number
    to_day = 1 if isinstance(column, Date) else 86_400
    return lambda number: f"{short_number(number / to_day)} days"


def edges_of(column: Column) -> np.ndarray:
    """Give the edges of a ranged column's bins."""
    left, width, _ = widths_and_edges(column)
    return np.append(left, left[-1] + width[-1])


def most_common(
    labels: Sequence[str], parts: Sequence[np.ndarray]
) -> tuple[list[str], list[np.ndarray]]:
    """Keep the commonest categories; the rest together get no interval, for theirs do not add."""
    if len(labels) <= BARS:
        return list(labels), list(parts)
    order = np.argsort(-parts[0], kind="stable")
    kept, rest = np.sort(order[: BARS - 1]), order[BARS - 1 :]
    short = []
    for place, part in enumerate(parts):
        last = np.nan if place in {1, 2} else float(part[rest].sum())
        short.append(np.append(part[kept], last))
    return [*(labels[i] for i in kept), f"{len(rest)} others"], short


def pair_chart(model: Mixture, first: str, second: str) -> str:
    """Draw where two columns meet more or less often than if they had nothing to do with it."""
    (rows, left), (columns, right) = (_grouped(model, name) for name in (first, second))
    joint = (model.weights[:, None] * left).T @ right
    apart = joint - np.outer(joint.sum(1), joint.sum(0))
    title = f"{first} (down) and {second} (across): more or less often together than by chance"
    return heat_map(apart, rows, columns, title=title, signed=True, form=_points)


def _points(share: float) -> str:
    """Write a difference of shares in percentage points; next to nothing is left blank."""
    return f"{100 * share:+.1f}" if abs(share) >= 0.0005 else ""


def _grouped(model: Mixture, name: str) -> tuple[list[str], np.ndarray]:
    """Give a column's cells by component, put together to fit: neighbours, or the rarest."""
    column, cells = model.schema.columns[name], model.cells(name)
    names = model.schema.cell_names(name)
    if isinstance(column, RANGED):
        edges = edges_of(column)
        size = column.present_cells
        parts = np.array_split(np.arange(size), min(size, SIDE))
        labels = [f"{axis_form(column)(edges[p[0]])}–" for p in parts]
        if column.missing:
            parts, labels = [*parts, np.array([size])], [*labels, names[-1]]
    else:
        order = np.argsort(-(model.weights @ cells), kind="stable")
        few = len(names) <= SIDE
        parts = [np.array([i]) for i in (range(len(names)) if few else np.sort(order[: SIDE - 1]))]
        labels = [names[p[0]] for p in parts]
        if not few:
            parts, labels = [*parts, order[SIDE - 1 :]], [*labels, "others"]
    return labels, np.stack([cells[:, p].sum(1) for p in parts], axis=1)


def _hundredths(number: float) -> str:
    """Write a correlation; next to nothing has no sign."""
    return f"{number:z.2f}"


def correlation_charts(found: pd.DataFrame, most: int) -> tuple[str, str]:
    """Draw correlations as a map, and the strongest of them with their intervals."""
    names = list(dict.fromkeys([*found["first"], *found["second"]]))
    place = {name: i for i, name in enumerate(names)}
    matrix = np.eye(len(names))
    sure = np.eye(len(names), dtype=bool)
    for line in found.to_dict("records"):
        i, j = place[line["first"]], place[line["second"]]
        matrix[i, j] = matrix[j, i] = line["value"]
        sure[i, j] = sure[j, i] = line["low"] > 0 or line["high"] < 0
    form = _hundredths
    whole = heat_map(
        matrix, names, names, title="Correlations", signed=True, most=1.0, sure=sure, form=form
    )
    top = found.reindex(found["value"].abs().sort_values(ascending=False).index)[:most]
    labels = [f"{a}, {b}" for a, b in zip(top["first"], top["second"], strict=True)]
    ends = [top[what].to_numpy(dtype=float) for what in ("value", "low", "high")]
    title = "The strongest correlations, with 95 % intervals"
    return whole, points_with_intervals(labels, *ends, title=title, zero=True, form=form)


def statistics_of(one: Described) -> list[tuple[str, str, str]]:
    """Give a column's statistics as words: name, value, and interval."""
    forms: dict[str, Format] = {"missing": percent, "standard deviation": spread_form(one.column)}
    lines = []
    for what, answer in one.statistics.items():
        form = forms.get(what, partial(readable, one.column))
        between = f"{form(answer.low)} to {form(answer.high)}"
        if what == "standard deviation" and not answer.value > 0:
            lines.append((_SHORT[what], "unknown", f"at most {form(answer.high)}"))
            continue
        lines.append((_SHORT.get(what, what), form(answer.value), between))
    return lines
