"""What crosses the wall: noisy blocks, the schema, and a privacy statement to be checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import sqrt
from pathlib import Path
from typing import Literal

import numpy as np

from aquatint.accounting import Loss, Noised, chosen, gaussian_loss, laplace_loss, zcdp_epsilon
from aquatint.errors import ReleaseError
from aquatint.features import Count, FeatureMap, leaves
from aquatint.features.fits import check_fits
from aquatint.features.grid import grid_of, one_set, sensitivity
from aquatint.features.marginals import Marginals
from aquatint.schema import Privacy, Schema

Noise = Literal["discrete gaussian", "discrete laplace"]


@dataclass(frozen=True)
class Block:
    """One feature map, its noisy sum on the integer grid, and the noise that was added.

    Attributes
    ----------
    name
        What the plan calls it.
    map
        The feature map.
    integers
        The noisy sum in grid steps, int64, read-only.
    scales
        The scale of the noise in grid steps, one for each leaf of the map.
    noise
        Which noise was added.
    choice
        If the sets of the map were chosen privately: the scale of the noise on their scores, in
        grid steps.
    """

    name: str
    map: FeatureMap
    integers: np.ndarray
    scales: tuple[float, ...]
    noise: Noise
    choice: float | None = None

    @cached_property
    def steps(self) -> np.ndarray:
        """The grid steps to one unit, for every coordinate."""
        return np.concatenate([np.full(leaf.dim, grid_of(leaf).steps) for leaf in leaves(self.map)])

    @cached_property
    def sum(self) -> np.ndarray:
        """The noisy sum of the features, in units of the feature."""
        parts = [self.integers[place] / grid_of(leaf).steps for leaf, place in self.places]
        return np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts))

    @cached_property
    def places(self) -> list[tuple[FeatureMap, slice]]:
        """Where the numbers of each leaf of the map stand."""
        parts = leaves(self.map)
        ends = list(accumulate((leaf.dim for leaf in parts), initial=0))
        return [(leaf, slice(*span)) for leaf, span in zip(parts, pairwise(ends), strict=True)]

    @cached_property
    def stderr(self) -> np.ndarray:
        """The standard deviation of the noise of every coordinate, in units of the feature."""
        parts = zip(leaves(self.map), self.deviations, strict=True)
        return np.concatenate([np.full(leaf.dim, deviation) for leaf, deviation in parts])

    @cached_property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of the noise of each leaf, in units of the feature."""
        spread = 1.0 if self.noise == "discrete gaussian" else sqrt(2.0)
        parts = zip(leaves(self.map), self.scales, strict=True)
        return tuple(spread * scale / grid_of(leaf).steps for leaf, scale in parts)

    def noised(self, privacy: Privacy) -> list[Noised]:
        """Recompute what accounting needs from the map, the neighbours and the noise."""
        pairs = zip(leaves(self.map), self.scales, strict=True)
        found = [Noised(leaf.dim, s, *sensitivity(leaf, privacy)) for leaf, s in pairs]
        if self.choice is not None and isinstance(self.map, Marginals):
            found.append(chosen(len(self.map.sets), one_set(self.map, privacy), self.choice))
        return found


@dataclass(frozen=True)
class Statement:
    """The promise, as declared: recomputed from the noise whenever a release is opened."""

    epsilon: float
    delta: float
    simulated: bool = False

    @property
    def noise(self) -> Noise:
        """Which noise keeps the promise."""
        return "discrete laplace" if self.delta == 0 else "discrete gaussian"


@dataclass(frozen=True)
class Release:
    """A noisy mean embedding with its schema and privacy statement: public, for ever.

    Attributes
    ----------
    rows
        The number of rows where it is public ("replace one row"); otherwise None.
    created
        The day, as ISO 8601.
    versions
        The software that made it.
    """

    schema: Schema
    blocks: tuple[Block, ...]
    statement: Statement
    rows: int | None
    created: str
    versions: dict[str, str]

    def __post_init__(self) -> None:
        check(self)

    def block(self, name: str) -> Block:
        """Find a block by its name."""
        for block in self.blocks:
            if block.name == name:
                return block
        known = ", ".join(repr(block.name) for block in self.blocks)
        msg = f"the release has no block {name!r}: it has {known}"
        raise ReleaseError(msg)

    @property
    def count(self) -> float:
        """The number of rows, public or with noise; by person, each counts for at most max_rows."""
        if self.rows is not None:
            return float(self.rows)
        return float(next(b for b in self.blocks if isinstance(b.map, Count)).sum[0])

    def mean(self, name: str) -> np.ndarray:
        """Give the noisy mean embedding of a block: its sum over the count."""
        return self.block(name).sum / max(1.0, self.count)

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss, recomputed from the noise scales and the maps' bounds."""
        noised = [n for block in self.blocks for n in block.noised(self.schema.privacy)]
        gaussian = self.statement.noise == "discrete gaussian"
        return gaussian_loss(noised) if gaussian else laplace_loss(noised)

    @property
    def zcdp_epsilon(self) -> float | None:
        """What zCDP alone would have promised at the same δ; None for pure ε."""
        delta = self.statement.delta
        return zcdp_epsilon(self.loss.zcdp_rho, delta) if delta else None

    @property
    def private(self) -> bool:
        """Whether the noise was real."""
        return not self.statement.simulated

    def save(self, path: str | Path) -> None:
        """Write the release as one file, atomically; the same release gives the same bytes."""
        from aquatint.release.archive import save

        save(self, path)

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, simulated noise; "
        return (
            f"Release({self.schema.name!r}, {warning}epsilon={self.statement.epsilon:g}, "
            f"delta={self.statement.delta:g}, {self.schema.privacy.protects}, "
            f"blocks: {', '.join(b.name for b in self.blocks)})"
        )


def check(release: Release) -> None:
    """Refuse a release whose numbers do not add up, or whose promise its noise does not keep."""
    privacy = release.schema.privacy
    if privacy.replaces is (release.rows is None):
        msg = "the number of rows must be given exactly when one row is replaced, and only then"
        raise ReleaseError(msg)
    if not privacy.replaces and not any(isinstance(b.map, Count) for b in release.blocks):
        msg = "the release has no block with the noisy number of rows"
        raise ReleaseError(msg)
    for block in release.blocks:
        check_fits(block.name, block.map, release.schema)
        if block.integers.shape != (block.map.dim,) or block.integers.dtype != np.int64:
            msg = f"block {block.name!r} should hold {block.map.dim} integers"
            raise ReleaseError(msg)
        if len(block.scales) != len(leaves(block.map)) or not all(s > 0 for s in block.scales):
            msg = f"block {block.name!r} should state one positive noise scale for each part"
            raise ReleaseError(msg)
        if block.choice is not None and not (block.choice > 0 and isinstance(block.map, Marginals)):
            msg = f"block {block.name!r}: only sets of columns can have been chosen, with noise"
            raise ReleaseError(msg)
        if block.noise != release.statement.noise:
            msg = f"block {block.name!r} has {block.noise} noise under another kind of promise"
            raise ReleaseError(msg)
    found = release.loss.epsilon(release.statement.delta)
    if found > release.statement.epsilon * (1 + 1e-9):
        msg = (
            f"the release promises epsilon = {release.statement.epsilon:g}, but its noise only "
            f"gives {found:.6g}: do not rely on it"
        )
        raise ReleaseError(msg)
