"""How often each tone occurs in an image: a histogram of its pixels, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.columns import Image
from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root

STEP = 4
TONES = 256 // STEP + 2
"""Black and white have tones of their own: whole backgrounds are exactly so."""


@dataclass(frozen=True)
class Tones(FeatureMap):
    """The share of each tone among an image's pixels, over √C for C channels.

    Shares are not negative and sum to 1 in every channel, so their squares sum to at most 1:
    ‖φ‖₂² ≤ C/C = 1 and ‖φ‖₁ = √C. No coordinate is negative, so two images are at most √2 apart.

    Parameters
    ----------
    column
        The image column.
    channels, pixels
        How many channels an image has, and how many pixels each of them.
    """

    column: str
    channels: int
    pixels: int
    kind: ClassVar[str] = "tones"

    def __post_init__(self) -> None:
        if self.channels < 1 or self.pixels < 1:
            msg = "tones are counted in at least one channel of at least one pixel"
            raise PlanError(msg)

    @property
    def dim(self) -> int:
        return self.channels * TONES

    @property
    def bound(self) -> Bound:
        high = 1 / sqrt(self.channels)
        return Bound(dim=self.dim, l1=root(self.channels), l2_squared=1, low=0, high=high)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset({self.column})

    def __call__(self, rows: Rows) -> Tensor:
        images = rows.values[self.column]
        if images.shape[1:].numel() != self.channels * self.pixels:
            msg = f"tones of {self.channels} × {self.pixels} pixels, and images are of other size"
            raise PlanError(msg)
        whole = images if images.dtype == torch.uint8 else (images * 255).round()
        place = tone_of(whole.long().reshape(len(images), self.channels, self.pixels))
        place += TONES * torch.arange(self.channels, device=place.device)[:, None]
        counts = torch.zeros(len(images), self.dim, device=place.device)
        flat = place.flatten(1)
        counts.scatter_add_(1, flat, torch.ones_like(flat, dtype=counts.dtype))
        return counts / (self.pixels * sqrt(self.channels))

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "column": self.column,
            "channels": self.channels,
            "pixels": self.pixels,
        }


def tone_of(values: Tensor) -> Tensor:
    """Give the tone of pixel values, which are whole numbers from 0 to 255.

    >>> tone_of(torch.tensor([0, 1, 3, 4, 254, 255])).tolist()
    [0, 1, 1, 2, 64, 65]
    """
    inner = torch.div(values, STEP, rounding_mode="floor") + 1
    return torch.where(values == 0, 0, torch.where(values == 255, TONES - 1, inner))


def tones(name: str, column: Image) -> Tones:
    """Count the tones of a column of images."""
    channels = column.shape[0]
    return Tones(name, channels, column.pixels // channels)
