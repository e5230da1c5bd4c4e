"""Tests that fail against src as of 2eb221f, one for each bug in the test engineer's report."""

import dataclasses
from math import nan

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from aquatint.columns import bin_edges
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.integers import quantise
from aquatint.curator.persons import _bucket
from aquatint.curator.sketch import accumulate, sketch
from aquatint.curator.sums import leaf_sum
from aquatint.errors import DataError, PlanError, ReleaseError, SchemaError
from aquatint.features import (
    Bound,
    Count,
    Rows,
    by_label,
    fourier,
    from_spec,
    hermite,
    onehot,
)
from aquatint.features.algebra import Scaled
from aquatint.features.base import Columns
from aquatint.features.fourier import cos_sin
from aquatint.features.grid import Grid, grid_of
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema
from aquatint.table_plan import plan

ROW = {"protects": "add or remove one row"}


def table_schema(column, privacy=ROW, name="a"):
    return Schema.from_dict({"name": "x", "privacy": privacy, "columns": {name: column}})


def codes(column, array, ordered=True):
    read = frozenset({"a"})
    encoder = Encoder(table_schema(column), read, read if ordered else frozenset())
    return encoder(pa.record_batch({"a": array}), Notes()).codes["a"].tolist()


# 2. A missing value makes the gradient of a Fourier map NaN.


def test_gradients_are_finite_where_a_value_is_missing():
    value = torch.tensor([0.3, nan]).requires_grad_()
    fourier(["a"], 4)(Rows({}, {"a": value}, 2)).sum().backward()
    assert value.grad.isfinite().all()


# 3. The gradient path loses digits at many turns (the angle is rounded to float32 first).


def test_the_path_with_gradients_is_exact_at_many_turns():
    turns = torch.from_numpy(np.random.default_rng(0).random((2000, 3))) * 1e4
    smooth = cos_sin(turns.clone().requires_grad_(), 1.0)
    assert (cos_sin(turns.clone(), 1.0) - smooth).abs().max() < 1e-6


# 4. ZeroDivisionError instead of PlanError.


@pytest.mark.parametrize("wrong", [{"span": 0.0}, {"length_scale": 0.0}])
def test_hermite_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(PlanError):
        hermite(["a"], 2, **wrong)


# 5. from_spec takes types that a spec never has.


@pytest.mark.parametrize(
    "spec",
    [
        {**by_label(Count(), "a", 2).spec(), "label": None},
        {**by_label(Count(), "a", 2).spec(), "classes": None},
        {**by_label(Count(), "a", 2).spec(), "classes": -2},
        {**by_label(Count(), "a", 2).spec(), "classes": True},
        {**hermite(["a"], 2).spec(), "order": 2.0},
        {**fourier(["a"], 4).spec(), "features": 4.0},
        {"kind": "marginals", "columns": [["a", -2], ["b", -3]], "sets": [[0, 1]]},
        {"kind": "marginals", "columns": [["a", 0]], "sets": [[0]]},
    ],
)
def test_a_spec_of_the_wrong_types_is_refused(spec):
    with pytest.raises(PlanError):
        from_spec(spec)


# 6. A finite float64 that overflows on the grid: OverflowError.


def test_the_largest_floats_are_clipped_or_refused():
    bound = Bound(dim=2, l1=2**22, l2_squared=2**44, low=-(2**22), high=2**22)
    row = torch.tensor([[1e308, 1.0]], dtype=torch.float64)
    try:
        out = [int(v) for v in quantise(row, Grid(2.0**22, bound))[0]]
    except DataError:
        return
    assert sum(v * v for v in out) <= bound.l2_squared


# 7. A subclass of an algebra map is trusted to count.


def test_a_subclass_of_an_algebra_map_is_not_trusted_to_count():
    class Repeats(Scaled):
        def cells(self, rows):
            return torch.zeros(len(rows), 100, dtype=torch.int64)

    leaf = Repeats(onehot({"a": 3}), 1.0)
    row = leaf_sum(leaf, Rows({"a": torch.tensor([1], dtype=torch.int32)}, {}, 1))
    assert sum(int(v) ** 2 for v in row) <= grid_of(leaf).bound.l2_squared


# 8. A bound that leaves out zero: replace-one sensitivity of nought for rows that do differ.


def test_a_bound_that_leaves_out_zero_is_refused():
    with pytest.raises((PlanError, ValueError)):
        Bound(dim=4, l1=4, l2_squared=4, low=0.5, high=0.5)


# 9. The person column.

PERSON = {"protects": "all rows of one person", "person": "id"}
NUMBER = {"kind": "numeric", "bounds": [0, 1], "bins": 2}


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([nan, 1.0]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None])),
        pa.array([[1], [2]]),
    ],
    ids=["not a number", "null in the dictionary", "lists"],
)
def test_an_id_that_names_nobody_is_refused(ids):
    made = plan(table_schema(NUMBER, PERSON))
    with pytest.raises(DataError):
        accumulate(pa.table({"a": [0.0, 1.0], "id": ids}), made)


