"""The unit "all rows of one person", against a slow reference in Python's own integers."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import torch

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.persons import collect, passes, sum_persons
from aquatint.curator.sketch import accumulate
from aquatint.curator.sums import leaf_sum
from aquatint.errors import DataError
from aquatint.features import Count, by_label, fourier, hermite, leaves, marginals, race, scale
from aquatint.features.grid import sensitivity
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema
from aquatint.table_plan import plan as default_plan

COUNT = 150


def plan_of(schema_dict, cells, max_rows):
    privacy = {"protects": "all rows of one person", "person": "id"}
    if max_rows is not None:
        privacy["max_rows"] = max_rows
    maps = {
        "count": Count(),
        "counting": marginals(cells, [("age",), ("sex", "job")]),
        "weighted counting": scale(race(["height"], 3, 4), 0.3),
        "dense": fourier(["age", "weight"], 12),
        "dense by label": by_label(hermite(["weight"], 3), "sex", 3),
        "counting by label": by_label(race(["weight"], 2, 3), "sex", 3),
        "both": fourier(["height"], 4) + marginals(cells, [("ill",)]),
    }
    blocks = tuple(PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
    return Plan(Schema.from_dict({**schema_dict, "privacy": privacy}), blocks)


@pytest.fixture(params=[None, 1, 3], ids=lambda k: f"max_rows={k}")
def plan(request, schema_dict, kit):
    return plan_of(schema_dict, kit.cells, request.param)


def with_ids(table, kind="string"):
    rng = np.random.default_rng(5)
    numbers = np.sort(rng.zipf(1.6, table.num_rows) % 40)
    ids = pa.array((1_000_000 + 7919 * rng.permutation(numbers)).tolist())
    ids = ids.cast(pa.string()) if kind != "int" else ids
    if kind == "dictionary":
        ids = ids.dictionary_encode()
    elif kind not in {"int", "string"}:
        ids = ids.cast(getattr(pa, kind)())
    return table.append_column("id", ids)


@pytest.fixture
def table(kit):
    return with_ids(kit.raw_table(COUNT))


def encoder_of(plan):
    codes, values = zip(*(block.map.reads for block in plan.blocks), strict=True)
    return Encoder(plan.schema, frozenset().union(*codes), frozenset().union(*values))


def encoded(plan, table):
    return encoder_of(plan)(table.combine_chunks().to_batches()[0], Notes())


def toward_zero(numerator, denominator):
    size = abs(numerator) // denominator
    return size if numerator >= 0 else -size


def slow_sum(leaf, rows, persons, max_rows):
    total = [0] * leaf.dim
    for person in sorted(set(persons)):
        own = [i for i, p in enumerate(persons) if p == person]
        each = [[int(v) for v in leaf_sum(leaf, rows.slice(i, i + 1))] for i in own]
        added = [sum(column) for column in zip(*each, strict=True)]
        if len(own) > max_rows:
            added = [toward_zero(max_rows * value, len(own)) for value in added]
        total = [a + b for a, b in zip(total, added, strict=True)]
    return total


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_the_data_has_light_and_heavy_persons(table):
    sizes = sorted(table["id"].value_counts().field("counts").to_pylist())
    assert sizes[0] == 1
    assert 2 in sizes
    assert sizes[-1] > 20


def test_sums_by_person_equal_the_slow_reference(plan, table):
    rows, persons = encoded(plan, table), table["id"].to_pylist()
    found = accumulate(table, plan).totals
    for block, total in zip(plan.blocks, found, strict=True):
        wanted = [
            value
            for leaf in leaves(block.map)
            for value in slow_sum(leaf, rows, persons, plan.schema.privacy.rows_per_unit)
        ]
        assert total.tolist() == wanted, block.name


def test_order_does_not_matter(plan, table):
    wanted = accumulate(table, plan).totals
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert same(accumulate(table.take(rng.permutation(COUNT)), plan).totals, wanted)


def test_batches_do_not_matter(plan, table):
    wanted = accumulate(table, plan).totals
    for size in (1, 13, 149):
        assert same(accumulate(iter(table.to_batches(max_chunksize=size)), plan).totals, wanted)


def test_crowds_do_not_matter(plan, table, monkeypatch):
    wanted = accumulate(table, plan).totals
    for crowd in (1, 10, 60):
        monkeypatch.setattr("aquatint.curator.persons._CROWD", crowd)
        assert same(accumulate(table, plan).totals, wanted)


@pytest.mark.parametrize("limit", [75, 65, 149])
def test_several_passes_give_the_integers_of_one(plan, table, monkeypatch, limit):
    once = accumulate(table, plan)
    monkeypatch.setattr("aquatint.curator.gathering.passes", partial(passes, limit=limit))
    several = accumulate(table, plan)
    assert same(several.totals, once.totals)
    assert several.rows == once.rows == COUNT
    assert several.notes == once.notes


def test_several_passes_really_read_several_times(plan, table):
    opened = []

    def reopen():
        opened.append(1)
        return iter(table.to_batches(max_chunksize=20))

    parts = list(passes(reopen, encoder_of(plan), repeatable=True, limit=75))
    assert len(parts) >= 2
    assert len(opened) > len(parts)
    assert sum(len(rows) for rows, _, _ in parts) == COUNT
    assert all(len(rows) <= 4 * 75 for rows, _, _ in parts)


def test_one_person_with_more_rows_than_fit_is_refused(plan, table):
    alone = table.set_column(table.column_names.index("id"), "id", pa.array(["one"] * COUNT))
    source = partial(passes, lambda: iter(alone.to_batches()), encoder_of(plan), repeatable=True)
    with pytest.raises(DataError, match="check the person column"):
        list(source(limit=20))


def test_a_source_that_can_be_read_once_is_refused_beyond_the_limit(plan, table, monkeypatch):
    monkeypatch.setattr("aquatint.curator.gathering.passes", partial(passes, limit=40))
    for once in (iter(table.to_batches()), table.to_reader()):
        with pytest.raises(DataError, match="give a path or a table instead"):
            accumulate(once, plan)


@pytest.mark.parametrize("kind", ["int", "large_string", "string_view", "dictionary"])
def test_the_type_of_the_id_does_not_matter(plan, kit, table, kind):
    wanted = accumulate(table, plan).totals
    assert same(accumulate(with_ids(kit.raw_table(COUNT), kind), plan).totals, wanted)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.dictionary(pa.int32(), pa.string())])
def test_a_missing_id_is_refused(plan, table, kind):
    ids = table["id"].to_pylist()
    ids = pa.array([None, *map(int, ids[1:])]).cast(pa.string())
    ids = ids.dictionary_encode() if pa.types.is_dictionary(kind) else ids.cast(kind)
    broken = table.set_column(table.column_names.index("id"), "id", ids)
    with pytest.raises(DataError, match="would not be protected"):
        accumulate(broken, plan)


def test_a_missing_column_of_ids_is_refused(plan, kit):
    with pytest.raises(DataError, match="no column 'id'"):
        accumulate(kit.raw_table(5), plan)


def test_no_person_moves_a_sum_by_more_than_the_sensitivity(plan, table):
    whole = accumulate(table, plan).totals
    names = table["id"].value_counts()
    by_size = sorted(names.to_pylist(), key=lambda entry: -entry["counts"])
    for entry in [*by_size[:3], *by_size[-2:]]:
        mask = pa.array([name != entry["values"] for name in table["id"].to_pylist()])
        without = accumulate(table.filter(mask), plan).totals
        for block, a, b in zip(plan.blocks, whole, without, strict=True):
            moved, start = [int(v) for v in a - b], 0
            for leaf in leaves(block.map):
                part = moved[start : start + leaf.dim]
                l2_squared, l1 = sensitivity(leaf, plan.schema.privacy)
                assert sum(v * v for v in part) <= l2_squared
                assert sum(map(abs, part)) <= l1
                start += leaf.dim


def test_a_person_with_the_same_row_many_times_attains_the_sensitivity(plan, table):
    one = table.slice(0, 1)
    crowd = pa.concat_tables([one] * 30)
    allowed = plan.schema.privacy.rows_per_unit
    totals = accumulate(crowd, plan).totals
    assert int(totals[0][0]) == allowed * 2**20
    assert int(totals[1].sum()) == allowed * 2 * 2**20


def test_persons_with_few_rows_are_summed_as_they_are(schema_dict, kit, table):
    rows_plan = Plan(Schema.from_dict(schema_dict), plan_of(schema_dict, kit.cells, 3).blocks)
    apart = table.set_column(
        table.column_names.index("id"), "id", pa.array([str(i) for i in range(COUNT)])
    )
    by_person = accumulate(apart, plan_of(schema_dict, kit.cells, 3))
    assert same(by_person.totals, accumulate(table, rows_plan).totals)


def test_buckets_part_the_persons(plan, table):
    seen = []
    for number in range(4):
        rows, persons = collect(iter(table.to_batches()), encoder_of(plan), (number, 4), Notes())
        assert len(persons) == len(rows)
        seen.append(len(set(persons.tolist())))
    assert sum(seen) == len(set(table["id"].to_pylist()))


def test_no_heavy_person_at_all_is_fine(plan, kit):
    rows = kit.random_rows(4)
    totals = sum_persons(plan, rows, np.arange(4), 1)
    assert int(totals[0][0]) == 4 * 2**20


def person_schema():
    privacy = {"protects": "all rows of one person", "person": "id"}
    number = {"kind": "numeric", "bounds": [0, 1], "bins": 2}
    return Schema.from_dict({"name": "x", "privacy": privacy, "columns": {"a": number}})


def test_the_default_plan_which_reads_no_values_is_summed_by_person():
    table = pa.table({"a": [0.1, 0.9, 0.1], "id": ["x", "y", "x"]})
    assert accumulate(table, default_plan(person_schema())).totals[1].tolist() == [2**20, 2**20]


def test_an_empty_batch_is_fine_in_several_passes(monkeypatch):
    maps = (Count(), fourier(["a"], 4))
    made = Plan(person_schema(), tuple(PlannedBlock(m.kind, m, 0.5) for m in maps))
    whole = pa.table({"a": [0.5] * 40, "id": [str(10**6 + i) for i in range(40)]})
    nothing = pa.record_batch({"a": pa.array([], pa.float64()), "id": pa.array([], pa.string())})

    class Frame:
        columns = ("a", "id")  # what tells a frame from a reader that runs dry

        def __arrow_c_stream__(self, requested_schema=None):
            batches = [nothing, *whole.to_batches()]
            reader = pa.RecordBatchReader.from_batches(nothing.schema, batches)
            return reader.__arrow_c_stream__(requested_schema)

    monkeypatch.setattr("aquatint.curator.gathering.passes", partial(passes, limit=30))
    assert accumulate(Frame(), made).rows == 40
