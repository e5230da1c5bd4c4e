"""Categories to numbers: where an entry stands among those that the schema declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aquatint.columns import Boolean, Text
from aquatint.errors import DataError

_TRUE, _FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]


def undo_layout(array: pa.Array) -> pa.Array:
    """Undo dictionaries and the several layouts of text, so that one code path serves all."""
    if isinstance(array.type, pa.BaseExtensionType):  # such as PostgreSQL's numeric, held as text
        return undo_layout(array.storage)
    if pa.types.is_dictionary(array.type):
        return undo_layout(array.dictionary).take(array.indices)
    text = pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type)
    return pc.cast(array, pa.string()) if text else array


def places(name: str, column: Any, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Give each entry's place among the categories, -1 if it has none, and which are missing.

    Of a column that comes with a dictionary, as Parquet files of text do, each different entry is
    looked up once and not every row.
    """
    if not pa.types.is_dictionary(array.type) or isinstance(column, Boolean):
        return _places(name, column, undo_layout(array))
    try:
        code, absent = _places(name, column, undo_layout(array.dictionary))
    except DataError:  # perhaps because of an entry that no row has
        return _places(name, column, undo_layout(array))
    last = len(code)  # a row without an entry is missing
    index = np.asarray(pc.fill_null(pc.cast(array.indices, pa.int64()), last))
    return np.append(code, np.int32(-1))[index], np.append(absent, True)[index]


def _places(name: str, column: Any, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(column, Boolean):
        return _booleans(name, array)
    wanted, entries = _comparable(name, column, array)
    absent = np.asarray(pc.is_null(entries, nan_is_null=True))
    place = pc.fill_null(pc.index_in(entries, value_set=wanted, skip_nulls=True), -1)
    return np.array(place.to_numpy(zero_copy_only=False), dtype=np.int32), absent


def _comparable(name: str, column: Any, array: pa.Array) -> tuple[pa.Array, pa.Array]:
    whole = isinstance(column.categories[0], int)
    kind = pa.int64() if whole else pa.string()
    try:
        if whole and pa.types.is_string(array.type):
            array = pc.cast(array, pa.float64())
        entries = pc.cast(_whole(name, array) if whole else array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wanted = "whole numbers" if whole else "text"
        msg = f"column {name!r} cannot be read as {wanted}, as its declared categories are"
        raise DataError(msg) from None
    if isinstance(column, Text) and not whole:
        entries = pc.utf8_trim_whitespace(entries)
    return pa.array(column.categories, kind), entries


def _whole(name: str, array: pa.Array) -> pa.Array:
    """Turn floats that are whole numbers into integers; NaN is missing."""
    if not pa.types.is_floating(array.type):
        return array
    try:
        return pc.cast(pc.if_else(pc.is_nan(array), None, array), pa.int64())
    except pa.ArrowInvalid:
        msg = f"column {name!r} holds fractions where the schema declares whole numbers"
        raise DataError(msg) from None


def _booleans(name: str, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    if not pa.types.is_boolean(array.type):
        array = _whole(name, array)
        text = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(array, pa.string())))
        array = pc.if_else(
            pc.is_in(text, value_set=pa.array(_TRUE)),
            True,
            pc.if_else(pc.is_in(text, value_set=pa.array(_FALSE)), False, None),
        )
        if array.null_count > text.null_count:
            msg = f"column {name!r} holds something other than true/false, yes/no or 1/0"
            raise DataError(msg)
    absent = np.asarray(pc.is_null(array))
    code = np.array(pc.cast(pc.fill_null(array, False), pa.int32()).to_numpy(zero_copy_only=False))
    return code, absent
