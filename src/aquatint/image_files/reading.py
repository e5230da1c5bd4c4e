"""One call that reads images from any of the sources."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from aquatint.errors import DataError
from aquatint.image_files.arrays import is_idx, read_idx, read_npz
from aquatint.image_files.batches import Expected, ImageBatch
from aquatint.image_files.folders import read_folder
from aquatint.image_files.parquet import read_parquet


def read_images(
    path: str | Path,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    batch: int = 4096,
    image: str | None = None,
    label: str | None = None,
) -> Iterator[ImageBatch]:
    """Read images batch by batch.

    Parameters
    ----------
    path
        A folder with one sub-folder for each class, or with images alone; an ``.npz`` with arrays
        ``images`` (or ``x``) and ``labels`` (or ``y``); an ``.npy``; an idx file of images, packed
        by gzip or not, with the labels beside it; or a Parquet file with a column of images.
    size
        Height and width that every image must have; by default those of the first.
    channels
        1 for grey, 3 for colour; by default as the first image has.
    batch
        The most images in a batch: the memory needed.
    image, label
        The columns of a Parquet file; by default those with the usual names.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> file = tempfile.mkdtemp() + "/tiny.npz"
    >>> np.savez(file, images=np.zeros((5, 8, 8), np.uint8), labels=[0, 1, 1, 0, 1])
    >>> [part.pixels.shape for part in read_images(file, batch=3)]
    [(3, 8, 8, 1), (2, 8, 8, 1)]
    """
    expected = Expected(size, channels)
    if batch < 1:
        msg = f"a batch has 1 image or more: {batch} cannot be"
        raise DataError(msg)
    file = Path(path)
    try:
        if file.is_dir():
            yield from read_folder(file, expected, batch)
        elif not file.exists():
            msg = f"{file} does not exist: give a folder, an .npz, an idx or a Parquet file"
            raise DataError(msg)
        elif file.suffix.lower() in {".npz", ".npy"}:
            yield from read_npz(file, expected, batch)
        elif file.suffix.lower() in {".parquet", ".pq"}:
            yield from read_parquet(file, expected, batch, image, label)
        elif is_idx(file):
            yield from read_idx(file, expected, batch)
        else:
            msg = f"cannot tell what {file.name} is: give a folder, an .npz, idx or Parquet file"
            raise DataError(msg)
    except OSError as error:
        reason = error.strerror or "it is damaged or not of the kind its name says"
        msg = f"cannot read {file}: {reason}"
        raise DataError(msg) from None
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error, pa.ArrowInvalid):
        msg = f"cannot read {file.name}: it is damaged or not of the kind its name says"
        raise DataError(msg) from None
