"""Record batches to encoded rows, by the schema alone.

Nothing is learnt from the rows: bounds, bins and categories come from the schema. What had to be
clipped or sent to "other" is counted for the curator's eyes only, and never released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from aquatint.columns import (
    RANGED,
    Boolean,
    Categorical,
    Date,
    Datetime,
    Image,
    Integer,
    Numeric,
    Ordered,
    bin_edges,
)
from aquatint.curator.encode_categories import places, undo_layout
from aquatint.curator.encode_images import encode_images
from aquatint.errors import DataError
from aquatint.features.base import Columns, Rows
from aquatint.features.frequencies import VALUE_STEPS
from aquatint.features.stacking import pixel_of
from aquatint.schema import Schema


@dataclass
class Notes:
    """What the encoder had to change, by column: private, for the curator's eyes only."""

    clipped: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)

    def merge(self, later: Notes) -> Notes:
        """Add up the notes of two parts of the data."""
        return Notes(
            self.clipped + later.clipped, self.other + later.other, self.missing + later.missing
        )

    def __repr__(self) -> str:
        return "Notes(private)"


@dataclass(frozen=True)
class Encoder:
    """Turns record batches into `Rows`, only the columns and views that the maps read.

    A map that reads pixels, or a whole image, is given the image column.
    """

    schema: Schema
    codes: frozenset[str]
    values: frozenset[str]

    @cached_property
    def columns(self) -> list[str]:
        """The columns to read, in the schema's order."""
        read = self.codes | self.values | self.images
        return [name for name in self.schema.columns if name in read]

    @cached_property
    def images(self) -> frozenset[str]:
        """The image columns that are read."""
        whole = {(pixel_of(name) or (name, 0))[0] for name in self.values}
        return frozenset(whole & self.schema.images.keys())

    def __call__(self, batch: pa.RecordBatch, notes: Notes) -> Rows:
        """Encode one batch."""
        codes: dict[str, Tensor] = {}
        ordered = tuple(n for n in self.columns if n in self.values and n not in self.images)
        values = Columns(ordered, torch.empty(batch.num_rows, len(ordered)))
        images: dict[str, Tensor] = {}
        for name in self.columns:
            column = self.schema.columns[name]
            array = batch.column(name)
            if isinstance(column, Image):
                images[name] = encode_images(name, column, undo_layout(array))
            elif isinstance(column, RANGED):
                number, absent = _numbers(name, column, undo_layout(array))
                number = _clip(name, column, number, notes)
                _check_missing(name, column.missing, absent, notes)
                if name in self.codes:
                    codes[name] = _bins(column, number, absent)
                if name in self.values:
                    values[name].copy_(_unit(column, number, absent))
            else:
                code, absent = _lookup(name, column, array, notes)
                _check_missing(name, column.missing, absent, notes)
                code[absent] = column.present_cells
                codes[name] = torch.from_numpy(code)
                if name in self.values:
                    values[name].copy_(_rank(name, column, code, absent))
        return Rows(codes, {**values, **images} if images else values, batch.num_rows)


def _check_missing(name: str, allowed: bool, absent: np.ndarray, notes: Notes) -> None:
    count = int(absent.sum())
    if count and not allowed:
        msg = (
            f"column {name!r} has missing values in {count} rows of a batch, which the schema "
            "refuses: set missing = true to give them a cell of their own, or remove the rows"
        )
        raise DataError(msg)
    if count:
        notes.missing[name] += count


