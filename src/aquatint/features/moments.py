"""The second moments of a map's features: with their means, the covariance of a test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.features.fourier import Fourier
from aquatint.features.locations import Locations
from aquatint.features.smooth import Smooth

MOST_FEATURES = 2_000


@dataclass(frozen=True)
class SecondMoment(FeatureMap):
    """φ_j·φ_k for j < k, and φ_j² − h²/2 on the diagonal, where no abs(φ_j) is above h.

    The matrix φφᵀ is symmetric, so its upper triangle says all. A square lies between 0 and h², so
    the shift centres it, and the reader adds h²/2 for every row again.

    With R = ‖φ‖² and Σφ_j⁴ ≤ h²R, the squared norm of one row is

        Σ_{j<k} φ_j²φ_k² + Σ_j (φ_j² − h²/2)² = R²/2 + Σφ_j⁴/2 − h²R + Jh⁴/4
                                              ≤ (R² − h²R)/2 + Jh⁴/4,

    which is convex in R, hence largest at an end: at R = r², r the bound on ‖φ‖, since h ≤ r. At
    J locations (h = 1/2, r² = J/4) this is J(J−1)/32 + J/64, attained where every kernel value is
    0 or 1; for Fourier features and smoothed ones (h² = 2/J, r = 1) it is 1/2. Two rows are at most
    twice the root apart: √(J(J−1)/8 + J/16) at J locations, √2 for Fourier features. The published
    code takes κ²J with κ = 1 in its own units for both, which smoothed features exceed.

    Every abs(φ_jφ_k) ≤ h² and every abs(φ_j² − h²/2) ≤ h²/2, so ‖·‖₁ ≤ J²h²/2; Cauchy–Schwarz
    gives another limit, and the smaller one holds.

    Parameters
    ----------
    inner
        A map of locations, or Fourier features, smoothed or not.
    """

    inner: FeatureMap
    kind: ClassVar[str] = "second_moment"

    def __post_init__(self) -> None:
        if not isinstance(self.inner, (Fourier, Locations, Smooth)):
            msg = "second moments are taken of locations, or of Fourier features, as they are"
            raise PlanError(msg)
        if self.inner.dim > MOST_FEATURES:
            msg = f"second moments of {self.inner.dim:,} features are too many to hold"
            raise PlanError(msg)

    @property
    def dim(self) -> int:
        return self.inner.dim * (self.inner.dim + 1) // 2

    @cached_property
    def height(self) -> float:
        """h², the largest square of a feature."""
        inner = self.inner.bound
        return max(float(inner.high), -float(inner.low)) ** 2

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The rows and the columns of the upper triangle, row by row."""
        first, second = torch.triu_indices(self.inner.dim, self.inner.dim)
        return first, second

    @property
    def bound(self) -> Bound:
        count, h2, r2 = self.inner.dim, self.height, float(self.inner.bound.l2_squared)
        # A part in 2**40 is far more than the rounding of these few operations.
        squared = ((r2 * r2 - h2 * r2) / 2 + count * h2 * h2 / 4) * (1 + 2.0**-40)
        total = min(root(self.dim * squared), count**2 * h2 / 2 * (1 + 2.0**-40))
        return Bound(dim=self.dim, l1=total, l2_squared=squared, low=-h2, high=h2)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return self.inner.reads

    def __call__(self, rows: Rows) -> Tensor:
        features = self.inner(rows)
        first, second = (place.to(features.device) for place in self.places)
        found = features[:, first] * features[:, second]
        return found - (first == second).to(found.dtype) * (self.height / 2)

    def matrix(self, means: Tensor) -> Tensor:
        """Turn means of this map's features into the symmetric matrix of second moments."""
        first, second = self.places
        found = torch.zeros(self.inner.dim, self.inner.dim, dtype=means.dtype)
        found[first, second] = means
        found[second, first] = means
        return found + torch.eye(self.inner.dim, dtype=means.dtype) * (self.height / 2)

    def spec(self) -> Spec:
        return {"kind": self.kind, "inner": self.inner.spec()}


def second_moment(inner: FeatureMap) -> SecondMoment:
    """Take the second moments of a map, to be released beside its means.

    Examples
    --------
    >>> from aquatint.features.locations import locations
    >>> made = second_moment(locations(["age"], [(0.2,), (0.7,)]))
    >>> made.dim
    3
    """
    return SecondMoment(inner)
