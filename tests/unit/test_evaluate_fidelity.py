"""Distances of tables: against hand counts, brute force, and differences that were planted."""

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.errors import DataError
from aquatint.evaluate import fidelity as fidelity_module
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.fidelity import alpha_way, fidelity, marginals, subsets, wasserstein
from aquatint.evaluate.mmd import mmd
from aquatint.evaluate.tables import Encoded, Grid, encode
from aquatint.schema import Schema


def schema_of(**columns):
    return Schema.from_dict(
        {"name": "t", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    )


SEX = {"kind": "categorical", "categories": ["F", "M"]}
JOB = {"kind": "categorical", "categories": ["a", "b", "c"], "other": True, "missing": True}
SIZE = {"kind": "numeric", "bounds": [0, 10], "missing": True}
AGE = {"kind": "integer", "bounds": [0, 7]}


def both(schema, real, synthetic, bins=32):
    grid = Grid(schema, bins)
    return encode(pa.table(real), grid, strict=True), encode(pa.table(synthetic), grid), grid


def coded(real, synthetic, tops):
    """Two tables given as their cells, which go from 0 to the top of each column."""
    whole = {n: {"kind": "integer", "bounds": [0, top]} for n, top in tops.items()}
    grid = Grid(schema_of(**whole), bins=2000)
    codes = [{n: np.asarray(c, np.int32) for n, c in t.items()} for t in (real, synthetic)]
    return *(Encoded(c, {}, len(next(iter(c.values()))), 0.0) for c in codes), grid


# --- the grid -------------------------------------------------------------------------------------


def test_bins_come_from_the_schema_and_are_32_where_it_has_none():
    edges = {"kind": "numeric", "bounds": [0, 4], "bins": [0, 1, 4]}
    grid = Grid(schema_of(size=SIZE, age=AGE, own={**SIZE, "bins": 5}, edges=edges))
    present = {name: cells - 1 for name, cells in grid.cells.items()}  # the last is for missing
    assert present == {"size": 32, "age": 8, "own": 5, "edges": 2}


def test_cells_do_not_depend_on_the_rows():
    grid = Grid(schema_of(size=SIZE))
    few, many = (encode(pa.table({"size": v}), grid) for v in ([3.0], [0.0, 3.0, 10.0]))
    assert few.codes["size"][0] == many.codes["size"][1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"sex": ["F", "Q"], "age": [1, 2]}, "'sex' has values outside its declared categories"),
        ({"sex": ["F", "M"], "age": [1, None]}, "'age' has missing values"),
    ],
)
def test_real_rows_must_fit_the_schema_and_synthetic_rows_need_not(rows, said):
    grid = Grid(schema_of(sex=SEX, age=AGE))
    with pytest.raises(DataError, match=said):
        encode(pa.table(rows), grid, what="real", strict=True)
    assert encode(pa.table(rows), grid).outside == 1 / 4


def test_what_lies_outside_the_schema_counts_as_an_error():
    real, synthetic, grid = both(schema_of(sex=SEX), {"sex": ["F", "M"]}, {"sex": ["F", "Q"]})
    assert fidelity(real, synthetic, grid).one[("sex",)] == 0.5
    assert synthetic.outside == 0.5


def test_what_the_schema_allows_is_not_outside_it():
    grid = Grid(schema_of(job=JOB, size=SIZE))
    table = pa.table({"job": ["a", "zzz", None], "size": [1.0, None, 10.0]})
    assert encode(table, grid, strict=True).outside == 0
    assert encode(pa.table({"job": ["a"], "size": [11.0]}), grid).outside == 0.5  # clipped


def test_a_table_without_rows_is_refused():
    with pytest.raises(DataError, match="the synthetic table has no rows"):
        encode(pa.table({"sex": pa.array([], pa.string())}), Grid(schema_of(sex=SEX)))


