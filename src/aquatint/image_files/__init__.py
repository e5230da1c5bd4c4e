"""Image files in and out: folders, .npz, idx and Parquet become a stream of uint8 batches.

One batch is in memory at a time, so memory does not grow with the number of images. A message says
which image is wrong by its place in the order of reading, never by its name, size or pixels.
"""

from __future__ import annotations

from aquatint.image_files.batches import ImageBatch
from aquatint.image_files.decoding import decode
from aquatint.image_files.reading import read_images
from aquatint.image_files.writing import contact_sheet, write_images

__all__ = ["ImageBatch", "contact_sheet", "decode", "read_images", "write_images"]
