"""Plans: from public facts alone, checked against their schema, and shared as a file."""

import json

import pytest

from aquatint.accounting import Budget, gaussian_loss, laplace_loss
from aquatint.errors import PlanError
from aquatint.features import Count, by_label, fourier, leaves, marginals, onehot, scale
from aquatint.features.grid import grid_of
from aquatint.planning import Plan, PlannedBlock, noise_of, plan
from aquatint.schema import Schema


def table(columns, protects="add or remove one row", **more):
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": protects}, "columns": columns, **more}
    )


def numbers(count, **column):
    made = {"kind": "numeric", "bounds": [0, 1], **column}
    return {f"c{i}": made for i in range(count)}


def test_the_default_plan_counts_columns_and_pairs(schema):
    made = plan(schema)
    assert [b.name for b in made.blocks] == ["count", "columns", "label pairs", "pairs"]
    sets = made.blocks[2].map.sets + made.blocks[3].map.sets
    assert len(sets) == len({frozenset(s) for s in sets}) == 7 * 6 // 2
    assert all("sex" in s for s in made.blocks[2].map.sets)
    assert sum(b.share for b in made.blocks) == pytest.approx(1)
    assert made.coordinates == sum(b.map.dim for b in made.blocks)


def test_a_public_count_is_not_released_again():
    names = [b.name for b in plan(table(numbers(3), "replace one row")).blocks]
    assert names == ["columns", "pairs"]


def test_a_single_column_has_no_pairs():
    assert [b.name for b in plan(table(numbers(1))).blocks] == ["count", "columns"]


@pytest.mark.parametrize(
    ("rows", "epsilon", "bins"),
    [(None, None, 32), (10**6, 1.0, 32), (5000, 1.0, 16), (10**6, 0.002, 16), (100, 1.0, 8)],
)
def test_fewer_rows_or_less_budget_give_coarser_bins(rows, epsilon, bins):
    made = plan(table(numbers(2)), rows=rows, epsilon=epsilon)
    assert made.schema.columns["c0"].bins == bins


def test_bins_never_outnumber_the_values_and_declared_ones_stay():
    schema = table(
        {"few": {"kind": "integer", "bounds": [0, 3]}, **numbers(1, bins=50)},
    )
    made = plan(schema)
    assert made.schema.columns["few"].bins == 4
    assert made.schema.columns["c0"].bins == 50


def test_a_wide_table_gets_coarser_bins_and_then_the_label_only():
    coarse = plan(table(numbers(200)))
    assert coarse.schema.columns["c0"].bins < 32
    assert coarse.coordinates < 6_000_000
    huge = plan(table({**numbers(900), "y": {"kind": "boolean"}}, label="y"))
    assert [b.name for b in huge.blocks] == ["count", "columns", "label pairs"]
    assert all("y" in s for s in huge.blocks[-1].map.sets)


def test_a_column_of_very_many_categories_is_counted_alone():
    many = {"kind": "categorical", "categories": [f"v{i}" for i in range(3000)]}
    made = plan(table({"many": many, **numbers(2)}))
    assert not any("many" in s for s in made.blocks[-1].map.sets)
    assert ("many",) in made.blocks[1].map.sets


def test_a_plan_is_saved_and_loaded(schema, tmp_path):
    made = plan(schema)
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot read the plan"),
        ('{"format": "other"}', "not a plan of a version"),
        ('{"format": "aquatint-plan", "format_version": 2}', "not a plan of a version"),
        ('{"format": "aquatint-plan", "format_version": 1}', "malformed"),
        ('{"format": "aquatint-plan", "format_version": 1, "blocks": 3}', "malformed"),
    ],
)
def test_a_broken_plan_file_is_refused_with_a_sentence(tmp_path, text, says):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=says):
        Plan.load(path)


def test_a_missing_plan_file_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(PlanError, match="cannot read the plan"):
        Plan.load(tmp_path / "none.json")


def test_an_altered_map_in_a_plan_file_is_refused(schema, tmp_path):
    made = Plan(
        plan(schema).schema,
        (PlannedBlock("count", Count(), 0.5), PlannedBlock("f", fourier(["age"], 4), 0.5)),
    )
    data = json.loads(json.dumps(made.to_dict()))
    data["blocks"][1]["map"]["seed"] = 9
    with pytest.raises(PlanError, match="does not rebuild to itself"):
        Plan.from_dict(data)


def blocks(*maps):
    return tuple(PlannedBlock(f"b{i}", m, 1 / len(maps)) for i, m in enumerate(maps))


WRONG = {
    "no blocks": (lambda _: (), "at least one block"),
    "no count": (lambda c: blocks(onehot(c)), "number of rows is private"),
    "unknown column": (lambda c: blocks(Count(), fourier(["nobody"], 2)), "does not have"),
    "a column without order": (lambda c: blocks(Count(), fourier(["sex"], 2)), "has no order"),
    "other cells": (lambda c: blocks(Count(), onehot({"sex": 9})), "has 3 cells"),
    "other cells by label": (
        lambda c: blocks(Count(), by_label(onehot({"ill": 9}), "sex", 3)), "has 3 cells"
    ),
    "other cells in a product": (
        lambda c: blocks(Count(), fourier(["age"], 2) * scale(onehot({"ill": 9}), 2)), "has 3 cell"
    ),
    "other classes": (lambda c: blocks(Count(), by_label(Count(), "sex", 4)), "not 4"),
    "the same name twice": (
        lambda c: (PlannedBlock("a", Count(), 0.5), PlannedBlock("a", onehot(c), 0.5)), "of its own"
    ),
    "shares that do not add up": (
        lambda c: (PlannedBlock("a", Count(), 0.5), PlannedBlock("b", onehot(c), 0.6)), "add up to"
    ),
    "a negative share": (
        lambda c: (PlannedBlock("a", Count(), 1.5), PlannedBlock("b", onehot(c), -0.5)), "positive"
    ),
    "a share that is not a number": (
        lambda c: (PlannedBlock("a", Count(), float("nan")),), "positive"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "says"), WRONG.values(), ids=WRONG.keys())
def test_a_plan_that_does_not_fit_is_refused(schema, kit, make, says):
    with pytest.raises(PlanError, match=says):
        Plan(schema, make(kit.cells))


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_noise_spends_the_budget_and_no_more(schema, delta):
    made = plan(schema)
    budget = Budget(1.0, delta)
    flat = [part for parts in noise_of(made, budget) for part in parts]
    loss = laplace_loss(flat) if delta == 0 else gaussian_loss(flat)
    assert 0.999 < loss.epsilon(delta) <= 1.0


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_leaves_of_a_block_get_noise_of_one_size(schema, kit, delta):
    mixed = fourier(["age"], 4) + scale(marginals(kit.cells, [("sex",), ("job",)]), 0.5)
    made = Plan(schema, blocks(Count(), mixed))
    _, parts = noise_of(made, Budget(1.0, delta))
    sizes = [p.scale / grid_of(m).steps for p, m in zip(parts, leaves(mixed), strict=True)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-5)
