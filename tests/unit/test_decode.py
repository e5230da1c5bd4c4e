"""From cells back to values: types, shares inside a bin, slopes, limits.

That every kind of column goes through the curator's encoder and back, for any schema, is in
tests/property/test_synthetic_rows.py. Seeds are fixed; the statistical comparisons would fail an
honest run with another seed with probability below 1e-6 each.
"""

import datetime as dt
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aquatint.analyst.synthesize.decode import decode
from aquatint.columns import OTHER, bin_edges
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.errors import SchemaError
from aquatint.schema import Schema

ALARM = 1e-6
TEXT = str(pd.Series(["text"]).dtype)  # pandas 3 has a type of its own


def schema_of(**columns):
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    )


def rng():
    return np.random.default_rng(7)


def values(column, codes, **options):
    """Decode one column; options are given for it alone."""
    schema = schema_of(a=column)
    options = {name: {"a": option} for name, option in options.items()}
    return decode(schema, {"a": np.array(codes)}, rng(), **options)["a"]


def cells(column, frame):
    schema = schema_of(a=column)
    encoder, notes = Encoder(schema, frozenset("a"), frozenset()), Notes()
    batches = read(pd.DataFrame({"a": frame}), schema, ["a"]).open()
    found = np.concatenate([encoder(batch, notes).codes["a"].numpy() for batch in batches])
    assert not notes.clipped
    return found.tolist()


AGE = {"kind": "integer", "bounds": [17, 90], "bins": 5}
HEIGHT = {"kind": "numeric", "bounds": [0.5, 2.5], "bins": 4}
BORN = {"kind": "date", "bounds": ["1969-12-25", "1970-01-10"], "bins": 3}
SEEN = {"kind": "datetime", "bounds": ["1969-12-31T23:59:59", "1970-01-01T00:00:01"], "bins": 3}
ZONED = {**SEEN, "bounds": ["2020-01-01T00:00:00+02:00", "2020-06-01T00:00:00+02:00"]}
GRADE = {"kind": "ordered", "categories": ["low", "middle", "high"]}
LEVEL = {"kind": "ordered", "categories": [3, 1, 2]}
JOB = {"kind": "categorical", "categories": ["a", "b"], "other": True}
CODE = {"kind": "categorical", "categories": [5, -3], "other": True}
NOTE = {"kind": "text", "categories": ["yes", "no"]}
NUMBER = {"kind": "text", "categories": [7, 9]}
ILL = {"kind": "boolean"}


# --- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "dtype", "with_missing"),
    [
        (AGE, "int64", "Int64"),
        (HEIGHT, "float64", "float64"),
        (BORN, "datetime64[s]", "datetime64[s]"),
        (SEEN, "datetime64[us]", "datetime64[us]"),
        (ZONED, "datetime64[us, UTC]", "datetime64[us, UTC]"),
        (GRADE, TEXT, TEXT),
        (LEVEL, "int64", "Int64"),
        (JOB, TEXT, TEXT),
        (CODE, "int64", "Int64"),
        (NOTE, TEXT, TEXT),
        (NUMBER, "int64", "Int64"),
        (ILL, "bool", "boolean"),
    ],
)
def test_every_kind_has_its_type_and_goes_back_to_its_cells(column, dtype, with_missing):
    count = schema_of(a=column).columns["a"].cells
    codes = np.tile(np.arange(count), 50)
    found = values(column, codes)
    assert str(found.dtype) == dtype
    assert not found.isna().any()
    assert cells(column, found) == codes.tolist()

    column = {**column, "missing": True}
    codes = np.tile(np.arange(count + 1), 50)
    found = values(column, codes)
    assert str(found.dtype) == with_missing
    assert found.isna().tolist() == (codes == count).tolist()
    assert cells(column, found) == codes.tolist()
    whole_gone = values(column, np.full(3, count))
    assert str(whole_gone.dtype) == with_missing
    assert cells(column, whole_gone) == [count] * 3


@pytest.mark.parametrize(
    "column", [AGE, HEIGHT, BORN, SEEN, ZONED, GRADE, LEVEL, JOB, CODE, NOTE, NUMBER, ILL]
)
def test_no_rows_keep_the_types(column):
    for missing in (False, True):
        spec = {**column, "missing": missing}
        assert values(spec, np.zeros(0, int)).dtype == values(spec, [0, 1]).dtype


def test_columns_keep_the_schemas_order():
    schema = schema_of(z=AGE, b=ILL, a=JOB)
    codes = {name: np.array([0, 1]) for name in ("a", "b", "z")}
    assert list(decode(schema, codes, rng()).columns) == ["z", "b", "a"]


