"""The strokes and the words that charts are put together from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, isfinite
from xml.etree.ElementTree import Element  # writes only

import numpy as np

from aquatint.reporting.svg import (
    LETTER,
    Format,
    Scale,
    clean,
    element,
    label,
    round_numbers,
    short,
    tip,
    words,
)

Numbers = Sequence[float] | np.ndarray
MOST = 1e100
"""Schemas admit no larger numbers."""
SHADES = 20
"""So many shades a heat map has."""
_UNEVEN = 4.0
"""Bins that differ in width by this factor are drawn alike: a bin for a point has no area."""
_SAID = 5
"""So many numbers a description names."""


def floats(numbers: Numbers | None) -> np.ndarray:
    """Give numbers as an array; nothing is an empty one, and what no chart can show is unknown."""
    found = np.asarray([] if numbers is None else numbers, dtype=float)
    return np.where(np.abs(found) < MOST, found, np.nan)


def ends_of(low: Numbers | None, high: Numbers | None, size: int) -> np.ndarray:
    """Give the ends of intervals as lines of two, unknown where there are none."""
    if low is None or high is None:
        return np.full((size, 2), np.nan)
    return np.stack([floats(low), floats(high)], axis=1)


def block(start: float, top: float, end: float, tall: float, told: str) -> Element:
    """Draw a rectangle between two places, however they are ordered."""
    size = {"x": min(start, end), "y": top, "width": abs(end - start), "height": tall}
    return element("rect", *([tip(told)] if told else []), **size)


def marks(path: str, kind: str) -> Element:
    """Draw a path in one of the style sheet's ways."""
    return element("path", class_=kind, d=path)


def whisker(along: Scale, ends: np.ndarray, middle: float) -> str:
    """Give the path of an interval that lies."""
    if not np.isfinite(ends).all():
        return ""
    low, high = (short(along(float(end))) for end in ends)
    caps = "".join(f"M{x} {short(middle - 3)}v6" for x in (low, high))
    return f"M{low} {short(middle)}H{high}{caps}"


def grid(up: Scale, form: Format, left: float, right: float) -> list[Element]:
    """Draw level lines with their numbers."""
    levels = round_numbers(up.low, up.high, 3)
    path = "".join(f"M{short(left)} {short(up(t))}H{short(right)}" for t in levels)
    written = [words(left - 5, up(t) + 3.5, form(t), kind="faint", anchor="end") for t in levels]
    return [marks(path, "axis"), *written]


def tick(x: float, base: float, text: str, ends: tuple[float, float]) -> Element:
    """Write a word below the axis; at the ends it leans inwards."""
    anchor = "start" if x <= ends[0] + 8 else "end" if x >= ends[1] - 8 else "middle"
    return words(x, base + 14, text, kind="faint", anchor=anchor)


