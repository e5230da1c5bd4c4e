"""Data in: paths, frames, tables and iterators become a stream of record batches.

Only the declared columns are read, batch by batch, so memory does not grow with the rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow import ipc

from aquatint.columns import RANGED, Date, Datetime
from aquatint.curator.read_images import batch_images, from_batches, holds_images, image_batches
from aquatint.errors import DataError
from aquatint.image_files import ImageBatch
from aquatint.schema import Schema

BATCH_ROWS = 65_536
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]
_PARQUET, _ARROW = {".parquet", ".pq"}, {".arrow", ".feather", ".ipc"}
_CSV = {".csv", ".tsv", ".txt"}


@dataclass(frozen=True)
class Source:
    """A stream of record batches that holds the declared columns and no others.

    Attributes
    ----------
    open
        Starts the stream; a source that is not `repeatable` can be opened once.
    size
        How many bytes or rows there are in all, for progress; None if unknown.
    """

    open: Callable[[], Iterator[pa.RecordBatch]]
    repeatable: bool
    size: int | None = None


def read(data: Any, schema: Schema, columns: list[str]) -> Source:
    """Open private data: a path, a frame, an Arrow table or reader, record batches or images."""
    person = schema.privacy.person
    wanted = [*columns, person] if person is not None else columns
    source = _source(data, schema, wanted)
    rows = batch_images(schema, wanted)
    if rows is None:
        return source
    return replace(source, open=lambda: _small(source.open(), rows))


def _small(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Cut batches of images, without a copy, so that little is held at once."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _source(data: Any, schema: Schema, wanted: list[str]) -> Source:
    if isinstance(data, (str, Path)):
        return _path(Path(data), schema, wanted)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        return Source(lambda: _table(table, wanted), repeatable=True, size=table.num_rows)
    if isinstance(data, ImageBatch):
        return Source(lambda: from_batches([data], schema, wanted), True, len(data))
    if type(data).__module__.startswith("pandas") and hasattr(data, "columns"):
        return _source(_pandas(data, wanted), schema, wanted)
    if hasattr(data, "__arrow_c_stream__"):
        repeatable = hasattr(data, "columns")  # a polars frame, not a reader that runs dry
        return Source(lambda: _reader(data, wanted), repeatable)
    if isinstance(data, Iterable):
        return Source(lambda: _batches(data, wanted), repeatable=False)
    msg = (
        f"cannot read {type(data).__name__}: give a path, a pandas or polars frame, an Arrow "
        "table, an iterator of record batches, or images"
    )
    raise DataError(msg)


def _pandas(frame: Any, wanted: list[str]) -> pa.Table:
    """Turn the wanted columns of a pandas frame into a table, one by one to name a bad one."""
    _require([str(name) for name in frame.columns], wanted)
    arrays = []
    for name in wanted:
        try:
            arrays.append(pa.array(frame[name], from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            msg = f"column {name!r} mixes kinds of values: make it one kind first"
            raise DataError(msg) from None
    if not wanted:  # a plan that only counts rows
        return pa.table({"": pa.nulls(len(frame))})
    return pa.Table.from_arrays(
        [pa.chunked_array([a]) if isinstance(a, pa.Array) else a for a in arrays], names=wanted
    )


def header(path: Path) -> pa.Schema:
    """Read the names and types of a file's columns, and no row beyond the first block."""
    _check_path(path)
    with _reading(path):
        if _kind(path) in _PARQUET:
            return pq.read_schema(path)
        if _kind(path) in _ARROW:
            with _ipc(path) as reader:
                return reader.schema
        with _csv_stream(path) as stream:
            options = pacsv.ParseOptions(delimiter=_delimiter(path))
            return pacsv.open_csv(stream, parse_options=options).schema


def _check_path(path: Path) -> None:
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        msg = f"cannot read {path}: it {what}; give a CSV, Parquet or Arrow file"
        raise DataError(msg)
    if _kind(path) not in _PARQUET | _ARROW | _CSV:
        msg = f"cannot tell what {path.name} is: use .csv, .tsv, .parquet, .arrow or .feather"
        raise DataError(msg)


def _path(path: Path, schema: Schema, wanted: list[str]) -> Source:
    images = batch_images(schema, wanted)
    if images and holds_images(path):
        return Source(lambda: image_batches(path, schema, wanted), True)
    _check_path(path)
    if images and _kind(path) in _CSV:
        msg = f"{path.name} cannot hold images: give a folder, an .npz, idx or Parquet file"
        raise DataError(msg)
    size = path.stat().st_size
    if _kind(path) in _PARQUET:
        return Source(lambda: _parquet(path, wanted, images or BATCH_ROWS), True, size)
    if _kind(path) in _ARROW:
        return Source(lambda: _arrow(path, wanted), True, size)
    return Source(lambda: _csv(path, schema, wanted), True, size)


