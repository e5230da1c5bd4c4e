"""No row, however chosen, has integers beyond the declared bound: hypothesis and a hill climber."""

from fractions import Fraction
from itertools import pairwise
from math import inf, isnan, isqrt, nan

import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.integers import clip, quantise
from aquatint.curator.sums import leaf_sum
from aquatint.errors import DataError
from aquatint.features import Bound, FeatureMap, Rows, by_label, leaves, scale
from aquatint.features.grid import Grid, grid_of, is_counting, sensitivity
from aquatint.features.marginals import Marginals
from aquatint.schema import Privacy

ADD, REPLACE = "add or remove one row", "replace one row"
PERSON = {"protects": "all rows of one person", "person": "id"}
RELATIONS = [
    Privacy(protects=ADD),
    Privacy(protects=REPLACE),
    Privacy(**PERSON),
    Privacy(**PERSON, max_rows=3),
]
TINY = 2.0**-20
quick = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
places = st.sampled_from([0.0, 1.0, TINY, 1 - TINY, 0.5, nan]) | st.integers(0, 2**20).map(
    lambda step: step * TINY
)


def integers(leaf, rows):
    return [int(value) for value in leaf_sum(leaf, rows)]


def squared(row):
    return sum(value * value for value in row)


def total(row):
    return sum(map(abs, row))


def difference(left, right):
    return [a - b for a, b in zip(left, right, strict=True)]


@st.composite
def encoded_rows(draw, feature_map, cells):
    codes, values = feature_map.reads
    return Rows(
        {
            n: torch.tensor([draw(st.integers(0, cells[n] - 1))], dtype=torch.int32)
            for n in sorted(codes)
        },
        {n: torch.tensor([draw(places)]) for n in sorted(values)},
        1,
    )


def check_one(leaf, row):
    bound = grid_of(leaf).bound
    assert squared(row) <= int(bound.l2_squared)
    assert total(row) <= int(bound.l1)
    for privacy in RELATIONS:
        if not privacy.replaces:  # the sum moves by the row itself
            l2_squared, l1 = sensitivity(leaf, privacy)
            assert squared(row) <= l2_squared
            assert total(row) <= l1


def check_two(leaf, left, right):
    bound, apart = grid_of(leaf).bound, difference(left, right)
    assert squared(apart) <= int(bound.replace_l2_squared)
    assert total(apart) <= int(bound.replace_l1)
    l2_squared, l1 = sensitivity(leaf, Privacy(protects=REPLACE))
    assert squared(apart) <= l2_squared
    assert total(apart) <= l1


@quick
@given(data=st.data())
def test_hypothesis_finds_no_row_beyond_the_bound(example, kit, data):
    left = data.draw(encoded_rows(example, kit.cells))
    right = data.draw(encoded_rows(example, kit.cells))
    for leaf in leaves(example):
        a, b = integers(leaf, left), integers(leaf, right)
        check_one(leaf, a)
        check_one(leaf, b)
        check_two(leaf, a, b)


def test_the_search_finds_no_row_beyond_the_bound(example, kit):
    for leaf in leaves(example):
        found = kit.search(lambda rows, leaf=leaf: kit.integers_of(leaf, rows), leaf.reads)
        row = integers(leaf, found.longest)
        assert squared(row) == found.l2_squared  # the search has seen the integers that are summed
        check_one(leaf, row)
        left, right = (integers(leaf, side) for side in found.farthest)
        assert squared(difference(left, right)) == found.apart_l2_squared
        check_two(leaf, left, right)
        bound = grid_of(leaf).bound
        assert found.l1 <= int(bound.l1)
        assert found.apart_l1 <= int(bound.replace_l1)


def test_the_search_finds_no_violation_in_floating_point(example, kit):
    assert kit.violations(example) == []


def test_a_row_of_all_missing_values_keeps_the_bound(example, kit):
    rows = kit.random_rows(1, missing=1.0)
    last = Rows(
        {n: torch.tensor([kit.cells[n] - 1], dtype=torch.int32) for n in kit.cells}, rows.values, 1
    )
    for leaf in leaves(example):
        check_one(leaf, integers(leaf, rows))
        check_one(leaf, integers(leaf, last))
        check_two(leaf, integers(leaf, rows), integers(leaf, last))


def test_the_bound_on_the_grid_is_not_looser_than_the_proven_one(example):
    for leaf in leaves(example):
        grid, proven = grid_of(leaf), leaf.bound
        unit = Fraction(grid.steps)
        slack = 1 + Fraction(1, 2**18)
        assert grid.bound.l2_squared <= Fraction(proven.l2_squared) * unit**2 * slack
        assert grid.bound.l1 <= Fraction(proven.l1) * unit * slack + 1
        assert grid.bound.low <= 0 < grid.bound.high


