"""Two releases side by side: whether they can be compared, their sizes, and what both hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aquatint.comparison import CompareError
from aquatint.features import Count, FeatureMap
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import noisy_leaves, unscaled
from aquatint.release.model import Release

LEAST_ROWS = 5.0
"""The number of rows must be this many standard deviations of its own noise."""


@dataclass(frozen=True)
class Shared:
    """One leaf that both releases hold, without its weight.

    Attributes
    ----------
    map
        The leaf.
    sums
        Each release's noisy sum.
    deviations
        The standard deviation of the noise of each.
    """

    map: FeatureMap
    sums: tuple[np.ndarray, np.ndarray]
    deviations: tuple[float, float]


@dataclass(frozen=True)
class Sides:
    """Two releases that can be compared."""

    first: Release
    second: Release

    @property
    def both(self) -> tuple[Release, Release]:
        """Both releases, in order."""
        return self.first, self.second

    @cached_property
    def rows(self) -> tuple[float, float]:
        """The number of rows of each, public or with noise."""
        return self.first.count, self.second.count

    @cached_property
    def row_noise(self) -> tuple[float, float]:
        """The standard deviation of the noise on each number of rows; 0 where it is public."""
        return _row_noise(self.first), _row_noise(self.second)

    @property
    def laplace(self) -> bool:
        """Whether any noise is Laplace's, whose tails are longer than a Gaussian's."""
        return any(release.statement.noise == "discrete laplace" for release in self.both)

    @cached_property
    def sampling(self) -> float:
        """What the variance of one row is multiplied by in a difference of means, k/n + k/m.

        A person who counts for k rows at most gives dependent ones: (Σ_k u)(Σ_k u)' ⪯ k·Σ_k uu'.
        """
        return sum(self.together / rows for rows in self.rows)

    @property
    def together(self) -> float:
        """How many rows may be one person's, and so come together."""
        return float(self.first.schema.privacy.rows_per_unit)

    @cached_property
    def count_noise(self) -> float:
        """What the square of a mean is multiplied by in the variance, for noise on the counts.

        S̃/(n + ν) ≈ S̃/n − μν/n: dividing by a noisy count adds variance μ²·Var ν/n².
        """
        parts = zip(self.row_noise, self.rows, strict=True)
        return sum((noise / rows) ** 2 for noise, rows in parts)

    def difference(self, sums: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Give the difference of the two means."""
        return np.asarray(sums[0] / self.rows[0] - sums[1] / self.rows[1])

    def pooled(self, sums: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Give the mean of both datasets put together."""
        return np.asarray((sums[0] + sums[1]) / sum(self.rows))

    def noise(self, deviations: tuple[float, float]) -> float:
        """Give the variance that noise of these sizes on the sums adds to a difference of means."""
        parts = zip(deviations, self.rows, strict=True)
        return sum((deviation / rows) ** 2 for deviation, rows in parts)


def _row_noise(release: Release) -> float:
    if release.rows is not None:
        return 0.0
    return float(next(b for b in release.blocks if isinstance(b.map, Count)).stderr[0])


def plain_leaves(release: Release) -> Iterator[tuple[FeatureMap, np.ndarray, float]]:
    """Give every leaf but the count, its weight taken off, with its sum and its noise."""
    for block in release.blocks:
        for leaf, sums, deviation in noisy_leaves(block):
            plain, weight = unscaled(leaf)
            if not isinstance(plain, Count):
                yield plain, sums / weight, deviation / weight


def shared(sides: Sides) -> list[Shared]:
    """Find the leaves that both releases hold; counts over merged cells are matched elsewhere."""
    theirs: dict[FeatureMap, list[tuple[np.ndarray, float]]] = {}
    for leaf, sums, deviation in plain_leaves(sides.second):
        theirs.setdefault(leaf, []).append((sums, deviation))
    found = []
    for leaf, ours, deviation in plain_leaves(sides.first):
        if not isinstance(leaf, Marginals) and theirs.get(leaf):
            sums, other = theirs[leaf].pop(0)
            found.append(Shared(leaf, (ours, sums), (deviation, other)))
    return found


def checked(first: Release, second: Release) -> Sides:
    """Refuse two releases that cannot be compared, with one sentence."""
    one, other = first.schema, second.schema
    if one.privacy.protects != other.privacy.protects:
        msg = (
            f"one release protects {one.privacy.protects!r} and the other "
            f"{other.privacy.protects!r}: make both with the same schema"
        )
        raise CompareError(msg)
    if one.privacy.rows_per_unit != other.privacy.rows_per_unit:
        msg = "a person counts for more rows in one release than in the other: use one max_rows"
        raise CompareError(msg)
    if one.columns != other.columns:
        names = {*one.columns, *other.columns}
        name = min(n for n in names if one.columns.get(n) != other.columns.get(n))
        msg = (
            f"the releases declare column {name!r} differently: make both with the same schema, "
            "or with a plan that is shared as a file"
        )
        raise CompareError(msg)
    sides = Sides(first, second)
    ours, theirs = ([block.integers.tobytes() for block in side.blocks] for side in sides.both)
    if ours == theirs:
        msg = "both are the same release: there is nothing to compare"
        raise CompareError(msg)
    for rows, noise in zip(sides.rows, sides.row_noise, strict=True):
        if rows < max(2.0, LEAST_ROWS * noise):
            msg = (
                f"one release says only that it has {rows:,.0f} ± {noise:,.0f} rows: give the "
                "count a larger share, or take a larger epsilon"
            )
            raise CompareError(msg)
    return sides
