"""Data in: paths, frames, tables, queries and iterators become a stream of record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from aquatint.curator.databases import Query, query_source
from aquatint.curator.files import CSV
from aquatint.curator.parts import Files, find_parts
from aquatint.curator.read_images import batch_images, from_batches, holds_images, image_batches
from aquatint.curator.source import BATCH_ROWS, Source, cut, of_batches, of_table, require
from aquatint.errors import DataError
from aquatint.image_files import ImageBatch
from aquatint.schema import Schema


def read(data: Any, schema: Schema, columns: list[str]) -> Source:
    """Open private data: files, a frame, a query, an Arrow table, record batches or images."""
    person = schema.privacy.person
    wanted = [*columns, person] if person is not None else columns
    asked = isinstance(data, Query)
    source = query_source(data, wanted) if asked else _source(data, schema, wanted)
    rows = batch_images(schema, wanted)
    if rows is None:
        return source
    return replace(source, open=lambda: cut(source.open(), rows))


def _source(data: Any, schema: Schema, wanted: list[str]) -> Source:
    if isinstance(data, (str, Path)):
        return _path(data, schema, wanted)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        return Source(lambda: of_table(table, wanted), repeatable=True)
    if isinstance(data, ImageBatch):
        return Source(lambda: from_batches([data], schema, wanted), repeatable=True)
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


def _path(data: str | Path, schema: Schema, wanted: list[str]) -> Source:
    images, path = batch_images(schema, wanted), Path(data)
    if images and holds_images(path):
        return Source(lambda: image_batches(path, schema, wanted), repeatable=True)
    parts = find_parts(data)
    for part in parts:
        if images and part.kind in CSV:
            msg = f"{part.name} cannot hold images: give a folder, an .npz, idx or Parquet file"
            raise DataError(msg)
    files = Files(parts, schema, wanted, images or BATCH_ROWS)
    return Source(files.open, repeatable=True, share=files.share, files=files)


def _pandas(frame: Any, wanted: list[str]) -> pa.Table:
    """Turn the wanted columns of a pandas frame into a table, one by one to name a bad one."""
    require([str(name) for name in frame.columns], wanted)
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


def _reader(data: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        msg = f"a {type(data).__name__} is one column: give the frame or table it belongs to"
        raise DataError(msg) from None
    require(reader.schema.names, wanted)
    yield from of_batches(reader, wanted)


def _batches(data: Iterable[Any], wanted: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in data:
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            msg = f"the iterator gave a {type(batch).__name__}: give Arrow record batches"
            raise DataError(msg)
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        yield from of_table(table, wanted)
