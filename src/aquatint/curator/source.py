"""What every kind of private data becomes: a stream of record batches with the declared columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from aquatint.errors import DataError

if TYPE_CHECKING:
    from aquatint.curator.parts import Files

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Source:
    """A stream of record batches that holds the declared columns and no others.

    Attributes
    ----------
    open
        Starts the stream; a source that is not `repeatable` can be opened once.
    share
        Tells which share of the data was handed out so far, for progress; None if unknown.
    files
        The files that are read, if they are files: a run over them can be taken up again.
    close
        Lets go of what is held open between two streams.
    """

    open: Callable[[], Iterator[pa.RecordBatch]]
    repeatable: bool
    share: Callable[[], float] | None = None
    files: Files | None = None
    close: Callable[[], None] = lambda: None


def of_table(table: pa.Table, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """Cut the wanted columns of a table into batches."""
    require(table.column_names, wanted)
    if not wanted:  # a plan that only counts rows: any column will do
        wanted = table.column_names[:1]
    yield from table.select(wanted).to_batches(max_chunksize=BATCH_ROWS)


def of_batches(data: Iterable[pa.RecordBatch], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """Cut record batches, of any size, likewise."""
    for batch in data:
        yield from of_table(pa.Table.from_batches([batch]), wanted)


def cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Cut batches, without a copy, so that little is held at once."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def require(have: Iterable[str], wanted: list[str]) -> None:
    """Refuse data that lacks a wanted column, or has it twice."""
    found = Counter(have)
    twice = [name for name in wanted if found[name] > 1]
    if twice:
        msg = f"the data has more than one column {twice[0]!r}: rename or drop all but one"
        raise DataError(msg)
    lacking = [name for name in wanted if name not in found]
    if lacking:
        shown = ", ".join(map(repr, lacking[:5])) + (" …" if len(lacking) > 5 else "")
        msg = f"the data has no column {shown}: correct the schema, or give the file that has it"
        raise DataError(msg)
