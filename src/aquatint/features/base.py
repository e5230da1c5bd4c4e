"""What every feature map is: a bounded map from encoded rows to vectors, public on both sides.

The bound is the heart of the privacy proof. It is stated for every row that the schema admits, and
the curator enforces it once more on the integers that are summed, so that a wrong map costs
accuracy and never privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, nextafter, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.stacking import stacked

if TYPE_CHECKING:
    from aquatint.features.algebra import Concat

Number = int | float | Fraction
Spec = dict[str, Any]


class Columns(Mapping[str, Tensor]):
    """Named columns held as one matrix of shape (n, columns), so that tiles are cut in one go."""

    def __init__(self, names: tuple[str, ...], matrix: Tensor) -> None:
        self.names, self.matrix = names, matrix

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.names:
            raise KeyError(name)
        return self.matrix[:, self.names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _pick(columns: Mapping[str, Tensor], index: slice | Tensor) -> Mapping[str, Tensor]:
    if isinstance(columns, Columns):
        return Columns(columns.names, columns.matrix[index])
    return {name: column[index] for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Rows:
    """Encoded rows, the only input of a feature map.

    Attributes
    ----------
    codes
        For each column, the one-hot cell of every row as integers of shape (n,). A generator may
        give weights of shape (n, cells) that sum to one instead, to stay differentiable.
    values
        For each column with an order, its place in the unit interval, shape (n,); NaN is missing.
        For a column of images, the pixels, shape (n, channels, height, width): uint8, or floats
        in [0, 1] from a generator.
    count
        The number of rows n.
    """

    codes: Mapping[str, Tensor]
    values: Mapping[str, Tensor]
    count: int

    def __len__(self) -> int:
        return self.count

    def slice(self, start: int, stop: int) -> Rows:
        """Take the rows from start up to stop."""
        stop = min(stop, self.count)
        some = slice(start, stop)
        return Rows(_pick(self.codes, some), _pick(self.values, some), max(0, stop - start))

    def take(self, index: Tensor) -> Rows:
        """Take the rows at the given positions, in that order."""
        return Rows(_pick(self.codes, index), _pick(self.values, index), len(index))

    def matrix(self, columns: tuple[str, ...]) -> Tensor:
        """Stack the values of several columns, or pixels, into shape (n, columns)."""
        if isinstance(self.values, Columns) and self.values.names == columns:
            return self.values.matrix
        if not isinstance(self.values, Columns) and any(
            value.dim() == 4 for value in self.values.values()
        ):
            return stacked(self.values, columns)
        return torch.stack([self.values[name] for name in columns], dim=1)


@dataclass(frozen=True, slots=True)
class Bound:
    """Exact limits on φ(x) over the whole declared domain.

    The distance of two rows follows from what is enforced on each of them:

    * ‖φ(x) − φ(x')‖ ≤ 2 max‖φ‖ by the triangle inequality;
    * ‖φ(x) − φ(x')‖² ≤ 2 max‖φ‖² when no coordinate is negative, because then ⟨φ(x), φ(x')⟩ ≥ 0;
    * ‖φ(x) − φ(x')‖² ≤ dim · (high − low)² coordinate by coordinate.

    Attributes
    ----------
    dim
        The number of coordinates.
    l1, l2_squared
        The largest L1 norm and the largest squared L2 norm of one row.
    low, high
        The range of every coordinate, with low ≤ 0 ≤ high.
    parts
        The limits of the parts of a concatenation: distances add up part by part, which is
        tighter when one part has no negative coordinate and another has.
    pairwise
        A squared L2 distance that no two rows exceed, for a map that proves one by itself and whose
        integers the curator computes so that it holds.
    """

    dim: int
    l1: Number
    l2_squared: Number
    low: Number
    high: Number
    parts: tuple[Bound, ...] = ()
    pairwise: Number | None = None

    def __post_init__(self) -> None:
        if not (self.low <= 0 <= self.high and self.l1 >= 0 and self.l2_squared >= 0):
            msg = "a bound needs low ≤ 0 ≤ high, and norms that are not negative"
            raise PlanError(msg)

    @property
    def replace_l2_squared(self) -> Number:
        """The largest squared L2 distance of two rows."""
        if self.parts:
            return sum(part.replace_l2_squared for part in self.parts)
        factor = 2 if self.low >= 0 else 4
        found = min(factor * self.l2_squared, self.dim * (self.high - self.low) ** 2)
        return found if self.pairwise is None else min(found, self.pairwise)

    @property
    def replace_l1(self) -> Number:
        """The largest L1 distance of two rows."""
        if self.parts:
            return sum(part.replace_l1 for part in self.parts)
        return min(2 * self.l1, self.dim * (self.high - self.low))

    def on_grid(self, steps: Number) -> Bound:
        """Give the same limits for rows counted in whole steps of 1/steps, exactly.

        Norms and ranges are rounded down. L1 is rounded up, so that a limit that only restates
        ‖φ‖₁ ≤ √dim·‖φ‖₂ never bites.
        """
        if self.parts:
            msg = "a concatenation has no grid of its own: take its parts one by one"
            raise TypeError(msg)
        unit = Fraction(steps)
        return Bound(
            dim=self.dim,
            l1=ceil(Fraction(self.l1) * unit),
            l2_squared=int(Fraction(self.l2_squared) * unit**2),
            low=int(Fraction(self.low) * unit),
            high=int(Fraction(self.high) * unit),
        )


class FeatureMap(ABC):
    """A bounded map φ from rows to vectors; maps compose like kernels.

    ``a + b`` is the sum of kernels (features side by side), ``a * b`` their product (outer product
    of features), ``w * a`` weights the kernel by w².

    A *counting* map has `ones` coordinates equal to `unit` in every row and zero elsewhere; it says
    which through `cells`, and the curator counts instead of adding vectors.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of coordinates."""

    @property
    @abstractmethod
    def bound(self) -> Bound:
        """The proven limits on one row."""

    @property
    @abstractmethod
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        """The columns whose codes, and the columns whose values, the map reads."""

    @abstractmethod
    def __call__(self, rows: Rows) -> Tensor:
        """Map rows to a tensor of shape (n, dim), differentiable in what the rows hold."""

    def borrowed(self, rows: Rows) -> Tensor:
        """Map rows without gradients, perhaps into a buffer that the next call overwrites."""
        with torch.no_grad():
            return self(rows)

    @abstractmethod
    def spec(self) -> Spec:
        """Describe the map as plain JSON data."""

    @property
    def ones(self) -> int | None:
        """How many coordinates of a row are not zero, for a counting map; otherwise None."""
        return None

    @property
    def unit(self) -> float:
        """The value of those coordinates."""
        return 1.0

    def cells(self, rows: Rows) -> Tensor:
        """Give the coordinates that are not zero, shape (n, ones); counting maps only."""
        msg = f"{self.kind} is not a counting map, for {len(rows)} rows or any"
        raise TypeError(msg)

    @property
    def tile(self) -> int:
        """How many rows to map at once for the temporaries to stay in cache."""
        return max(16, 2**17 // self.dim)

    def total(self, rows: Rows) -> Tensor:
        """Sum the features over the rows, shape (dim,)."""
        return self(rows).sum(dim=0)

    def weighted(self, rows: Rows, weights: Tensor) -> Tensor:
        """Sum the features with weights of shape (n, k), which gives shape (k, dim)."""
        features = self(rows)
        return weights.to(features).T @ features

    def __add__(self, other: FeatureMap) -> Concat:
        from aquatint.features.algebra import concat

        return concat(self, other)

    def __mul__(self, other: FeatureMap | float) -> FeatureMap:
        from aquatint.features.algebra import product, scale

        return product(self, other) if isinstance(other, FeatureMap) else scale(self, other)

    def __rmul__(self, weight: float) -> FeatureMap:
        return self * weight


def root(value: float) -> float:
    """Give a square root that is never too small."""
    exact = sqrt(value)
    return exact if exact.is_integer() else nextafter(exact, inf)


def one_hot(rows: Rows, column: str, cells: int) -> Tensor:
    """Give the one-hot rows of a column, shape (n, cells); weights pass through as they are."""
    code = rows.codes[column]
    if code.dim() == 2:
        return code
    return torch.nn.functional.one_hot(code.long(), cells).to(torch.float32)