def test_categories_come_back_as_declared_and_other_stands_apart():
    assert values(GRADE, [2, 0, 1]).tolist() == ["high", "low", "middle"]
    assert values(LEVEL, [0, 1, 2]).tolist() == [3, 1, 2]
    assert values(JOB, [0, 1, 2]).tolist() == ["a", "b", OTHER]
    assert values(NOTE, [2, 0]).tolist() == [OTHER, "yes"]
    plain, other = values(CODE, [1, 2])
    assert plain == -3
    assert other not in CODE["categories"]
    assert values(ILL, [1, 0]).tolist() == [True, False]


def test_missing_text_is_missing_to_pandas():
    found = values({**JOB, "missing": True}, [3, 0])
    assert found.isna().tolist() == [True, False]
    assert found[1] == "a"


def test_dates_before_1970_come_back_whole():
    found = values(BORN, np.repeat([0, 1, 2], 500))
    assert (found.dt.normalize() == found).all()
    assert found.min() == pd.Timestamp("1969-12-25")
    assert found.max() == pd.Timestamp("1970-01-10")


def test_moments_with_a_zone_are_the_same_moments_in_utc():
    found = values(ZONED, np.repeat([0, 1, 2], 500))
    low, high = (pd.Timestamp(bound) for bound in ZONED["bounds"])
    assert found.between(low, high).all()
    assert found.min() < pd.Timestamp("2020-01-02", tz="UTC")


# --- inside a bin -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        AGE,
        {"kind": "integer", "bounds": [-7, 5], "bins": [-7, -2.5, 0, 5]},
        {"kind": "integer", "bounds": [0, 3], "bins": 4},
        {"kind": "integer", "bounds": [0, 9], "bins": [0, 9]},
        BORN,
    ],
)
@pytest.mark.parametrize("heights", [None, "flat"])
def test_all_whole_numbers_of_a_bin_are_equally_likely(column, heights):
    spec = schema_of(a=column).columns["a"]
    low, high = map(int, spec.limits)
    edges = [*bin_edges(spec)[:-1], high + 1]
    given = {}
    if heights == "flat":  # as many rows in a bin as it has whole numbers
        given = {"heights": np.diff(np.ceil(edges))}
    for place, (left, right) in enumerate(pairwise(edges)):
        inside = [n for n in range(low, high + 1) if left <= n < right]
        found = values(column, np.full(3000, place), **given)
        if spec.kind == "date":
            found = (found - pd.Timestamp(0)).dt.days
        counts = found.value_counts()
        assert sorted(counts.index) == inside
        if len(inside) > 1:
            assert stats.chisquare(counts).pvalue > ALARM


@pytest.mark.parametrize("bins", [4, [0.5, 0.6, 2.4, 2.5]])
def test_real_numbers_are_uniform_in_a_bin_without_heights(bins):
    column = {**HEIGHT, "bins": bins}
    for place, (left, right) in enumerate(pairwise(bin_edges(schema_of(a=column).columns["a"]))):
        found = values(column, np.full(3000, place))
        assert found.between(left, right, inclusive="left").all()
        assert stats.kstest(found, "uniform", (left, right - left)).pvalue > ALARM


def test_moments_are_uniform_in_a_bin_down_to_the_second():
    column = {"kind": "datetime", "bounds": ["2020-01-01", "2020-01-02"], "bins": 2}
    found = (values(column, np.full(3000, 1)) - pd.Timestamp("2020-01-01")).dt.total_seconds()
    assert found.between(43_200, 86_400).all()
    assert stats.kstest(found, "uniform", (43_200, 43_200)).pvalue > ALARM


def test_the_density_slopes_towards_the_heavier_neighbour():
    column = {"kind": "numeric", "bounds": [0, 3], "bins": 3}
    middle = np.ones(20_000, dtype=int)
    for heights, sign in (([1, 2, 3], 1), ([3, 2, 1], -1)):
        found = values(column, middle, heights=np.array(heights))
        # density 1.5 + (x − 1)·… runs from 3/4 to 5/4 of the middle: its mean is 1/24 off centre
        error = 6 / np.sqrt(12 * len(middle))
        assert abs(found.mean() - (1.5 + sign / 24)) < error
        quarters = np.histogram(found, bins=4, range=(1, 2))[0]
        assert (np.diff(quarters) * sign > 0).all()


def test_the_slope_is_that_of_densities_and_not_of_masses():
    column = {"kind": "numeric", "bounds": [0, 4], "bins": [0, 2, 3, 4]}
    even = values(column, np.ones(20_000, dtype=int), heights=np.array([2.0, 1.0, 1.0]))
    assert stats.kstest(even, "uniform", (2, 1)).pvalue > ALARM


def test_a_slope_never_empties_an_end_of_the_bin():
    column = {"kind": "numeric", "bounds": [0, 3], "bins": 3}
    found = values(column, np.ones(20_000, dtype=int), heights=np.array([0.0, 1e-9, 1.0]))
    lowest = (found < 1.1).mean()
    assert 0.03 < lowest < 0.1  # an even density would give 0.1, the steepest one allowed 0.055


