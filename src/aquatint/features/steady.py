"""Whether what a network sees in an image depends on the images beside it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

    def features_of(self, images: Tensor, *, half: bool | None = None) -> Tensor:
        """Give the features of images."""


@dataclass(frozen=True)
class Block:
    """How images go through a network: so many at once, with or without half precision."""

    size: int
    half: bool


@contextmanager
def one_algorithm() -> Iterator[None]:
    """Let a GPU choose its convolutions by shape alone, and only such as give the same bits."""
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    ):
        yield


@lru_cache(maxsize=16)
def steady_block(feature_map: Seeing, most: int, device: str) -> Block:
    """Find the quickest way through the network in which no row's bits depend on other rows.

    Libraries of linear algebra may treat the rows of a block differently. Were a row's features to
    depend on its neighbours or on its place, one row more or less could move other rows' too.
    Public made-up images tell. What fails is tried again in full precision and in smaller blocks;
    in the end images go through the network one by one.
    """
    cuda = torch.device(device).type == "cuda"
    smaller = [size for size in (128, 32, 8) if size < most]
    tries = [Block(most, True)] * cuda + [Block(size, False) for size in (most, *smaller)]
    for block in tries:
        if block.size > 1 and _steady(feature_map, block):
            return block
    if most > 1:
        warnings.warn(
            "the network sees an image differently beside others, so that images have to go "
            f"through it one by one on {device}, which is slow: try another device",
            stacklevel=2,
        )
    return Block(1, False)


def _steady(feature_map: Seeing, block: Block) -> bool:
    """Try whether a row's bits are the same at any place in a block, whatever lies beside it."""
    shape = (feature_map.network.channels, *feature_map.input_size)
    dice = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (block.size, *shape), generator=dice, dtype=torch.uint8)
    with torch.no_grad(), one_algorithm():
        found = feature_map.features_of(images, half=block.half)
        for shift in {1, block.size // 2 + 1}:
            again = feature_map.features_of(images.roll(shift, 0), half=block.half)
            if not torch.equal(again, found.roll(shift, 0)):
                return False
        alone = 255 - images
        alone[-1] = images[-1]
        return torch.equal(feature_map.features_of(alone, half=block.half)[-1], found[-1])
