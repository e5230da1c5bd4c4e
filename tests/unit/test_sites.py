"""Sums by hand, in parts: the integers and the spending of one sketch."""

import pyarrow as pa
import pytest
import torch

import aquatint as aq
from aquatint.curator import sites
from aquatint.errors import BudgetError, DataError, LedgerError, PlanError
from aquatint.schema import Schema

COUNT = 90


@pytest.fixture
def plan(schema):
    return aq.plan(schema)


@pytest.fixture
def parts(schema, plan, kit):
    table = kit.raw_table(COUNT)
    cuts = ((0, 10), (10, 75), (75, COUNT))
    return [aq.curator.accumulate(table.slice(a, b - a), schema, plan) for a, b in cuts]


def test_parts_add_up_to_one_sketch(schema, plan, parts, kit):
    """The same exact integers, hence with the same simulated noise the same release."""
    one, packed, other = parts
    merged = aq.curator.merge([one, aq.curator.pack(packed), other], plan)
    found = aq.curator.finish(merged, epsilon=1, delta=1e-6, simulate=3)
    wanted = aq.sketch(kit.raw_table(COUNT), schema, epsilon=1, delta=1e-6, plan=plan, simulate=3)
    assert merged.rows == COUNT
    for one, other in zip(found.blocks, wanted.blocks, strict=True):
        assert (one.name, one.map, one.scales) == (other.name, other.map, other.scales)
        assert (one.integers == other.integers).all()


def test_batches_are_a_part_as_well(schema, plan, kit):
    table = kit.raw_table(COUNT)
    found = aq.curator.accumulate(iter(table.to_batches(max_chunksize=7)), schema, plan)
    wanted = aq.curator.accumulate(table, schema, plan)
    assert all(map(torch.equal, found.totals, wanted.totals))


def test_all_parts_are_paid_for_once(schema, plan, parts, tmp_path):
    ledger = aq.Ledger(tmp_path / "ledger.db")
    ledger.open_account("people", aq.Budget(1.2, 1e-6), schema.privacy.protects)
    merged = aq.curator.merge(parts, plan)
    where = {"ledger": tmp_path / "ledger.db", "dataset": "people"}
    aq.curator.finish(merged, epsilon=1, delta=1e-6, output=tmp_path / "all.aqt", **where)
    account = ledger.account("people")
    assert account.releases == 1
    assert 0.9 < account.spent <= 1
    assert aq.load(tmp_path / "all.aqt").statement.epsilon == 1
    with pytest.raises(LedgerError):
        aq.curator.finish(merged, epsilon=1, delta=1e-6, output=tmp_path / "no.aqt", **where)
    assert not (tmp_path / "no.aqt").exists()
    assert ledger.account("people").releases == 1


def test_a_part_is_counted_once(plan, parts):
    for twice in ([parts[0], parts[1], parts[0]], [aq.curator.pack(parts[0])] * 2):
        with pytest.raises(DataError, match="came twice"):
            aq.curator.merge(twice, plan)


def test_nobody_is_split_over_parts_without_saying_so(schema_dict, kit):
    privacy = {"protects": "all rows of one person", "person": "id"}
    schema = Schema.from_dict({**schema_dict, "privacy": privacy})
    plan = aq.plan(schema)
    table = kit.raw_table(20).append_column("id", pa.array([f"p{i // 2}" for i in range(20)]))
    parts = [aq.curator.accumulate(table.slice(a, 10), schema, plan) for a in (0, 10)]
    with pytest.raises(DataError, match="persons_apart=True"):
        aq.curator.merge(parts, plan)
    wanted = aq.curator.accumulate(table, schema, plan)
    found = aq.curator.merge(parts, plan, persons_apart=True)
    assert all(map(torch.equal, found.totals, wanted.totals))


def test_mistakes_are_said_before_anything_is_spent(schema, schema_dict, plan, parts, kit):
    other = Schema.from_dict({**schema_dict, "name": "others"})
    with pytest.raises(PlanError, match="another schema"):
        aq.curator.accumulate(kit.raw_table(5), other, plan)
    with pytest.raises(DataError, match="another plan"):
        aq.curator.merge(parts, aq.plan(other))
    with pytest.raises(DataError, match="no rows"):
        aq.curator.merge([], plan)
    with pytest.raises(BudgetError):
        aq.curator.finish(parts[0], epsilon=-1, delta=1e-6)


def test_the_names_are_there_and_no_others():
    assert aq.curator.accumulate is sites.accumulate
    assert aq.curator.finish is sites.finish
    with pytest.raises(AttributeError, match="no attribute 'publish'"):
        _ = aq.curator.publish
