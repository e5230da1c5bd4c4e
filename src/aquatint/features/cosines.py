"""Cosines of each column and of pairs of columns: the marginals of a table as Fourier series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import fsum, pi, sqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec
from aquatint.features.fourier import sine
from aquatint.features.scratch import scratch

MOST_ORDER = 1_000
MOST_COLUMNS = 10_000
MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class Cosines(FeatureMap):
    """w_k·cos(πk·x_i) of every column, and w_kl·cos(πk·x_i)·cos(πl·x_j) of chosen pairs.

    The cosines k = 1, 2, … with the constant are complete on the unit interval: their means are the
    coefficients of the column's density, those of the products the coefficients of a pair's. The
    means of low orders say most, so weights fall: w_k² ∝ 1/k for columns, w_kl² ∝ 1/(k·l) for
    pairs, which makes the noise of a coefficient grow with the root of its order.

    No cosine is above 1 in size, so ‖φ‖₂² ≤ Σw² and ‖φ‖₁ ≤ Σw; the row at the lower end of every
    column attains both. The weights are scaled to Σw² = 1, of which `pair_share` belongs to the
    pairs. Two rows are at most 2 apart. A missing value contributes zeros in its column and in the
    pairs of its column.

    The vector has the columns first, each by rising k, then the pairs, each by rising k and then l.

    Parameters
    ----------
    columns
        The columns, each by its place in the unit interval of its declared range.
    order
        The highest k of a column on its own; 0 leaves these out.
    pairs
        The pairs of columns.
    pair_order
        The highest k and l of a pair; 0 goes with no pairs.
    pair_share
        The pairs' share of the squared norm, from 0 (no pairs) to 1 (order 0).
    """

    columns: tuple[str, ...]
    order: int
    pairs: tuple[tuple[str, str], ...]
    pair_order: int
    pair_share: float
    kind: ClassVar[str] = "cosines"

    def __post_init__(self) -> None:
        if not 0 < len(self.columns) <= MOST_COLUMNS or len(set(self.columns)) < len(self.columns):
            msg = f"name between 1 and {MOST_COLUMNS:,} columns for cosines, and none twice"
            raise PlanError(msg)
        if not (0 <= self.order <= MOST_ORDER and 0 <= self.pair_order <= MOST_ORDER):
            msg = (
                f"the orders of cosines must be between 0 and {MOST_ORDER:,}, "
                f"got {self.order} and {self.pair_order}"
            )
            raise PlanError(msg)
        known = set(self.columns)
        if any(a == b or a not in known or b not in known for a, b in self.pairs):
            msg = "each pair must name two different columns among those of the map"
            raise PlanError(msg)
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            msg = "the same pair of columns is asked for twice: ask for it once"
            raise PlanError(msg)
        if len(self.pairs) * self.pair_order**2 > MOST_PAIRS:
            msg = f"{len(self.pairs):,} pairs of order {self.pair_order} are too many to hold"
            raise PlanError(msg)
        self._check_shares()

    def _check_shares(self) -> None:
        if bool(self.pairs) != bool(self.pair_order) or not (self.order or self.pairs):
            msg = "cosines need an order, or pairs and a pair_order, or both"
            raise PlanError(msg)
        settled = None if self.order and self.pairs else float(bool(self.pairs))
        if not 0 < self.pair_share < 1 if settled is None else self.pair_share != settled:
            msg = (
                "pair_share must be between 0 and 1 where there are both columns and pairs, "
                f"0 without pairs and 1 with pairs alone, got {self.pair_share}"
            )
            raise PlanError(msg)

    @cached_property
    def _heights(self) -> tuple[list[float], list[float]]:
        """The weights of one column and of one pair, in plain IEEE operations: alike everywhere."""
        orders = range(1, self.pair_order + 1)
        single = list(range(1, self.order + 1))
        double = [k * m for k in orders for m in orders]
        parts = (
            (single, (1 - self.pair_share) / len(self.columns)),
            (double, self.pair_share / max(1, len(self.pairs))),
        )
        totals = [fsum(1 / k for k in part) for part, _ in parts]
        one, two = (
            [sqrt(share / (total * k)) for k in part]
            for (part, share), total in zip(parts, totals, strict=True)
        )
        return one, two

    @cached_property
    def weights(self) -> Tensor:
        """The weight of every coordinate, float64, shape (dim,); their squares add up to one."""
        single, double = self._heights
        every = single * len(self.columns) + double * len(self.pairs)
        return torch.tensor(every, dtype=torch.float64)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The numbers of the first and of the second column of every pair."""
        number = {name: place for place, name in enumerate(self.columns)}
        first, second = ([number[pair[side]] for pair in self.pairs] for side in (0, 1))
        return torch.tensor(first, dtype=torch.int64), torch.tensor(second, dtype=torch.int64)

    @property
    def dim(self) -> int:
        return len(self.columns) * self.order + len(self.pairs) * self.pair_order**2

    @property
    def bound(self) -> Bound:
        single, double = self._heights
        height = max([*single, *double])
        total = len(self.columns) * fsum(single) + len(self.pairs) * fsum(double)
        # A part in 2**40 is far more than the rounding of the sum.
        return Bound(
            dim=self.dim, l1=total * (1 + 2.0**-40), l2_squared=1, low=-height, high=height
        )

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset(self.columns)

    def __call__(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns)
        absent = values.isnan()
        filled = values.masked_fill(absent, 0.0)
        waves = self._smooth(filled) if values.requires_grad else self._exactly(filled)
        return self.products(waves.masked_fill(absent[:, :, None], 0.0))

    def _smooth(self, values: Tensor) -> Tensor:
        """Give cos(πk·x) with a gradient, shape (n, columns, highest order)."""
        return (pi * values.double()[:, :, None] * self.orders(values)).cos().float()

    def _exactly(self, values: Tensor) -> Tensor:
        """Give the same in the same bits for any batch and on any machine.

        A phase k·x/2 in turns is a whole number of steps of 2⁻²¹: exact in float64, and its
        fraction in float32. With 0 ≤ t < 1, cos 2πt = sin 2πz for z = |t − 1/2| − 1/4.
        """
        turns = values.double()[:, :, None] * (self.orders(values) / 2)
        z = turns.frac_().float().sub_(0.5).abs_().sub_(0.25)
        return sine(z, 1.0, scratch("cosines", tuple(z.shape), torch.float32, z))

    def orders(self, like: Tensor) -> Tensor:
        """Give 1, 2, … up to the higher of the two orders, float64."""
        highest = max(self.order, self.pair_order)
        return torch.arange(1, highest + 1, dtype=torch.float64, device=like.device)

    def products(self, waves: Tensor) -> Tensor:
        """Weigh the columns' cosines, and multiply those of pairs.

        Parameters
        ----------
        waves
            Cosines or means of them, zero where missing, shape (n, columns, highest order).
        """
        paired = waves[:, :, : self.pair_order]
        first, second = (paired[:, place.to(waves.device)] for place in self.places)
        both = (first[:, :, :, None] * second[:, :, None, :]).flatten(1)
        found = torch.cat([waves[:, :, : self.order].flatten(1), both], dim=1)
        return found * self.weights.to(found.device, found.dtype)

    def spec(self) -> Spec:
        number = {name: place for place, name in enumerate(self.columns)}
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "order": self.order,
            "pairs": [[number[a], number[b]] for a, b in self.pairs],
            "pair_order": self.pair_order,
            "pair_share": self.pair_share,
        }


def cosines(
    columns: Sequence[str],
    order: int = 12,
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    pair_order: int = 2,
    pair_share: float = 0.5,
) -> Cosines:
    """Build a map of cosines of columns, and of all or the chosen pairs of them.

    Parameters
    ----------
    columns
        The columns.
    order
        The highest order of a column on its own; 0 leaves these out.
    pairs
        The pairs; by default all of them.
    pair_order
        The highest order of a pair; 0 leaves pairs out.
    pair_share
        The pairs' share of the squared norm, where there are both columns and pairs.

    Examples
    --------
    >>> made = cosines(["age", "pay"])
    >>> made.dim, made.bound.l2_squared
    (28, 1)
    """
    names = tuple(columns)
    chosen = combinations(names, 2) if pairs is None else pairs
    both = tuple((a, b) for a, b in chosen) if pair_order else ()
    share = float(pair_share) if both and order else float(bool(both))
    return Cosines(names, order, both, pair_order if both else 0, share)
