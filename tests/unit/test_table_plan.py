"""The default plan for a table: which blocks, and how the budget is divided anew.

Its bins are in test_default_bins.py.
"""

import time
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from aquatint.accounting import Budget, gaussian_loss, laplace_loss
from aquatint.columns import bin_edges
from aquatint.features import Count, fourier, marginals, onehot
from aquatint.features.grid import grid_of
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.previewing import preview
from aquatint.schema import Schema
from aquatint.table_plan import (
    CLASSES_SHARE,
    COUNT_SHARE,
    FEW_CLASSES,
    FINER,
    FINEST,
    LABEL_MERGE,
    MANY_COLUMNS,
    MANY_SHARE,
    MERGE,
    MOST_CELLS,
    MOST_CLASSES,
    MOST_FIRST,
    MOST_FIRST_WIDE,
    MOST_SHARE,
    WIDE_COLUMN,
    plan,
    rebalanced,
)

CELLS = 33 + len(FINER) + len(FINEST)
BY_CLASSES = ["columns by label", "pairs", "pairs by label"]
ROW, SWAP = "add or remove one row", "replace one row"
BUDGETS = [Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget(8.0, 1e-6), Budget(1.0, 0.0)]
PURE_TOO = pytest.mark.parametrize("budget", BUDGETS, ids=["1", "0.1", "8", "pure"])


def table(columns, protects=ROW, **more):
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": protects}, "columns": columns, **more}
    )


def numbers(count, **column):
    made = {"kind": "numeric", "bounds": [0, 1], **column}
    return {f"c{i}": made for i in range(count)}


def classes(count):
    return {"kind": "categorical", "categories": list(range(count))}


def labelled(columns, label, protects=ROW):
    return table({**numbers(columns), "y": label}, protects, label="y")


def names(made):
    return [b.name for b in made.blocks]


def by_name(made, name):
    return next(b for b in made.blocks if b.name == name)


def all_sets(made):
    return Counter(frozenset(s) for b in made.blocks if b.merge for s in b.map.sets)


# --- which blocks ---------------------------------------------------------------------------------


def test_the_default_plan_counts_columns_then_pairs_with_the_label(schema):
    made = plan(schema)
    assert names(made) == ["count", "columns", "pairs by label"]
    others = [n for n in schema.columns if n != "sex"]
    wanted = {frozenset({a, b, "sex"}) for a, b in combinations(others, 2)}
    assert all_sets(made) == Counter(wanted)  # each once, and no other
    assert made.blocks[1].map == onehot(made.schema.cells())
    assert sum(b.share for b in made.blocks) == pytest.approx(1)
    assert made.coordinates == sum(b.map.dim for b in made.blocks)
    assert [b.merge for b in made.blocks] == [None, None, MERGE]
    assert made.rebalance


def test_without_a_label_all_pairs_are_counted():
    made = plan(table(numbers(5)))
    assert names(made) == ["count", "columns", "pairs"]
    assert all_sets(made) == Counter(map(frozenset, combinations(made.schema.columns, 2)))
    assert made.rebalance


def test_a_public_count_is_not_released_again():
    made = plan(table(numbers(3), SWAP))
    assert names(made) == ["columns", "pairs"]
    assert made.rebalance
    assert sum(b.share for b in made.blocks) == pytest.approx(1)


@pytest.mark.parametrize("label", [None, "c0"])
def test_a_single_column_has_no_pairs_and_nothing_to_rebalance(label):
    made = plan(table(numbers(1), **({"label": label} if label else {})))
    assert names(made) == ["count", "columns"]
    assert not made.rebalance
    assert [b.share for b in made.blocks] == pytest.approx([COUNT_SHARE, 1 - COUNT_SHARE])


def test_one_column_and_the_label_are_a_pair():
    made = plan(labelled(1, classes(2)))
    assert names(made) == ["count", "columns", "pairs"]
    assert made.blocks[-1].map.sets == (("c0", "y"),)


@pytest.mark.parametrize("number", [1, 2, FEW_CLASSES])
def test_a_label_of_few_classes_joins_every_pair(number):
    made = plan(labelled(4, classes(number)))
    assert names(made) == ["count", "columns", "pairs by label"]
    assert all("y" in s and len(s) == 3 for s in all_sets(made))
    assert len(all_sets(made)) == 6


@pytest.mark.parametrize("number", [FEW_CLASSES + 1, MOST_CLASSES])
def test_with_more_classes_the_pairs_are_counted_on_their_own_too(number):
    made = plan(labelled(4, classes(number)))
    assert names(made) == ["count", "columns", *BY_CLASSES]
    assert not any("y" in s for s in by_name(made, "pairs").map.sets)
    assert all("y" in s for s in by_name(made, "pairs by label").map.sets)
    assert sorted(Counter(map(len, all_sets(made))).items()) == [(2, 10), (3, 6)]
    shares = [by_name(made, n).share for n in BY_CLASSES]
    assert shares == pytest.approx([shares[0]] * 3)


