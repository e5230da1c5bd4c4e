"""A view of the pixels that needs no images at all: the smoothest cosines."""

from __future__ import annotations

import numpy as np

from aquatint.errors import PlanError
from aquatint.networks.projection import public_projection
from aquatint.networks.public import PublicNetwork


def smooth_projection(size: tuple[int, int], components: int = 100) -> PublicNetwork:
    """Project grey images onto the smoothest cosines, those of the lowest frequencies.

    Private images are near smooth ones, whatever they show; so this serves where there are no
    public images to fit directions to. `centred_view` moves it to where private images lie.

    Parameters
    ----------
    size
        Height and width of the images.
    components
        How many cosines.

    Examples
    --------
    >>> smooth_projection((8, 8), 10).require().directions.shape
    torch.Size([10, 64])
    """
    if not 1 <= components <= size[0] * size[1] - 1:
        msg = f"images of {size[0]} by {size[1]} have 1 to {size[0] * size[1] - 1} cosines"
        raise PlanError(msg)
    return public_projection(_waves(size, components), components, note="cosines")


def _waves(size: tuple[int, int], count: int) -> np.ndarray:
    """Give the smoothest cosines as images, uint8 of shape (2 · count, 1, h, w).

    Each stands there twice, light on dark and dark on light, and weaker the finer it is, as details
    of natural images are (amplitude 1/f): these are the principal components of the set.
    """
    down, across = (f.ravel() for f in np.indices(size))
    smooth = np.argsort(np.hypot(down, across), kind="stable")[:count, None, None]
    down, across = down[smooth], across[smooth]
    y, x = ((np.arange(n) + 0.5) / n for n in size)
    waves = np.cos(np.pi * down * y[:, None]) * np.cos(np.pi * across * x)
    waves /= np.linalg.norm(waves, axis=(1, 2), keepdims=True)
    waves /= np.hypot(down, across).clip(min=1)
    both = 127.5 + np.concatenate([waves, -waves]) * 127.0 / np.abs(waves).max()
    return np.asarray(np.rint(both).astype(np.uint8)[:, None])
