"""Pixels as numbers: the values of columns and of pixels of images as one matrix.

A pixel is a numeric column of its own, named ``image[0]``, ``image[1]`` … in the order of
channels, rows and columns. No list of pixels is ever walked through for a batch: what the names
mean is found once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import torch
from torch import Tensor

PIXEL_STEPS = 2**16
"""Pixels of the unit interval are put on a grid of this many steps, coarser than that of other
numbers, so that phases over sixteen times as many pixels as columns are still exact."""
_PIXEL = re.compile(r"(.+)\[(0|[1-9]\d{0,8})\]")


@dataclass(frozen=True)
class Run:
    """Neighbouring names: pixels of one image, or columns that are what they say.

    Attributes
    ----------
    image
        The column whose pixels they are; None for columns.
    names
        The columns.
    places
        The pixels; None if they are the first so many in order.
    count
        How many there are.
    """

    image: str | None
    names: tuple[str, ...]
    places: Tensor | None
    count: int


def pixel_of(name: str) -> tuple[str, int] | None:
    """Read a pixel's name: of which image column, and which.

    >>> pixel_of("image[12]"), pixel_of("age")
    (('image', 12), None)
    """
    found = _PIXEL.fullmatch(name)
    return (found.group(1), int(found.group(2))) if found else None


@lru_cache(maxsize=64)
def runs(columns: tuple[str, ...], images: frozenset[str]) -> tuple[Run, ...]:
    """Split names into runs of pixels of one image and runs of columns."""

    def image(name: str) -> str | None:
        found = pixel_of(name)
        return found[0] if found and found[0] in images else None

    out = []
    for held, some in groupby(columns, image):
        names = tuple(some)
        places = [(pixel_of(name) or ("", 0))[1] for name in names] if held else []
        ordered = held is None or places == list(range(len(places)))
        chosen = None if ordered else torch.tensor(places)
        out.append(Run(held, names if held is None else (), chosen, len(names)))
    return tuple(out)


def stacked(values: Mapping[str, Tensor], columns: tuple[str, ...]) -> Tensor:
    """Stack columns and pixels into shape (n, columns); all pixels of an image are one flatten."""
    images = frozenset(name for name, value in values.items() if value.dim() == 4)
    parts: list[Tensor] = []
    for run in runs(columns, images):
        if run.image is None:
            parts.extend(values[name][:, None] for name in run.names)
        else:
            parts.append(_pixels(values[run.image], run))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _pixels(images: Tensor, run: Run) -> Tensor:
    flat = images.flatten(1)
    if run.places is not None:
        flat = flat[:, run.places.to(flat.device)]
    elif run.count < flat.shape[1]:
        flat = flat[:, : run.count]
    return unit_interval(flat)


def unit_interval(pixels: Tensor) -> Tensor:
    """Put whole pixels from 0 to 255 on the grid of the unit interval; floats are there already."""
    if pixels.dtype != torch.uint8:
        return pixels
    return (pixels.float() * (PIXEL_STEPS / 255)).round_() / PIXEL_STEPS
