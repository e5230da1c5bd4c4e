"""Counts over merged cells: the same rows, counted once in each set, over fewer cells."""

import json
from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.curator.persons import sum_persons
from aquatint.curator.sums import leaf_sum
from aquatint.errors import PlanError
from aquatint.features import Count, Rows, by_label, from_spec, marginals, scale
from aquatint.features.grid import COUNT_STEPS, grid_of, is_counting, sensitivity
from aquatint.features.marginals import Marginals
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Privacy, Schema

NAMES = "abcd"
RELATIONS = [
    Privacy(protects="add or remove one row"),
    Privacy(protects="all rows of one person", person="id", max_rows=3),
]
quick = settings(max_examples=80, deadline=None)


def numbered(labels):
    """Number labels from 0 without gaps, in the order of their first cells."""
    seen = {}
    return tuple(seen.setdefault(label, len(seen)) for label in labels)


@st.composite
def fine_maps(draw):
    cells = {name: draw(st.integers(1, 6)) for name in NAMES}
    some = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
    sets = draw(st.lists(some, min_size=1, max_size=5, unique_by=frozenset))
    return marginals(cells, sets)


@st.composite
def groupings(draw, fine):
    chosen = {}
    for name, cells in fine.columns:
        if draw(st.booleans()):
            labels = draw(st.lists(st.integers(0, 5), min_size=cells, max_size=cells))
            group = numbered(labels)
            order = draw(st.permutations(range(max(group) + 1)))  # any numbers, not only rising
            chosen[name] = tuple(order[g] for g in group)
    return chosen


@st.composite
def encoded(draw, fine, most=30):
    count = draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = {
        n: torch.from_numpy(rng.integers(0, c, count).astype(np.int32)) for n, c in fine.columns
    }
    return Rows(codes, {}, count)


def recoded(rows, groups):
    """Merge the cells of the rows themselves."""
    codes = {
        name: torch.tensor([groups[name][c] for c in code], dtype=torch.int32)
        if name in groups
        else code
        for name, code in rows.codes.items()
    }
    return Rows(codes, {}, len(rows))


# --- one row -------------------------------------------------------------------------------------


