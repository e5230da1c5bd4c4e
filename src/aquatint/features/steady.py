"""Whether what a network sees in an image depends on the images beside it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from aquatint.features.base import Spec
from aquatint.networks.public import PublicNetwork, Size

Precision = Literal["bfloat16", "float32", "exact"]
EXACT_IMAGES = 128
"""How many images at most go through a network at once in exact sums."""


class Seeing(Protocol):
    """A map of images by a network."""

    @property
    def network(self) -> PublicNetwork:
        """The network."""

    @property
    def input_size(self) -> Size:
        """The size of the images that it takes."""

    def features_of(self, images: Tensor, *, precision: Precision | None = None) -> Tensor:
        """Give the features of images."""

    def spec(self) -> Spec:
        """Describe the map."""


@dataclass(frozen=True)
class Block:
    """How images go through a network: so many at once, and how it computes."""

    size: int
    precision: Precision


@contextmanager
def one_algorithm() -> Iterator[None]:
    """Let a GPU choose its convolutions by shape alone, and only such as give the same bits."""
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    ):
        yield


# By the module itself: networks of one's own may have the same weights and do different things.
_KNOWN: WeakKeyDictionary[nn.Module, dict[str, Block]] = WeakKeyDictionary()


def steady_block(feature_map: Seeing, most: int) -> Block:
    """Find the quickest way through the network in which no row's bits depend on other rows.

    Libraries of linear algebra may treat the rows of a block differently. Were a row's features to
    depend on its neighbours or on its place, one row more or less could move other rows' too.
    Public made-up images tell. What fails in the GPU's half precision is tried in float32, and then
    in exact sums (see `exact`), which cannot fail unless the network itself lets images see each
    other. Such a network gets its images one by one.
    """
    known = _KNOWN.setdefault(feature_map.network.require(), {})
    name = json.dumps([feature_map.spec(), most])
    if name not in known:
        known[name] = _found(feature_map, most)
    return known[name]


def _found(feature_map: Seeing, most: int) -> Block:
    for block in tries(feature_map.network.device.type == "cuda", most):
        if is_steady(feature_map, block):
            return block
    if most > 1:
        warnings.warn(
            "the network sees an image differently beside others, so that images have to go "
            "through it one by one, which is slow: take a network that treats each by itself",
            stacklevel=2,
        )
    return Block(1, "float32")


def tries(cuda: bool, most: int) -> list[Block]:
    """Give the ways through a network, the quickest first.

    >>> [block.precision for block in tries(True, 500)]
    ['bfloat16', 'float32', 'exact']
    """
    if most < 2:
        return []
    exact = Block(min(EXACT_IMAGES, most), "exact")
    return [Block(most, "bfloat16")] * cuda + [Block(most, "float32"), exact]


def is_steady(feature_map: Seeing, block: Block) -> bool:
    """Try whether a row's bits are the same at any place in a block, whatever lies beside it."""
    shape = (feature_map.network.channels, *feature_map.input_size)
    dice = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (block.size, *shape), generator=dice, dtype=torch.uint8)

    def seen(some: Tensor) -> Tensor:
        return feature_map.features_of(some, precision=block.precision)

    with torch.no_grad(), one_algorithm():
        found = seen(images)
        for shift in {1, block.size // 2 + 1}:
            if not torch.equal(seen(images.roll(shift, 0)), found.roll(shift, 0)):
                return False
        alone = 255 - images
        alone[-1] = images[-1]
        return torch.equal(seen(alone)[-1], found[-1])
