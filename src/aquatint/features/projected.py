"""Count, mean and second moment in a public view of images: a Gaussian per class (no generator)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec
from aquatint.features.perceptual import Perceptual
from aquatint.features.stacking import unit_interval
from aquatint.networks.projection import MOST_COMPONENTS
from aquatint.networks.public import PublicNetwork

VIEWS = ("projection", "reduced")
UNIT = 2**14
"""T, the steps of the unit ball: coordinates are whole numbers q with ‖q‖ ≤ T."""
SQUARE, CROSS = 5, 7
"""C and C', the weights of squares and of products of two: C'² = 49 is just below 2C² = 50."""


@dataclass(frozen=True)
class ProjectedMoments(FeatureMap):
    """[α; β·y; y_j² and √2·y_j·y_k], y the coordinates in a public projection with ‖y‖ ≤ 1.

    The curator rounds y to whole numbers q, clips them to ‖q‖ ≤ T, and computes everything else
    from q in whole numbers: A, B·q_j, C·q_j² and C'·q_j·q_k for j < k, where √2 is C'/C, a little
    less. So the bound is one on integers, whatever the projection does. With C'² ≤ 2C², the norm
    is at most that with the full matrix qqᵀ:

        ‖v‖² ≤ A² + B²·‖q‖² + C²·‖q‖⁴ ≤ A² + B²T² + C²T⁴ = L².

    Two rows of different classes are at most √2·L apart, having no coordinate in common. For two
    of one class let t = ⟨q, q'⟩. Then, since ‖qqᵀ − q'q'ᵀ‖² = ‖q‖⁴ + ‖q'‖⁴ − 2t²,

        ‖v − v'‖² ≤ B²(‖q‖² + ‖q'‖² − 2t) + C²(‖q‖⁴ + ‖q'‖⁴ − 2t²)
                  ≤ 2B²T² + 2C²T⁴ + B⁴/(2C²),

    because −2B²t − 2C²t² is largest at t = −B²/(2C²). With A ≥ B²/(2C) the last term is at most
    2A², so the distance is at most √2·L again: the count, which every row has, makes up for rows
    that point in opposite directions. A is the smallest such number.

    Parameters
    ----------
    network
        A public network of architecture "projection", or "reduced".
    components
        How many coordinates it gives.
    column
        The image column.
    mean_weight
        β: how much the mean weighs against the second moment.
    """

    network: PublicNetwork
    components: int
    column: str = "image"
    mean_weight: float = 0.75
    kind: ClassVar[str] = "projected_moments"

    def __post_init__(self) -> None:
        if self.network.architecture not in VIEWS:
            msg = f"a Gaussian needs a public projection, not {self.network.architecture}"
            raise PlanError(msg)
        if not 1 <= self.components <= MOST_COMPONENTS:
            msg = f"a projection has 1 to {MOST_COMPONENTS} components, got {self.components}"
            raise PlanError(msg)
        if not 0.01 <= self.mean_weight <= 4:
            msg = f"mean_weight is between 0.01 and 4, got {self.mean_weight}"
            raise PlanError(msg)

    @property
    def weights(self) -> tuple[int, int]:
        """A and B, the integers of the count and of the mean."""
        mean = round(self.mean_weight * SQUARE * UNIT)
        return -(-mean * mean // (2 * SQUARE)), mean

    @property
    def steps(self) -> int:
        """Whole steps to one unit of the feature, CT²."""
        return SQUARE * UNIT**2

    @property
    def dim(self) -> int:
        return 1 + self.components + self.components * (self.components + 1) // 2

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The rows and the columns of the upper triangle, row by row."""
        first, second = torch.triu_indices(self.components, self.components)
        return first, second

    @property
    def whole_bound(self) -> Bound:
        """The limits in whole steps."""
        count, mean = self.weights
        longest = count**2 + (mean * UNIT) ** 2 + (SQUARE * UNIT**2) ** 2
        root = isqrt(self.components - 1) + 1  # ‖q‖₁ ≤ √d·‖q‖₂, rounded up
        total = count + mean * root * UNIT + SQUARE * UNIT**2
        total += CROSS * self.components * UNIT**2 // 2
        lowest = -max(mean * UNIT, CROSS * UNIT**2 // 2)
        highest = max(count, mean * UNIT, SQUARE * UNIT**2)
        return Bound(self.dim, total, longest, lowest, highest, pairwise=2 * longest)

    @property
    def coordinate_bound(self) -> Bound:
        """The limits on q."""
        root = isqrt(self.components * UNIT**2 - 1) + 1
        return Bound(self.components, l1=root, l2_squared=UNIT**2, low=-UNIT, high=UNIT)

    @property
    def bound(self) -> Bound:
        whole, one = self.whole_bound, Fraction(1, self.steps)
        return Bound(
            dim=self.dim,
            l1=whole.l1 * one,
            l2_squared=whole.l2_squared * one**2,
            low=whole.low * one,
            high=whole.high * one,
            pairwise=None if whole.pairwise is None else whole.pairwise * one**2,
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset({self.column})

    @property
    def tile(self) -> int:
        return 512

    def coordinates(self, images: Tensor) -> Tensor:
        """Give y, shape (n, components), each of norm at most 1 but for rounding."""
        if self.network.architecture == "reduced":
            return self.seeing.features_of(images)
        y: Tensor = self.network.require()(unit_interval(images.to(self.network.device)))
        return y

    def borrowed_coordinates(self, rows: Rows) -> Tensor:
        """Give y without gradients, in the same bits beside any other rows."""
        if self.network.architecture == "reduced":
            return self.seeing.borrowed(rows)
        with torch.no_grad():
            return self.coordinates(rows.values[self.column])

    @property
    def seeing(self) -> Perceptual:
        """The coordinates of a reduced network, as a map."""
        return Perceptual(self.network, column=self.column)

    def expand(self, q: Tensor) -> Tensor:
        """Compute the row from its coordinates in steps of 1/T, in float64: exactly if whole."""
        count, mean = self.weights
        first, second = (place.to(q.device) for place in self.places)
        weight = torch.where(first == second, SQUARE, CROSS).to(q)
        ones = q.new_full((len(q), 1), count)
        return torch.cat([ones, q * mean, q[:, first] * q[:, second] * weight], dim=1)

    def __call__(self, rows: Rows) -> Tensor:
        y = self.coordinates(rows.values[self.column])
        return (self.expand(y.double() * UNIT) / self.steps).float()

    def borrowed(self, rows: Rows) -> Tensor:
        y = self.borrowed_coordinates(rows)
        return (self.expand(y.double() * UNIT) / self.steps).float()

    def unpack(self, sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turn sums of this map's features, shape (…, dim), into counts, Σy and Σyyᵀ."""
        count, mean = self.weights
        first, second = self.places
        weight = torch.where(first == second, 1.0, CROSS / SQUARE).to(sums)
        full = sums.new_zeros(*sums.shape[:-1], self.components, self.components)
        upper = sums[..., 1 + self.components :] / weight
        full[..., first, second] = upper
        full[..., second, first] = upper
        scaled = sums[..., 1 : 1 + self.components] * (SQUARE * UNIT / mean)
        return sums[..., 0] * (self.steps / count), scaled, full

    def attach(self, network: PublicNetwork) -> ProjectedMoments:
        """Give the map with its projection, if it is the one that it names."""
        return replace(self, network=self.network.attach(network))

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "column": self.column,
            **self.network.spec(),
            "components": self.components,
            "mean_weight": self.mean_weight,
        }


def projected_moments(
    network: PublicNetwork, *, column: str = "image", mean_weight: float = 0.75
) -> ProjectedMoments:
    """Build the map of `networks.public_projection`, or of `networks.public_reduction`."""
    if network.architecture not in VIEWS:
        msg = f"a Gaussian needs a public projection, not {network.architecture}"
        raise PlanError(msg)
    components = len(network.require().state_dict()["directions"])
    return ProjectedMoments(network, components, column, mean_weight)
