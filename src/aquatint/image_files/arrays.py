"""Arrays in files: .npz, .npy and idx, read in pieces whether compressed or not."""

from __future__ import annotations

import gzip
import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from aquatint.errors import DataError
from aquatint.image_files.batches import Expected, ImageBatch

IMAGES = ("images", "image", "x", "X", "pixels", "data", "arr_0")
LABELS = ("labels", "label", "y", "Y", "targets", "target", "arr_1")
_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4"}


@dataclass(frozen=True)
class _Stored:
    """An array in a file, of which nothing but the header has been read."""

    stream: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def pieces(self, rows: int) -> Iterator[np.ndarray]:
        """Read so many rows at a time."""
        width = math.prod(self.shape[1:])
        for start in range(0, self.shape[0], rows):
            count = min(rows, self.shape[0] - start)
            data = _read(self.stream, count * width * self.dtype.itemsize)
            yield np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])


def _read(stream: IO[bytes], size: int) -> bytes:
    parts, left = [], size
    while left:
        part = stream.read(left)
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_npz(path: Path, expected: Expected, batch: int) -> Iterator[ImageBatch]:
    """Read an .npz with images and labels, or an .npy with images alone."""
    with ExitStack() as stack:
        labels = None
        if path.suffix.lower() == ".npy":
            images = _npy(stack.enter_context(path.open("rb")), path)
        else:
            packed = stack.enter_context(zipfile.ZipFile(path))
            names = {name.removesuffix(".npy") for name in packed.namelist()}
            kept = _named(names, IMAGES)
            if kept is None:
                raise DataError(_no_images(names, path))
            images = _npy(stack.enter_context(packed.open(f"{kept}.npy")), path)
            if classes := _named(names, LABELS):
                labels = _npy(stack.enter_context(packed.open(f"{classes}.npy")), path)
        yield from _batches(images, labels, expected, batch, path)


def _named(names: set[str], usual: tuple[str, ...]) -> str | None:
    return next((name for name in usual if name in names), None)


def _no_images(names: set[str], path: Path) -> str:
    parts = " and ".join(sorted({"x_train", "x_test"} & names, reverse=True)) or "no images"
    return f"{path.name} has {parts}: save the images meant as 'images', their classes as 'labels'"


def _npy(stream: IO[bytes], path: Path) -> _Stored:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    if fortran and len(shape) > 1:
        msg = f"{path.name} is stored column by column: save np.ascontiguousarray of the images"
        raise DataError(msg)
    if dtype.hasobject:
        msg = f"{path.name} holds Python objects: save images as uint8 and labels as text"
        raise DataError(msg)
    return _Stored(stream, tuple(shape), dtype)


def read_idx(path: Path, expected: Expected, batch: int) -> Iterator[ImageBatch]:
    """Read an idx file of images, and the labels from the file beside it if there is one."""
    beside = labels_beside(path)
    with ExitStack() as stack:
        images = _idx(stack.enter_context(_opened(path)))
        labels = None if beside is None else _idx(stack.enter_context(_opened(beside)))
        if len(images.shape) < 3:
            msg = f"{path.name} is a file of labels: give the file of images that goes with it"
            raise DataError(msg)
        yield from _batches(images, labels, expected, batch, path)


def is_idx(path: Path) -> bool:
    """Say whether a file begins as idx files do, packed or not."""
    try:
        with _opened(path) as stream:
            start = stream.read(4)
    except (OSError, EOFError):
        return False
    return len(start) == 4 and start[:2] == b"\0\0" and start[2] in _IDX_TYPES and 0 < start[3] < 5


def labels_beside(path: Path) -> Path | None:
    """Find the labels that belong to train-images-idx3-ubyte: train-labels-idx1-ubyte."""
    if "images" not in path.name:
        return None
    plain = path.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    usual = [path.with_name(plain + ending) for ending in ("", ".gz")]
    return next((file for file in usual if file.is_file()), None)


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


def _idx(stream: IO[bytes]) -> _Stored:
    start = _read(stream, 4)
    if start[:2] != b"\0\0" or start[2] not in _IDX_TYPES:
        raise EOFError
    shape = tuple(int(n) for n in np.frombuffer(_read(stream, 4 * start[3]), ">u4"))
    return _Stored(stream, shape, np.dtype(_IDX_TYPES[start[2]]))


def _batches(
    images: _Stored, labels: _Stored | None, expected: Expected, batch: int, path: Path
) -> Iterator[ImageBatch]:
    _check(images, labels, path)
    classes = iter(()) if labels is None else labels.pieces(batch)
    for pixels in images.pieces(batch):
        shaped = _channels_last(pixels, path)
        expected.check(shaped.shape[1:], "the first image")
        yield ImageBatch(shaped, None if labels is None else _text(next(classes)))


def _check(images: _Stored, labels: _Stored | None, path: Path) -> None:
    if images.dtype != np.uint8:
        msg = f"the images in {path.name} are {images.dtype}: save them as uint8, from 0 to 255"
        raise DataError(msg)
    if not images.shape or not math.prod(images.shape):
        msg = f"{path.name} holds no images"
        raise DataError(msg)
    if labels is None:
        return
    if labels.dtype.kind not in "iuUSb" or len(labels.shape) != 1:
        msg = f"the labels of {path.name} are not one whole number or text for each image"
        raise DataError(msg)
    if labels.shape[0] != images.shape[0]:
        msg = f"{path.name} has more images than labels, or fewer: give one label for each"
        raise DataError(msg)


def _channels_last(pixels: np.ndarray, path: Path) -> np.ndarray:
    if pixels.ndim == 3:
        return pixels[..., None]
    if pixels.ndim == 4 and pixels.shape[3] in {1, 3}:
        return pixels
    if pixels.ndim == 4 and pixels.shape[1] in {1, 3}:
        return pixels.transpose(0, 2, 3, 1)
    msg = (
        f"the images in {path.name} are not of shape (n, height, width) or "
        "(n, height, width, channels) with 1 or 3 channels: reshape them before"
    )
    raise DataError(msg)


def _text(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "S":
        return np.char.decode(labels, "utf-8")
    if labels.dtype.kind == "b":
        labels = labels.astype(np.uint8)
    return labels.astype(str)
