"""RACE: repeated arrays of counts under a p-stable hash (M2M, Definition 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec
from aquatint.features.frequencies import (
    check_length_scales,
    digest,
    gaussian_frequencies,
    per_column,
    uniforms,
)

_OFFSET_STEPS = 2**20


@dataclass(frozen=True)
class Race(FeatureMap):
    """R independent hashes, each to one of W buckets: h_r(x) = ⌊a_r·x/w + b_r⌋ mod W.

    A row has exactly one 1 in each of R groups, so ‖φ‖₁ = R, ‖φ‖₂² = R, and two rows are at most
    √(2R) apart. Two rows meet in a bucket with probability `collision_rate` of their distance in
    units of the length scales. A row that misses a value goes to bucket 0 of every group.

    Parameters
    ----------
    columns
        The columns, each by its place in the unit interval.
    repetitions, buckets
        R and W.
    widths
        The width of a bucket along each column, as a fraction of the column's range.
    seed
        Public: the hashes are drawn from it.
    """

    columns: tuple[str, ...]
    repetitions: int
    buckets: int
    widths: tuple[float, ...]
    seed: int = 0
    kind: ClassVar[str] = "race"

    def __post_init__(self) -> None:
        check_length_scales(self.columns, self.widths, self.repetitions)
        if self.repetitions < 1 or self.buckets < 2:
            msg = "RACE needs at least one repetition and two buckets"
            raise PlanError(msg)

    @cached_property
    def hashes(self) -> tuple[Tensor, Tensor]:
        """The directions a/w of shape (columns, R) and the offsets b of shape (R,), in float64."""
        # gaussian_frequencies divides by 2π·scale; here the scale alone is the bucket's width.
        scales = tuple(w / (2 * np.pi) for w in self.widths)
        directions = gaussian_frequencies(self.seed, self.repetitions, scales)
        offsets = np.floor(uniforms(self.seed, (self.repetitions,), "race") * _OFFSET_STEPS)
        return directions, torch.from_numpy(offsets / _OFFSET_STEPS)

    @property
    def dim(self) -> int:
        return self.repetitions * self.buckets

    @property
    def ones(self) -> int:
        return self.repetitions

    @property
    def bound(self) -> Bound:
        r = self.repetitions
        return Bound(dim=self.dim, l1=r, l2_squared=r, low=0, high=1)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset(self.columns)

    @property
    def tile(self) -> int:
        return max(256, 2**17 // self.repetitions)

    def cells(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns)
        directions, offsets = (hashed.to(values.device) for hashed in self.hashes)
        missing = values.isnan().any(dim=1)
        place = (values.double() @ directions + offsets).floor_()
        bucket = place.nan_to_num_(nan=0.0).remainder_(self.buckets).to(torch.int32)
        bucket[missing] = 0
        groups = torch.arange(self.repetitions, dtype=torch.int32, device=values.device)
        return bucket + groups * self.buckets

    def __call__(self, rows: Rows) -> Tensor:
        cells = self.cells(rows).long()
        return torch.zeros(len(rows), self.dim, device=cells.device).scatter_(1, cells, 1.0)

    def spec(self) -> Spec:
        directions, offsets = self.hashes
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "repetitions": self.repetitions,
            "buckets": self.buckets,
            "widths": list(self.widths),
            "seed": self.seed,
            "digest": digest(torch.cat([directions, offsets[None]])),
        }


def race(
    columns: Sequence[str],
    repetitions: int,
    buckets: int,
    *,
    width: float | tuple[float, ...] = 0.1,
    seed: int = 0,
) -> Race:
    """Build a RACE map; one bucket width serves all columns unless one is given for each."""
    names = tuple(columns)
    return Race(names, repetitions, buckets, per_column(width, names), seed)


def collision_rate(distance: np.ndarray, buckets: int) -> np.ndarray:
    """Give the probability that two rows share a bucket, the LSH kernel of RACE.

    Along a Gaussian direction the rows are t = |N(0, c²)| bucket widths apart, c the distance, and
    a uniform offset puts them k buckets apart with probability max(0, 1 − |t − k|). They meet when
    k is a multiple of W: summing E max(0, 1 − |cZ − k|) over those k, with
    E max(0, cZ − a) = c·pdf(a/c) − a·(1 − cdf(a/c)), gives the rate.
    """
    c = np.maximum(np.asarray(distance, dtype=np.float64), 1e-12)

    def ramp(a: float) -> np.ndarray:
        z = a / c
        return np.asarray(c * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) - a * ndtr(-z))

    reach = int(np.ceil(8 * c.max() / buckets)) + 1
    rate = np.zeros_like(c)
    for k in range(-reach * buckets, reach * buckets + 1, buckets):
        rate += ramp(k - 1.0) - 2 * ramp(k) + ramp(k + 1.0)
    return rate