@pytest.mark.parametrize("number", [MOST_CLASSES + 1, 40, WIDE_COLUMN])
def test_a_label_of_many_classes_is_counted_with_each_column_alone(number):
    made = plan(labelled(3, classes(number)))
    assert names(made) == ["count", "columns", "columns by label", "pairs"]
    assert all_sets(made) == Counter(map(frozenset, combinations(made.schema.columns, 2)))
    alone, pairs = (by_name(made, name) for name in names(made)[2:])
    assert alone.share == pytest.approx(pairs.share)
    assert not any("y" in s for s in pairs.map.sets)


def test_a_label_with_a_range_of_many_cells_is_a_column_like_the_others():
    made = plan(labelled(3, {"kind": "numeric", "bounds": [0, 1]}))
    assert all_sets(made) == Counter(map(frozenset, combinations(made.schema.columns, 2)))
    assert names(made) == ["count", "columns", "pairs"]


def test_a_label_too_wide_for_pairs_leaves_the_other_pairs():
    made = plan(labelled(3, classes(5000)))
    assert not any("y" in s for s in all_sets(made))
    assert len(all_sets(made)) == 3
    assert ("y",) in by_name(made, "columns").map.sets


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ({"kind": "numeric", "bounds": [0, 1]}, ["pairs"]),
        ({"kind": "numeric", "bounds": [0, 1], "bins": 2}, ["pairs by label"]),
        ({"kind": "integer", "bounds": [0, 9]}, BY_CLASSES),
        ({"kind": "integer", "bounds": [0, 9], "missing": True}, BY_CLASSES),
        ({"kind": "date", "bounds": ["2020-01-01", "2021-01-01"]}, ["pairs"]),
    ],
    ids=["numbers", "two bins", "digits", "digits or missing", "days"],
)
def test_a_label_with_a_range_is_taken_by_its_cells(label, expected):
    assert names(plan(labelled(3, label))) == ["count", "columns", *expected]


def test_a_column_of_very_many_categories_is_counted_alone():
    made = plan(table({"many": classes(5000), **numbers(2)}))
    assert not any("many" in s for s in all_sets(made))
    assert ("many",) in made.blocks[1].map.sets
    assert made.blocks[1].map.dim == 5000 + 2 * CELLS
    widest = plan(table({"many": classes(WIDE_COLUMN), **numbers(1)}))
    assert all_sets(widest) == Counter([frozenset({"many", "c0"})])


def test_only_columns_of_very_many_categories_have_no_pairs():
    made = plan(table({"a": classes(3000), "b": classes(3000)}))
    assert names(made) == ["count", "columns"]
    assert not made.rebalance
    lonely = plan(table({"a": classes(3000), "y": classes(2)}, label="y"))
    assert names(lonely) == ["count", "columns"]


# --- wide tables ----------------------------------------------------------------------------------


def test_a_wide_table_gets_coarser_joint_counts_and_then_the_label_only():
    coarse = plan(table(numbers(300)))
    assert coarse.schema.columns["c0"].present_cells == CELLS  # its histogram stays fine
    assert coarse.blocks[-1].map.counted["c0"] == 13
    assert len(all_sets(coarse)) == 300 * 299 // 2
    assert coarse.blocks[-1].map.dim <= MOST_CELLS
    huge = plan(table({**numbers(200, bins=64), "y": {"kind": "boolean"}}, label="y"))
    assert names(huge) == ["count", "columns", "columns by label"]
    assert all(s[1] == "y" and len(s) == 2 for s in huge.blocks[-1].map.sets)
    assert len(huge.blocks[-1].map.sets) == 200
    assert huge.rebalance


@pytest.mark.parametrize(
    ("columns", "number", "share"),
    [
        (MANY_COLUMNS - 1, FEW_CLASSES, None),
        (3, FEW_CLASSES + 1, CLASSES_SHARE),
        (MANY_COLUMNS - 1, MOST_CLASSES, CLASSES_SHARE),
        (MANY_COLUMNS, 2, MANY_SHARE),
        (MANY_COLUMNS, MOST_CLASSES, MANY_SHARE),
        (3, MOST_CLASSES + 1, MOST_SHARE),
        (MANY_COLUMNS, MOST_CLASSES + 1, MANY_SHARE),
    ],
)
def test_with_many_columns_or_classes_each_is_counted_with_the_label_on_its_own_too(
    columns, number, share
):
    made = plan(labelled(columns - 1, classes(number)))
    if share is None:
        assert "columns by label" not in names(made)
        return
    block = by_name(made, "columns by label")
    assert block.map.sets == tuple((f"c{i}", "y") for i in range(columns - 1))
    assert block.map.counted["c0"] == CELLS
    assert block.merge == LABEL_MERGE
    joint = sum(b.share for b in made.blocks if b.merge)
    assert block.share == pytest.approx(share * joint)
    assert sum(b.share for b in made.blocks) == pytest.approx(1)


