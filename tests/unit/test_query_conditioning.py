"""Gaussians conditioned on noisy sums: two ways to compute the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.analyst.query import conditioning
from aquatint.analyst.query.conditioning import Before, Seen, condition


def made(seed: int, size: int, tables: int) -> tuple[Before, Seen, np.ndarray]:
    """Make up a prior, some tables (a coarser one inside a finer one, too) and what is asked."""
    rng = np.random.default_rng(seed)
    fine = rng.permutation(np.arange(size) % max(2, size // 3))
    parts = [fine, fine // 2, *(rng.integers(0, 3, size) for _ in range(tables))]
    counts = [int(part.max()) + 1 for part in parts]
    tilts = rng.normal(size=(size, 2))
    before = Before(rng.gamma(1.0, 100.0, size), 25.0, tilts - tilts.mean(0))
    above = [rng.normal(0, 30, count) for count in counts]
    seen = Seen(parts, above, [rng.uniform(50, 500, count) for count in counts])
    return before, seen, np.column_stack([rng.normal(size=(size, 3)), np.ones(size)])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(0, 4))
def test_a_system_of_sets_and_one_of_entries_agree(seed, size, tables):
    before, seen, asked = made(seed, size, tables)
    one = conditioning._by_sets(before, seen, asked)
    two = conditioning._by_entries(before, seen, asked)
    for name in ("moved", "covariance", "noise", "explained"):
        left, right = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-8 * np.abs(right).max())


def test_information_is_the_sum_over_sets_that_hold_both():
    _, seen, _ = made(1, 12, 3)
    plain = np.zeros((12, 12))
    for part, variance in zip(seen.parts, seen.variances, strict=True):
        plain += np.where(part[:, None] == part, 1 / variance[part][:, None], 0.0)
    np.testing.assert_allclose(seen.information, plain, rtol=1e-12)


@pytest.mark.parametrize("size", [3, 60])
def test_nothing_seen_leaves_what_was_known(size):
    before, _, asked = made(2, size, 0)
    found = condition(before, Seen([], [], []), asked)
    np.testing.assert_allclose(found.covariance, asked.T @ before.times(asked), rtol=1e-6)
    assert np.abs(found.moved).max() == 0
    assert found.covariance[-1, -1] == pytest.approx(25.0, rel=1e-6)