def test_heights_may_hold_the_missing_cell_and_noise_below_zero():
    column = {"kind": "integer", "bounds": [0, 11], "bins": 3, "missing": True}
    found = values(column, np.tile([0, 1, 2, 3], 500), heights=np.array([-1.0, 0, 5, 400]))
    assert cells(column, found) == [0, 1, 2, 3] * 500


def test_the_first_bin_slopes_too_and_a_lone_bin_does_not():
    column = {"kind": "numeric", "bounds": [0, 2], "bins": 2}
    found = values(column, np.zeros(20_000, dtype=int), heights=np.array([1.0, 3.0]))
    assert found.mean() > 0.5 + 1 / 40
    lone = {"kind": "numeric", "bounds": [0, 2], "bins": 1}
    even = values(lone, np.zeros(20_000, dtype=int), heights=np.array([1.0]))
    assert stats.kstest(even, "uniform", (0, 2)).pvalue > ALARM


def test_a_narrow_bin_stands_for_its_lower_edge():
    column = {"kind": "numeric", "bounds": [0, 1000], "bins": [0, 1e-4, 500, 1000]}
    assert set(values(column, np.zeros(100, dtype=int))) == {0.0}
    assert (values(column, np.ones(100, dtype=int)) > 1e-4).all()


def test_edges_that_leave_a_bin_without_whole_numbers_are_refused():
    # Nothing can be decoded for such a cell, and a condition would divide by its width.
    with pytest.raises(SchemaError):
        schema_of(a={"kind": "integer", "bounds": [0, 3], "bins": [0, 0.2, 0.5, 3]})


@pytest.mark.parametrize(
    "column",
    [
        {"kind": "numeric", "bounds": [1e15, 1e15 + 4], "bins": 8},
        {"kind": "numeric", "bounds": [1, 1 + 1e-14], "bins": 5},
        {"kind": "numeric", "bounds": [1e6, 1e6 + 1], "bins": [1e6, 1e6 + 1e-5, 1e6 + 1]},
    ],
)
def test_bins_near_the_limits_of_precision_go_back_to_their_cells(column):
    count = schema_of(a=column).columns["a"].cells
    codes = np.tile(np.arange(count), 200)
    assert cells(column, values(column, codes)) == codes.tolist()


# --- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [(20, 35), (17, 17), (31, 31), (90, 90), (46, 61)])
@pytest.mark.parametrize("heights", [None, np.array([1.0, 5, 2, 8, 1])])
def test_whole_numbers_keep_to_limits_and_reach_them_all(limits, heights):
    spec = schema_of(a=AGE).columns["a"]
    edges = np.array(bin_edges(spec))
    inside = np.arange(limits[0], limits[1] + 1)
    place = np.searchsorted(edges[1:-1], inside, side="right")
    given = {} if heights is None else {"heights": heights}
    found = values(AGE, np.repeat(place, 60), limits=limits, **given)
    assert set(found) == set(inside.tolist())


def test_real_numbers_keep_to_limits_with_the_slope_of_the_whole_bin():
    column = {"kind": "numeric", "bounds": [0, 3], "bins": 3}
    heights = np.array([1.0, 2.0, 3.0])
    found = values(column, np.ones(20_000, dtype=int), heights=heights, limits=(1.5, 1.75))
    assert found.between(1.5, 1.75).all()
    whole = values(column, np.ones(200_000, dtype=int), heights=heights)
    cut = whole[whole.between(1.5, 1.75)]
    assert stats.ks_2samp(found, cut).pvalue > ALARM


def test_moments_and_days_keep_to_limits():
    day = (dt.date(1969, 12, 26) - dt.date(1970, 1, 1)).days
    found = values(BORN, np.zeros(200, dtype=int), limits=(day, day + 1))
    assert set(found) == {pd.Timestamp("1969-12-26"), pd.Timestamp("1969-12-27")}
    found = values(SEEN, np.zeros(200, dtype=int), limits=(-0.9, -0.8))
    assert found.between(pd.Timestamp(-0.9, unit="s"), pd.Timestamp(-0.8, unit="s")).all()


# --- places -------------------------------------------------------------------------------------


def test_places_are_taken_as_they_are():
    place = np.array([0.0, 0.25, 1.0])
    assert values(HEIGHT, [0, 1, 3], places=place).tolist() == [0.5, 1.0, 2.5]
    assert values(AGE, [0, 0, 4], places=np.array([0.0, 0.004, 1.0])).tolist() == [17, 17, 90]
    found = values({**HEIGHT, "missing": True}, [0, 4, 3], places=place)
    assert found.isna().tolist() == [False, True, False]


def test_the_same_generator_gives_the_same_values():
    codes = np.tile(np.arange(4), 10)
    assert values(HEIGHT, codes).equals(values(HEIGHT, codes))