def test_the_column_that_names_a_person_is_not_asked_for():
    schema = Schema.from_dict(
        {
            "name": "t",
            "privacy": {"protects": "all rows of one person", "person": "id"},
            "columns": {"sex": SEX},
        }
    )
    assert encode(pa.table({"sex": ["F"]}), Grid(schema)).rows == 1


def test_every_kind_of_column_is_read(kit, schema):
    grid = Grid(schema)
    table = encode(kit.raw_table(500), grid)
    assert set(table.codes) == set(schema.columns)
    assert set(table.values) == {"age", "height", "weight"}
    assert all(table.codes[n].max() < grid.cells[n] for n in grid.cells)
    absent = np.isnan(table.values["age"])  # not a frame
    assert absent.sum() == (table.codes["age"] == 5).sum() > 0
    found = fidelity(table, table, grid)
    assert found.means == {"tv1": 0, "tv2": 0, "tv3": 0, "wasserstein": 0}


def test_dates_and_moments_are_ranges_like_any():
    schema = schema_of(
        day={"kind": "date", "bounds": ["2020-01-01", "2020-01-10"]},
        at={"kind": "datetime", "bounds": ["2020-01-01T00:00:00", "2020-01-02T00:00:00"]},
    )
    early, late = (
        pd.DataFrame({"day": [pd.Timestamp(d)], "at": [pd.Timestamp(f"2020-01-01T{h}:00")]})
        for d, h in (("2020-01-01", "00"), ("2020-01-10", "12"))
    )
    grid = Grid(schema)
    assert grid.cells["day"] == 10 + 1
    found = wasserstein(encode(early, grid), encode(late, grid))
    assert found == {"day": pytest.approx(1.0), "at": pytest.approx(0.5, abs=1e-6)}


# --- total variation -----------------------------------------------------------------------------


def test_total_variation_by_hand():
    real = {"sex": ["F", "F", "F", "M"], "job": ["a", "b", "a", "b"]}
    synthetic = {"sex": ["F", "M"], "job": ["a", "a"]}
    found = fidelity(*both(schema_of(sex=SEX, job=JOB), real, synthetic))
    # sex: ¾ ¼ against ½ ½. job: ½ ½ against 1 0.
    assert found.one == {("sex",): pytest.approx(0.25), ("job",): pytest.approx(0.5)}
    # (F, a) ½, (F, b) ¼, (M, b) ¼ against (F, a) ½, (M, a) ½.
    assert found.two == {("sex", "job"): pytest.approx(0.5)}
    assert found.three == {}
    assert found.means["tv3"] is None


def test_missing_values_have_a_cell_of_their_own():
    real, synthetic = {"size": [None, None, 1.0, 9.0]}, {"size": [None, 1.0, 1.0, 9.0]}
    found = fidelity(*both(schema_of(size=SIZE), real, synthetic))
    assert found.one == {("size",): 0.25}


def test_a_planted_difference_shows_in_its_column_alone():
    rng = np.random.default_rng(0)
    real = {"sex": rng.choice(["F", "M"], 400), "age": rng.integers(0, 8, 400)}
    real["job"] = rng.choice(["a", "b"], 400)
    moved = {**real, "age": np.where(real["age"] == 3, 4, real["age"])}
    found = fidelity(*both(schema_of(sex=SEX, age=AGE, job=JOB), real, moved))
    share = float((real["age"] == 3).mean())
    assert found.one == {("sex",): 0, ("age",): pytest.approx(share), ("job",): 0}
    # Every joint cell with age 3 empties, so no marginal is off by less.
    assert found.two[("sex", "job")] == 0
    assert found.two[("sex", "age")] == pytest.approx(share)
    assert found.three[("sex", "age", "job")] == pytest.approx(share)


def test_ranges_are_cut_over_the_public_bounds_as_a_plain_histogram_would():
    rng = np.random.default_rng(1)
    ours, theirs = rng.uniform(0, 10, 500), rng.normal(4, 2, 700).clip(0, 10)
    found = fidelity(*both(schema_of(size=SIZE), {"size": ours}, {"size": theirs}))
    p, q = (np.histogram(v, 32, (0, 10))[0] / len(v) for v in (ours, theirs))
    assert found.one[("size",)] == pytest.approx(np.abs(p - q).sum() / 2)


