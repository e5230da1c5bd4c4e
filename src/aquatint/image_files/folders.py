"""A folder of image files: one sub-folder for each class, or all images in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aquatint.errors import DataError
from aquatint.image_files.batches import Expected, ImageBatch, gathered, ordinal
from aquatint.image_files.decoding import SUFFIXES, decode

_ORDER = ", by class and name,"


def read_folder(path: Path, expected: Expected, batch: int) -> Iterator[ImageBatch]:
    """Read a folder, class by class and by name; hidden files and other kinds are passed over."""
    classes, flat = _layout(path)
    found = _labelled(path, classes) if classes else _flat(path)
    empty = True
    for part in gathered(found, expected, batch, _ORDER if classes else ", by name,"):
        empty = False
        yield part
    if empty:
        idx = any("ubyte" in name for name in flat)
        hint = "name the idx file of images in it" if idx else "put images or class folders in it"
        msg = f"folder {path} holds no images: {hint}"
        raise DataError(msg)


def _layout(path: Path) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                (folders if entry.is_dir() else files).append(entry.name)
    if folders and any(_is_image(name) for name in files):
        msg = (
            f"folder {path} holds both images and folders: "
            "use one folder for each class, or no folders at all"
        )
        raise DataError(msg)
    return sorted(folders), files


def _is_image(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122


def _labelled(path: Path, classes: list[str]) -> Iterator[tuple[np.ndarray, str | None]]:
    place = 0
    for label in classes:
        for data in _files(path / label, deep=True):
            yield decode(data, which=ordinal(place) + _ORDER), label
            place += 1


def _flat(path: Path) -> Iterator[tuple[np.ndarray, str | None]]:
    for place, data in enumerate(_files(path)):
        yield decode(data, which=ordinal(place) + ", by name,"), None


def _files(folder: Path, *, deep: bool = False) -> Iterator[bytes]:
    """Read the image files of one folder; only their names are held, one folder at a time."""
    with os.scandir(folder) as entries:
        names = []
        for entry in entries:
            if deep and entry.is_dir() and not entry.name.startswith("."):
                msg = "a class folder holds a folder: put the images right into the class folders"
                raise DataError(msg)
            if _is_image(entry.name):
                names.append(entry.name)
    for name in sorted(names):
        yield (folder / name).read_bytes()
