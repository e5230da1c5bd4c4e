"""Give drawn images the tones of the private ones: one curve for all images of a channel.

A generator leaves a background at 1 or 3 where it should be 0, by class, and a classifier learns
just that. The share of every tone is known from a release to a few thousandths, so a curve that
never falls takes the tones that are drawn to those that should be.
"""

from __future__ import annotations

import numpy as np
import torch

from aquatint.features.tones import TONES, Tones, tone_of
from aquatint.release.model import Block, Release

SURE = 3.5
"""How many deviations of its noise a share must differ by."""


def tones_block(release: Release) -> tuple[Block, Tones] | None:
    """Find the block that holds the tones of all images, if there is one."""
    for block in release.blocks:
        if isinstance(block.map, Tones):
            return block, block.map
    return None


def curves_of(counted: tuple[Block, Tones], count: float, pixels: np.ndarray) -> np.ndarray:
    """Find the curves for a model's images.

    Parameters
    ----------
    counted
        The released tones, and their map.
    count
        How many images they were counted in.
    pixels
        Images that the model drew, uint8 of shape (n, height, width, channels).

    Returns
    -------
    curves
        What becomes of each value, uint8 of shape (channels, 256).
    """
    block, feature = counted
    unit = feature.channels**0.5 / max(1.0, count)
    wanted = block.sum.reshape(feature.channels, TONES) * unit
    noise = float(block.stderr[0]) * unit
    return np.stack([_curve(share, noise, pixels[..., c]) for c, share in enumerate(wanted)])


def apply(curves: np.ndarray | None, pixels: np.ndarray) -> np.ndarray:
    """Take every pixel along the curve of its channel."""
    if curves is None:
        return pixels
    return np.stack([curve[pixels[..., c]] for c, curve in enumerate(curves)], axis=-1)


def _curve(wanted: np.ndarray, noise: float, drawn: np.ndarray) -> np.ndarray:
    """Give the curve of one channel.

    Where noise explains how a released share differs from the model's own, the model's is kept, in
    proportion; so noise alone gives the curve that changes nothing.
    """
    place = tone_of(torch.arange(256)).numpy()
    own = np.bincount(drawn.ravel(), minlength=256) / max(1, drawn.size)
    had = np.bincount(place, own, TONES)
    sure = np.abs(wanted - had) >= SURE * noise
    share = np.where(sure, wanted.clip(0, None), had)
    left = had[~sure].sum()
    if left > 0:  # what is told for sure stays as told
        share[~sure] *= max(0.0, 1 - share[sure].sum()) / left
    # inside a tone, values keep the proportions they are drawn in
    even = 1 / np.bincount(place)[place]
    within = np.where(had[place] > 0, own / np.maximum(had[place], 1e-30), even)
    aim = np.cumsum(share[place] * within)
    if not aim[-1] > 0:
        return np.arange(256, dtype=np.uint8)
    middle = np.cumsum(own) - own / 2
    found = np.searchsorted(aim / aim[-1], middle)
    return np.asarray(found.clip(0, 255), dtype=np.uint8)
