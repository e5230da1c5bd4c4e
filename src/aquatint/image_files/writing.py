"""Images out: a folder of PNGs by class, an .npz, a contact sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.image_files.batches import ImageBatch, natural_order

Labels = Sequence[str] | np.ndarray | None
_GAP = 2


def write_images(path: str | Path, pixels: np.ndarray, labels: Labels = None) -> None:
    """Write images as an ``.npz``, or as a folder of PNGs with one sub-folder for each class.

    Parameters
    ----------
    path
        A file that ends in ``.npz``, or a folder that is new or empty.
    pixels
        uint8 of shape (n, height, width, 1 or 3).
    labels
        The class of each; without them all PNGs go into one folder.
    """
    images = _checked(pixels, labels)
    target = Path(path)
    try:
        if target.suffix.lower() == ".npz":
            arrays = {"images": images.pixels}
            if images.labels is not None:
                arrays["labels"] = images.labels
            target.parent.mkdir(parents=True, exist_ok=True)
            np.savez(target, **arrays)  # type: ignore[arg-type]
        else:
            check_output(target)
            _folder(target, images)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}"
        raise DataError(msg) from None


def check_output(path: str | Path) -> None:
    """Refuse, before any work is done, a place that images cannot be written to."""
    target = Path(path)
    if target.suffix.lower() == ".npz":
        return
    if target.exists() and not target.is_dir():
        msg = f"{target} is a file: give an .npz, or a folder that is new or empty"
        raise DataError(msg)
    if target.is_dir() and any(target.iterdir()):
        msg = f"folder {target} is not empty: give a new one, so that old images do not mix in"
        raise DataError(msg)


def contact_sheet(
    pixels: np.ndarray,
    labels: Labels,
    path: str | Path,
    *,
    columns: int = 10,
    scale: int = 2,
) -> None:
    """Draw some images of each class as one PNG: a row for each class, in the order of names.

    Parameters
    ----------
    pixels
        uint8 of shape (n, height, width, 1 or 3).
    labels
        The class of each; without them the first images fill a square.
    path
        The PNG to write.
    columns
        Images in a row.
    scale
        How many times larger each pixel is drawn.
    """
    images = _checked(pixels, labels)
    if not len(images) or columns < 1 or scale < 1:
        msg = "a contact sheet needs an image, a column and a scale of 1 or more"
        raise DataError(msg)
    rows = _rows(images, columns)
    _, height, width, channels = images.pixels.shape
    step, across = height * scale + _GAP, width * scale + _GAP
    shape = (len(rows) * step + _GAP, columns * across + _GAP, channels)
    sheet = np.full(shape, 255, np.uint8)
    for down, row in enumerate(rows):
        for right, place in enumerate(row):
            large = images.pixels[place].repeat(scale, 0).repeat(scale, 1)
            top, left = _GAP + down * step, _GAP + right * across
            sheet[top : top + height * scale, left : left + width * scale] = large
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _picture(sheet).save(target, format="PNG")
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}"
        raise DataError(msg) from None


def _rows(images: ImageBatch, columns: int) -> list[np.ndarray]:
    if images.labels is None:
        shown = np.arange(min(len(images), columns * columns))
        return np.array_split(shown, range(columns, len(shown), columns))
    classes = sorted(set(images.labels), key=natural_order)
    return [np.flatnonzero(images.labels == label)[:columns] for label in classes]


def _checked(pixels: np.ndarray, labels: Labels) -> ImageBatch:
    names = None if labels is None else np.asarray(labels).astype(str)
    images = ImageBatch(np.asarray(pixels), names)
    if images.pixels.shape[3] not in {1, 3}:
        msg = f"images have 1 or 3 channels: {images.pixels.shape[3]} cannot be written"
        raise DataError(msg)
    return images


def _folder(target: Path, images: ImageBatch) -> None:
    if images.labels is not None:
        for label in set(images.labels):
            if not label or label.startswith(".") or re.search(r'[/\\:\0<>"|?*]', label):
                msg = f"class {str(label)!r} cannot be a folder's name: write an .npz instead"
                raise DataError(msg)
            (target / label).mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    digits = max(5, math.ceil(math.log10(len(images) + 1)))
    for place, pixels in enumerate(images.pixels):
        home = target if images.labels is None else target / images.labels[place]
        _picture(pixels).save(home / f"{place:0{digits}}.png", format="PNG")


def _picture(pixels: np.ndarray) -> Any:
    flat = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    return need("PIL.Image", extra="images").fromarray(np.ascontiguousarray(flat))
