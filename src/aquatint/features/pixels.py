"""Images as encoded rows: what a generator and the curator's encoder both make."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from aquatint.columns import Image
from aquatint.errors import PlanError
from aquatint.features.base import Rows


def pixel_names(name: str, column: Image) -> tuple[str, ...]:
    """Name every pixel of an image column, channel by channel and row by row.

    >>> pixel_names("image", Image(kind="image", size=(1, 2), channels=1))
    ('image[0]', 'image[1]')
    """
    return tuple(f"{name}[{place}]" for place in range(column.pixels))


def image_rows(name: str, images: Tensor, codes: Mapping[str, Tensor] | None = None) -> Rows:
    """Make rows of images.

    Parameters
    ----------
    name
        The image column.
    images
        Shape (n, channels, height, width): uint8, or floats in [0, 1] that may carry gradients.
    codes
        Other columns, such as the label: whole numbers of shape (n,), or weights that sum to one.
    """
    if images.dim() != 4 or not (images.dtype == torch.uint8 or images.is_floating_point()):
        msg = "images are uint8 or floats of shape (n, channels, height, width)"
        raise PlanError(msg)
    return Rows(dict(codes or {}), {name: images}, len(images))
