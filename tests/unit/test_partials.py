"""Private partials as bytes: the same integers back, and nothing but what the plan allows."""

import hashlib
import json
import pickle
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aquatint.curator import partials
from aquatint.curator.partials import fingerprint, merge_private, pack_private, unpack_private
from aquatint.curator.sketch import accumulate
from aquatint.errors import DataError
from aquatint.features import Count, by_label, fourier, hermite, marginals, race, scale
from aquatint.planning import Plan, PlannedBlock

START = len(partials._MAGIC) + partials._DIGEST
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def plan(schema, kit):
    maps = {
        "count": Count(),
        "pairs": marginals(kit.cells, [("age",), ("sex", "job")]),
        "same pairs": marginals(kit.cells, [("age",), ("sex", "job")]),
        "fourier": fourier(["age", "height"], 30),
        "by label": by_label(hermite(["weight"], 6), "sex", 3),
        "sum": scale(race(["height"], 3, 4), 0.3) + fourier(["weight"], 4),
    }
    return Plan(schema, tuple(PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items()))


@pytest.fixture
def private(plan, kit):
    return accumulate(kit.raw_table(200), plan)


def same(one, other):
    return (
        all(map(torch.equal, one.totals, other.totals))
        and (one.plan, one.rows, one.notes) == (other.plan, other.rows, other.notes)
        and all(total.dtype == torch.int64 for total in other.totals)
    )


def resealed(packed, **changes):
    """Change the head and make the digest fit again, as a careless program could."""
    body = packed[START:]
    size = int.from_bytes(body[:8], "little")
    head = json.dumps({**json.loads(body[8 : 8 + size]), **changes}).encode()
    return sealed(len(head).to_bytes(8, "little") + head + body[8 + size :])


def sealed(body):
    return partials._MAGIC + hashlib.sha256(body).digest() + body


def test_a_partial_comes_back_as_it_was(private, plan):
    assert same(private, unpack_private(pack_private(private), plan))
    assert private.notes.missing, "the test needs notes to carry"


def test_merged_partials_are_the_sum_over_all_rows(private, plan, kit):
    table = kit.raw_table(200)
    parts = [accumulate(table.slice(a, b - a), plan) for a, b in ((0, 7), (7, 120), (120, 200))]
    assert same(private, merge_private(map(pack_private, reversed(parts)), plan))


def test_the_same_bytes_are_refused_twice_but_equal_sums_are_not(private, plan):
    packed = pack_private(private)
    with pytest.raises(DataError, match="came twice"):
        merge_private([packed, packed], plan)
    assert merge_private([packed, pack_private(private)], plan).rows == 2 * private.rows


def test_the_bytes_say_that_they_are_private(private):
    assert b"do not publish" in pack_private(private)[:100]
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(private)


@quick
@given(place=st.integers(0, 10**6), flip=st.integers(1, 255))
def test_any_damaged_byte_is_noticed(private, plan, place, flip):
    packed = bytearray(pack_private(private))
    packed[place % len(packed)] ^= flip
    with pytest.raises(DataError, match="not a sound private partial"):
        unpack_private(bytes(packed), plan)


@quick
@given(kept=st.floats(0, 1, exclude_max=True))
def test_a_partial_cut_short_is_noticed(private, plan, kept):
    packed = pack_private(private)
    with pytest.raises(DataError, match="not a sound private partial"):
        unpack_private(packed[: int(kept * len(packed))], plan)


def test_another_plan_is_refused(private, plan):
    first, *rest = plan.blocks
    other = replace(
        plan, blocks=(replace(first, share=first.share / 2), *rest[:-1],
                      replace(rest[-1], share=rest[-1].share + first.share / 2)),
    )  # fmt: skip
    with pytest.raises(DataError, match="another plan"):
        unpack_private(pack_private(private), other)


def test_another_grid_is_another_fingerprint(plan, monkeypatch):
    """A coarser grid at one site would make its sums too large for the noise of another."""
    before = fingerprint(plan)
    monkeypatch.setattr("aquatint.features.grid.COUNT_STEPS", 2**24)
    assert fingerprint(plan) != before


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 199},  # the count says 200
        {"rows": -1},
        {"rows": 200.0},
        {"rows": True},
        {"rows": 2**60},
        {"name": 7},
        {"notes": {}},
        {"notes": {"clipped": {"nobody": 1}, "other": {}, "missing": {}}},
        {"notes": {"clipped": {"age": -1}, "other": {}, "missing": {}}},
        {"notes": {"clipped": [], "other": {}, "missing": {}}},
    ],
    ids=str,
)
def test_a_head_that_cannot_be_true_is_refused(private, plan, changes):
    with pytest.raises(DataError):
        unpack_private(resealed(pack_private(private), **changes), plan)
    assert same(private, unpack_private(resealed(pack_private(private)), plan))


def test_malformed_bodies_are_refused(private, plan):
    body = pack_private(private)[START:]
    size = int.from_bytes(body[:8], "little")
    arrays = body[8 + size :]
    for bad in (
        b"",
        (2**63).to_bytes(8, "little") + body[8:],
        (3).to_bytes(8, "little") + b"[1]" + arrays,
        (2).to_bytes(8, "little") + b"{}" + arrays,
        body[: 8 + size],
        body[: 8 + size] + arrays[:50],
    ):
        with pytest.raises(DataError, match="not a sound private partial"):
            unpack_private(sealed(bad), plan)
