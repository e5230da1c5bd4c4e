"""Rows to integers: the grid, truncation toward zero, and the clip."""

from math import isqrt

import pytest
import torch

from aquatint.curator.integers import clip, quantise, quantise_exactly
from aquatint.errors import DataError
from aquatint.features import Bound, Count, fourier, hermite, onehot, race, scale
from aquatint.features.grid import COUNT_STEPS, DENSE_BITS, Grid, grid_of, is_counting, sensitivity
from aquatint.schema import Privacy

WIDE = Bound(dim=3, l1=2**25, l2_squared=2**46, low=-(2**22), high=2**22)
ADD = Privacy(protects="add or remove one row")
REPLACE = Privacy(protects="replace one row")


def person(rows=None):
    return Privacy(protects="all rows of one person", person="id", max_rows=rows)


def test_values_are_truncated_toward_zero():
    found = quantise(torch.tensor([[1.99, -1.99, 0.5]]), Grid(1.0, WIDE))
    assert found.tolist() == [[1.0, -1.0, 0.0]]
    assert found.dtype == torch.float64


def test_rows_within_the_limits_pass_untouched():
    rows = torch.randint(-(2**20), 2**20, (100, 3), generator=torch.Generator().manual_seed(0))
    assert torch.equal(quantise(rows.float(), Grid(1.0, WIDE)), rows.double())


def test_only_the_rows_that_are_over_are_changed():
    rows = torch.tensor([[3.0, 4.0, 0.0], [6.0, 8.0, 0.0], [0.0, 0.0, 5.0]])
    bound = Bound(dim=3, l1=100, l2_squared=25, low=-10, high=10)
    found = quantise(rows, Grid(1.0, bound))
    assert found[0].tolist() == [3, 4, 0]
    assert found[1].tolist() == [3, 4, 0]
    assert found[2].tolist() == [0, 0, 5]


def test_the_quick_way_and_the_exact_way_agree():
    rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    grid = Grid(2.0**20, Bound(dim=3, l1=2**21, l2_squared=2**41, low=0, high=2**20))
    assert torch.equal(quantise(rows, grid), quantise_exactly(rows, grid))


def test_rows_wider_than_the_quick_check_are_done_exactly():
    wide = torch.zeros(2, 2**20 + 1)
    wide[1, 5] = 3.0
    bound = Bound(dim=wide.shape[1], l1=2, l2_squared=4, low=-9, high=9)
    assert quantise(wide, Grid(1.0, bound)).sum(dim=1).tolist() == [0, 2]


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_values_that_are_not_finite_are_refused(bad):
    with pytest.raises(DataError, match="not finite"):
        quantise(torch.tensor([[0.0, bad, 0.0]]), Grid(2.0**22, WIDE))


def test_the_clip_loses_no_more_than_it_must():
    limit = 10**12
    out = clip([3 * limit, 4 * limit, 0], Bound(3, 10**14, limit**2, -(10**14), 10**14))
    assert isqrt(sum(v * v for v in out)) >= limit - 3
    assert out[0] * 4 == pytest.approx(out[1] * 3, rel=1e-9)


def test_the_clip_keeps_l1_after_l2():
    out = clip([50, 50, 50], Bound(3, 60, 10**6, -100, 100))
    assert out == [20, 20, 20]


def test_negative_values_under_a_positive_claim_become_zero():
    assert clip([-5, 7, -1], Bound(3, 100, 1000, 0, 100)) == [0, 7, 0]


def test_a_count_of_one_is_a_million_steps():
    for leaf in (Count(), onehot({"a": 3}), race(["a"], 2, 3)):
        assert is_counting(leaf)
        assert grid_of(leaf).steps == COUNT_STEPS
        assert grid_of(leaf).bound.high == COUNT_STEPS


@pytest.mark.parametrize("weight", [1e-12, 1e-7, 0.577, 3.0, 1e9])
def test_a_weight_keeps_the_grid_fine(weight):
    for leaf in (scale(onehot({"a": 3}), weight), scale(fourier(["a"], 4), weight)):
        grid = grid_of(leaf)
        assert grid.bound.high >= COUNT_STEPS / 2
        assert grid.bound.high / grid.steps == pytest.approx(leaf.bound.high, rel=1e-5)


def test_dense_rows_fit_a_float32_exactly():
    for leaf in (fourier(["a"], 10), hermite(["a", "b"], 3), 1000.0 * hermite(["a"], 2)):
        assert not is_counting(leaf)
        assert 2 ** (DENSE_BITS - 1) <= grid_of(leaf).bound.high <= 2**DENSE_BITS


def test_sensitivities_follow_the_declared_neighbours():
    leaf = onehot({"a": 3, "b": 2})
    one = COUNT_STEPS
    assert sensitivity(leaf, ADD) == (2 * one**2, 2 * one)
    assert sensitivity(leaf, REPLACE) == (4 * one**2, 4 * one)
    assert sensitivity(leaf, person()) == sensitivity(leaf, person(1)) == sensitivity(leaf, ADD)
    assert sensitivity(leaf, person(3)) == (9 * 2 * one**2, 3 * 2 * one)


def test_two_dense_rows_may_point_apart():
    leaf = fourier(["a"], 10)
    (add, _), (replace, _) = sensitivity(leaf, ADD), sensitivity(leaf, REPLACE)
    assert replace == 4 * add


def test_a_sum_of_maps_has_no_grid_of_its_own():
    both = onehot({"a": 2}) + fourier(["a"], 2)
    with pytest.raises(TypeError, match="parts one by one"):
        both.bound.on_grid(2)


def test_bounds_of_a_sum_add_up_part_by_part():
    counts, dense = onehot({"a": 2}), fourier(["a"], 8)
    both = counts + dense
    assert both.bound.l2_squared == 2
    assert both.bound.replace_l2_squared == 2 + 4
    assert both.bound.replace_l1 == counts.bound.replace_l1 + dense.bound.replace_l1
