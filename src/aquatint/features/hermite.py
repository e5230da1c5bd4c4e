"""Hermite features of the Gaussian kernel by Mehler's formula (DP-HP eq. 5–12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.algebra import Concat, concat, product, scale
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.features.scratch import scratch


@dataclass(frozen=True)
class Hermite(FeatureMap):
    """Features φ₀ … φ_C of each column, divided by √d: the sum kernel of d columns (eq. 9–10).

    The vector is ordered by c first, so that a lower order is a prefix of a higher one.

    With a value u of the unit interval at x = span·(2u − 1), the features of one column obey
    Mehler's formula Σ_c φ_c(x)φ_c(y) = exp(−ρ/(1−ρ²)·(x−y)²) when the sum runs on for ever. At
    x = y the right side is 1, so Σ_c φ_c(x)² ≤ 1 for any cut-off: truncation only lowers the norm.
    Over d columns divided by √d that gives ‖φ‖₂ ≤ 1, hence ‖φ‖₁ ≤ √dim, and rows at most 2 apart.
    A missing value contributes zeros in its column.

    The recursion is φ₀ = (1−ρ²)^¼·exp(−ρx²/(1+ρ)),
    φ_{c+1} = √(2ρ/(c+1))·x·φ_c − ρ√(c/(c+1))·φ_{c−1}: no large Hermite polynomial appears.

    Parameters
    ----------
    columns
        The columns whose one-dimensional kernels are added.
    order
        The cut-off C: each column has C + 1 features.
    rho
        0 < ρ < 1, with 1/(2l²) = ρ/(1−ρ²) for a length scale l on the scale of x.
    span
        The unit interval is stretched to [−span, span].
    """

    columns: tuple[str, ...]
    order: int
    rho: float
    span: float = 2.0
    kind: ClassVar[str] = "hermite"

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns):
            msg = "name at least one column for Hermite features, and none twice"
            raise PlanError(msg)
        if not 0 <= self.order <= 10_000:
            msg = f"the Hermite order must be between 0 and 10,000, got {self.order}"
            raise PlanError(msg)
        if not (0 < self.rho < 1 and 0 < self.span < 1e3):
            msg = f"need 0 < rho < 1 and 0 < span < 1000, got rho={self.rho}, span={self.span}"
            raise PlanError(msg)

    @property
    def dim(self) -> int:
        return len(self.columns) * (self.order + 1)

    @property
    def bound(self) -> Bound:
        height = 1 / sqrt(len(self.columns))
        return Bound(dim=self.dim, l1=root(self.dim), l2_squared=1, low=-height, high=height)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset(self.columns)

    @property
    def tile(self) -> int:
        return max(64, 2**13 // len(self.columns))

    def __call__(self, rows: Rows) -> Tensor:
        x, first = self.start(rows.matrix(self.columns))
        features = (
            torch.stack(self._recursion(x, first)) if x.requires_grad else self._fill(x, first)
        )
        # A copy: what the buffer holds must not leave with it.
        return features.transpose(0, 1).clone(memory_format=torch.contiguous_format).flatten(1)

    def borrowed(self, rows: Rows) -> Tensor:
        with torch.no_grad():
            x, first = self.start(rows.matrix(self.columns))
            features = self._fill(x, first).transpose(0, 1)
        return scratch("rows", tuple(features.shape), torch.float32, x).copy_(features).flatten(1)

    def start(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Give x and φ₀(x)/√d, both zero where a value is missing."""
        missing = values.isnan()
        x = (self.span * (2 * values.double() - 1)).masked_fill(missing, 0.0)
        first = torch.exp(x.square() * (-self.rho / (1 + self.rho)))
        first = first * ((1 - self.rho**2) ** 0.25 / sqrt(len(self.columns)))
        return x.to(torch.float32), first.masked_fill(missing, 0.0).to(torch.float32)

    @cached_property
    def factors(self) -> Tensor:
        """The factors √(2ρ/(c+1)) and ρ√(c/(c+1)) of the recursion, float32, shape (2, C)."""
        grow = [sqrt(2 * self.rho / (c + 1)) for c in range(self.order)]
        fall = [self.rho * sqrt(c / (c + 1)) for c in range(self.order)]
        return torch.tensor([grow, fall])

    def _recursion(self, x: Tensor, first: Tensor) -> list[Tensor]:
        """Give φ₀ … φ_C, each of shape (n, columns), with gradients."""
        features = [first]
        before = torch.zeros_like(first)
        for c in range(self.order):
            grown = features[c] * x * sqrt(2 * self.rho / (c + 1))
            features.append(grown - before * (self.rho * sqrt(c / (c + 1))))
            before = features[c]
        return features

    def _fill(self, x: Tensor, first: Tensor) -> Tensor:
        """Do the same operations in one buffer of shape (C + 1, n, columns)."""
        out = scratch("hermite", (self.order + 1, *x.shape), torch.float32, x)
        term = scratch("term", tuple(x.shape), torch.float32, x)
        out[0].copy_(first)
        for c in range(self.order):
            torch.mul(out[c], x, out=out[c + 1]).mul_(sqrt(2 * self.rho / (c + 1)))
            if c:
                torch.mul(out[c - 1], self.rho * sqrt(c / (c + 1)), out=term)
                out[c + 1].sub_(term)
        return out

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "order": self.order,
            "rho": self.rho,
            "span": self.span,
        }


def hermite(
    columns: Sequence[str], order: int, *, length_scale: float = 0.2, span: float = 2.0
) -> Hermite:
    """Build the sum kernel; the length scale is a fraction of each column's declared range."""
    return Hermite(tuple(columns), order, rho_of(length_scale * 2 * span), span)


def hermite_product(
    columns: Sequence[str], order: int, *, length_scale: float = 0.2, span: float = 2.0
) -> FeatureMap:
    """Build the product kernel on the chosen columns (eq. 7–8), (order + 1)^columns features.

    The norm of an outer product is the product of the norms, so ‖φ‖₂ ≤ 1 holds again.
    """
    size = (order + 1) ** len(columns)
    if size > 50_000_000:
        msg = (
            f"the product kernel would have {size:,} features: take fewer columns or a lower order"
        )
        raise PlanError(msg)
    maps: list[FeatureMap] = [
        hermite((column,), order, length_scale=length_scale, span=span) for column in columns
    ]
    return reduce(product, maps)


def hermite_combined(sum_kernel: FeatureMap, product_kernel: FeatureMap, gamma: float) -> Concat:
    """Put both side by side (eq. 11–12), the product kernel weighted by γ as in eq. 16."""
    return concat(scale(product_kernel, sqrt(gamma)), sum_kernel)


def rho_of(length_scale: float) -> float:
    """Solve 1/(2l²) = ρ/(1−ρ²) for ρ without cancellation.

    >>> round(rho_of(1.1547005383792515), 6)
    0.333333
    """
    if not 1e-6 < length_scale < 1e6:
        msg = f"the length scale times the span must be between 1e-6 and 1e6, got {length_scale}"
        raise PlanError(msg)
    a = 1 / (2 * length_scale**2)
    return 2 * a / (1 + sqrt(1 + 4 * a * a))