def test_columns_by_label_leave_less_to_the_histograms():
    limits = []
    for wide in (MANY_COLUMNS - 2, MANY_COLUMNS - 1):
        weak = rebalanced(plan(labelled(wide, classes(2))), Budget(1, 1e-5), rows=10)
        limits.append(by_name(weak, "columns").share / (1 - by_name(weak, "count").share))
        assert sum(b.share for b in weak.blocks) == pytest.approx(1)
    assert limits == pytest.approx([MOST_FIRST, MOST_FIRST_WIDE])


@pytest.mark.parametrize("missing", [False, True])
def test_coarser_cells_are_neighbours_and_missing_stays_apart(missing):
    made = plan(table({**numbers(150, missing=missing), "y": classes(2)}, label="y"))
    group = by_name(made, "pairs by label").map.merged["c0"]
    assert len(group) == CELLS + missing
    present = group[:CELLS]
    assert list(present) == sorted(present)
    edges = bin_edges(made.schema.columns["c0"])
    ends = [edges[present.index(i)] for i in range(max(present) + 1)] + [1.0]
    widths = [b - a for a, b in pairwise(ends)]
    stretch = max(widths)
    assert 1 / stretch in (4, 8, 16)
    even = [width for width in widths if width == pytest.approx(stretch)]
    assert len(even) == 1 / stretch - 1
    assert sum(widths) == pytest.approx(1)  # the first stretch is still cut, coarser than the bins
    assert 2 < len(widths) - len(even) < len(FINER)
    assert not missing or group[-1] == max(present) + 1


def test_a_table_too_wide_for_pairs_and_without_a_label_has_histograms():
    made = plan(table(numbers(200, bins=64)))
    assert names(made) == ["count", "columns"]
    assert not made.rebalance


def test_the_default_plan_for_hundreds_of_columns_is_made_quickly():
    # About 2.5 s of processor time; the clock on the wall would fail on a busy machine.
    schema = labelled(617, classes(26))
    begun = time.process_time()
    made = plan(schema)
    assert time.process_time() - begun < 10
    assert made.blocks[-1].map.dim <= MOST_CELLS
    assert len(all_sets(made)) == 618 * 617 // 2


@pytest.mark.parametrize("columns", [2, 10, 60, 150])
@pytest.mark.parametrize("label", [None, classes(2), classes(10), classes(40)])
def test_the_joint_counts_fit_in_memory(columns, label):
    schema = table(numbers(columns)) if label is None else labelled(columns, label)
    made = plan(schema)
    assert sum(b.map.dim for b in made.blocks if b.merge) <= MOST_CELLS


# --- dividing the budget anew ---------------------------------------------------------------------

ROWS = [-5.0, 0.0, 1.0, 10.0, 300.0, 1e3, 3e3, 1e4, 1e5, 1e6, 1e9]


def schemas():
    return {
        "label": labelled(6, classes(3)),
        "classes": labelled(6, classes(10)),
        "pairs": table(numbers(6)),
        "replace": labelled(6, classes(3), SWAP),
        "person": Schema.from_dict(
            {
                "name": "x",
                "privacy": {"protects": "all rows of one person", "person": "id", "max_rows": 4},
                "columns": numbers(4),
            }
        ),
    }


SCHEMAS = schemas()
EVERY_UNIT = pytest.mark.parametrize("case", SCHEMAS)


def loss_of(made, budget):
    flat = [part for parts in noise_of(made, budget) for part in parts]
    return laplace_loss(flat) if budget.pure else gaussian_loss(flat)


def first_share(made):
    """The histograms' part of what is left beside the count."""
    early = sum(b.share for b in made.blocks if b.name == "columns")
    return early / sum(b.share for b in made.blocks if not isinstance(b.map, Count))


@PURE_TOO
@EVERY_UNIT
def test_the_shares_still_add_up_and_the_whole_spends_the_same_budget(case, budget):
    made = plan(SCHEMAS[case])
    before = loss_of(made, budget)
    for rows in ROWS:
        after = rebalanced(made, budget, rows)
        assert sum(b.share for b in after.blocks) == pytest.approx(1, abs=1e-12)
        assert all(b.share > 0 for b in after.blocks)
        loss = loss_of(after, budget)
        assert loss.epsilon(budget.delta) <= budget.epsilon
        assert loss.epsilon(budget.delta) > budget.epsilon * (1 - 1e-6)
        assert loss.rho == pytest.approx(before.rho, rel=1e-12)
        assert loss.pure == pytest.approx(before.pure, rel=1e-9)


