"""What a generator is trained on: the leaves of a release, each in units of its own noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.expect import has_closed_form
from aquatint.analyst.synthesize.network_heads import SoftRows
from aquatint.analyst.synthesize.network_means import Means, as_product
from aquatint.features.algebra import ByLabel, Product
from aquatint.features.base import FeatureMap
from aquatint.features.marginals import Count, Marginals
from aquatint.release.histograms import noisy_leaves, on_simplex, unscaled
from aquatint.release.model import Release

SMALL = 64
"""A table with fewer coordinates counts as if it had so many: a column of two categories would not
be heard beside thousands of Fourier features."""


@dataclass(frozen=True, eq=False)
class Target:
    """One leaf's noisy mean embedding.

    Attributes
    ----------
    map
        The feature map; of a map that is conditional on the label, its inner map.
    mean
        The noisy embedding in units of its noise, shape (classes, dim), or (1, dim).
    scale
        Each class's share of the rows in the same units, shape (classes, 1).
    table
        For every coordinate the table it belongs to: its class, and its set of columns for counts.
    sizes
        The coordinates of each table.
    weight
        The leaf's weight in the loss.
    """

    map: FeatureMap
    mean: Tensor
    scale: Tensor
    table: Tensor
    sizes: Tensor
    weight: float

    def misfit(self, means: Means, rows: SoftRows) -> Tensor:
        """Give each table's mean squared residual in units of the noise, without bias.

        The squared distance to the mean of a batch also counts how far the batch strays from the
        generator's own mean; minimising that shrinks the variance of the samples. Each class is
        therefore drawn in two halves, and ‖t − (a+b)/2‖² − ‖(a−b)/2‖² = ⟨t − a, t − b⟩ has the
        distance of the means as its expectation.
        """
        classes = len(self.scale)
        halves = means.groups(self.map, rows, 2 * classes).view(classes, 2, -1)
        halves = halves * self.scale[:, None, :]
        if len(self.mean) < classes:
            halves = halves.sum(0, keepdim=True)
        left, right = (self.mean - half for half in halves.unbind(1))
        squares = (left * right).flatten()
        sums = squares.new_zeros(len(self.sizes)).index_add(0, self.table, squares)
        return sums / self.sizes

    def to(self, device: torch.device | str) -> Target:
        """Put the tensors on a device."""
        mean, scale, table, sizes = (
            tensor.to(device) for tensor in (self.mean, self.scale, self.table, self.sizes)
        )
        return Target(self.map, mean, scale, table, sizes, self.weight)


def targets_of(
    release: Release, label: str | None, shares: np.ndarray, gamma: float
) -> list[Target]:
    """Gather every leaf that a generator can be trained on."""
    count = max(release.count, 1.0)
    found = []
    for leaf, sums, deviation in _leaves(release):
        if isinstance(leaf, Count) or not has_closed_form(leaf):
            continue
        if leaf.reads == (frozenset({label}), frozenset()):
            continue  # the class counts: labels are drawn in their shares
        inner = _by_class(leaf, label)
        part, rows = (as_product(leaf), 1) if inner is None else (inner, len(shares))
        table, sizes = _tables(part, rows)
        found.append(
            Target(
                part,
                torch.from_numpy(sums / deviation).float().view(rows, -1),
                torch.from_numpy(shares[:, None] * count / deviation).float(),
                table,
                sizes,
                gamma if isinstance(unscaled(part)[0], Product) else 1.0,
            )
        )
    return found


def class_shares(release: Release, label: str) -> np.ndarray:
    """Give the share of every class from all counts of a release by class; uniform without any."""
    cells = release.schema.columns[label].cells
    seen = np.zeros(cells)
    for leaf, sums, deviation in _leaves(release):
        for counts, variance in _class_counts(leaf, sums, deviation, label):
            seen = seen + counts / variance
    total = float(np.maximum(seen, 0.0).sum())
    return on_simplex(seen / total) if total > 0 else np.full(cells, 1 / cells)


def class_histograms(release: Release, label: str | None) -> dict[str, np.ndarray]:
    """Give each column's noisy counts by class, shape (classes, cells), or over all rows."""
    found: dict[str, np.ndarray] = {}
    for leaf, sums, deviation in _leaves(release):
        inner = _by_class(leaf, label)
        part, weight = unscaled(leaf if inner is None else inner)
        if not isinstance(part, Marginals):
            continue
        table = np.maximum(sums / weight, deviation / weight).reshape(-1, part.dim)
        for columns in part.sets:
            name = columns[0]
            new = inner is not None or name not in found
            if len(columns) == 1 and name not in part.merged and new:
                found[name] = table[:, part.set_slice(columns)]
    return found


def _leaves(release: Release) -> Iterable[tuple[FeatureMap, np.ndarray, float]]:
    return chain.from_iterable(noisy_leaves(block) for block in release.blocks)


def _by_class(leaf: FeatureMap, label: str | None) -> FeatureMap | None:
    """Give the map that a leaf has for every class of the label, if it has one."""
    return leaf.inner if isinstance(leaf, ByLabel) and leaf.label == label else None


def _tables(part: FeatureMap, classes: int) -> tuple[Tensor, Tensor]:
    """Give the table of each of a leaf's coordinates, and how many each table has."""
    plain = unscaled(part)[0]
    sizes = plain.sizes if isinstance(plain, Marginals) else (part.dim,)
    every = torch.tensor(sizes).repeat(classes)
    return torch.repeat_interleave(torch.arange(len(every)), every), every.float()


def _class_counts(
    leaf: FeatureMap, sums: np.ndarray, deviation: float, label: str
) -> Iterable[tuple[np.ndarray, float]]:
    """Give the counts by class, and their variance, of every table that has the label."""
    inner = _by_class(leaf, label)
    part, weight = unscaled(leaf if inner is None else inner)
    if not isinstance(part, Marginals) or label in part.merged:
        return
    counts, variance = (sums / weight).reshape(-1, part.dim), (deviation / weight) ** 2
    for columns in part.sets:
        table = counts[:, part.set_slice(columns)]
        if inner is None:
            if label not in columns:
                continue
            sizes = [part.counted[name] for name in columns]
            table = np.moveaxis(table.reshape(sizes), columns.index(label), 0)
        table = table.reshape(len(table), -1)
        yield table.sum(1), variance * table.shape[1]


def reads(release: Release) -> tuple[frozenset[str], frozenset[str]]:
    """Give the columns whose cells, and those whose values, a generator can learn from."""
    used = [leaf.reads for leaf, _, _ in _leaves(release) if has_closed_form(leaf)]
    codes, values = zip(*used, strict=True) if used else ((), ())
    return frozenset[str]().union(*codes), frozenset[str]().union(*values)


def weights(targets: Iterable[Target]) -> Tensor:
    """Give the weight of every table in the loss: its coordinates, and γ for product kernels."""
    return torch.cat([target.sizes.clamp(min=SMALL) * target.weight for target in targets])