tables = st.integers(1, 40).flatmap(
    lambda rows: st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 1), st.integers(0, 3)),
        min_size=rows,
        max_size=rows,
    )
)


@settings(max_examples=40, deadline=None)
@given(tables, tables, st.integers(1, 4), st.booleans())
def test_total_variation_agrees_with_counting_tuples(real, synthetic, alpha, sparse):
    names = "abcd"
    columns = [{n: [row[i] for row in t] for i, n in enumerate(names)} for t in (real, synthetic)]
    ours, theirs, grid = coded(*columns, {"a": 2, "b": 4, "c": 1, "d": 3})
    errors = []
    for places in combinations(range(4), alpha):
        p, q = (Counter(tuple(r[i] for i in places) for r in t) for t in (real, synthetic))
        gaps = [abs(p[k] / len(real) - q[k] / len(synthetic)) for k in p | q]
        errors.append(sum(gaps) / 2)
    with pytest.MonkeyPatch.context() as patch:
        if sparse:
            patch.setattr(fidelity_module, "_DENSE", 1)
        assert alpha_way(ours, theirs, grid, alpha) == pytest.approx(np.mean(errors), abs=1e-12)


def test_joint_domains_beyond_int64_are_counted_right():
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(9)]
    real = {n: rng.integers(0, 1000, 200) for n in names}
    moved = {n: (v + 1) % 1000 for n, v in real.items()}
    tops = dict.fromkeys(names, 999)
    assert alpha_way(*coded(real, real, tops), 9) == 0
    assert alpha_way(*coded(real, moved, tops), 9) == 1


def test_tables_may_differ_in_length():
    real = {"sex": ["F", "M"]}
    found = fidelity(*both(schema_of(sex=SEX), real, {"sex": ["F", "M"] * 50}))
    assert found.means["tv1"] == 0


# --- which marginals ------------------------------------------------------------------------------


def test_random_triples_are_those_of_the_reference_evaluation():
    names = tuple("abcdefghij")
    every = list(combinations(names, 3))
    places = np.random.RandomState(0).choice(len(every), 20, replace=False)
    assert subsets(names, 3, 20, seed=0) == [every[i] for i in sorted(places)]


def test_subsets_of_very_many_columns_are_drawn_without_listing_them():
    names = tuple(f"c{i:03}" for i in range(617))
    assert comb(617, 4) > 10**9
    found = subsets(names, 4, 50, seed=3)
    assert found == subsets(names, 4, 50, seed=3) != subsets(names, 4, 50, seed=4)
    assert len(set(found)) == 50
    assert all(list(s) == sorted(set(s)) and len(s) == 4 for s in found)


def test_a_marginal_without_columns_is_refused():
    with pytest.raises(EvaluationError, match="at least one column"):
        subsets(("a",), 0)


def test_only_wanted_marginals_are_computed_and_each_is_told_of():
    ours, theirs, grid = coded({"a": [0], "b": [1]}, {"a": [0], "b": [0]}, {"a": 1, "b": 1})
    told = []
    assert marginals(ours, theirs, grid, [("b",)], told.append) == {("b",): 1.0}
    assert told == [1]


# --- Wasserstein ----------------------------------------------------------------------------------


def test_wasserstein_is_the_shift_over_the_width_of_the_bounds():
    real, synthetic, _ = both(
        schema_of(size=SIZE), {"size": [1.0, 2.0, None]}, {"size": [2.0, 3.0]}
    )
    assert wasserstein(real, synthetic)["size"] == pytest.approx(0.1, abs=2e-6)