def test_buckets_spread_short_ids():
    names = pa.array([str(i).encode() for i in range(10)], pa.large_binary())
    assert len(_bucket(names, (0, 2))) < 10
    names = pa.array([str(i).encode() for i in range(1000)], pa.large_binary())
    sizes = [len(_bucket(names, (k, 8))) for k in range(8)]
    assert max(sizes) < 1000 / 8 * 1.6


# 10. Polars categories.


def test_polars_categories_are_read():
    frame = pl.DataFrame({"a": ["x", "y", "x"]}).with_columns(pl.col("a").cast(pl.Categorical))
    made = plan(table_schema({"kind": "categorical", "categories": ["x", "y"]}))
    assert accumulate(frame, made).totals[1].tolist() == [2 * 2**20, 2**20]


# 11. Pandas and tables: raw errors, one of them with a private value in it.


def test_a_mixed_pandas_column_is_refused_without_its_values():
    with pytest.raises(DataError) as caught:
        accumulate(pd.DataFrame({"a": [1, "SECRET"]}), plan(table_schema(NUMBER)))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        pd.Series([1, 2], name="a"),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
    ids=["series", "frame with a column twice", "table with a column twice"],
)
def test_odd_frames_are_refused_with_a_sentence(data):
    with pytest.raises(DataError):
        accumulate(data, plan(table_schema(NUMBER)))


def test_a_csv_with_a_column_twice_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,a\n1,0\n")
    with pytest.raises(DataError):
        accumulate(tmp_path / "x.csv", plan(table_schema(NUMBER)))


def test_a_plan_that_only_counts_takes_a_pandas_frame():
    made = Plan(table_schema(NUMBER), (PlannedBlock("count", Count(), 1.0),))
    assert accumulate(pd.DataFrame({"a": [0.1, 0.2]}), made).rows == 2


# 12. Encoding.


def test_fractions_are_not_truth():
    with pytest.raises(DataError):
        codes({"kind": "boolean"}, pa.array([0.5, 1.0]))


def test_not_a_number_is_missing_in_every_kind():
    assert codes({"kind": "boolean", "missing": True}, pa.array([nan, 1.0])) == [2, 1]
    column = {"kind": "ordered", "categories": [1, 2], "missing": True}
    assert codes(column, pa.array([1.0, nan])) == [0, 2]


def test_text_with_whole_numbers_as_categories_is_read_or_refused():
    try:
        column = {"kind": "text", "categories": [1, 2]}
        assert codes(column, pa.array([1, 2]), ordered=False) == [0, 1]
    except (SchemaError, DataError):
        pass


def test_a_number_on_an_edge_is_in_the_bin_above_it():
    column = {"kind": "numeric", "bounds": [0, 0.7], "bins": 49}
    edges = bin_edges(table_schema(column).columns["a"])
    assert codes(column, pa.array(edges[:-1])) == list(range(49))


# 13. Accounting.


def test_noise_300_times_too_small_is_refused_with_a_sentence(kit, schema):
    honest = sketch(kit.raw_table(300), schema, epsilon=1.0, delta=1e-6, progress=False)
    thin = dataclasses.replace(
        honest.blocks[1], scales=tuple(s / 300 for s in honest.blocks[1].scales)
    )
    with pytest.raises(ReleaseError, match="its noise only gives"):
        dataclasses.replace(honest, blocks=(honest.blocks[0], thin, *honest.blocks[2:]))


# 14. Schema and plan files.


def test_bounds_beyond_any_float_are_refused():
    with pytest.raises(SchemaError):
        table_schema({"kind": "integer", "bounds": [0, 10**400]})


def test_a_column_named_like_a_kind_is_named_in_the_error():
    with pytest.raises(SchemaError, match=r"columns\.date\.bounds"):
        table_schema({"kind": "date"}, name="date")


@pytest.mark.parametrize(
    "column",
    [
        {"kind": "integer", "bounds": [0, 5], "bins": "many"},
        {"kind": "categorical", "categories": [1.5]},
    ],
)
def test_a_place_in_the_schema_is_named_without_jargon(column):
    with pytest.raises(SchemaError) as caught:
        table_schema(column)
    assert "constrained" not in str(caught.value)
    assert ".str" not in str(caught.value)
    assert "and 1 more" not in str(caught.value)


def test_a_plan_file_that_is_a_list_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(PlanError):
        Plan.load(tmp_path / "plan.json")


def test_a_plan_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(PlanError):
        plan(table_schema(NUMBER)).save(tmp_path / "none" / "plan.json")


# 15. Files by name.


def test_capital_suffixes_are_known(tmp_path):
    (tmp_path / "X.CSV").write_text("a\n1\n")
    assert accumulate(tmp_path / "X.CSV", plan(table_schema(NUMBER))).rows == 1


def test_text_that_is_not_utf8_is_not_called_a_number(tmp_path):
    (tmp_path / "x.csv").write_bytes("a\ncaf\xe9\n".encode("latin-1"))
    made = plan(table_schema({"kind": "categorical", "categories": ["x"], "other": True}))
    with pytest.raises(DataError, match="UTF-8"):
        accumulate(tmp_path / "x.csv", made)


# 16. Columns is a Mapping, so an unknown name is a KeyError.


def test_an_unknown_column_is_a_key_error():
    columns = Columns(("a",), torch.zeros(2, 1))
    assert "b" not in columns
    assert columns.get("b") is None