def test_the_bounds_of_counting_and_unit_norm_maps_are_attained(kit):
    rows = kit.random_rows(1, missing=0.0)
    attained = ("count", "onehot", "pairs", "race", "scaled counting", "counting times counting")
    for name in (*attained, "merged cells", "all cells merged"):
        (leaf,) = leaves(kit.examples[name])
        row = integers(leaf, rows)
        assert is_counting(leaf)
        assert squared(row) == grid_of(leaf).bound.l2_squared
        assert total(row) == grid_of(leaf).bound.l1
    (leaf,) = leaves(kit.examples["fourier gaussian"])
    assert squared(integers(leaf, rows)) > 0.9999 * grid_of(leaf).bound.l2_squared


raw_numbers = st.sampled_from(
    [1e308, -1e308, inf, -inf, nan, None, 0.0, -0.0, 5e-324, 17.0, 90.0, 1e16]
) | st.floats(allow_nan=True, allow_infinity=True)


def several(strategy):
    return st.lists(strategy, min_size=4, max_size=4)


def whole_or_missing(value):
    return float(round(value)) if value is not None and abs(value) < 1e300 else value


@settings(quick, max_examples=15)
@given(
    age=several(raw_numbers.map(whole_or_missing)),
    height=several(raw_numbers),
    weight=several(raw_numbers.filter(lambda v: v is not None and not isnan(v))),
    sex=several(st.sampled_from("FMX")),
    job=several(st.none() | st.just("") | st.text(max_size=3)),
)
def test_raw_extremes_keep_the_bound_through_the_encoder(
    kit, schema, age, height, weight, sex, job
):
    batch = pa.record_batch(
        {
            "age": pa.array(age, pa.float64()),
            "height": pa.array(height, pa.float64()),
            "weight": pa.array(weight, pa.float64()),
            "sex": pa.array(sex, pa.string()),
            "job": pa.array(job, pa.string()),
            "grade": pa.array(["low", "middle", "high", "low"]),
            "ill": pa.array([None, True, False, None]),
        }
    )
    ordered = frozenset({"age", "height", "weight", "grade", "ill"})
    rows = Encoder(schema, frozenset(kit.cells), ordered)(batch, Notes())
    for name, code in rows.codes.items():
        assert 0 <= int(code.min()) <= int(code.max()) < kit.cells[name]
    for value in rows.values.values():
        assert ((value >= 0) & (value <= 1) | value.isnan()).all()
    for name in ("onehot", "fourier narrow", "hermite wide", "race", "by label, heterogeneous"):
        for leaf in leaves(kit.examples[name]):
            found = [integers(leaf, rows.slice(i, i + 1)) for i in range(4)]
            for left, right in pairwise(found):
                check_one(leaf, left)
                check_two(leaf, left, right)


class Hostile(FeatureMap):
    """A map that returns what it is told to, under whatever bound it claims."""

    kind = "hostile"

    def __init__(self, claimed, result):
        self.claimed, self.result = claimed, result

    @property
    def dim(self):
        return self.claimed.dim

    @property
    def bound(self):
        return self.claimed

    @property
    def reads(self):
        return frozenset({"sex"}), frozenset()

    def __call__(self, rows):
        return self.result(rows)

    def spec(self):
        return {"kind": self.kind}


UNIT = Bound(dim=4, l1=2, l2_squared=1, low=-1, high=1)
POSITIVE = Bound(dim=4, l1=1, l2_squared=1, low=0, high=1)
FLAT = Bound(dim=4, l1=0.25, l2_squared=0.03, low=-0.1, high=0.1)


def constant(*values, dtype=torch.float32):
    row = torch.tensor([values], dtype=dtype)
    return lambda rows: row.repeat(len(rows), 1)


HOSTILE = {
    "norm ten": constant(10.0, 0, 0, 0),
    "norm just over one": constant(0.5000001, 0.5, 0.5, 0.5),
    "huge": constant(1e30, -1e30, 1e30, 3e38),
    "beyond float32": constant(1e300, -1e300, 1e299, 1.0, dtype=torch.float64),
    "beyond int32 and back": constant(2.0**10 + 0.25, 2.0**11, 2.0**42, 0.25),
    "negative": constant(-1.0, -0.5, -0.25, 0),
    "spread": constant(0.5, 0.5, 0.5, 0.5),
    "alternating": lambda rows: torch.where(
        rows.codes["sex"][:, None] == 0, torch.full((1, 4), 5.0), torch.full((1, 4), -5.0)
    ),
    "whole numbers": constant(3, 0, -3, 1, dtype=torch.int64),
    "half precision": constant(300.0, -60000.0, 1, 0, dtype=torch.float16),
}


