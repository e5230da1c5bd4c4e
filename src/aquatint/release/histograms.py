"""The noisy histograms of a release's columns, gathered from whichever blocks counted them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from aquatint.features.algebra import Scaled
from aquatint.features.base import FeatureMap
from aquatint.features.marginals import Marginals
from aquatint.release.model import Block


def noisy_leaves(block: Block) -> Iterable[tuple[FeatureMap, np.ndarray, float]]:
    """Give each leaf of a block with its noisy sum and the noise's standard deviation."""
    for (leaf, place), deviation in zip(block.places, block.deviations, strict=True):
        yield leaf, block.sum[place], deviation


def counting_parts(block: Block) -> Iterable[tuple[Marginals, np.ndarray, float]]:
    """Give the marginals in a block with their noisy counts and the noise's standard deviation."""
    for leaf, sums, deviation in noisy_leaves(block):
        plain, weight = unscaled(leaf)
        if isinstance(plain, Marginals):
            yield plain, sums if weight == 1 else sums / weight, deviation / weight


def unscaled(leaf: FeatureMap) -> tuple[FeatureMap, float]:
    """Take a leaf's weight off."""
    return (leaf.inner, leaf.weight) if isinstance(leaf, Scaled) else (leaf, 1.0)


def histograms(blocks: Iterable[Block]) -> dict[str, tuple[np.ndarray, float]]:
    """Give each column's noisy counts and their standard deviation, pooled by inverse variance."""
    pooled: dict[str, tuple[np.ndarray, float]] = {}
    for block in blocks:
        for part, counts, deviation in counting_parts(block):
            for columns in part.sets:
                if len(columns) > 1 or columns[0] in part.merged:
                    continue
                weight = deviation**-2
                seen, before = pooled.get(columns[0], (0.0, 0.0))
                pooled[columns[0]] = (
                    seen + weight * counts[part.set_slice(columns)],
                    before + weight,
                )
    return {name: (sums / weight, weight**-0.5) for name, (sums, weight) in pooled.items()}


def on_simplex(values: np.ndarray) -> np.ndarray:
    """Project noisy shares on the probability simplex: the nearest shares that add up to one."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    last = int(np.nonzero(falling > excess)[0][-1])
    return np.asarray(np.maximum(values - excess[last], 0.0))