@PURE_TOO
@pytest.mark.parametrize("case", ["label", "classes", "pairs", "person"])
def test_the_noise_of_the_count_is_the_one_that_it_was_published_with(case, budget):
    """By then it is drawn: the whole only adds up if its scale was the planned one."""
    made = plan(SCHEMAS[case])
    (planned,), *_ = noise_of(made, budget)
    for rows in ROWS:
        (found,), *_ = noise_of(rebalanced(made, budget, rows), budget)
        assert found.scale == pytest.approx(planned.scale, rel=1e-12)
        assert rebalanced(made, budget, rows).blocks[0] == made.blocks[0]


@PURE_TOO
@EVERY_UNIT
def test_the_more_rows_the_less_goes_to_the_histograms(case, budget):
    made = plan(SCHEMAS[case])
    shares = [first_share(rebalanced(made, budget, rows)) for rows in ROWS]
    assert all(a >= b - 1e-12 for a, b in pairwise(shares))
    by_label = "columns by label" in names(made)
    assert shares[0] == pytest.approx(0.4 if by_label else 0.5)  # where the joint counts are weak
    assert shares[-1] == pytest.approx(0.15)


def test_between_the_ends_the_share_follows_the_strength_of_the_noise():
    """At σ/n = 0.001 it is 0.15, at 0.008 it is 0.5, and in between linear in the logarithm."""
    made, budget = plan(SCHEMAS["pairs"]), Budget(1.0, 1e-6)
    sigma = noise_of(made, budget)[-1][0].scale / grid_of(made.blocks[-1].map).steps
    for strength, share in ((0.001, 0.15), (0.008, 0.5), (0.001 * 8**0.5, 0.325), (1.0, 0.5)):
        found = first_share(rebalanced(made, budget, sigma / strength))
        assert found == pytest.approx(share, abs=1e-9)


@PURE_TOO
@EVERY_UNIT
def test_only_shares_change_and_only_once(case, budget):
    made = plan(SCHEMAS[case])
    after = rebalanced(made, budget, 5000.0)
    assert after.schema == made.schema
    assert [(b.name, b.map, b.merge) for b in after.blocks] == [
        (b.name, b.map, b.merge) for b in made.blocks
    ]
    assert not after.rebalance


def test_blocks_of_one_round_keep_their_proportions():
    schema = SCHEMAS["classes"]
    settled = plan(schema).schema
    cells = settled.cells()
    made = Plan(
        settled,
        (
            PlannedBlock("count", Count(), 0.05),
            PlannedBlock("columns", onehot(cells), 0.15),
            PlannedBlock("waves", fourier(["c0"], 4), 0.30),
            PlannedBlock("some", marginals(cells, [("c0", "c1")]), 0.40, 8.0),
            PlannedBlock("more", marginals(cells, [("c2", "y")]), 0.10, 3.0),
        ),
        rebalance=True,
    )
    for rows in ROWS:
        after = {b.name: b.share for b in rebalanced(made, Budget(1.0, 1e-6), rows).blocks}
        assert after["count"] == 0.05
        assert after["waves"] / after["columns"] == pytest.approx(2)
        assert after["some"] / after["more"] == pytest.approx(4)
        assert 0.15 - 1e-9 <= (after["columns"] + after["waves"]) / 0.95 <= 0.5 + 1e-9


def test_a_rebalanced_plan_is_a_plan_that_can_be_shared(tmp_path):
    after = rebalanced(plan(SCHEMAS["label"]), Budget(1.0, 1e-6), 1000.0)
    after.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == after


# --- the preview ----------------------------------------------------------------------------------


@PURE_TOO
@EVERY_UNIT
def test_the_preview_shows_the_plan_as_it_will_be_balanced(case, budget):
    made = plan(SCHEMAS[case])
    for rows in (100, 5000, 10**6):
        seen = preview(made, rows=rows, epsilon=budget.epsilon, delta=budget.delta)
        after = rebalanced(made, budget, rows)
        assert [b.share for b in seen.blocks] == [b.share for b in after.blocks]
        same = preview(after, rows=rows, epsilon=budget.epsilon, delta=budget.delta)
        assert seen == same
        fixed = preview(replace(made, rebalance=False), rows=rows, epsilon=1.0, delta=1e-6)
        assert [b.share for b in fixed.blocks] == [b.share for b in made.blocks]


def test_the_preview_names_the_questions_of_both_rounds():
    seen = preview(plan(SCHEMAS["label"]), rows=1000, epsilon=1.0, delta=1e-6)
    asked = [e.question for e in seen.expected]
    assert asked == [
        "how many rows are there",
        "share of rows in one cell of a column",
        "mean of a numeric column",
        "share of rows in one cell of 3 columns, one of them 'y'",
    ]
