"""The integer grid: how a leaf's features become whole numbers, and how far one unit can move them.

Sums are exact because they are integers. The grid of a leaf follows from its bound alone, so a
reader can recompute every sensitivity of a release from its feature maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log2

from aquatint.features.algebra import ByLabel, Product, Scaled, by_class
from aquatint.features.base import Bound, FeatureMap
from aquatint.features.marginals import Count, Marginals
from aquatint.features.projected import ProjectedMoments
from aquatint.features.race import Race
from aquatint.schema import Privacy

COUNT_STEPS = 2**20
"""A count of one is this many steps (a weighted one less than twice as many), so that noise is
always millions of steps wide."""
DENSE_BITS = 22
"""The largest coordinate of a dense row is about this many bits: float32 holds it exactly, and
2·10¹² rows fit an int64 sum."""
HEADROOM = 1 - 2**-20
"""Dense rows are multiplied by this much less than the grid allows, so that rounding in float32
hardly ever pushes a unit vector over its limit; the reader divides by the same number."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How one leaf is counted.

    Attributes
    ----------
    steps
        Whole steps to one unit of the feature: a released integer divided by it is the feature.
    bound
        The limits that every integer row is held to, in steps.
    """

    steps: float
    bound: Bound


def is_counting(leaf: FeatureMap) -> bool:
    """Whether a leaf may be counted: only maps whose ones are distinct by construction may."""
    # Exact types: a subclass could override `cells` and name one coordinate twice.
    if type(leaf) is Scaled or type(leaf) is ByLabel:
        return is_counting(leaf.inner)
    if type(leaf) is Product:
        return is_counting(leaf.left) and is_counting(leaf.right)
    return type(leaf) in (Count, Marginals, Race)


def grid_of(leaf: FeatureMap) -> Grid:
    """Choose the grid of a leaf from its bound."""
    bound = leaf.bound
    if is_counting(leaf):
        ones = leaf.ones or 0
        value = int(Fraction(leaf.unit) * COUNT_STEPS / Fraction(2) ** floor(log2(leaf.unit)))
        limits = Bound(bound.dim, l1=ones * value, l2_squared=ones * value**2, low=0, high=value)
        return Grid(value / leaf.unit, limits)
    inner = leaf.inner if type(leaf) is ByLabel else leaf
    if type(inner) is ProjectedMoments:
        whole_bound = inner.whole_bound
        pairwise = by_class(whole_bound)
        return Grid(float(inner.steps), replace(whole_bound, dim=leaf.dim, pairwise=pairwise))
    height = max(-bound.low, bound.high)
    whole = 2.0 ** (DENSE_BITS - ceil(log2(height)))
    return Grid(whole * HEADROOM, bound.on_grid(whole))


def sensitivity(leaf: FeatureMap, privacy: Privacy) -> tuple[int, int]:
    """Give the squared L2 and the L1 sensitivity of a leaf's integer sum, in steps.

    Add or remove a row: the limit on one row. Replace a row: the limit on the distance of two.
    All rows of a person: the limit on one row times the rows that a person counts for.
    """
    bound = grid_of(leaf).bound
    if privacy.replaces:
        return int(bound.replace_l2_squared), int(bound.replace_l1)
    times = privacy.rows_per_unit
    return int(bound.l2_squared) * times**2, int(bound.l1) * times


def one_set(leaf: Marginals, privacy: Privacy) -> int:
    """Bound how far two neighbours' joint counts of any one set are apart, in L1 and in steps.

    A row has one 1 in each set; a row that is replaced may move it. This holds for every set,
    however few cells it has: those that were not chosen are not in the release to be looked at.
    """
    return int(grid_of(leaf).bound.high) * (2 if privacy.replaces else privacy.rows_per_unit)
