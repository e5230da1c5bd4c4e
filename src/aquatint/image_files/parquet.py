"""Parquet with a column of images: encoded, as {bytes, path}, or raw and of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aquatint.errors import DataError
from aquatint.image_files.batches import Expected, ImageBatch, gathered, ordinal
from aquatint.image_files.decoding import decode

_IMAGES = ("image", "images", "img", "pixels")
_LABELS = ("label", "labels", "class", "target", "y")


def read_parquet(
    path: Path, expected: Expected, batch: int, image: str | None, label: str | None
) -> Iterator[ImageBatch]:
    """Read a Parquet file in batches of rows."""
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        if not file.metadata.num_rows:
            msg = f"{path.name} holds no images"
            raise DataError(msg)
        pixels = _image_column(schema, image, path)
        classes = _label_column(schema, label, path)
        columns = [pixels] if classes is None else [pixels, classes]
        parts = file.iter_batches(batch_size=min(batch, 1024), columns=columns)
        yield from gathered(_rows(parts, pixels, classes, expected), expected, batch)


def _image_column(schema: pa.Schema, image: str | None, path: Path) -> str:
    if image is not None:
        wanted = [image] if image in schema.names else []
    else:
        able = [field.name for field in schema if _holds_images(field.type)]
        wanted = [name for name in _IMAGES if name in able] or (able if len(able) == 1 else [])
    if not wanted or not _holds_images(schema.field(wanted[0]).type):
        named = f"column {image!r} of images" if image is not None else "column of images"
        msg = f"{path.name} has no {named}: store them as bytes of PNG or JPEG in a column 'image'"
        raise DataError(msg)
    return wanted[0]


def _label_column(schema: pa.Schema, label: str | None, path: Path) -> str | None:
    if label is not None and label not in schema.names:
        msg = f"{path.name} has no column {label!r}: name the column of labels"
        raise DataError(msg)
    return label or next((name for name in _LABELS if name in schema.names), None)


def _holds_images(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    if types.is_fixed_size_list(kind):
        return bool(types.is_uint8(kind.value_type))
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )


def _rows(
    parts: Any, image: str, label: str | None, expected: Expected
) -> Iterator[tuple[np.ndarray, str | None]]:
    place = 0
    for part in parts:
        column = part.column(image)
        if pa.types.is_struct(column.type):
            column = column.field("bytes")
        raw = not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type))
        classes = [None] * len(column) if label is None else part.column(label).to_pylist()
        for value, name in zip(column, classes, strict=True):
            which = ordinal(place)
            if not value.is_valid or (label is not None and name is None):
                msg = f"{which} or its label is missing: leave such rows out before"
                raise DataError(msg)
            data = bytes(value.as_py())
            pixels = _shaped(data, expected, which) if raw else decode(data, which=which)
            yield pixels, None if name is None else _text(name)
            place += 1


def _shaped(data: bytes, expected: Expected, which: str) -> np.ndarray:
    if expected.size is None or expected.channels is None:
        msg = "raw images need a size and a number of channels: say size= and channels="
        raise DataError(msg)
    shape = (*expected.size, expected.channels)
    flat = np.frombuffer(data, np.uint8)
    if flat.size != np.prod(shape):
        msg = f"{which} is not {' by '.join(map(str, shape))} bytes: correct the size"
        raise DataError(msg)
    return flat.reshape(shape)


def _text(label: Any) -> str:
    return str(int(label)) if isinstance(label, bool) else str(label)
