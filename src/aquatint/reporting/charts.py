"""Charts as SVG: plain numbers in, a string out. Used by the report and by the local page.

Every function takes numbers and names, and gives one ``<svg class="chart" role="img">`` to put into
HTML as it is: names are escaped here, whatever they hold. There is no script and no style attribute
in it; colours come from ``static/charts.css``, light and dark. Without that they are the text's.

======================================================  ==========================================
``bars(labels, values, low, high, title=…)``            categories, a bar each, lying
``histogram(edges, values, low, high, title=…)``        a column's bins, standing, with a band
``points_with_intervals(labels, values, low, high, …)`` numbers of different kinds, with whiskers
``heat_map(matrix, rows, columns, title=…)``            shares, or correlations with ``signed=True``
``line(x, {"name": y, …}, title=…)``                    curves, such as ROC with ``diagonal=True``
======================================================  ==========================================

``low`` and ``high`` are the ends of intervals, or None. ``beside`` draws a second set of values in
the second colour, ``form`` writes numbers (`percent`, `brief`, or your own), ``tips=False`` leaves
out the words that a pointer shows, which are half of a chart's size. Values that are not finite are
left out of the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite

import numpy as np

from aquatint.reporting import marks
from aquatint.reporting.marks import Numbers, ends_of, floats
from aquatint.reporting.svg import (
    Format,
    brief,
    element,
    label,
    percent,
    picture,
    scale,
    short,
    tip,
    words,
)

__all__ = ["bars", "brief", "heat_map", "histogram", "line", "percent", "points_with_intervals"]
WIDTH = 360.0
_ROW = 22.0


def bars(
    labels: Sequence[str],
    values: Numbers,
    low: Numbers | None = None,
    high: Numbers | None = None,
    *,
    title: str,
    description: str = "",
    beside: Numbers | None = None,
    names: tuple[str, str] = ("", ""),
    form: Format = percent,
    tips: bool = True,
) -> str:
    """Draw a bar for each category, with its interval.

    Parameters
    ----------
    labels, values
        The categories and their numbers, none below zero as a rule.
    low, high
        The intervals' ends.
    title, description
        What a screen reader says; the description defaults to the largest bars in words.
    beside
        A second set of numbers, drawn as thinner bars in the second colour.
    names
        What the two sets are called, in the words that a pointer shows.
    form
        How numbers are written.
    tips
        Whether a pointer at rest shows words.
    """
    one, two, ends = floats(values), floats(beside), ends_of(low, high, len(values))
    left = marks.room(labels, 24, WIDTH * 0.42)
    along = scale([0.0, *one, *two, *ends.ravel()], left, WIDTH - 52)
    parts, bar, second, whisker = [], [], [], []
    for i, (name, value) in enumerate(zip(labels, one, strict=True)):
        top, written = i * _ROW + 3, marks.told(name, value, ends[i], form, names[0])
        parts.append(words(left - 6, top + 12, label(name), anchor="end"))
        if not isfinite(value):
            continue
        tall = 16.0 if beside is None else 9.0
        bar.append(marks.block(along(0), top, along(value), tall, written if tips else ""))
        whisker.append(marks.whisker(along, ends[i], top + tall / 2))
        if beside is not None and isfinite(two[i]):
            told = marks.told(name, two[i], np.full(2, np.nan), form, names[1]) if tips else ""
            second.append(marks.block(along(0), top + 9.0, along(two[i]), 6.0, told))
        right = max(along(value), along(ends[i][1]) if isfinite(ends[i][1]) else 0.0)
        parts.append(words(right + 5, top + 12, form(value), kind="faint"))
    parts.append(element("g", *bar, class_="one"))
    parts += [element("g", *second, class_="two")] * bool(second)
    parts.append(marks.marks("".join(whisker), "whisker"))
    said = description or marks.largest(labels, one, form)
    return picture((WIDTH, len(one) * _ROW + 4), title, said, parts)


def histogram(
    edges: Numbers,
    values: Numbers,
    low: Numbers | None = None,
    high: Numbers | None = None,
    *,
    title: str,
    description: str = "",
    beside: Numbers | None = None,
    form: Format = percent,
    at: Format = brief,
    tips: bool = True,
    height: float = 150.0,
) -> str:
    """Draw the bins of a range as steps, with a band for their intervals.

    Parameters
    ----------
    edges
        The bins' edges, one more than there are bins. Bins are drawn equally wide where some are
        far narrower than others, which is how bins for single points look.
    at
        How a place on the axis is written: a date as a date.
    height
        Of the picture.
    values, low, high, title, description, beside, form, tips
        As for `bars`.
    """
    one, two, ends = floats(values), floats(beside), ends_of(low, high, len(values))
    marked = floats(edges)
    base, left = height - 20, 44.0
    up = scale([*one, *two, *ends.ravel()], base, 8)
    places, ticks = marks.places_of(marked, left, WIDTH - 8)
    parts = marks.grid(up, form, left, WIDTH - 8)
    parts += [marks.tick(x, base, at(edge), (left, WIDTH - 8)) for x, edge in ticks]
    parts.append(marks.marks(marks.steps(places, one, up, base), "one steps"))
    if np.isfinite(ends).any():
        parts.append(marks.marks(marks.band(places, ends, up), "band"))
    if beside is not None:
        parts.append(marks.marks(marks.outline(places, two, up), "second line"))
    if tips:
        bins = [f"{at(a)} to {at(b)}" for a, b in pairwise(marked)]
        told = [marks.told(n, v, e, form) for n, v, e in zip(bins, one, ends, strict=True)]
        spans = zip(pairwise(places), told, strict=True)
        hover = [marks.block(a, 8, b, base - 8, said) for (a, b), said in spans]
        parts.append(element("g", *hover, class_="hover"))
    return picture((WIDTH, height), title, description or marks.shape(one, marked, form, at), parts)


def points_with_intervals(
    labels: Sequence[str],
    values: Numbers,
    low: Numbers,
    high: Numbers,
    *,
    title: str,
    description: str = "",
    zero: bool = False,
    form: Format = brief,
    tips: bool = True,
) -> str:
    """Draw numbers as points with whiskers, one below the other, on a common scale.

    Parameters
    ----------
    zero
        Whether the scale holds zero, which is drawn as a line: for differences and correlations.
    labels, values, low, high, title, description, form, tips
        As for `bars`.
    """
    found, ends = floats(values), ends_of(low, high, len(values))
    left = marks.room(labels, 30, WIDTH * 0.5)
    along = scale([*found, *ends.ravel()], left + 4, WIDTH - 12, zero=zero)
    base = len(found) * _ROW + 6
    parts = [marks.tick(along(t), base - 1, form(t), (0, WIDTH)) for t in along.ticks()]
    if zero:
        parts.append(marks.marks(f"M{short(along(0))} 0V{short(base)}", "axis"))
    dots, whisker = [], []
    for i, (name, value) in enumerate(zip(labels, found, strict=True)):
        middle = i * _ROW + 13
        parts.append(words(left - 6, middle + 4, label(name, 30), anchor="end"))
        if isfinite(value):
            told = [tip(marks.told(name, value, ends[i], form))] if tips else []
            dots.append(element("circle", *told, cx=along(value), cy=middle, r=4))
            whisker.append(marks.whisker(along, ends[i], middle))
    parts += [marks.marks("".join(whisker), "whisker"), element("g", *dots, class_="one")]
    said = description or marks.listed(labels, found, ends, form)
    return picture((WIDTH, base + 18), title, said, parts)


def heat_map(
    matrix: Sequence[Sequence[float]] | np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    description: str = "",
    signed: bool = False,
    most: float | None = None,
    sure: np.ndarray | None = None,
    form: Format = brief,
) -> str:
    """Draw a matrix as shades of one colour, or of two for numbers with a sign.

    Parameters
    ----------
    matrix
        The numbers, a line for each row.
    signed
        Whether numbers below zero get the second colour; otherwise they are drawn as nothing.
    most
        The number with the full shade; by default the largest there is. 1 for correlations.
    sure
        If given, which numbers to believe: those of others are written faint.
    rows, columns, title, description, form
        As for `bars`. Numbers are written where there is room for them.
    """
    found = floats(np.asarray(matrix, dtype=float)).reshape(len(rows), len(columns))
    top = most or max(float(np.nanmax(np.abs(found), initial=0.0)), 1e-300)
    left = marks.room(rows, 16, WIDTH * 0.34)
    head = min(0.75 * marks.room(columns, 14, 200) + 6, 82)
    wide = (WIDTH - left - 34) / max(len(columns), 1)
    tall = min(max(wide, 9.0), 26.0)
    parts = marks.cell_names(rows, columns, (left, head), (wide, tall))
    parts += marks.shades(found, top, (left, head), (wide, tall), signed=signed)
    if wide >= 26:
        believed = np.ones(found.shape, dtype=bool) if sure is None else sure
        for (i, j), number in np.ndenumerate(found):
            if isfinite(number):
                x, y = left + (j + 0.5) * wide, head + (i + 0.5) * tall + 3.5
                dark = " on" if abs(number) > 0.6 * top else ""
                kind = "number" + (dark if believed[i, j] else " faint")
                parts.append(words(x, y, form(number), kind=kind, anchor="middle"))
    size = (WIDTH, head + tall * len(rows) + 4)
    return picture(size, title, description or marks.darkest(found, rows, columns, form), parts)


def line(
    x: Numbers,
    curves: Mapping[str, Numbers],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    y_label: str = "",
    diagonal: bool = False,
    form: Format = brief,
    at: Format = brief,
    height: float = 200.0,
) -> str:
    """Draw up to three curves over common places, named beside their ends.

    Parameters
    ----------
    x
        The places, rising.
    curves
        The numbers of each curve by its name.
    x_label, y_label
        What the axes show.
    diagonal
        Whether to draw a dotted line from corner to corner, as for ROC curves.
    title, description, form, at, height
        As for `histogram`.
    """
    places, base, left = floats(x), height - 34, 44.0
    along = scale(places, left, WIDTH - 12, zero=False)
    up = scale([v for values in curves.values() for v in floats(values)], base, 18)
    parts = marks.grid(up, form, left, WIDTH - 8)
    ends = (left, WIDTH - 12)
    parts += [marks.tick(along(t), base, at(t), ends) for t in along.ticks()]
    parts.append(words((left + WIDTH) / 2, height - 4, x_label, kind="faint", anchor="middle"))
    turned = f"translate(11 {short((base + 18) / 2)})rotate(-90)"
    named = {"class_": "faint", "text_anchor": "middle", "transform": turned}
    parts.append(element("text", text=y_label, **named))
    if diagonal:
        corner = f"M{short(left)} {short(base)}L{short(WIDTH - 12)} 18"
        parts.append(marks.marks(corner, "axis dotted"))
    for i, (name, values) in enumerate(curves.items()):
        dots = [
            f"{short(along(a))} {short(up(b))}"
            for a, b in zip(places, floats(values), strict=True)
            if isfinite(b)
        ]
        kind = ("first", "second", "third")[i % 3]
        parts.append(marks.marks("M" + "L".join(dots) if dots else "", f"{kind} line"))
        parts.append(words(left + 8 + i * 110, 12, label(name, 18), kind=kind))
    return picture((WIDTH, height), title, description or ", ".join(curves), parts)