@pytest.mark.parametrize(("theirs", "distance"), [([None], 0.0), ([1.0], 1.0)])
def test_wasserstein_of_columns_that_are_wholly_missing(theirs, distance):
    theirs = pa.array(theirs, pa.float64())
    real, synthetic, _ = both(
        schema_of(size=SIZE), {"size": pa.array([None], pa.float64())}, {"size": theirs}
    )
    assert wasserstein(real, synthetic) == {"size": distance}


# --- maximum mean discrepancy ---------------------------------------------------------------------


def mixed(count, seed, shift=0.0, missing=0.1):
    rng = np.random.default_rng(seed)
    size = (rng.normal(5 + shift, 1.5, count)).clip(0, 10)
    size[rng.random(count) < missing] = np.nan
    return pa.table(
        {
            "size": pa.array(size, from_pandas=True),
            "sex": rng.choice(["F", "M"], count, p=[0.4, 0.6]),
            "job": rng.choice(["a", "b", "c"], count),
        }
    )


MIXED = schema_of(size=SIZE, sex=SEX, job=JOB)


def exact_mmd(ours, theirs, scale):
    """DP-MERF eq. 2, over every pair of rows."""

    def rows(table):
        size = table.values["size"]  # not a frame
        absent = np.isnan(size)
        plane = np.stack([np.where(absent, 0.5, size), np.where(absent, np.sqrt(0.75), 0)], 1)
        cells = [np.eye(6)[table.codes[n]] / np.sqrt(2) for n in ("sex", "job")]
        return np.concatenate([plane, *cells], axis=1)

    def mean_kernel(a, b):
        squares = ((a[:, None] - b[None]) ** 2).sum(2)
        return np.exp(-squares / (2 * scale**2)).mean()

    x, y = rows(ours), rows(theirs)
    return np.sqrt(mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y))


@pytest.mark.parametrize("scale", [None, 0.3])
def test_mmd_agrees_with_the_sum_over_all_pairs_of_rows(scale):
    grid = Grid(MIXED)
    ours, theirs = encode(mixed(150, 0), grid), encode(mixed(200, 1, shift=2.0), grid)
    found = mmd(ours, theirs, grid, features=20_000, length_scale=scale)
    assert found.mmd == pytest.approx(exact_mmd(ours, theirs, scale or np.sqrt(3) / 2), rel=0.02)


def test_mmd_of_equal_tables_is_zero_and_its_draws_follow_the_seed():
    grid = Grid(MIXED)
    ours, theirs = encode(mixed(100, 0), grid), encode(mixed(100, 1, shift=1.0), grid)
    assert mmd(ours, ours, grid).mmd == 0
    assert mmd(ours, theirs, grid, seed=1) == mmd(ours, theirs, grid, seed=1)
    assert mmd(ours, theirs, grid, seed=1) != mmd(ours, theirs, grid, seed=2)


@pytest.mark.parametrize("planted", [{"shift": 1.0}, {"missing": 0.5}])
def test_mmd_sees_a_planted_difference(planted):
    grid = Grid(MIXED)
    ours = encode(mixed(2000, 0), grid)
    same = mmd(ours, encode(mixed(2000, 1), grid), grid)
    moved = mmd(ours, encode(mixed(2000, 1, **planted), grid), grid)
    assert moved.mmd > 2 * moved.floor > same.mmd


def test_the_floor_is_what_two_samples_of_one_distribution_show():
    grid = Grid(MIXED)
    pairs = [
        (encode(mixed(120, 2 * s), grid), encode(mixed(60, 2 * s + 1), grid)) for s in range(60)
    ]
    found = [mmd(a, b, grid, features=200) for a, b in pairs]
    ratio = np.mean([f.mmd**2 for f in found]) / np.mean([f.floor**2 for f in found])
    assert ratio == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("wrong", [{"features": 3}, {"features": 0}, {"length_scale": 0.0}])
def test_mmd_refuses_what_makes_no_sense(wrong):
    grid = Grid(MIXED)
    table = encode(mixed(5, 0), grid)
    with pytest.raises(EvaluationError, match="must be"):
        mmd(table, table, grid, **wrong)