def _numbers(name: str, column: Any, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Give the column as float64 with its missing entries marked; the values are NaN there."""
    convert, wanted = _CONVERT[type(column)]
    try:
        number = convert(array)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        msg = f"column {name!r} holds something that is not {wanted}: check its kind in the schema"
        raise DataError(msg) from None
    absent = np.isnan(number)
    if isinstance(column, Integer):
        finite = number[np.isfinite(number)]
        if (finite != np.floor(finite)).any():
            msg = f'column {name!r} holds fractions: declare kind = "numeric"'
            raise DataError(msg)
    return number, absent


def _float(array: pa.Array) -> np.ndarray:
    return np.array(pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _ticks(array: pa.Array, kind: pa.DataType, storage: pa.DataType, per_unit: float) -> np.ndarray:
    ticks = pc.cast(pc.cast(array, kind, safe=False), storage)
    return _float(ticks) / per_unit


def _days(array: pa.Array) -> np.ndarray:
    if pa.types.is_string(array.type):
        array = pc.cast(pc.utf8_slice_codeunits(array, 0, 10), pa.date32())
    return _ticks(array, pa.date32(), pa.int32(), 1)


def _seconds(array: pa.Array) -> np.ndarray:
    if pa.types.is_string(array.type):
        try:
            array = pc.cast(array, pa.timestamp("us"))
        except pa.ArrowInvalid:
            array = pc.cast(array, pa.timestamp("us", "UTC"))
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = pc.cast(array, pa.timestamp("us", "UTC"), safe=False)
    else:
        array = pc.cast(array, pa.timestamp("us"), safe=False)
    return _float(pc.cast(array, pa.int64())) / 1e6


_CONVERT: dict[type, tuple[Callable[[pa.Array], np.ndarray], str]] = {
    Numeric: (_float, "a number"),
    Integer: (_float, "a whole number"),
    Date: (_days, "a date like 2024-01-31"),
    Datetime: (_seconds, "a date and time like 2024-01-31 12:00:00"),
}


def _clip(name: str, column: Any, number: np.ndarray, notes: Notes) -> np.ndarray:
    low, high = column.limits
    outside = int(np.count_nonzero((number < low) | (number > high)))
    if outside:
        notes.clipped[name] += outside
        np.clip(number, low, high, out=number)
    return number


def _bins(column: Any, number: np.ndarray, absent: np.ndarray) -> Tensor:
    count = column.present_cells
    if isinstance(column.bins, list):
        code = np.searchsorted(bin_edges(column)[1:-1], number, side="right").astype(np.int32)
    elif isinstance(column, (Integer, Date)):
        with np.errstate(invalid="ignore"):
            steps = (number - column.limits[0]) * count
            code = np.floor_divide(steps, column.steps).astype(np.int32)
    else:
        code = _equal_bins(column, number)
    code[absent] = count
    return torch.from_numpy(code)


def _equal_bins(column: Any, number: np.ndarray) -> np.ndarray:
    """Find the bin by arithmetic, then mend a guess that rounding put on the wrong side."""
    low, high = column.limits
    count = column.present_cells
    edges = np.array(bin_edges(column))
    edges[-1] = np.inf
    with np.errstate(invalid="ignore"):
        guess: np.ndarray = ((number - low) * (count / (high - low))).astype(np.int32)
        np.clip(guess, 0, count - 1, out=guess)
        guess -= number < edges[guess]
        guess += number >= edges[guess + 1]
    return guess


def _unit(column: Any, number: np.ndarray, absent: np.ndarray) -> Tensor:
    low, high = column.limits
    unit = np.rint((number - low) / (high - low) * VALUE_STEPS) / VALUE_STEPS
    unit[absent] = np.nan
    return torch.from_numpy(unit.astype(np.float32))


def _rank(name: str, column: Any, code: np.ndarray, absent: np.ndarray) -> Tensor:
    if not isinstance(column, (Ordered, Boolean)):
        msg = f"column {name!r} has no order: only one-hot maps can read it"
        raise DataError(msg)
    top = max(1, column.present_cells - 1)
    rank = np.rint(code.astype(np.float64) / top * VALUE_STEPS) / VALUE_STEPS
    rank[absent] = np.nan
    return torch.from_numpy(rank.astype(np.float32))


def _lookup(name: str, column: Any, array: pa.Array, notes: Notes) -> tuple[np.ndarray, np.ndarray]:
    """Give each entry's place among the categories, and which entries are missing."""
    code, absent = places(name, column, array)
    unknown = (code < 0) & ~absent
    count = int(unknown.sum())
    if count and not column.takes_other:
        hint = "add other = true" if isinstance(column, Categorical) else "declare them"
        msg = (
            f"column {name!r} has values outside its declared categories in {count} rows of a "
            f"batch: {hint}, or correct the spelling (spaces count)"
        )
        raise DataError(msg)
    if count:
        notes.other[name] += count
        code[unknown] = len(column.categories)
    return code, absent
