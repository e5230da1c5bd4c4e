"""What a generator of images has to match: the noisy means of a release, class by class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from aquatint.errors import ReleaseError
from aquatint.features.algebra import ByLabel, leaves
from aquatint.features.attaching import moved
from aquatint.features.base import FeatureMap
from aquatint.features.projected import ProjectedMoments
from aquatint.features.tones import Tones
from aquatint.release.histograms import histograms, unscaled
from aquatint.release.model import Block, Release

STOPPING = "stopping"
"""The block that a fit keeps aside for validation (DP-MEPF §3.2)."""


@dataclass(frozen=True)
class Target:
    """The noisy mean of one leaf: of each class, or of all images.

    Attributes
    ----------
    map
        The features of an image, without label and weight.
    mean
        The noisy mean, shape (lines, features).
    spread
        The standard deviation of its noise, shape (lines,).
    mix
        How the lines are made of classes, shape (lines, classes): the identity by class, the shares
        of the classes for all images.
    """

    map: FeatureMap
    mean: Tensor
    spread: Tensor
    mix: Tensor

    def to(self, device: str) -> Target:
        """Give the target on a device, with a copy of its network there."""
        return replace(
            self,
            map=moved(self.map, device),
            mean=self.mean.to(device),
            spread=self.spread.to(device),
            mix=self.mix.to(device),
        )


def parted(target: Target, aside: float, seed: int) -> tuple[Target, Target]:
    """Part a target's information in two: one to train on, and one to validate with, for free.

    With independent noise Z as wide as the target's own, y + aZ and y − Z/a are two independent
    looks at the same truth, with variances σ²(1 + a²) and σ²(1 + 1/a²): for Gaussian noise they are
    uncorrelated, hence independent (data fission, Leiner et al. 2023). What is `aside` of the
    information 1/σ² goes to the second, so a² = aside/(1 − aside). No privacy depends on Z.
    """
    dice = torch.Generator().manual_seed(seed)
    noise = torch.empty_like(target.mean).normal_(generator=dice) * target.spread[:, None]
    wide = sqrt(aside / (1 - aside))
    train = replace(target, mean=target.mean + wide * noise, spread=target.spread / sqrt(1 - aside))
    test = replace(target, mean=target.mean - noise / wide, spread=target.spread / sqrt(aside))
    return train, test


def targets_of(release: Release, label: str | None, shares: np.ndarray) -> list[Target]:
    """Give the targets of all blocks that read the image; the one for validation is left out."""
    blocks = [block for block in release.blocks if block.name != STOPPING]
    found = _of_blocks(release, blocks, label, shares)
    if not found:
        msg = (
            "the release has no block that a generator of images can be trained on: sketch with "
            "the recipe dp_mepf, dp_merf or dp_hp"
        )
        raise ReleaseError(msg)
    return found


def validation_of(release: Release, label: str | None, shares: np.ndarray) -> list[Target]:
    """Give the targets that are kept aside for validation, if the release has any."""
    blocks = [block for block in release.blocks if block.name == STOPPING]
    return _of_blocks(release, blocks, label, shares)


def projected(block: Block) -> ProjectedMoments | None:
    """Give the moments in a public view that a block holds, by class or not, if it does."""
    inner = block.map.inner if isinstance(block.map, ByLabel) else block.map
    return inner if isinstance(inner, ProjectedMoments) else None


def shares_of(release: Release, label: str | None) -> np.ndarray:
    """Give the share of every class, or a single 1.

    Noisy counts are drawn towards their mean as far as noise explains how they differ (James and
    Stein): where few images make them say little, no class is lost.
    """
    if label is None:
        return np.ones(1)
    counts, deviation = _class_counts(release, label)
    return shrunk(counts, deviation, max(1.0, release.count))


def shrunk(counts: np.ndarray, deviation: float, rows: float) -> np.ndarray:
    """Draw noisy counts towards rows/classes as far as noise explains how they differ.

    >>> shrunk(np.array([90.0, 0.0, 30.0, 40.0, 40.0]), 60.0, 200.0)
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    >>> shrunk(np.array([80.0, 0.0, 40.0, 40.0, 40.0]), 0.1, 200.0).round(3)
    array([0.4, 0. , 0.2, 0.2, 0.2])
    """
    mean = rows / len(counts)
    spread = float(np.square(counts - mean).sum())
    kept = max(0.0, 1 - (len(counts) - 2) * deviation**2 / spread) if spread > 0 else 0.0
    found = np.maximum(mean + kept * (counts - mean), 0.0)
    return np.asarray(found / found.sum())


def _class_counts(release: Release, label: str) -> tuple[np.ndarray, float]:
    """Give the noisy count of every class and their deviation; without any, equal counts."""
    for block in release.blocks:
        inner = projected(block)
        if inner is not None and isinstance(block.map, ByLabel):
            sums = torch.from_numpy(block.sum.reshape(block.map.classes, -1))
            unit = inner.unpack(torch.ones(1, inner.dim, dtype=sums.dtype))[0].item()
            return inner.unpack(sums)[0].numpy(), float(block.stderr[0]) * unit
    counted = histograms(release.blocks)
    classes = release.schema.cells()[label]
    return counted.get(label, (np.full(classes, max(1.0, release.count) / classes), 0.0))


def _of_blocks(
    release: Release, blocks: Iterable[Block], label: str | None, shares: np.ndarray
) -> list[Target]:
    return [target for block in blocks for target in _of_block(release, block, label, shares)]


def _of_block(
    release: Release, block: Block, label: str | None, shares: np.ndarray
) -> list[Target]:
    found, place = [], 0
    for leaf in leaves(block.map):
        some = slice(place, place + leaf.dim)
        place += leaf.dim
        if not leaf.reads[1] or isinstance(leaf, Tones):
            continue  # counts of classes, and of tones
        found.append(_of_leaf(release, leaf, block.sum[some], block.stderr[some][0], label, shares))
    return found


def _of_leaf(
    release: Release,
    leaf: FeatureMap,
    sums: np.ndarray,
    deviation: float,
    label: str | None,
    shares: np.ndarray,
) -> Target:
    by_class = isinstance(leaf, ByLabel)
    if isinstance(leaf, ByLabel) and leaf.label != label:
        msg = f"the release has embeddings by {leaf.label!r}, which is not the schema's label"
        raise ReleaseError(msg)
    inner, weight = unscaled(leaf.inner if isinstance(leaf, ByLabel) else leaf)
    rows = max(1.0, release.count)
    counts = np.maximum(shares * rows, 1.0) if by_class else np.array([rows])
    table = sums.reshape(len(counts), -1) / weight / counts[:, None]
    mix = np.eye(len(shares)) if by_class else shares[None]
    return Target(
        map=inner,
        mean=torch.from_numpy(table).float(),
        spread=torch.from_numpy(deviation / weight / counts).float(),
        mix=torch.from_numpy(mix).float(),
    )
