"""From rows in the schema's own types to the numbers that estimators take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import validate_data

from aquatint.columns import MISSING, OTHER, RANGED, Boolean, Date, Datetime
from aquatint.errors import DataError
from aquatint.schema import Schema

BOOLEAN = ["false", "true"]
DAY = 86_400.0
MOST_NUMBERS = 2**28
"""The most numbers in a matrix to train on: 2 GiB in float64."""


class TypedColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Read raw rows as the schema declares them: the first step of every trained model.

    Numbers, dates and moments become floats within the declared bounds, as in a sketch, with NaN
    where they are missing or cannot be read. Everything else becomes the name of its cell.

    Parameters
    ----------
    columns
        For each column, in order, either ``{"low": …, "high": …, "time": …}`` or ``{"cells": […],
        "other": …, "missing": …}``: plain data, so that a saved model needs no schema.
    """

    def __init__(self, columns: Mapping[str, Mapping[str, Any]]) -> None:
        self.columns = columns

    def fit(self, rows: Any, target: Any = None) -> Self:  # noqa: ARG002
        """Learn nothing but the columns' names."""
        validate_data(self, rows, reset=True, skip_check_array=True)
        return self

    def transform(self, rows: Any) -> pd.DataFrame:
        """Give floats and names of cells; columns that are not declared are left out."""
        names = list(self.columns)
        if isinstance(rows, pd.DataFrame) and set(names) <= set(rows.columns):
            rows = rows[names]
        validate_data(self, rows, reset=False, skip_check_array=True)
        table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=names)
        read = {n: _number if "low" in how else _cell for n, how in self.columns.items()}
        return pd.DataFrame({n: read[n](table[n], self.columns[n]) for n in names}, table.index)


def _number(values: pd.Series, how: Mapping[str, Any]) -> np.ndarray:
    if how["time"]:
        moments = pd.to_datetime(values, errors="coerce", utc=True).dt.tz_localize(None)
        exact = moments.to_numpy(dtype="datetime64[us]")
        number = np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 1e6 / how["time"])
    else:
        number = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(np.clip(number, how["low"], how["high"]))


def _cell(values: pd.Series, how: Mapping[str, Any]) -> np.ndarray:
    absent = values.isna().to_numpy()
    kind = values.dtype
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        text = values.astype("Float64").map(_plain, na_action="ignore")
    else:
        text = values.astype("string")
    named = text.astype(object).fillna(MISSING).to_numpy(dtype=object, copy=True)
    if how["cells"] == BOOLEAN:
        words = {"true": "true", "1": "true", "false": "false", "0": "false"}
        named = np.array([words.get(name.lower(), OTHER) for name in named], dtype=object)
    unknown = ~np.isin(named.astype(str), how["cells"])
    named[unknown] = OTHER
    named[absent] = MISSING
    return np.asarray(named)


def _plain(number: float) -> str:
    return f"{number:.0f}" if number == round(number) else repr(number)


def _read(column: Any) -> dict[str, Any]:
    """Say how a column is read, as plain data."""
    if isinstance(column, RANGED):
        time = DAY if isinstance(column, Date) else 1.0 if isinstance(column, Datetime) else 0.0
        return {"low": column.limits[0], "high": column.limits[1], "time": time}
    named = BOOLEAN if isinstance(column, Boolean) else [str(c) for c in column.categories]
    other = not isinstance(column, Boolean) and column.takes_other
    return {"cells": named, "other": other, "missing": column.missing}


def preparation(schema: Schema, names: Sequence[str]) -> Pipeline:
    """Make the steps before the estimator: read types, fill in, scale, one-hot.

    Missing numbers become the median, with an indicator beside; numbers are scaled to mean 0 and
    deviation 1. Categories have a column for each declared cell. A value that is not declared has
    zeros in all of them, or the cell of others where the schema has one.
    """
    how = {name: _read(schema.columns[name]) for name in names}
    numbers = [name for name in names if "low" in how[name]]
    listed = [name for name in names if name not in numbers]
    cells = [
        [*how[n]["cells"], *[OTHER] * how[n]["other"], *[MISSING] * how[n]["missing"]]
        for n in listed
    ]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    parts = [
        ("numbers", Pipeline([("fill", fill), ("scale", StandardScaler())]), numbers),
        (
            "categories",
            OneHotEncoder(categories=cells, handle_unknown="ignore", sparse_output=False),
            listed,
        ),
    ]
    kept = [part for part in parts if part[2]]
    return Pipeline([("types", TypedColumns(how)), ("columns", ColumnTransformer(kept))])


def check_size(schema: Schema, names: Sequence[str], rows: int) -> None:
    """Refuse a matrix that would not fit in memory."""
    columns = [schema.columns[name] for name in names]
    width = sum(1 if isinstance(column, RANGED) else column.cells for column in columns)
    if width * rows > MOST_NUMBERS:
        msg = (
            f"one-hot coding takes {width:,} columns for {rows:,} rows, more than fits in memory: "
            "choose columns with features=, or take fewer rows"
        )
        raise DataError(msg)
