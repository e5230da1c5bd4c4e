"""One file in: CSV, Parquet or Arrow, on this machine or in a store that pyarrow knows.

Only the declared columns are read, batch by batch, so memory does not grow with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow import fs, ipc

from aquatint.columns import RANGED, Date, Datetime
from aquatint.curator.source import require
from aquatint.errors import DataError
from aquatint.schema import Schema

PARQUET, ARROW = {".parquet", ".pq"}, {".arrow", ".feather", ".ipc"}
CSV = {".csv", ".tsv", ".txt"}
_PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_BUFFER = 1 << 20
_BLOCK, _HEADER = 4 << 20, 1 << 20

Tell = Callable[[float], None]


@dataclass(frozen=True)
class Part:
    """One file of a dataset.

    Attributes
    ----------
    name
        What to call it in a message: without the user or password of an address.
    system, place
        Where it is: a file system and the path there.
    size, modified
        Its bytes, and when it was last written: a file that changed is another file.
    """

    name: str
    system: Any
    place: str
    size: int
    modified: int

    @property
    def kind(self) -> str:
        """The ending that says what it is, less that of compression."""
        path = PurePosixPath(self.place)
        packed = path.suffix.lower() in _PACKINGS
        return (PurePosixPath(path.stem).suffix if packed else path.suffix).lower()

    @property
    def folders(self) -> dict[str, str | None]:
        """Columns that the folders give, as Hive and Spark name them: ``year=2024/part.csv``."""
        found = dict(re.findall(r"(?:^|/)([^/=]+)=([^/]*)(?=/)", self.place))
        return {
            unquote(name): None if value == _NO_PARTITION else unquote(value)
            for name, value in found.items()
        }

    @property
    def local(self) -> bool:
        """Whether it lies on this machine."""
        return isinstance(self.system, fs.LocalFileSystem)


def header(part: Part) -> pa.Schema:
    """Read the names and types of a file's columns, and no row beyond the first block."""
    with reading(part):
        if part.kind in PARQUET:
            with part.system.open_input_file(part.place) as file:
                return pq.read_schema(file)
        if part.kind in ARROW:
            with _ipc(part) as reader:
                return reader.schema
        return _csv_header(part)


def read_part(
    part: Part, schema: Schema, wanted: list[str], rows: int, skip: int, tell: Tell
) -> Iterator[pa.RecordBatch]:
    """Read the wanted columns of a file.

    Parameters
    ----------
    part, schema, wanted
        The file, what is declared, and the columns to give, in this order.
    rows
        How many rows to give at once where that can be chosen.
    skip
        How many rows were read before and are passed over.
    tell
        Is told which share of the file was read.
    """
    if part.kind in PARQUET:
        yield from _parquet(part, schema, wanted, rows, skip, tell)
        return
    found = _arrow(part, wanted, tell) if part.kind in ARROW else _csv(part, schema, wanted, tell)
    for batch in found:
        yield batch.slice(min(skip, batch.num_rows))
        skip = max(0, skip - batch.num_rows)


def _inside(part: Part, have: list[str], wanted: list[str]) -> list[str]:
    """Give the wanted columns that the file itself has; the folders may have the others."""
    inside = [name for name in wanted if name in have or name not in part.folders]
    require(have, inside)
    return inside


def _with_folders(part: Part, batch: pa.RecordBatch, wanted: list[str]) -> pa.RecordBatch:
    if batch.schema.names == wanted or not wanted:
        return batch
    folders = part.folders
    arrays = [
        batch.column(name)
        if name in batch.schema.names
        else pa.repeat(pa.scalar(folders[name], pa.string()), batch.num_rows)
        for name in wanted
    ]
    return pa.RecordBatch.from_arrays(arrays, names=wanted)


def _parquet(
    part: Part, schema: Schema, wanted: list[str], rows: int, skip: int, tell: Tell
) -> Iterator[pa.RecordBatch]:
    with reading(part), part.system.open_input_file(part.place) as stream:
        known = pq.read_metadata(stream)
        fields = known.schema.to_arrow_schema()
        inside = _inside(part, fields.names, wanted)
        words = [name for name in inside if _is_listed(schema, name, fields.field(name).type)]
        file = pq.ParquetFile(stream, metadata=known, read_dictionary=words, buffer_size=_BUFFER)
        sizes = [known.row_group(i).num_rows for i in range(known.num_row_groups)]
        first = done = 0
        while first < len(sizes) and done + sizes[first] <= skip:
            done += sizes[first]
            first += 1
        groups = list(range(first, len(sizes)))
        for batch in file.iter_batches(batch_size=rows, columns=inside, row_groups=groups):
            kept = batch.slice(max(0, min(batch.num_rows, skip - done)))
            done += batch.num_rows
            tell(done / max(1, known.num_rows))
            yield _with_folders(part, kept, wanted)