def places_of(
    edges: np.ndarray, left: float, right: float
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Give where the edges of bins are drawn, and which of them are written."""
    widths = np.diff(edges)
    if widths.min() > 0 and widths.max() < _UNEVEN * widths.min():
        along = Scale(float(edges[0]), float(edges[-1]), left, right)
        return np.array([along(e) for e in edges]), [(along(t), t) for t in along.ticks(3)]
    places = np.linspace(left, right, len(edges))
    shown = np.unique(np.linspace(0, len(edges) - 1, 4).astype(int))
    return places, [(float(places[i]), float(edges[i])) for i in shown]


def steps(places: np.ndarray, values: np.ndarray, up: Scale, base: float) -> str:
    """Give the outline of bins as a closed path."""
    return f"M{short(places[0])} {short(base)}{_stairs(places, values, up)}V{short(base)}z"


def outline(places: np.ndarray, values: np.ndarray, up: Scale) -> str:
    """Give the tops of bins as an open path."""
    first = up(float(np.nan_to_num(values[0])))
    return f"M{short(places[0])} {short(first)}{_stairs(places, values, up)}"


def band(places: np.ndarray, ends: np.ndarray, up: Scale) -> str:
    """Give the rectangles between the ends of intervals as one path."""
    path = ""
    for (left, right), (low, high) in zip(pairwise(places), ends, strict=True):
        if isfinite(low) and isfinite(high):
            top, tall = up(float(high)), max(up(float(low)) - up(float(high)), 0.6)
            wide = short(right - left)
            path += f"M{short(left)} {short(top)}h{wide}v{short(tall)}h-{wide}z"
    return path


def _stairs(places: np.ndarray, values: np.ndarray, up: Scale) -> str:
    heights = (short(up(float(v))) for v in np.nan_to_num(values))
    return "".join(f"V{h}H{short(x)}" for h, x in zip(heights, places[1:], strict=True))


def cell_names(
    rows: Sequence[str],
    columns: Sequence[str],
    corner: tuple[float, float],
    size: tuple[float, float],
) -> list[Element]:
    """Write the names at the sides of a heat map: all of them, or as many as fit."""
    (left, head), (wide, tall) = corner, size
    parts = []
    for i in range(0, len(rows), ceil(10 / tall)):
        y = head + (i + 0.5) * tall + 3.5
        parts.append(words(left - 5, y, label(rows[i], 16), anchor="end"))
    for j in range(0, len(columns), ceil(10 / wide)):
        x = left + (j + 0.5) * wide
        turned = {"transform": f"translate({short(x)} {short(head - 5)})rotate(-50)"}
        parts.append(element("text", text=label(columns[j], 14), **turned))
    return parts


def shades(
    found: np.ndarray,
    most: float,
    corner: tuple[float, float],
    size: tuple[float, float],
    *,
    signed: bool,
) -> list[Element]:
    """Draw the cells of a heat map, those of one shade as one path."""
    (left, head), (wide, tall) = corner, size
    level = np.rint(np.nan_to_num(found) / most * SHADES).clip(-SHADES if signed else 0, SHADES)
    box = f"h{short(wide - 0.6)}v{short(tall - 0.6)}h-{short(wide - 0.6)}z"
    parts = [element("path", class_="empty", d=_boxes(level == 0, left, head, wide, tall, box))]
    for shade in np.unique(level[level != 0]):
        path = _boxes(level == shade, left, head, wide, tall, box)
        opacity = f"{abs(shade) / SHADES:.2f}".lstrip("0")
        kind = "one" if shade > 0 else "two"
        parts.append(element("path", class_=kind, d=path, fill_opacity=opacity))
    return parts


def _boxes(there: np.ndarray, left: float, head: float, wide: float, tall: float, box: str) -> str:
    places = np.argwhere(there)
    return "".join(f"M{short(left + j * wide)} {short(head + i * tall)}{box}" for i, j in places)


def told(name: str, value: float, ends: np.ndarray, form: Format, whose: str = "") -> str:
    """Say one number with its interval."""
    said = f"{clean(name)}: {form(value)}" + (f" {whose}" if whose else "")
    if np.isfinite(ends).all():
        said += f", between {form(float(ends[0]))} and {form(float(ends[1]))}"
    return said


def largest(labels: Sequence[str], values: np.ndarray, form: Format) -> str:
    """Say the largest of some bars."""
    order = [int(i) for i in np.argsort(-np.nan_to_num(values))[:_SAID]]
    said = ", ".join(f"{label(labels[i])} {form(float(values[i]))}" for i in order)
    return f"The largest: {said}." if len(values) > _SAID else f"{said}."


def shape(values: np.ndarray, edges: np.ndarray, form: Format, at: Format) -> str:
    """Say where a histogram is highest."""
    if not len(values):
        return "No bins."
    top = int(np.argmax(np.nan_to_num(values)))
    ends = f"from {at(float(edges[0]))} to {at(float(edges[-1]))}"
    peak = f"{at(float(edges[top]))} to {at(float(edges[top + 1]))}"
    return f"{len(values)} bins {ends}; the fullest, {peak}, has {form(float(values[top]))}."


def listed(labels: Sequence[str], values: np.ndarray, ends: np.ndarray, form: Format) -> str:
    """Say some numbers with their intervals."""
    lines = [told(n, v, e, form) for n, v, e in zip(labels, values, ends, strict=True)]
    rest = f"; and {len(lines) - _SAID} more" if len(lines) > _SAID else ""
    return "; ".join(lines[:_SAID]) + rest + "."


def darkest(found: np.ndarray, rows: Sequence[str], columns: Sequence[str], form: Format) -> str:
    """Say the cells of a heat map that stand out."""
    flat = np.abs(np.nan_to_num(found)).ravel()
    places = [divmod(int(i), len(columns)) for i in np.argsort(-flat)[:_SAID]]
    said = (
        f"{label(rows[i])} and {label(columns[j])} {form(float(found[i, j]))}" for i, j in places
    )
    return f"{len(rows)} by {len(columns)}; the largest: " + ", ".join(said) + "."


def room(labels: Sequence[str], letters: int, most: float) -> float:
    """Give how wide a list of names is, at most so many letters and so many pixels."""
    longest = max((len(label(name, letters)) for name in labels), default=1)
    return min(longest * LETTER + 8, most)
