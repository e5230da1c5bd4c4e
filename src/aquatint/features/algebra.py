"""Maps from maps: weight, sum, product and class-conditional, with bounds that compose.

The constructors bring every map to one normal form, a concatenation of (by-label of) (weighted)
leaves, so that the curator only ever sums leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Number, Rows, Spec, one_hot


@dataclass(frozen=True)
class Scaled(FeatureMap):
    """w·φ: the kernel times w². Every norm is w times that of φ."""

    inner: FeatureMap
    weight: float
    kind: ClassVar[str] = "scaled"

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def ones(self) -> int | None:
        return self.inner.ones

    @property
    def unit(self) -> float:
        return self.inner.unit * self.weight

    @property
    def bound(self) -> Bound:
        inner, w = self.inner.bound, self.weight
        return Bound(
            dim=inner.dim,
            l1=inner.l1 * w,
            l2_squared=inner.l2_squared * w**2,
            low=inner.low * w,
            high=inner.high * w,
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return self.inner.reads

    @property
    def tile(self) -> int:
        return self.inner.tile

    def __call__(self, rows: Rows) -> Tensor:
        return self.inner(rows) * self.weight

    def borrowed(self, rows: Rows) -> Tensor:
        return self.inner.borrowed(rows) * self.weight

    def cells(self, rows: Rows) -> Tensor:
        return self.inner.cells(rows)

    def total(self, rows: Rows) -> Tensor:
        return self.inner.total(rows) * self.weight

    def spec(self) -> Spec:
        return {"kind": self.kind, "inner": self.inner.spec(), "weight": self.weight}


@dataclass(frozen=True)
class Concat(FeatureMap):
    """[φ₁; φ₂; …]: the sum of the kernels. Squared norms, L1 norms and squared distances add up."""

    parts: tuple[FeatureMap, ...]
    kind: ClassVar[str] = "concat"

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def bound(self) -> Bound:
        bounds = tuple(part.bound for part in self.parts)
        return Bound(
            dim=self.dim,
            l1=sum(b.l1 for b in bounds),
            l2_squared=sum(b.l2_squared for b in bounds),
            low=min(b.low for b in bounds),
            high=max(b.high for b in bounds),
            parts=bounds,
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        codes, values = zip(*(part.reads for part in self.parts), strict=True)
        return frozenset().union(*codes), frozenset().union(*values)

    def __call__(self, rows: Rows) -> Tensor:
        return torch.cat([part(rows) for part in self.parts], dim=1)

    def total(self, rows: Rows) -> Tensor:
        return torch.cat([part.total(rows) for part in self.parts])

    def spec(self) -> Spec:
        return {"kind": self.kind, "parts": [part.spec() for part in self.parts]}


@dataclass(frozen=True)
class Product(FeatureMap):
    """φ ⊗ ψ: the product of the kernels. ‖φ ⊗ ψ‖ = ‖φ‖·‖ψ‖ in L1 and in L2."""

    left: FeatureMap
    right: FeatureMap
    kind: ClassVar[str] = "product"

    @property
    def dim(self) -> int:
        return self.left.dim * self.right.dim

    @property
    def ones(self) -> int | None:
        if self.left.ones is None or self.right.ones is None:
            return None
        return self.left.ones * self.right.ones

    @property
    def unit(self) -> float:
        return self.left.unit * self.right.unit

    @property
    def bound(self) -> Bound:
        a, b = self.left.bound, self.right.bound
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return Bound(
            dim=self.dim,
            l1=a.l1 * b.l1,
            l2_squared=a.l2_squared * b.l2_squared,
            low=min(corners),
            high=max(corners),
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        a, b = self.left.reads, self.right.reads
        return a[0] | b[0], a[1] | b[1]

    def __call__(self, rows: Rows) -> Tensor:
        return (self.left(rows)[:, :, None] * self.right(rows)[:, None, :]).flatten(1)

    def borrowed(self, rows: Rows) -> Tensor:
        left = self.left.borrowed(rows).clone()  # the right may use the same buffer
        return (left[:, :, None] * self.right.borrowed(rows)[:, None, :]).flatten(1)

    def cells(self, rows: Rows) -> Tensor:
        a, b = self.left.cells(rows).long(), self.right.cells(rows).long()
        return (a[:, :, None] * self.right.dim + b[:, None, :]).flatten(1)

    def total(self, rows: Rows) -> Tensor:
        return (self.left(rows).T @ self.right(rows)).flatten()

    def spec(self) -> Spec:
        return {"kind": self.kind, "left": self.left.spec(), "right": self.right.spec()}


@dataclass(frozen=True)
class ByLabel(FeatureMap):
    """One embedding per class: φ(x) in the rows of the class, zero elsewhere (DP-MERF eq. 13–14).

    A row keeps its norm. Two rows of different classes have disjoint support, so they are at most
    √2·max‖φ‖ apart; two rows of one class are as far apart as φ allows.
    """

    inner: FeatureMap
    label: str
    classes: int
    kind: ClassVar[str] = "by_label"

    @property
    def dim(self) -> int:
        return self.inner.dim * self.classes

    @property
    def ones(self) -> int | None:
        return self.inner.ones

    @property
    def unit(self) -> float:
        return self.inner.unit

    @property
    def bound(self) -> Bound:
        inner = self.inner.bound
        return Bound(
            dim=self.dim,
            l1=inner.l1,
            l2_squared=inner.l2_squared,
            low=min(inner.low, 0),
            high=max(inner.high, 0),
            pairwise=by_class(inner),
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        codes, values = self.inner.reads
        return codes | {self.label}, values

    @property
    def tile(self) -> int:
        return self.inner.tile

    def __call__(self, rows: Rows) -> Tensor:
        hot = one_hot(rows, self.label, self.classes)
        return (hot[:, :, None] * self.inner(rows)[:, None, :]).flatten(1)

    def cells(self, rows: Rows) -> Tensor:
        return rows.codes[self.label].long()[:, None] * self.inner.dim + self.inner.cells(rows)

    def total(self, rows: Rows) -> Tensor:
        return self.inner.weighted(rows, one_hot(rows, self.label, self.classes)).flatten()

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "inner": self.inner.spec(),
            "label": self.label,
            "classes": self.classes,
        }


def by_class(inner: Bound) -> Number | None:
    """Give the proven distance of two rows that may differ in class, if the map proves one."""
    return None if inner.pairwise is None else max(inner.pairwise, 2 * inner.l2_squared)


def scale(inner: FeatureMap, weight: float) -> FeatureMap:
    """Weight a map; the weight is positive, since −w and w give the same kernel."""
    if not (isfinite(weight) and 1e-30 < weight < 1e30):
        msg = f"a feature map's weight must be positive, from 1e-30 to 1e30, got {weight}"
        raise PlanError(msg)
    if isinstance(inner, Scaled):
        return scale(inner.inner, weight * inner.weight)
    if isinstance(inner, Concat):
        return Concat(tuple(scale(part, weight) for part in inner.parts))
    if isinstance(inner, ByLabel):
        return ByLabel(scale(inner.inner, weight), inner.label, inner.classes)
    return inner if weight == 1 else Scaled(inner, float(weight))


def concat(*maps: FeatureMap) -> Concat:
    """Put maps side by side."""
    parts: list[FeatureMap] = []
    for part in maps:
        parts.extend(part.parts if isinstance(part, Concat) else (part,))
    return Concat(tuple(parts))


def product(left: FeatureMap, right: FeatureMap) -> FeatureMap:
    """Multiply two maps; sums are multiplied out."""
    if isinstance(left, Concat):
        return concat(*(product(part, right) for part in left.parts))
    if isinstance(right, Concat):
        return concat(*(product(left, part) for part in right.parts))
    if isinstance(left, ByLabel) or isinstance(right, ByLabel):
        msg = "multiply first and condition on the label last: by_label(a * b)"
        raise PlanError(msg)
    if isinstance(left, Scaled):
        return scale(product(left.inner, right), left.weight)
    if isinstance(right, Scaled):
        return scale(product(left, right.inner), right.weight)
    return Product(left, right)


def by_label(inner: FeatureMap, label: str, classes: int) -> FeatureMap:
    """Give each class of the label column its own embedding."""
    if isinstance(inner, Concat):
        return concat(*(by_label(part, label, classes) for part in inner.parts))
    if isinstance(inner, ByLabel):
        msg = "the map is already conditional on a label"
        raise PlanError(msg)
    if classes < 1:
        msg = f"a label has at least one class, got {classes}"
        raise PlanError(msg)
    return ByLabel(inner, label, classes)


def heterogeneous(numeric: FeatureMap, categorical: FeatureMap) -> Concat:
    """Put numbers and one-hot categories side by side, [φ(x_num); x_cat/√d_cat] (DP-MERF eq. 19).

    A row has one 1 in each of the d_cat one-hot columns, so its second part has norm 1 like its
    first: ‖φ‖₂² ≤ 2. Categories are one-hot and never integer codes.
    """
    return concat(numeric, scale(categorical, 1 / sqrt(categorical.bound.l2_squared)))


def leaves(feature_map: FeatureMap) -> tuple[FeatureMap, ...]:
    """Give the parts that are summed and bounded one by one, in the order of the vector."""
    return feature_map.parts if isinstance(feature_map, Concat) else (feature_map,)