@pytest.mark.parametrize("claimed", [UNIT, POSITIVE, FLAT], ids=["unit", "positive", "flat"])
@pytest.mark.parametrize("result", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: by_label(m, "sex", 3), lambda m: 0.3 * m])
def test_a_hostile_map_is_held_to_its_claim(claimed, result, wrap):
    leaf = wrap(Hostile(claimed, result))
    found = []
    for code in (0, 1, 2):
        rows = Rows({"sex": torch.tensor([code], dtype=torch.int32)}, {}, 1)
        row = integers(leaf, rows)
        check_one(leaf, row)
        if claimed.low == 0:
            assert min(row) >= 0
        found.append(row)
    for left in found:
        for right in found:
            check_two(leaf, left, right)


@pytest.mark.parametrize("bad", [inf, -inf, nan])
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: by_label(m, "sex", 3)])
def test_a_map_that_is_not_finite_is_refused(bad, wrap):
    leaf = wrap(Hostile(UNIT, constant(0.1, bad, 0.1, 0)))
    with pytest.raises(DataError, match="not finite"):
        leaf_sum(leaf, Rows({"sex": torch.zeros(3, dtype=torch.int32)}, {}, 3))


@pytest.mark.parametrize(
    "shape", [(3, 5), (3, 3), (2, 4), (4, 4), (3, 1)], ids=lambda s: f"{s[0]}x{s[1]}"
)
def test_a_map_of_the_wrong_shape_is_refused(shape):
    leaf = Hostile(UNIT, lambda _: torch.zeros(shape))
    with pytest.raises(DataError, match="gave shape"):
        leaf_sum(leaf, Rows({"sex": torch.zeros(3, dtype=torch.int32)}, {}, 3))


def test_a_subclass_of_a_counting_map_is_not_trusted_to_count():
    class Repeats(Marginals):
        def cells(self, rows):
            return torch.zeros(len(rows), 100, dtype=torch.int64)

        def __call__(self, rows):
            return 100 * super().__call__(rows)

    leaf = Repeats((("sex", 3),), (("sex",),))
    assert not is_counting(leaf)
    assert not is_counting(scale(leaf, 2.0))
    check_one(leaf, integers(leaf, Rows({"sex": torch.tensor([1])}, {}, 1)))


limits = st.builds(
    lambda dim, l1, l2, low, high: Bound(dim, l1, l2, -low, high),
    st.just(5),
    st.integers(0, 2**25),
    st.integers(0, 2**50),
    st.sampled_from([0, 1]) | st.integers(0, 2**23),
    st.integers(1, 2**23),
)
steps = st.integers(-(2**24), 2**24) | st.integers() | st.sampled_from([10**400, -(10**400)])


@settings(max_examples=300, deadline=None)
@given(row=st.lists(steps, min_size=5, max_size=5), bound=limits)
def test_clipping_keeps_every_limit_and_no_sign_changes(row, bound):
    out = clip(row, bound)
    assert squared(out) <= bound.l2_squared
    assert total(out) <= bound.l1
    for before, after in zip(row, out, strict=True):
        assert bound.low <= after <= bound.high
        assert abs(after) <= abs(before)
        assert after * before >= 0


@settings(max_examples=300, deadline=None)
@given(row=st.lists(st.integers(-1000, 1000), min_size=5, max_size=5))
def test_clipping_leaves_alone_what_is_within(row):
    bound = Bound(5, l1=total(row), l2_squared=squared(row), low=-1000, high=1000)
    assert clip(row, bound) == row
    assert clip(clip([9 * v for v in row], bound), bound) == clip([9 * v for v in row], bound)


@settings(max_examples=200, deadline=None)
@given(
    row=st.lists(
        st.floats(-2, 2, width=32) | st.floats(allow_nan=False, allow_infinity=False, width=32),
        min_size=5,
        max_size=5,
    ),
    bound=limits,
)
def test_quantising_any_finite_floats_keeps_every_limit(row, bound):
    grid = Grid(2.0**20, bound)
    out = [int(v) for v in quantise(torch.tensor([row, row]), grid)[1]]
    assert squared(out) <= int(bound.l2_squared)
    assert total(out) <= int(bound.l1)
    if bound.low == 0:
        assert min(out) >= 0


def test_a_row_a_hair_over_the_limit_is_brought_under_it():
    side = isqrt(2**44 // 4)
    bound = Bound(4, l1=2**24, l2_squared=4 * side * side - 1, low=-(2**22), high=2**22)
    out = quantise(torch.full((1, 4), float(side)), Grid(1.0, bound))[0]
    assert squared([int(v) for v in out]) <= bound.l2_squared
    assert int(out.min()) >= side - 2