def _is_listed(schema: Schema, name: str, kind: pa.DataType) -> bool:
    """Whether a column is text out of a list: then a dictionary is quicker than the words."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return text and hasattr(schema.columns.get(name), "categories")


def _arrow(part: Part, wanted: list[str], tell: Tell) -> Iterator[pa.RecordBatch]:
    with reading(part), _ipc(part) as reader:
        inside = _inside(part, reader.schema.names, wanted)
        count = getattr(reader, "num_record_batches", None)
        batches = iter(reader) if count is None else map(reader.get_batch, range(count))
        for number, batch in enumerate(batches, start=1):
            if count is not None:
                tell(number / count)
            few = batch.select(inside or reader.schema.names[:1])
            yield _with_folders(part, few, wanted)


def _ipc(part: Part) -> Any:
    def opened() -> Any:
        if part.local:
            return pa.memory_map(part.place)
        return part.system.open_input_file(part.place)

    try:
        return ipc.open_file(opened())
    except pa.ArrowInvalid:
        return ipc.open_stream(opened())


def _csv(part: Part, schema: Schema, wanted: list[str], tell: Tell) -> Iterator[pa.RecordBatch]:
    parse = pacsv.ParseOptions(delimiter=_delimiter(part))
    with reading(part):
        inside = _inside(part, _csv_header(part).names, wanted)
    with reading(part), part.system.open_input_file(part.place) as raw:
        options = pacsv.ConvertOptions(
            column_types={name: _csv_type(schema, name) for name in inside},
            include_columns=inside,
            null_values=NULLS,
            strings_can_be_null=False,
        )
        reader = pacsv.open_csv(
            _unpacked(raw, part.place),
            read_options=pacsv.ReadOptions(block_size=_BLOCK),
            parse_options=parse,
            convert_options=options,
        )
        for batch in reader:
            tell(raw.tell() / max(1, part.size))
            yield _with_folders(part, _mark_nulls(batch, schema), wanted)


def _unpacked(raw: Any, place: str) -> Any:
    packing = _PACKINGS.get(PurePosixPath(place).suffix.lower())
    return raw if packing is None else pa.CompressedInputStream(raw, packing)


def _mark_nulls(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Take a spelling of null in a text column as null, unless that column declares it."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        declared = {str(c) for c in getattr(schema.columns.get(name), "categories", [])}
        nulls = pa.array([null for null in NULLS if null not in declared], pa.string())
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.is_in(column, value_set=nulls), None, column)  # noqa: PLW2901
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _csv_type(schema: Schema, name: str) -> pa.DataType:
    column = schema.columns.get(name)
    number = isinstance(column, RANGED) and not isinstance(column, (Date, Datetime))
    return pa.float64() if number else pa.string()


def _csv_header(part: Part) -> pa.Schema:
    """Read names and types off the first lines, from memory.

    A reader that is given a file goes on reading ahead. Closed at once, it may still read from the
    file that is opened next, since the system gives that the same number: lines would be missing.
    """
    with part.system.open_input_stream(part.place, compression="detect") as stream:
        data = b""
        while len(data) < _HEADER and (more := stream.read(_HEADER - len(data))):
            data += more
    whole = data.rfind(b"\n") + 1 if len(data) == _HEADER else 0
    options = pacsv.ParseOptions(delimiter=_delimiter(part))
    return pacsv.open_csv(pa.BufferReader(data[: whole or None]), parse_options=options).schema


def _delimiter(part: Part) -> str:
    return "\t" if part.kind == ".tsv" else ","


@contextmanager
def reading(part: Part) -> Iterator[None]:
    """Turn what a reader raises into one sentence that carries no private value."""
    try:
        yield
    except DataError as error:
        name = "" if part.name in str(error) else f"{part.name}: "
        msg = f"{name}{error}"
        raise DataError(msg) from None
    except pa.ArrowInvalid as error:
        raise DataError(_without_values(part.name, str(error))) from None
    except pa.ArrowKeyError:
        msg = f"{part.name} changed while it was read: try again once nobody writes to it"
        raise DataError(msg) from None
    except OSError as error:
        reason = error.strerror or away(error)
        unknown = "it is damaged or not of the kind its name says"
        msg = f"cannot read {part.name}: {reason or unknown}"
        raise DataError(msg) from None


_AWAY = {
    "NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND": "there is no such file, folder or bucket",
    "ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH": (
        "access is denied: give credentials where pyarrow looks for them, for S3 in "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    ),
    "NETWORK_CONNECTION": "it cannot be reached: check the network, and the address of the store",
}


def away(error: Exception) -> str | None:
    """Say why a store did not give a file, if that can be told, in words of our own."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file, folder or bucket"
    told = (why for pattern, why in _AWAY.items() if re.search(pattern, str(error)))
    return next(told, None)


def _without_values(name: str, message: str) -> str:
    if "UTF8" in message or "UTF-8" in message:
        return f"{name} holds text that is not UTF-8: save it as UTF-8 first"
    column = re.search(r"CSV column '(.+?)'|CSV column #(\d+)", message)
    if column:
        place = column.group(1) or f"number {int(column.group(2)) + 1}"
        return f"{name}, column {place}: a value is not a number as the schema declares"
    if "Empty CSV" in message:
        return f"{name} is empty: there is nothing to sketch"
    if "Expected" in message and "columns" in message:
        return f"{name} has a row with more or fewer fields than its header"
    return f"cannot read {name}: it is damaged or not of the kind its name says"
