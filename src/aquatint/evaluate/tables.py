"""Real and synthetic tables on one grid: cells of every column, and the numbers of ranged columns.

The grid comes from the schema alone, so that two tables are always cut at the same places, whatever
rows they hold. Real rows must fit the schema. Synthetic rows need not: what they hold outside it
gets a cell of its own and counts as an error, instead of stopping the comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from aquatint.columns import RANGED, Categorical, Column, Ordered, Text, even_bins
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.errors import DataError
from aquatint.progress import track
from aquatint.schema import Privacy, Schema

BINS = 32
"""How many bins a ranged column gets that declares none."""


@dataclass(frozen=True)
class Grid:
    """The cells that tables are compared on, from the schema alone.

    Attributes
    ----------
    schema
        The schema as it was given: it says what real rows may hold.
    bins
        Bins of equal width for the ranged columns that declare none; those of whole numbers begin
        at one. All edges are also the default plan's, so a table is judged by what was counted.
    """

    schema: Schema
    bins: int = BINS

    @cached_property
    def wide(self) -> Schema:
        """The schema with its bins settled, and room for what it refuses."""
        columns = {name: _widened(c, self.bins) for name, c in self.schema.columns.items()}
        # Synthetic tables have no column that names a person.
        rows = Privacy(protects="add or remove one row")
        return self.schema.model_copy(update={"columns": columns, "privacy": rows})

    @cached_property
    def cells(self) -> dict[str, int]:
        """The number of cells of every column, those for what the schema refuses included."""
        return self.wide.cells()

    @cached_property
    def ranged(self) -> tuple[str, ...]:
        """The columns with bounds."""
        return tuple(n for n, c in self.schema.columns.items() if isinstance(c, RANGED))

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The columns with categories, Booleans among them."""
        return tuple(n for n in self.schema.columns if n not in self.ranged)

    def names(self, column: str) -> list[str]:
        """Name the cells of a column, for tables and plots."""
        return self.wide.cell_names(column)


@dataclass(frozen=True)
class Encoded:
    """One table on the grid.

    Attributes
    ----------
    codes
        For every column, the cell of each row.
    values
        For every ranged column, its place between the bounds from 0 to 1, NaN where missing.
        Values outside the bounds are clipped; the resolution is that of a release, 2⁻²⁰.
    rows
        The number of rows.
    outside
        The share of entries that were clipped, unknown, or missing where the schema refuses it.
    """

    codes: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    rows: int
    outside: float

    def take(self, rows: np.ndarray) -> Encoded:
        """Keep some of the rows, by position or by a mask."""
        codes = {name: code[rows] for name, code in self.codes.items()}
        values = {name: value[rows] for name, value in self.values.items()}
        return Encoded(codes, values, len(next(iter(codes.values()))), self.outside)


def encode(
    data: Any, grid: Grid, *, what: str = "synthetic", strict: bool = False, progress: bool = False
) -> Encoded:
    """Read a table and put it on the grid.

    Parameters
    ----------
    data
        A path to CSV, Parquet or Arrow, a pandas or polars frame, or an Arrow table.
    grid
        The cells.
    what
        The name of the table in messages.
    strict
        Whether to refuse, as the curator does, unknown categories and missing values that the
        schema does not allow.
    progress
        Whether to show progress on standard error.
    """
    names = list(grid.schema.columns)
    encoder = Encoder(grid.wide, codes=frozenset(names), values=frozenset(grid.ranged))
    notes, parts = Notes(), []
    try:
        with track(f"reading the {what} rows", None, show=progress) as advance:
            for batch in read(data, grid.wide, encoder.columns).open():
                parts.append(encoder(batch, notes))
                advance(batch.num_rows)
    except DataError as error:
        msg = f"the {what} table: {error}"
        raise DataError(msg) from None
    rows = sum(len(part) for part in parts)
    if rows == 0:
        msg = f"the {what} table has no rows: there is nothing to compare"
        raise DataError(msg)
    if strict:
        _check_fits(grid, notes, what)
    codes = {n: torch.cat([p.codes[n] for p in parts]).numpy() for n in names}
    values = {n: torch.cat([p.values[n] for p in parts]).double().numpy() for n in grid.ranged}
    return Encoded(codes, values, rows, _outside(grid, notes) / (rows * len(names)))


def _widened(column: Column, bins: int) -> Column:
    if isinstance(column, RANGED):
        settled = even_bins(column, bins) if column.bins is None else column.bins
        return column.model_copy(update={"bins": settled, "missing": True})
    if isinstance(column, Ordered):
        return Categorical(
            kind="categorical", categories=column.categories, other=True, missing=True
        )
    wide = {"missing": True} | ({"other": True} if isinstance(column, Categorical) else {})
    return column.model_copy(update=wide)


def _refused(grid: Grid, notes: Notes) -> tuple[Counter[str], Counter[str]]:
    """Count what the schema as given refuses: unknown categories, and missing values."""
    columns = grid.schema.columns
    unknown = Counter({n: k for n, k in notes.other.items() if not _takes_other(columns[n])})
    missing = Counter({n: k for n, k in notes.missing.items() if not columns[n].missing})
    return unknown, missing


def _takes_other(column: Column) -> bool:
    return isinstance(column, (Categorical, Text)) and column.takes_other


def _outside(grid: Grid, notes: Notes) -> int:
    unknown, missing = _refused(grid, notes)
    return unknown.total() + missing.total() + notes.clipped.total()


def _check_fits(grid: Grid, notes: Notes, what: str) -> None:
    unknown, missing = _refused(grid, notes)
    for counted, problem, fix in (
        (unknown, "values outside its declared categories", "declare them, or add other = true"),
        (missing, "missing values, which the schema refuses", "set missing = true"),
    ):
        for name, count in counted.items():
            msg = f"the {what} table's column {name!r} has {problem}, in {count:,} rows: {fix}"
            raise DataError(msg)