@quick
@given(data=st.data())
def test_a_row_has_one_1_in_every_set_and_nothing_else(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    found = coarse(data.draw(encoded(fine)))
    assert found.shape[1] == coarse.dim == sum(coarse.sizes) <= fine.dim
    assert ((found == 0) | (found == 1)).all()
    for columns, size in zip(coarse.sets, coarse.sizes, strict=True):
        part = found[:, coarse.set_slice(columns)]
        assert part.shape[1] == size == prod(coarse.counted[n] for n in columns)
        assert (part.sum(dim=1) == 1).all()


@quick
@given(data=st.data())
def test_the_cells_are_where_the_ones_are(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    rows = data.draw(encoded(fine))
    cells = coarse.cells(rows)
    assert cells.shape == (len(rows), coarse.ones)
    spread = torch.zeros(len(rows), coarse.dim).scatter_add_(
        1, cells.long(), torch.ones(cells.shape)
    )
    assert torch.equal(spread, coarse(rows))


@quick
@given(data=st.data())
def test_merging_is_recoding_the_rows(data):
    """The plain map over the groups as if they were the cells gives the same vectors."""
    fine = data.draw(fine_maps())
    groups = data.draw(groupings(fine))
    coarse = fine.merge(groups)
    rows = data.draw(encoded(fine))
    plain = Marginals(tuple((n, coarse.counted[n]) for n, _ in fine.columns), fine.sets)
    assert torch.equal(coarse(rows), plain(recoded(rows, groups)))
    assert torch.equal(coarse.cells(rows), plain.cells(recoded(rows, groups)))


@quick
@given(data=st.data())
def test_soft_codes_add_up_within_a_group(data):
    fine = data.draw(fine_maps())
    groups = data.draw(groupings(fine))
    coarse = fine.merge(groups)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    soft = {n: torch.from_numpy(rng.dirichlet(np.ones(c), 7)).float() for n, c in fine.columns}
    found = coarse(Rows(soft, {}, 7))
    for columns in coarse.sets:
        part = found[:, coarse.set_slice(columns)]
        assert torch.allclose(part.sum(dim=1), torch.ones(7), atol=1e-5)
    for name, group in coarse.groups:
        alone = marginals(dict(fine.columns), [(name,)])
        merged = alone.merge({name: group})(Rows(soft, {}, 7))
        for number in range(max(group) + 1):
            inside = [cell for cell, g in enumerate(group) if g == number]
            assert torch.allclose(merged[:, number], soft[name][:, inside].sum(dim=1), atol=1e-5)


@quick
@given(data=st.data())
def test_no_norm_changes_and_no_sensitivity_grows(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    assert coarse.ones == fine.ones == len(fine.sets)
    assert (coarse.bound.l1, coarse.bound.l2_squared) == (fine.bound.l1, fine.bound.l2_squared)
    assert is_counting(coarse)
    assert grid_of(coarse).steps == grid_of(fine).steps == COUNT_STEPS
    for privacy in RELATIONS:
        assert sensitivity(coarse, privacy) == sensitivity(fine, privacy)
    swap = Privacy(protects="replace one row")
    for found, planned in zip(sensitivity(coarse, swap), sensitivity(fine, swap), strict=True):
        assert found <= planned  # two rows in one group do not differ at all


# --- sums ----------------------------------------------------------------------------------------


@quick
@given(data=st.data())
def test_adding_up_equals_counting_with_the_merged_map(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    rows = data.draw(encoded(fine))
    exact = leaf_sum(fine, rows).numpy()
    found = fine.add_up(exact, coarse)
    assert found.dtype == np.int64
    assert np.array_equal(found, leaf_sum(coarse, rows).numpy())
    for columns in fine.sets:
        assert found[coarse.set_slice(columns)].sum() == COUNT_STEPS * len(rows)


@quick
@given(data=st.data())
def test_adding_up_is_linear_in_any_integers(data):
    """So a sum that was weighed by person, cell by cell, is added up as well."""
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    left, right = rng.integers(-(2**61), 2**61, (2, fine.dim))
    assert np.array_equal(
        fine.add_up(left // 64, coarse) + fine.add_up(right // 64, coarse),
        fine.add_up(left // 64 + right // 64, coarse),
    )
    assert np.array_equal(fine.add_up(left, fine.merge({})), left)


@quick
@given(data=st.data(), most=st.integers(1, 4))
def test_a_person_keeps_the_bound_over_merged_cells_too(data, most):
    """Rows that were apart in the fine cells meet in a group: the norm grows, up to the limit."""
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    rows = data.draw(encoded(fine, most=12))
    privacy = {"protects": "all rows of one person", "person": "id", "max_rows": most}
    columns = {n: {"kind": "categorical", "categories": list(range(c))} for n, c in fine.columns}
    schema = Schema.from_dict({"name": "x", "privacy": privacy, "columns": columns})
    blocks = (PlannedBlock("count", Count(), 0.5), PlannedBlock("fine", fine, 0.5))
    one_person = np.zeros(len(rows), np.int64)
    _, exact = sum_persons(Plan(schema, blocks), rows, one_person, most)
    moved = [int(v) for v in fine.add_up(exact.numpy(), coarse)]
    l2_squared, l1 = sensitivity(coarse, schema.privacy)
    assert sum(v * v for v in moved) <= l2_squared == sensitivity(fine, schema.privacy)[0]
    assert sum(map(abs, moved)) <= l1
    for columns in coarse.sets:
        assert sum(moved[coarse.set_slice(columns)]) <= most * COUNT_STEPS


@quick
@given(data=st.data())
def test_adding_up_leaves_the_fine_counts_alone(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    counts = leaf_sum(fine, data.draw(encoded(fine))).numpy()
    kept = counts.copy()
    counts.setflags(write=False)
    fine.add_up(counts, coarse)
    assert np.array_equal(counts, kept)


def test_what_is_added_up_is_the_right_cells():
    """Written out by hand, so that one slip in the order of the axes shows."""
    fine = marginals({"a": 3, "b": 2}, [("a", "b"), ("b",)])
    coarse = fine.merge({"a": (1, 0, 1)})
    counts = np.array([1, 2, 10, 20, 100, 200, 7, 8])  # a0b0 a0b1 a1b0 a1b1 a2b0 a2b1, then b0 b1
    assert fine.add_up(counts, coarse).tolist() == [10, 20, 101, 202, 7, 8]
    both = fine.merge({"a": (1, 0, 1), "b": (0, 0)})
    assert fine.add_up(counts, both).tolist() == [30, 303, 15]


# --- specs ---------------------------------------------------------------------------------------


@quick
@given(data=st.data())
def test_the_spec_of_a_merged_map_rebuilds_to_itself(data):
    fine = data.draw(fine_maps())
    coarse = fine.merge(data.draw(groupings(fine)))
    for made in (coarse, scale(coarse, 0.5), by_label(coarse, "label", 2)):
        spec = json.loads(json.dumps(made.spec(), allow_nan=False))
        again = from_spec(spec)
        assert again == made
        assert hash(again) == hash(made)
        assert again.spec() == spec


def test_a_map_without_groups_has_the_spec_it_always_had(kit):
    """Files that were written before there were groups stay the same to the byte."""
    plain = marginals({"a": 3, "b": 2}, [("a",), ("b", "a")])
    wanted = {"kind": "marginals", "columns": [["a", 3], ["b", 2]], "sets": [[0], [1, 0]]}
    assert json.dumps(plain.spec()) == json.dumps(wanted)
    assert json.dumps(plain.merge({}).spec()) == json.dumps(wanted)
    assert plain.merge({"nobody": (0, 1)}) == plain
    assert all("groups" not in m.spec() for n, m in kit.examples.items() if "merged" not in n)


FINE = marginals({"a": 3, "b": 2}, [("a",), ("a", "b")])
MALFORMED = {
    "too few cells": [["a", [0, 1]]],
    "too many cells": [["a", [0, 1, 1, 0]]],
    "a gap": [["a", [0, 2, 2]]],
    "not from 0": [["a", [1, 2, 1]]],
    "a negative number": [["a", [0, -1, 0]]],
    "an unknown column": [["c", [0, 0, 0]]],
    "a column twice": [["a", [0, 0, 1]], ["a", [0, 1, 1]]],
    "no cells": [["a", []]],
}
TAMPERED = MALFORMED | {
    "no groups after all": [],
    "none": None,
    "a mapping": {"a": [0, 0, 1]},
    "text": "a",
    "a fraction": [["a", [0, 0.5, 1]]],
    "whole numbers as floats": [["a", [0.0, 0.0, 1.0]]],
    "truth": [["a", [False, False, True]]],
    "digits": [["a", ["0", "0", "1"]]],
    "text for numbers": [["a", "001"]],
    "a nested list": [["a", [[0], [0], [1]]]],
    "a name that is a number": [[1, [0, 0, 1]]],
    "three fields": [["a", [0, 0, 1], 1]],
    "one field": [["a"]],
}


@pytest.mark.parametrize("groups", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_groups_are_refused_with_a_sentence(groups):
    with pytest.raises(
        PlanError, match=r"the groups of column '|cells of a column are grouped once"
    ):
        Marginals(FINE.columns, FINE.sets, tuple((n, tuple(g)) for n, g in groups))


@pytest.mark.parametrize("groups", TAMPERED.values(), ids=TAMPERED.keys())
def test_a_spec_with_tampered_groups_is_refused(groups):
    good = FINE.merge({"a": (0, 0, 1)}).spec()
    assert from_spec(good) == FINE.merge({"a": (0, 0, 1)})
    with pytest.raises(PlanError):
        from_spec({**good, "groups": groups})


def test_other_groups_are_another_map():
    one, other = FINE.merge({"a": (0, 0, 1)}), FINE.merge({"a": (0, 1, 1)})
    assert one != other
    assert one != FINE
    assert from_spec({**one.spec(), "groups": other.spec()["groups"]}) == other


def test_what_is_merged_is_merged_further_but_never_told_apart_again():
    once = FINE.merge({"a": (0, 0, 1)})
    assert once.merge({"b": (0, 0)}) == FINE.merge({"a": (0, 0, 1), "b": (0, 0)})
    assert once.merge({"a": (0, 0, 0)}) == FINE.merge({"a": (0, 0, 0)})
    assert once.merge({}) == once
    with pytest.raises(PlanError, match="merged already"):
        once.merge({"a": (0, 1, 1)})


@given(st.data())
@quick
def test_merging_in_two_steps_counts_what_one_step_counts(data):
    fine = data.draw(fine_maps())
    once = fine.merge(data.draw(groupings(fine)))
    coarser = {}
    for name, cells in fine.columns:
        before = once.merged.get(name, tuple(range(cells)))
        after = numbered(data.draw(st.integers(0, 3)) for _ in range(max(before) + 1))
        coarser[name] = numbered(after[g] for g in before)
    twice = once.merge(coarser)
    counts = np.arange(1, fine.dim + 1) ** 2
    assert twice == fine.merge(coarser)
    by_steps = once.add_up(fine.add_up(counts, once), twice)
    assert by_steps.tolist() == fine.add_up(counts, twice).tolist()


def test_groups_do_not_let_a_spec_past_its_limit():
    """A stranger's file cannot ask for more features by way of groups."""
    spec = replace(FINE, groups=(("a", (0, 1, 2)),)).spec()  # every cell its own group
    assert from_spec(spec, limit=FINE.dim).dim == FINE.dim
    with pytest.raises(PlanError, match="more than"):
        from_spec(spec, limit=FINE.dim - 1)
