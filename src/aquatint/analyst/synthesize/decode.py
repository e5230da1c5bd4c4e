"""From cells back to values in the schema's own types: every value is one the schema admits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.inside import place_of, rates
from aquatint.columns import (
    OTHER,
    RANGED,
    Boolean,
    Date,
    Datetime,
    Integer,
    Numeric,
)
from aquatint.schema import Schema

Limits = tuple[float, float]

TEXT = pd.Series(["text"]).dtype  # object before pandas 3, "str" since


def decode(
    schema: Schema,
    codes: Mapping[str, np.ndarray],
    rng: np.random.Generator,
    places: Mapping[str, np.ndarray] | None = None,
    heights: Mapping[str, np.ndarray] | None = None,
    limits: Mapping[str, Limits] | None = None,
) -> pd.DataFrame:
    """Turn cells into a table.

    Parameters
    ----------
    schema
        A schema whose bins are settled.
    codes
        For each column the cell of every row; missing, where allowed, is the last cell.
    rng
        Draws the values inside bins.
    places
        Where a ranged column's values are known already: their place in the unit interval.
    heights
        The mass of each bin of a ranged column. Values inside a bin then follow a density that
        slopes towards the heavier neighbour (`inside`); without it they are uniform.
    limits
        A ranged column's values are drawn between these numbers only, both included.
    """
    places, heights, limits = places or {}, heights or {}, limits or {}
    table = {}
    for name, column in schema.columns.items():
        code = np.asarray(codes[name], dtype=np.int64)
        absent = code >= column.present_cells
        if not isinstance(column, RANGED):
            table[name] = _listed(column, code)
            continue
        inside = np.where(absent, 0, code)
        if name in places:
            low, high = column.limits
            number = low + np.asarray(places[name], dtype=float) * (high - low)
            number = np.rint(number) if isinstance(column, (Integer, Date)) else number
        else:
            number = _draw(column, inside, rng, heights.get(name), limits.get(name))
        table[name] = _typed(column, np.clip(number, *column.limits), absent)
    return pd.DataFrame(table)


def _draw(
    column: Any,
    code: np.ndarray,
    rng: np.random.Generator,
    mass: np.ndarray | None,
    limits: Limits | None,
) -> np.ndarray:
    """Draw a number inside each row's bin by the inverse of its density."""
    left, width, whole = widths_and_edges(column)
    right = np.append(left[1:], left[-1] + width[-1])
    rate = rates(left, right, mass)
    if limits is not None:
        low, high = (np.ceil(limits[0]), np.floor(limits[1]) + 1) if whole else limits
        cut_left = np.clip(low, left, right)
        cut_right = np.clip(high, cut_left, right)
        rate = rate * (cut_right - cut_left) / np.maximum(right - left, 1e-300)
        left, right = cut_left, cut_right
    share = place_of(rate[code], rng.random(len(code)))
    width = (right - left)[code]
    if whole:
        return np.asarray(
            left[code] + np.minimum(np.floor(share * width), np.maximum(width, 1) - 1)
        )
    inside = np.where(width <= column.point * 1.001, 0.0, share * width)
    below = np.nextafter(right, left)  # rounding must not carry a value into the next bin
    below[-1] = right[-1]
    return np.asarray(np.minimum(left[code] + inside, np.maximum(below, left)[code]))


def _typed(column: Any, number: np.ndarray, absent: np.ndarray) -> Any:
    if isinstance(column, Numeric):
        return np.where(absent, np.nan, number)
    if isinstance(column, Integer):
        whole = number.astype(np.int64)
        return _holes(whole, absent) if column.missing else whole
    if isinstance(column, Date):
        days = number.astype("int64").astype("datetime64[D]")
        days[absent] = np.datetime64("NaT")
        return days.astype("datetime64[s]")
    moments = np.rint(number * 1e6).astype("int64").astype("datetime64[us]")
    moments[absent] = np.datetime64("NaT")
    zoned = isinstance(column, Datetime) and column.bounds[0].tzinfo is not None
    return pd.Series(moments).dt.tz_localize(dt.UTC) if zoned else moments


def _holes(whole: np.ndarray, absent: np.ndarray) -> Any:
    array = pd.array(whole, dtype="Int64")
    array[absent] = pd.NA
    return array


def _listed(column: Any, code: np.ndarray) -> Any:
    if isinstance(column, Boolean):
        array = pd.array(code == 1, dtype="boolean")
        array[code >= 2] = pd.NA
        return array if column.missing else code == 1
    values = list(column.categories)
    whole = isinstance(values[0], int)
    if column.takes_other:
        values.append(_unused(values) if whole else OTHER)
    if whole:
        lookup = np.array([*values, 0], dtype=np.int64)
        absent = code >= column.present_cells
        plain = lookup[np.minimum(code, len(values))]
        return _holes(plain, absent) if column.missing else plain
    lookup = np.array([*values, None], dtype=object)
    return pd.Series(lookup[np.minimum(code, len(values))], dtype=TEXT)


def _unused(values: list[int]) -> int:
    """Stand for "other" among whole numbers by one that is not declared."""
    return max(values) + 1