def _kind(path: Path) -> str:
    packed = path.suffix.lower() in {".gz", ".zst", ".bz2"}
    return (Path(path.stem).suffix if packed else path.suffix).lower()


def _parquet(path: Path, wanted: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    with _reading(path), pq.ParquetFile(path) as file:
        _require(file.schema_arrow.names, wanted)
        yield from file.iter_batches(batch_size=rows, columns=wanted)


def _arrow(path: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    with _reading(path), _ipc(path) as reader:
        _require(reader.schema.names, wanted)
        count = getattr(reader, "num_record_batches", None)
        batches = iter(reader) if count is None else map(reader.get_batch, range(count))
        for batch in batches:
            yield from _table(pa.Table.from_batches([batch]), wanted)


def _ipc(path: Path) -> Any:
    source = pa.memory_map(str(path))
    try:
        return ipc.open_file(source)
    except pa.ArrowInvalid:
        return ipc.open_stream(pa.memory_map(str(path)))


def _csv(path: Path, schema: Schema, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    with _reading(path), _csv_stream(path) as stream:
        first = pacsv.open_csv(stream, parse_options=pacsv.ParseOptions(delimiter=_delimiter(path)))
        _require(first.schema.names, wanted)
    with _reading(path), _csv_stream(path) as stream:
        options = pacsv.ConvertOptions(
            column_types={name: _csv_type(schema, name) for name in wanted},
            include_columns=wanted,
            null_values=_NULLS,
            strings_can_be_null=False,
        )
        reader = pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=4 << 20),
            parse_options=pacsv.ParseOptions(delimiter=_delimiter(path)),
            convert_options=options,
        )
        for batch in reader:
            yield _mark_nulls(batch, schema)


def _mark_nulls(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Take a spelling of null in a text column as null, unless that column declares it."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        declared = {str(c) for c in getattr(schema.columns.get(name), "categories", [])}
        nulls = pa.array([null for null in _NULLS if null not in declared], pa.string())
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.is_in(column, value_set=nulls), None, column)  # noqa: PLW2901
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _csv_type(schema: Schema, name: str) -> pa.DataType:
    column = schema.columns.get(name)
    number = isinstance(column, RANGED) and not isinstance(column, (Date, Datetime))
    return pa.float64() if number else pa.string()


@contextmanager
def _csv_stream(path: Path) -> Iterator[Any]:
    with pa.input_stream(str(path), compression="detect") as stream:
        yield stream


def _delimiter(path: Path) -> str:
    return "\t" if _kind(path) == ".tsv" else ","


def _table(table: pa.Table, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    _require(table.column_names, wanted)
    if not wanted:  # a plan that only counts rows: any column will do
        wanted = table.column_names[:1]
    yield from table.select(wanted).to_batches(max_chunksize=BATCH_ROWS)


def _reader(data: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        msg = f"a {type(data).__name__} is one column: give the frame or table it belongs to"
        raise DataError(msg) from None
    _require(reader.schema.names, wanted)
    for batch in reader:
        yield from _table(pa.Table.from_batches([batch]), wanted)


def _batches(data: Iterable[Any], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in data:
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            msg = f"the iterator gave a {type(batch).__name__}: give Arrow record batches"
            raise DataError(msg)
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        yield from _table(table, wanted)


def _require(have: Iterable[str], wanted: list[str]) -> None:
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


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what a reader raises into one sentence that carries no private value."""
    try:
        yield
    except DataError:
        raise
    except pa.ArrowKeyError as error:
        lacking = re.search(r"'(.+?)'", str(error))
        name = f" {lacking.group(0)}" if lacking else ""
        msg = f"{path.name} has no column{name}: correct the schema, or give the file that has it"
        raise DataError(msg) from None
    except pa.ArrowInvalid as error:
        raise DataError(_without_values(path, str(error))) from None
    except OSError as error:
        reason = error.strerror or "it is damaged or not of the kind its name says"
        msg = f"cannot read {path}: {reason}"
        raise DataError(msg) from None


def _without_values(path: Path, message: str) -> str:
    if "UTF8" in message or "UTF-8" in message:
        return f"{path.name} holds text that is not UTF-8: save it as UTF-8 first"
    column = re.search(r"CSV column '(.+?)'|CSV column #(\d+)", message)
    if column:
        place = column.group(1) or f"number {int(column.group(2)) + 1}"
        return f"{path.name}, column {place}: a value is not a number as the schema declares"
    if "Empty CSV" in message:
        return f"{path.name} is empty: there is nothing to sketch"
    if "Expected" in message and "columns" in message:
        return f"{path.name} has a row with more or fewer fields than its header"
    return f"cannot read {path.name}: it is damaged or not of the kind its name says"
