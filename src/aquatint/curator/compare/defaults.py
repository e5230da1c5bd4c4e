"""Which features a test takes where none are given: from the schema alone."""

from __future__ import annotations

from math import sqrt

from aquatint.compare_recipes import me_test
from aquatint.features import fourier
from aquatint.features.algebra import concat, scale
from aquatint.features.base import FeatureMap
from aquatint.features.marginals import Count
from aquatint.recipe_parts import beside, settled_bins, with_order
from aquatint.schema import Schema

LENGTH_SCALES = (0.3, 0.1, 1 / 30)
"""Fractions of a declared range: the whole shape of a column, its bulk, and fine structure."""
FREQUENCIES = 34
"""Frequencies for each length scale, or twice the columns if that is more."""
SPREAD, WIDTH = 0.05, 0.12
"""Locations are drawn around the middle with SPREAD, and the kernel's length is WIDTH·√d, fractions
of a range. If a column's standard deviation is v, a change of one variance moves a kernel value by
about k/L² with k = exp(−d(v² + SPREAD²)/2L²), which is largest at L² = d(v² + SPREAD²)/2. WIDTH is
somewhat more than that for v = 0.1, so that wider columns are not lost."""


def default_map(schema: Schema, test: str) -> FeatureMap:
    """Give the features: Fourier for the permutation test, kernel values at locations for others.

    Nothing is read off any rows: frequencies and locations are drawn from fixed public seeds.
    """
    if test == "permutation":
        return _fourier(settled_bins(schema))
    columns = len(schema.columns)
    plan = me_test(schema, spread=SPREAD, length_scale=WIDTH * sqrt(columns))
    return next(block.map for block in plan.blocks if not isinstance(block.map, Count))


def _fourier(schema: Schema) -> FeatureMap:
    """Mix frequencies of one, two and all columns at three scales; other columns are one-hot.

    The kernel is the mean of three, so its norm is at most one, as that of each of them.
    """
    numbers, others = with_order(schema)
    waves = None
    if numbers:
        count = 2 * max(FREQUENCIES, 2 * len(numbers))
        weight = 1 / sqrt(len(LENGTH_SCALES))
        waves = concat(
            *(
                scale(fourier(numbers, count, length_scale=size, kernel="mixed", seed=seed), weight)
                for seed, size in enumerate(LENGTH_SCALES)
            )
        )
    return beside(schema, waves, numbers, others)
