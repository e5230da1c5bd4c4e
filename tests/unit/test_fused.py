"""The fused kernels give the integers of the plain path, and leave out what is over a limit."""

import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from aquatint.curator.fused import fused_sum
from aquatint.curator.sums import _sum_dense, leaf_sum
from aquatint.features import Rows, by_label, fourier, hermite, second_moment
from aquatint.features.base import Columns
from aquatint.features.fourier import Fourier
from aquatint.features.frequencies import VALUE_STEPS
from aquatint.features.grid import grid_of
from aquatint.features.locations import locations
from aquatint.features.smooth import smooth

NAMES = ("a", "b", "c")
MAPS = {
    "gaussian": fourier(NAMES, 100, length_scale=0.1),
    "laplace": fourier(NAMES, 50, length_scale=0.1, kernel="laplace"),
    "one column": fourier(["b"], 2, length_scale=0.5),
    "hermite": hermite(NAMES, 20, length_scale=0.1),
    "order 0": hermite(["a"], 0),
    "by label": by_label(fourier(NAMES, 10), "y", 4),
    "hermite by label": by_label(hermite(["c", "a"], 5), "y", 4),
    "second moments": second_moment(fourier(NAMES, 48, length_scale=0.3)),
    "of one frequency": second_moment(fourier(["b"], 2)),
    "at locations": second_moment(locations(NAMES, [(0.1, 0.2, 0.3), (0.5, 0.5, 1.0)])),
    "of smoothed waves": second_moment(smooth(NAMES, [(1.5, -0.25, 3.0)] * 3)),
    "of labels": by_label(second_moment(locations(["a"], [(0.5,), (1.0,)])), "y", 4),
}


def random_rows(count, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    values = np.rint(rng.random((count, 3)) * VALUE_STEPS) / VALUE_STEPS
    values[rng.random(values.shape) < missing] = np.nan
    values[: count // 10] = rng.choice([0.0, 1.0, 0.5], (count // 10, 3))
    codes = {"y": torch.from_numpy(rng.integers(0, 4, count).astype(np.int32))}
    return Rows(codes, Columns(NAMES, torch.from_numpy(values.astype(np.float32))), count)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("count", [0, 1, 127, 1100])
def test_fused_and_plain_sums_are_the_same_bits(name, count):
    rows = random_rows(count)
    assert torch.equal(leaf_sum(MAPS[name], rows), _sum_dense(MAPS[name], rows))


@pytest.mark.parametrize("name", ["gaussian", "hermite"])
@pytest.mark.parametrize("limit", ["l2_squared", "l1", "low", "high"])
def test_a_row_over_any_limit_is_left_out_and_named(name, limit):
    feature_map = MAPS[name]
    rows = random_rows(50, missing=0.0)
    grid = grid_of(feature_map)
    tight = replace(grid, bound=replace(grid.bound, **{limit: 0}))
    total = np.zeros((1, feature_map.dim), np.int64)
    values = rows.matrix(feature_map.columns)
    out = fused_sum(feature_map, values, np.zeros(50, np.int64), total, tight)
    assert list(out) == list(range(50))
    assert not total.any()


@pytest.mark.parametrize("limit", ["l2_squared", "l1", "low", "high"])
def test_products_over_any_limit_are_left_out(limit):
    moments = MAPS["second moments"]
    features = moments.inner(random_rows(50, missing=0.0))
    grid = grid_of(moments)
    tight = replace(grid, bound=replace(grid.bound, **{limit: 0}))
    total = np.zeros((1, moments.dim), np.int64)
    out = fused_sum(moments, features, np.zeros(50, np.int64), total, tight)
    assert list(out) == list(range(50))
    assert not total.any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e30, 1.0])
def test_a_feature_beyond_its_height_is_left_out_of_products(wrong):
    moments = MAPS["second moments"]
    features = moments.inner(random_rows(3, missing=0.0))
    right = np.zeros((1, moments.dim), np.int64)
    fused_sum(moments, features[[0, 2]], np.zeros(2, np.int64), right, grid_of(moments))
    features[1, 7] = wrong
    total = np.zeros((1, moments.dim), np.int64)
    out = fused_sum(moments, features, np.zeros(3, np.int64), total, grid_of(moments))
    assert list(out) == [1]
    assert np.array_equal(total, right)


def test_rows_left_out_go_the_exact_way(monkeypatch):
    from aquatint.curator import fused

    feature_map = MAPS["gaussian"]
    rows = random_rows(300)
    expected = _sum_dense(feature_map, rows)
    real = fused.fused_sum

    def every_third(inner, values, place, total, grid):
        keep = np.arange(len(values)) % 3 != 0
        real(inner, values[torch.from_numpy(keep)], place[keep], total, grid)
        return np.flatnonzero(~keep)

    monkeypatch.setattr(fused, "fused_sum", every_third)
    assert torch.equal(leaf_sum(feature_map, rows), expected)


def test_a_subclass_is_not_trusted_to_be_the_map_the_kernel_knows():
    class Louder(Fourier):
        def __call__(self, rows):
            return super().__call__(rows) * 0.5

        def borrowed(self, rows):
            return self(rows)

    louder = Louder(NAMES, 10, (0.2, 0.2, 0.2))
    rows = random_rows(20, missing=0.0)
    assert torch.equal(leaf_sum(louder, rows), _sum_dense(louder, rows))
    assert not torch.equal(leaf_sum(louder, rows), leaf_sum(fourier(NAMES, 10), rows))


def test_ctrl_c_while_a_kernel_compiles_is_heard_afterwards(monkeypatch):
    from aquatint.curator import fused

    rows = random_rows(5, missing=0.0)
    monkeypatch.setattr(fused, "_READY", set())
    monkeypatch.setattr(fused, "_fourier", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        leaf_sum(MAPS["gaussian"], rows)
    assert set() == fused._READY


def test_a_norm_that_could_overflow_goes_the_exact_way(monkeypatch):
    from aquatint.curator import sums

    assert sums.norm_fits(grid_of(fourier(NAMES, 100_000)).bound)
    assert not sums.norm_fits(grid_of(fourier(NAMES, 2**19)).bound)
    monkeypatch.setattr(sums, "_sum_fused", lambda *_: pytest.fail("the norm may overflow"))
    wide, rows = fourier(["a"], 2**19), random_rows(3, missing=0.0)
    assert torch.equal(leaf_sum(wide, rows), _sum_dense(wide, rows))


def test_garbage_that_overflows_the_norm_is_refused_by_the_range():
    from aquatint.curator.fused import _added, _limits

    row = np.full(4, np.iinfo(np.int32).min, np.int32)  # 4 · 2**62 wraps to zero
    line = np.zeros(4, np.int64)
    assert not _added(row, line, _limits(grid_of(fourier(NAMES, 4)).bound))
    assert not line.any()
