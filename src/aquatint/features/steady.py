"""Whether what a network sees in an image depends on the images beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from aquatint.networks.public import PublicNetwork, Size


class Seeing(Protocol):
    """A map of images by a network."""

    @property
    def network(self) -> PublicNetwork:
        """The network."""

    @property
    def input_size(self) -> Size:
        """The size of the images that it takes."""

    def features_of(self, images: Tensor) -> Tensor:
        """Give the features of images."""


@contextmanager
def one_algorithm() -> Iterator[None]:
    """Let a GPU choose its convolutions by shape alone, and only such as give the same bits."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        yield


@lru_cache(maxsize=16)
def steady(feature_map: Seeing, together: int, device: str) -> bool:  # noqa: ARG001  # a key
    """Try whether a row's bits are the same at any place in a block, whatever lies beside it.

    Libraries of linear algebra may treat the rows of a block differently. Were a row's features to
    depend on its neighbours, one row more or less could move other rows' too. Public made-up
    images tell; if they do, images go through the network one by one.
    """
    shape = (feature_map.network.channels, *feature_map.input_size)
    dice = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (together, *shape), generator=dice, dtype=torch.uint8)
    with torch.no_grad(), one_algorithm():
        found = feature_map.features_of(images)
        for shift in {1, together // 2 + 1}:
            again = feature_map.features_of(images.roll(shift, 0))
            if not torch.equal(again, found.roll(shift, 0)):
                return False
        alone = 255 - images
        alone[-1] = images[-1]
        return torch.equal(feature_map.features_of(alone)[-1], found[-1])
