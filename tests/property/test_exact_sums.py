"""Sums are the same integers for any order, batch or partition."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aquatint.curator.encode import Notes
from aquatint.curator.sums import PrivateSum, check_room, sum_rows
from aquatint.errors import DataError, PlanError
from aquatint.features import (
    Count,
    by_label,
    cosines,
    fourier,
    hermite,
    hermite_product,
    marginals,
    race,
    scale,
)
from aquatint.features.grid import grid_of
from aquatint.planning import Plan, PlannedBlock

COUNT = 400
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def mixed_plan(schema, kit):
    maps = {
        "count": Count(),
        "marginals": marginals(kit.cells, [("age",), ("sex", "job")]),
        "fourier": fourier(["age", "height", "weight"], 60, length_scale=0.05),
        "hermite": hermite(["age", "weight"], 20, length_scale=0.05),
        "cosines": cosines(["age", "height", "weight"]),
        "cosines by label": by_label(cosines(["age", "weight"], 3), "sex", 3),
        "race": race(["height", "weight"], 9, 6),
        "by label": by_label(fourier(["age"], 8), "sex", 3),
        "counts by label": by_label(race(["age"], 3, 4), "sex", 3),
        "product": hermite(["age"], 4) * fourier(["weight"], 6, kernel="laplace"),
        "product kernel": hermite_product(["age", "height"], 3),
        "sum": scale(hermite(["height"], 2), 0.7) + scale(marginals(kit.cells, [("ill",)]), 0.4),
    }
    blocks = tuple(PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
    return Plan(schema, blocks)


def same(left, right):
    return len(left) == len(right) and all(
        torch.equal(a, b) for a, b in zip(left, right, strict=True)
    )


def test_twenty_permutations_give_the_same_bits(mixed_plan, kit):
    rows = kit.random_rows(COUNT)
    wanted = sum_rows(mixed_plan, rows)
    assert all(total.dtype == torch.int64 for total in wanted)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert same(
            sum_rows(mixed_plan, rows.take(torch.from_numpy(rng.permutation(COUNT)))), wanted
        )


@pytest.mark.parametrize("size", [1, 2, 7, 64, 399, COUNT])
def test_any_batch_size_gives_the_same_bits(mixed_plan, kit, size):
    rows = kit.random_rows(COUNT)
    total = PrivateSum.empty(mixed_plan)
    for start in range(0, COUNT, size):
        part = rows.slice(start, start + size)
        total = total.merge(PrivateSum(mixed_plan, sum_rows(mixed_plan, part), len(part), Notes()))
    assert total.rows == COUNT
    assert same(total.totals, sum_rows(mixed_plan, rows))


def test_twenty_random_partitions_merged_in_any_order_give_the_same_bits(mixed_plan, kit):
    rows = kit.random_rows(COUNT)
    wanted = sum_rows(mixed_plan, rows)
    rng = np.random.default_rng(1)
    for _ in range(20):
        owner = rng.integers(0, rng.integers(2, 9), COUNT)
        parts = [torch.from_numpy(np.flatnonzero(owner == k)) for k in set(owner.tolist())]
        sums = [
            PrivateSum(mixed_plan, sum_rows(mixed_plan, rows.take(p)), len(p), Notes())
            for p in parts
        ]
        while len(sums) > 1:  # merge any two, as a cluster would
            a, b = rng.choice(len(sums), 2, replace=False)
            merged = sums[a].merge(sums[b])
            sums = [s for k, s in enumerate(sums) if k not in {a, b}] + [merged]
        assert same(sums[0].totals, wanted)


def test_the_sum_of_single_rows_is_the_sum(mixed_plan, kit):
    rows = kit.random_rows(50, seed=3)
    singles = [sum_rows(mixed_plan, rows.slice(i, i + 1)) for i in range(50)]
    added = [sum(parts) for parts in zip(*singles, strict=True)]
    assert same(added, sum_rows(mixed_plan, rows))


def test_the_sum_is_close_to_the_plain_one(mixed_plan, kit):
    rows = kit.random_rows(COUNT)
    for block, total in zip(mixed_plan.blocks, sum_rows(mixed_plan, rows), strict=True):
        plain = block.map(rows).double().sum(dim=0)
        start = 0
        for leaf in getattr(block.map, "parts", (block.map,)):
            part = total[start : start + leaf.dim].double() / grid_of(leaf).steps
            assert (part - plain[start : start + leaf.dim]).abs().max() < COUNT * 2.0**-19
            start += leaf.dim


def test_no_rows_sum_to_zero(mixed_plan, kit):
    assert same(sum_rows(mixed_plan, kit.random_rows(0)), PrivateSum.empty(mixed_plan).totals)


def sums(plan):
    def make(numbers):
        totals = tuple(
            torch.arange(b.map.dim, dtype=torch.int64) * numbers[0] + numbers[1]
            for b in plan.blocks
        )
        notes = Notes()
        notes.clipped["age"] += abs(numbers[2])
        notes.other["job"] += 1
        return PrivateSum(plan, totals, abs(numbers[2]), notes)

    whole = st.integers(-(2**40), 2**40)
    return st.tuples(whole, whole, whole).map(make)


def equal(left, right):
    return same(left.totals, right.totals) and left.rows == right.rows and left.notes == right.notes


@quick
@given(data=st.data())
def test_merging_is_associative_and_commutative_with_empty_as_identity(mixed_plan, data):
    a, b, c = (data.draw(sums(mixed_plan)) for _ in range(3))
    assert equal(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert equal(a.merge(b), b.merge(a))
    zero = PrivateSum.empty(mixed_plan)
    assert equal(zero.merge(a), a)
    assert equal(a.merge(zero), a)


def test_merging_leaves_its_parts_alone(mixed_plan, kit):
    part = PrivateSum(mixed_plan, sum_rows(mixed_plan, kit.random_rows(9)), 9, Notes())
    kept = [t.clone() for t in part.totals]
    PrivateSum.empty(mixed_plan).merge(part).merge(part)
    assert same(part.totals, kept)


def test_a_private_sum_shows_nothing(mixed_plan, kit):
    private = PrivateSum(mixed_plan, sum_rows(mixed_plan, kit.random_rows(123)), 123, Notes())
    for shown in (repr(private), str(private), f"{private}", repr([private])):
        assert "not shown" in shown
        assert "tensor" not in shown
        assert "123" not in shown
        assert str(int(private.totals[0][0])) not in shown


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_private_sum_cannot_be_pickled(mixed_plan, copying):
    with pytest.raises(TypeError, match="cannot be pickled"):
        copying(PrivateSum.empty(mixed_plan))


def test_sums_of_different_plans_do_not_merge(mixed_plan):
    first, *others = mixed_plan.blocks
    shifted = Plan(
        mixed_plan.schema,
        (
            PlannedBlock(first.name, first.map, first.share / 2),
            PlannedBlock("more", first.map, first.share / 2),
            *others,
        ),
    )
    with pytest.raises(PlanError, match="same plan"):
        PrivateSum.empty(mixed_plan).merge(PrivateSum.empty(shifted))


def test_more_rows_than_fit_are_refused(mixed_plan):
    check_room(mixed_plan, 10**12)
    with pytest.raises(DataError, match="more than an exact sum"):
        check_room(mixed_plan, 10**13)
