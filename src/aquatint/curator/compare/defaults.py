"""Which features a test takes, or chooses from, where none are given: from the schema alone."""

from __future__ import annotations

from math import sqrt

from aquatint.compare_recipes import me_test
from aquatint.comparison import CompareError
from aquatint.features import fourier
from aquatint.features.base import FeatureMap
from aquatint.features.marginals import Count
from aquatint.recipe_parts import (
    LENGTH_SCALES,
    beside,
    frequencies_of,
    settled_bins,
    waves_of,
    with_order,
)
from aquatint.schema import Schema

SPREAD, WIDTH = 0.05, 0.12
"""Locations are drawn around the middle with SPREAD, and the kernel's length is WIDTH·√d, fractions
of a range. If a column's standard deviation is v, a change of one variance moves a kernel value by
about k/L² with k = exp(−d(v² + SPREAD²)/2L²), which is largest at L² = d(v² + SPREAD²)/2. WIDTH is
somewhat more than that for v = 0.1, so that wider columns are not lost."""

CHOICES = (0.3, 0.1, 0.03, 0.01)
"""Fractions of a declared range to choose from, each for all frequencies."""
WIDTHS = (0.5, 1.0, 2.0, 4.0)
"""Lengths of the kernel at locations to choose from, in terms of the usual one."""


def default_map(schema: Schema, test: str) -> FeatureMap:
    """Give the features: Fourier for the permutation test, kernel values at locations for others.

    Nothing is read off any rows: frequencies and locations are drawn from fixed public seeds.
    """
    if test == "permutation":
        return _fourier(settled_bins(schema))
    return _locations(schema, 1.0)


def default_candidates(schema: Schema, test: str) -> tuple[FeatureMap, ...]:
    """Give features that differ in their length scale, for a private choice among them.

    For the permutation test these are Fourier features of one scale each, as many as the default
    has of all scales, and the default itself; for others locations with wider and narrower kernels.
    """
    if test != "permutation":
        return tuple(_locations(schema, width) for width in WIDTHS)
    settled = settled_bins(schema)
    numbers, others = with_order(settled)
    if not numbers:
        msg = "no column has an order, so there are no length scales to choose from: drop choose"
        raise CompareError(msg)
    count = 2 * len(LENGTH_SCALES) * frequencies_of(numbers)
    waves = [fourier(numbers, count, length_scale=size, kernel="mixed") for size in CHOICES]
    return (*(beside(settled, each, numbers, others) for each in waves), _fourier(settled))


def _locations(schema: Schema, width: float) -> FeatureMap:
    scale = width * WIDTH * sqrt(len(schema.columns))
    plan = me_test(schema, spread=SPREAD, length_scale=scale)
    return next(block.map for block in plan.blocks if not isinstance(block.map, Count))


def _fourier(schema: Schema) -> FeatureMap:
    """Mix frequencies of one, two and all columns at three scales; other columns are one-hot."""
    numbers, others = with_order(schema)
    return beside(schema, waves_of(numbers) if numbers else None, numbers, others)
