"""A batch of images, and the check that all images of a source are alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from aquatint.errors import DataError


@dataclass(frozen=True, eq=False)
class ImageBatch:
    """Images of one size, in the order of reading.

    Attributes
    ----------
    pixels
        The images: uint8, of shape (n, height, width, channels).
    labels
        The class of each as text; None where the source has no labels.
    """

    pixels: np.ndarray
    labels: np.ndarray | None

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 4:
            msg = "pixels are uint8 of shape (n, height, width, channels)"
            raise DataError(msg)
        if self.labels is not None and self.labels.shape != (len(self.pixels),):
            msg = f"there are {len(self.pixels):,} images and {self.labels.size:,} labels"
            raise DataError(msg)

    def __len__(self) -> int:
        return len(self.pixels)


@dataclass
class Expected:
    """The size and channels that every image must have: as declared, or as the first one has."""

    size: tuple[int, int] | None
    channels: int | None

    def __post_init__(self) -> None:
        if self.channels not in {None, 1, 3}:
            msg = f"images have 1 or 3 channels: {self.channels} cannot be asked for"
            raise DataError(msg)
        if self.size is not None:
            self.size = (int(self.size[0]), int(self.size[1]))
            if min(self.size) < 1:
                msg = f"an image has a height and a width of 1 or more: {self.size} cannot be"
                raise DataError(msg)
        self._size_declared = self.size is not None
        self._channels_declared = self.channels is not None

    def check(self, shape: tuple[int, ...], which: str) -> None:
        """Refuse an image of another size or channel number; the first one settles what is open."""
        height, width, channels = shape
        if self.size is None:
            self.size = (height, width)
        if self.channels is None:
            self.channels = channels
        if (height, width) != self.size:
            told = f"is not {self.size[0]} by {self.size[1]} pixels (height by width)"
            seen = told if self._size_declared else "has another size than the first"
            msg = f"{which} {seen}: bring all images to one size before"
            raise DataError(msg)
        if channels != self.channels:
            kind = "grey" if self.channels == 1 else "in colour"
            seen = f"is not {kind}" if self._channels_declared else "is not grey as the first is"
            if not self._channels_declared and self.channels == 3:
                seen = "is not in colour as the first is"
            msg = f"{which} {seen}: convert all images to {self.channels} channel(s) before"
            raise DataError(msg)


def ordinal(place: int) -> str:
    """Name an image by its place, counted from 0: "the 17th image"."""
    number = place + 1
    teens = number % 100 in {11, 12, 13}
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"the {number:,}{ending} image"


def natural_order(label: str) -> list[tuple[int, str]]:
    """Give what to sort classes by, so that "10" comes after "9".

    >>> sorted(["10", "9", "a2", "a10"], key=natural_order)
    ['a2', 'a10', '9', '10']
    """
    parts = re.split(r"(\d+)", label)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts if part]


def gathered(
    images: Iterable[tuple[np.ndarray, str | None]], expected: Expected, batch: int, order: str = ""
) -> Iterator[ImageBatch]:
    """Gather single images, with labels or all without, into batches."""
    pixels: np.ndarray | None = None
    labels: list[str] = []
    filled = total = 0
    for image, label in images:
        expected.check(image.shape, ordinal(total) + order)
        if pixels is None:
            pixels = np.empty((batch, *image.shape), dtype=np.uint8)
        pixels[filled] = image
        if label is not None:
            labels.append(label)
        filled, total = filled + 1, total + 1
        if filled == batch:
            yield ImageBatch(pixels, np.array(labels, dtype=str) if labels else None)
            pixels, labels, filled = None, [], 0
    if pixels is not None:
        yield ImageBatch(pixels[:filled], np.array(labels, dtype=str) if labels else None)
