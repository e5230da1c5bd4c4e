"""Two tables that are declared public, encoded by the schema on the public side of the wall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aquatint.columns import RANGED, Boolean, Date, Datetime, Ordered
from aquatint.errors import DataError
from aquatint.features.base import Rows
from aquatint.features.frequencies import VALUE_STEPS
from aquatint.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 5_000


@dataclass(frozen=True)
class PublicTables:
    """Two public tables, encoded by the schema; rows beyond the first few thousand are left out."""

    first: Rows
    second: Rows

    @classmethod
    def of(cls, first: pd.DataFrame, second: pd.DataFrame, schema: Schema) -> PublicTables:
        """Encode two public frames."""
        return cls(*(encoded(frame.iloc[:MOST_ROWS], schema) for frame in (first, second)))

    def values(self, columns: tuple[str, ...]) -> torch.Tensor:
        """Give the values of some columns, float64, the first table's rows above the second's."""
        parts = [
            rows.matrix(columns) if columns else torch.zeros(len(rows), 0)
            for rows in (self.first, self.second)
        ]
        return torch.cat(parts).double()

    def codes(self, name: str) -> torch.Tensor:
        """Give the cells of a column without an order, in the same way."""
        return torch.cat([self.first.codes[name], self.second.codes[name]])


def encoded(frame: pd.DataFrame, schema: Schema) -> Rows:
    """Encode a public frame: places in the unit interval, and cells."""
    missing = [name for name in schema.columns if name not in frame.columns]
    if missing or len(frame) < 2:
        fault = f"lacks column {missing[0]!r}" if missing else "has fewer than two rows"
        msg = f"a public training table {fault}: give tables with the schema's columns"
        raise DataError(msg)
    codes, values = {}, {}
    for name, column in schema.columns.items():
        if isinstance(column, (*RANGED, Ordered, Boolean)):
            place = np.rint(_places(name, column, frame[name]) * VALUE_STEPS) / VALUE_STEPS
            values[name] = torch.from_numpy(place.astype(np.float32))
        else:
            codes[name] = torch.from_numpy(_cells(name, column, frame[name]))
    return Rows(codes, values, len(frame))


def _places(name: str, column: Any, values: pd.Series) -> np.ndarray:
    import pandas as pd

    try:
        if isinstance(column, Ordered):
            rank = {category: place for place, category in enumerate(column.categories)}
            return np.asarray(values.map(rank).to_numpy(float) / max(1, len(rank) - 1))
        if isinstance(column, Boolean):
            return np.asarray(values.to_numpy(float))
        if isinstance(column, (Date, Datetime)):
            unit = pd.Timedelta(days=1) if isinstance(column, Date) else pd.Timedelta(seconds=1)
            moments = pd.to_datetime(values, utc=True) - pd.Timestamp(0, tz="UTC")
            number = (moments / unit).to_numpy(float)
        else:
            number = values.to_numpy(float)
    except (TypeError, ValueError):
        msg = f"column {name!r} of a public training table cannot be read as the schema says"
        raise DataError(msg) from None
    low, high = column.limits
    return np.asarray(np.clip((number - low) / (high - low), 0.0, 1.0))


def _cells(name: str, column: Any, values: pd.Series) -> np.ndarray:
    known = {category: place for place, category in enumerate(column.categories)}
    found = values.map(known).to_numpy(float)
    absent = values.isna().to_numpy()
    other = np.isnan(found) & ~absent
    if (other.any() and not column.takes_other) or (absent.any() and not column.missing):
        msg = f"column {name!r} of a public training table holds what the schema does not declare"
        raise DataError(msg)
    found[other] = len(column.categories)
    found[absent] = column.present_cells
    return np.asarray(found, dtype=np.int32)
