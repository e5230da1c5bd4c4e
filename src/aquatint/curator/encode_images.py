"""A column of images to pixels, by the schema alone: raw, encoded, or as {bytes, path}."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from aquatint.columns import Image
from aquatint.errors import DataError
from aquatint.image_files import decode


def encode_images(name: str, column: Image, array: pa.Array) -> Tensor:
    """Give uint8 pixels of shape (n, channels, height, width)."""
    if pa.types.is_struct(array.type) and array.type.get_field_index("bytes") >= 0:
        array = pc.struct_field(array, "bytes")
    if array.null_count:
        msg = f"column {name!r} lacks an image in {array.null_count} rows of a batch: remove them"
        raise DataError(msg)
    shape = (len(array), *column.size, column.channels)
    if pa.types.is_fixed_size_binary(array.type) or _is_list(array.type):
        pixels = _raw(name, column, array).reshape(shape)
    elif pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        pixels = np.empty(shape, np.uint8)
        for place, data in enumerate(array):
            pixels[place] = _decoded(name, column, data.as_py())
    else:
        msg = f"column {name!r} does not hold images: give PNG or JPEG bytes, or raw pixels"
        raise DataError(msg)
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_uint8(kind.value_type))


def _raw(name: str, column: Image, array: pa.Array) -> np.ndarray:
    fixed = pa.types.is_fixed_size_binary(array.type)
    width = array.type.byte_width if fixed else array.type.list_size
    if width != column.pixels:
        msg = (
            f"column {name!r} has {width} bytes an image, but {column.size[0]} by {column.size[1]} "
            f"pixels with {column.channels} channel(s) have {column.pixels}: correct the schema"
        )
        raise DataError(msg)
    if not fixed:
        return np.array(array.flatten().to_numpy(zero_copy_only=False), dtype=np.uint8)
    start = array.offset * width
    if not len(array):
        return np.empty(0, np.uint8)
    # A copy: the pixels outlive the buffer of a file that is read on.
    return np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * width].copy()


def _decoded(name: str, column: Image, data: bytes) -> np.ndarray:
    pixels = decode(data, which=f"an image of column {name!r}")
    if pixels.shape[:2] != column.size:
        msg = (
            f"an image of column {name!r} is not {column.size[0]} by {column.size[1]} pixels: "
            "bring all images to the declared size before"
        )
        raise DataError(msg)
    if pixels.shape[2] != column.channels:
        kind = "grey" if column.channels == 1 else "in colour"
        msg = f"an image of column {name!r} is not {kind}: convert it, or correct the schema"
        raise DataError(msg)
    return pixels
