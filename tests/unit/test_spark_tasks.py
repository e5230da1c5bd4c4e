"""What the tasks of a cluster give and what the driver accepts, without a cluster."""

import json
from collections import Counter

import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import aquatint as aq
from aquatint.curator import spark_tasks
from aquatint.curator.gathering import accumulate
from aquatint.curator.spark import _check_complete, _one_sentence, _tree, accumulate_spark
from aquatint.curator.spark_tasks import covered, merge_partials, merged, sum_persons_of_group
from aquatint.errors import DataError, PlanError


@pytest.fixture
def plan(schema):
    return aq.plan(schema)


@pytest.fixture
def text(plan):
    return json.dumps(plan.to_dict())


@pytest.fixture
def parts(plan, kit):
    """The rows of five partitions, one of them empty, in small batches."""
    table = kit.raw_table(200)
    cuts = [(0, 50), (50, 50), (50, 51), (51, 120), (120, 200)]
    rows = [
        spark_tasks._row(part, [part], lambda a=a, b=b: spark_tasks._sum(
            iter(table.slice(a, b - a).to_batches(max_chunksize=7)), plan
        ))
        for part, (a, b) in enumerate(cuts)
    ]  # fmt: skip
    return pa.Table.from_batches(rows)


def test_parts_add_up(parts, plan, kit):
    found, wanted = merged(parts, plan), accumulate(kit.raw_table(200), plan)
    assert all(map(torch.equal, found.totals, wanted.totals))
    assert (found.rows, found.notes) == (wanted.rows, wanted.notes)
    _check_complete(covered(parts), None)


def test_merging_in_groups_changes_nothing(parts, plan, text):
    wanted = merged(parts, plan)
    groups = [merge_partials(text, 0, parts.slice(0, 2)), merge_partials(text, 1, parts.slice(2))]
    found = pa.concat_tables(groups)
    assert found["part"].to_pylist() == [0, 1]
    assert sorted(covered(found)) == list(range(5))
    assert all(map(torch.equal, merged(found, plan).totals, wanted.totals))


def test_a_part_that_comes_twice_is_refused(parts, plan, text):
    """The same task twice, as if Spark had taken two attempts: at any level of merging."""
    again = pa.concat_tables([parts, parts.slice(3, 1)])
    with pytest.raises(DataError, match="part 3 twice"):
        merged(again, plan)
    inside = merge_partials(text, 0, again)
    assert inside["partial"].to_pylist() == [None]
    with pytest.raises(DataError, match="part 3 twice"):
        merged(inside, plan)
    across = [merge_partials(text, i, parts.slice(i, 4)) for i in (0, 1)]
    with pytest.raises(DataError, match="part 1 twice"):
        merged(pa.concat_tables(across), plan)


def test_one_partial_under_two_numbers_is_refused(parts, plan):
    other = pa.array([9], pa.int32())
    copy = parts.slice(3, 1).set_column(0, "part", other)
    copy = copy.set_column(1, "covers", pa.array([[9]], pa.list_(pa.int32())))
    with pytest.raises(DataError, match="came twice"):
        merged(pa.concat_tables([parts, copy]), plan)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 7), max_size=9))
def test_only_each_partition_once_is_complete(covers):
    whole = Counter(covers) == Counter(range(len(covers)))
    if whole:
        _check_complete(covers, None)
    else:
        with pytest.raises(DataError, match="lost or repeated"):
            _check_complete(covers, None)


def test_groups_of_persons_may_be_empty_but_not_unknown():
    _check_complete([4, 0], 5)
    for bad in ([5], [-1], [2, 2]):
        with pytest.raises(DataError, match="lost or repeated"):
            _check_complete(bad, 5)


def test_the_first_mistake_is_told_without_values(parts, plan, text, kit):
    bad = kit.raw_table(10).set_column(5, "grade", pa.array(["secret-4711"] * 10))
    wrong = sum_persons_of_group(text, bad.column_names, 7, bad)
    with pytest.raises(DataError, match="column 'grade' has values outside") as caught:
        merged(pa.concat_tables([parts, wrong]), plan)
    assert "secret" not in str(caught.value)


def test_an_unexpected_error_shows_its_place_and_not_its_text():
    def fail():
        raise ValueError("secret-4711")

    with pytest.raises(RuntimeError, match=r"ValueError in test_spark_tasks\.py") as caught:
        spark_tasks._row(0, [0], fail)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_executors_without_aquatint_are_named():
    text = "PythonException: ModuleNotFoundError: No module named 'aquatint'"
    with pytest.raises(DataError, match="not installed on the executors"), _one_sentence():
        raise RuntimeError(text)


@settings(max_examples=200, deadline=None)
@given(size=st.integers(1, 1 << 30), parts=st.integers(1, 10**6))
def test_neither_a_task_nor_the_driver_gets_too_much(size, parts):
    fan_in, levels = _tree(size, parts)
    assert 2 <= fan_in <= 32
    assert fan_in * size <= max(1 << 30, 2 * size)
    for _ in range(levels):
        parts = -(-parts // fan_in)
    assert parts == 1 or parts * size <= 256 << 20


def test_what_does_not_fit_a_task_is_refused(schema_dict):
    with pytest.raises(PlanError, match="smaller plan"):
        _tree((1 << 30) + 8, 1)
    privacy = {"protects": "all rows of one person", "person": "id"}
    plan = aq.plan(aq.Schema.from_dict({**schema_dict, "privacy": privacy}))
    for groups in (0, 10**7):
        with pytest.raises(PlanError, match="person_groups"):
            accumulate_spark(None, plan, person_groups=groups)


def test_only_a_spark_frame_will_do(plan, kit):
    with pytest.raises(DataError, match="this is a Table: give a DataFrame of PySpark 4"):
        accumulate_spark(kit.raw_table(3), plan)
