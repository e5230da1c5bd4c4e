"""Images to compare: read whole, labels coded alike on all sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.errors import DataError
from aquatint.evaluate.errors import EvaluationError
from aquatint.image_files import ImageBatch, read_images
from aquatint.image_files.batches import natural_order


@dataclass(frozen=True, eq=False)
class Images:
    """Some images: uint8 of shape (n, height, width, channels), and the class of each as text."""

    what: str
    pixels: np.ndarray
    labels: np.ndarray | None

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width and channels."""
        return self.pixels.shape[1:]

    def take(self, places: np.ndarray) -> Images:
        """Keep some of them."""
        return Images(
            self.what, self.pixels[places], None if self.labels is None else self.labels[places]
        )

    def some(self, count: int, seed: int) -> Images:
        """Draw so many at random, each at most once."""
        if count > len(self):
            msg = f"there are {len(self):,} {self.what} images: {count:,} cannot be drawn"
            raise EvaluationError(msg)
        places = np.random.default_rng(seed).permutation(len(self))[:count]
        return self.take(np.sort(places))

    def codes(self, classes: Sequence[str]) -> np.ndarray:
        """Give each label its number; -1 stands for one that is no class."""
        if self.labels is None:
            msg = f"the {self.what} images have no labels: classifiers need them"
            raise EvaluationError(msg)
        known = {name: code for code, name in enumerate(classes)}
        return np.array([known.get(str(name), -1) for name in self.labels], dtype=np.int64)

    def batches(self, size: int) -> Iterator[Tensor]:
        """Give uint8 tensors of shape (n, channels, height, width)."""
        for start in range(0, len(self), size):
            part = self.pixels[start : start + size].transpose(0, 3, 1, 2)
            yield torch.from_numpy(np.ascontiguousarray(part))

    def matrix(self) -> np.ndarray:
        """Give one row for each image, with pixels from 0 to 1 in float32."""
        flat = self.pixels.reshape(len(self), -1)
        return flat.astype(np.float32) / np.float32(255)


def take_in(data: Any, what: str, like: Images | None = None) -> Images:
    """Take images as a path, an `ImageBatch`, an array, or a pair of pixels and labels.

    Parameters
    ----------
    data
        The images.
    what
        What messages call them: real, synthetic, test.
    like
        Images of the size and channels that these must have.
    """
    if isinstance(data, (str, Path)):
        pixels, labels = _read(data, what)
    elif isinstance(data, ImageBatch):
        pixels, labels = data.pixels, data.labels
    else:
        pair = data if isinstance(data, tuple) else (data, None)
        made = ImageBatch(
            np.asarray(pair[0]), None if pair[1] is None else np.asarray(pair[1]).astype(str)
        )
        pixels, labels = made.pixels, made.labels
    if not len(pixels):
        msg = f"there are no {what} images"
        raise DataError(msg)
    if like is not None and pixels.shape[1:] != like.shape:
        have, want = (" × ".join(map(str, shape)) for shape in (pixels.shape[1:], like.shape))
        msg = f"the {what} images are {have}, the {like.what} ones {want}: bring them to one size"
        raise DataError(msg)
    return Images(what, pixels, labels)


def _read(path: str | Path, what: str) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        parts = list(read_images(path))
    except DataError as error:
        msg = f"{what} images: {error}"
        raise DataError(msg) from None
    pixels = np.concatenate([part.pixels for part in parts])
    labels = [part.labels for part in parts if part.labels is not None]
    return pixels, np.concatenate(labels) if labels else None


def classes_of(*sides: Images) -> tuple[str, ...]:
    """List the classes of the sides that have labels: 2 before 10."""
    names = {str(name) for side in sides if side.labels is not None for name in set(side.labels)}
    return tuple(sorted(names, key=natural_order))
