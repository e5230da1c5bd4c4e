"""Images in: folders, .npz, idx files and batches of pixels become a stream of record batches.

The pixels of one image are one fixed-size value, height by width by channels. Batches are small
enough that memory does not grow with the number of images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aquatint.columns import Image
from aquatint.errors import DataError
from aquatint.image_files import ImageBatch, read_images
from aquatint.image_files.arrays import is_idx
from aquatint.schema import Schema

BATCH_BYTES = 1 << 25
MOST_IMAGES, FEWEST_IMAGES = 4096, 16
_ARRAYS = {".npz", ".npy"}


def batch_images(schema: Schema, wanted: list[str]) -> int | None:
    """Give how many rows to hold at once where images are read; None where there are none."""
    pixels = sum(column.pixels for name, column in schema.images.items() if name in wanted)
    return max(FEWEST_IMAGES, min(MOST_IMAGES, BATCH_BYTES // pixels)) if pixels else None


def holds_images(path: Path) -> bool:
    """Say whether a path can only be read as images: a folder, .npz, .npy or idx."""
    return path.is_dir() or path.suffix.lower() in _ARRAYS or (path.is_file() and is_idx(path))


def image_batches(path: Path, schema: Schema, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """Read a folder, .npz, .npy or idx file."""
    _, column = _image(schema, wanted)
    rows = batch_images(schema, wanted) or MOST_IMAGES
    found = read_images(path, size=column.size, channels=column.channels, batch=rows)
    return from_batches(found, schema, wanted)


def from_batches(
    batches: Iterable[Any], schema: Schema, wanted: list[str]
) -> Iterator[pa.RecordBatch]:
    """Turn batches of pixels and classes into record batches."""
    name, column = _image(schema, wanted)
    rows = batch_images(schema, wanted) or MOST_IMAGES
    for batch in batches:
        if not isinstance(batch, ImageBatch):
            msg = f"the iterator gave a {type(batch).__name__}: give batches of images"
            raise DataError(msg)
        for start in range(0, len(batch), rows):
            stop = start + rows
            arrays: dict[str, Any] = {name: _raw(batch.pixels[start:stop], column)}
            if schema.label in wanted:
                arrays[str(schema.label)] = _classes(batch.labels)[start:stop]
            yield pa.RecordBatch.from_pydict({each: arrays[each] for each in wanted})


def _image(schema: Schema, wanted: list[str]) -> tuple[str, Image]:
    found = {name: column for name, column in schema.images.items() if name in wanted}
    others = [name for name in wanted if name not in found and name != schema.label]
    if others or len(found) != 1:
        shown = repr(others[0]) if others else "other than one column of images"
        msg = f"files of images have pixels and classes alone, not {shown}: give a Parquet file"
        raise DataError(msg)
    return next(iter(found.items()))


def _raw(pixels: np.ndarray, column: Image) -> pa.Array:
    if pixels.shape[1:] != (*column.size, column.channels):
        height, width = column.size
        msg = f"the images are not {height} by {width} pixels with {column.channels} channel(s)"
        raise DataError(msg)
    flat = pa.py_buffer(np.ascontiguousarray(pixels))
    return pa.Array.from_buffers(pa.binary(column.pixels), len(pixels), [None, flat])


def _classes(labels: np.ndarray | None) -> pa.Array:
    if labels is None:
        msg = (
            "the images have no classes: use one folder for each class, save 'labels' beside the "
            "images, or sketch them without a label"
        )
        raise DataError(msg)
    return pa.array(labels.astype(object), pa.string())
