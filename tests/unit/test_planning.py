"""Plans: from public facts alone, checked against their schema, and shared as a file."""

import json

import pytest

from aquatint.accounting import Budget, gaussian_loss, laplace_loss
from aquatint.errors import PlanError
from aquatint.features import Count, by_label, fourier, leaves, marginals, onehot, scale
from aquatint.features.grid import grid_of
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.schema import Schema
from aquatint.table_plan import plan


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


# --- merging and rebalancing ----------------------------------------------------------------------


def two_rounds(cells, *, merge=5.0, first=onehot):
    """Count, histograms, then pairs over merged cells."""
    pairs = marginals(cells, [("age", "sex"), ("job", "grade")])
    return (
        PlannedBlock("count", Count(), 0.1),
        PlannedBlock("columns", first(cells), 0.3),
        PlannedBlock("pairs", pairs, 0.6, merge),
    )


@pytest.mark.parametrize(
    ("merge", "rebalance"),
    [(None, False), (5.0, False), (5.0, True), (0.125, True)],
)
def test_merging_and_rebalancing_survive_a_file(schema, kit, tmp_path, merge, rebalance):
    made = Plan(schema, two_rounds(kit.cells, merge=merge), rebalance)
    made.save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    assert loaded == made
    assert [b.merge for b in loaded.blocks] == [None, None, merge]
    assert loaded.rebalance is rebalance
    assert noise_of(loaded, Budget(1.0, 1e-6)) == noise_of(made, Budget(1.0, 1e-6))


def test_a_plan_that_neither_merges_nor_rebalances_has_the_file_it_always_had(schema, kit):
    data = Plan(schema, two_rounds(kit.cells, merge=None)).to_dict()
    assert set(data) == {"format", "format_version", "schema", "blocks"}
    assert all(set(block) == {"name", "map", "share"} for block in data["blocks"])


def test_merging_and_rebalancing_are_named_in_the_file(schema, kit):
    data = Plan(schema, two_rounds(kit.cells), rebalance=True).to_dict()
    assert data["rebalance"] is True
    assert [block.get("merge") for block in data["blocks"]] == [None, None, 5.0]


COUNTED = PlannedBlock("count", Count(), 0.2)
BAD_MERGES = {
    "no histogram at all": (
        lambda c: (COUNTED, PlannedBlock("p", marginals(c, [("age", "sex")]), 0.8, 5.0)),
        "merges cells of column 'age': put a block with its histogram",
    ),
    "no histogram of one column": (
        lambda c: (
            COUNTED,
            PlannedBlock("h", onehot({"age": c["age"]}), 0.4),
            PlannedBlock("p", marginals(c, [("age", "sex")]), 0.4, 5.0),
        ),
        "merges cells of column 'sex'",
    ),
    "the histogram comes later": (
        lambda c: (
            COUNTED,
            PlannedBlock("p", marginals(c, [("age", "sex")]), 0.4, 5.0),
            PlannedBlock("h", onehot(c), 0.4),
        ),
        "merges cells of column 'age'",
    ),
    "the histogram is in the block itself": (
        lambda c: (
            COUNTED,
            PlannedBlock("p", marginals(c, [("age",), ("sex",), ("age", "sex")]), 0.8, 5.0),
        ),
        "merges cells of column 'age'",
    ),
    "only a joint count comes before": (
        lambda c: (
            COUNTED,
            PlannedBlock("j", marginals(c, [("age", "sex")]), 0.4),
            PlannedBlock("p", marginals(c, [("age", "sex")]), 0.4, 5.0),
        ),
        "merges cells of column 'age'",
    ),
    "the histogram has merged cells": (
        lambda c: (
            COUNTED,
            PlannedBlock("h", onehot({"sex": 3}).merge({"sex": (0, 0, 1)}), 0.4),
            PlannedBlock("p", marginals(c, [("sex",)]), 0.4, 5.0),
        ),
        "merges cells of column 'sex'",
    ),
    "the histogram is by label": (
        lambda c: (
            COUNTED,
            PlannedBlock("h", by_label(onehot({"ill": c["ill"]}), "sex", 3), 0.4),
            PlannedBlock("p", marginals(c, [("ill",)]), 0.4, 5.0),
        ),
        "merges cells of column 'ill'",
    ),
    "a map without cells": (
        lambda c: (
            COUNTED,
            PlannedBlock("h", onehot(c), 0.4),
            PlannedBlock("p", fourier(["age"], 4), 0.4, 5.0),
        ),
        "only the cells of plain counts can be merged",
    ),
    "a weighted map": (
        lambda c: (
            COUNTED,
            PlannedBlock("h", onehot(c), 0.4),
            PlannedBlock("p", scale(onehot(c), 0.5), 0.4, 5.0),
        ),
        "only the cells of plain counts can be merged",
    ),
    "the count itself": (
        lambda c: (PlannedBlock("h", onehot(c), 0.5), PlannedBlock("count", Count(), 0.5, 5.0)),
        "only the cells of plain counts can be merged",
    ),
}


@pytest.mark.parametrize(("make", "says"), BAD_MERGES.values(), ids=BAD_MERGES.keys())
def test_a_plan_that_cannot_merge_is_refused(schema, kit, make, says):
    with pytest.raises(PlanError, match=says):
        Plan(schema, make(kit.cells))


@pytest.mark.parametrize("merge", [0.0, -5.0, float("nan"), float("inf")])
def test_a_demand_that_makes_no_sense_is_refused(schema, kit, merge):
    with pytest.raises(PlanError, match="positive number of standard deviations"):
        Plan(schema, two_rounds(kit.cells, merge=merge))


@pytest.mark.parametrize("merge", ["a lot", [5.0], {}, -1, 0, "nan"])
def test_a_demand_that_makes_no_sense_is_refused_in_a_file(schema, kit, merge):
    data = Plan(schema, two_rounds(kit.cells)).to_dict()
    data["blocks"][2]["merge"] = merge
    with pytest.raises(PlanError):
        Plan.from_dict(data)


def test_histograms_of_several_blocks_serve(schema, kit):
    made = (
        COUNTED,
        PlannedBlock("age", onehot({"age": kit.cells["age"]}) + fourier(["age"], 4), 0.2),
        PlannedBlock("sex", marginals(kit.cells, [("sex",), ("sex", "job")]), 0.2),
        PlannedBlock("pairs", marginals(kit.cells, [("age", "sex")]), 0.4, 5.0),
    )
    assert Plan(schema, made, rebalance=True).blocks == made


BAD_BALANCES = {
    "nothing is merged": lambda c: two_rounds(c, merge=None),
    "the count is not first": lambda c: two_rounds(c)[1::-1] + two_rounds(c)[2:],
    "the count is last": lambda c: two_rounds(c)[1:] + two_rounds(c)[:1],
    "there is only the count": lambda _: (PlannedBlock("count", Count(), 1.0),),
}


@pytest.mark.parametrize("make", BAD_BALANCES.values(), ids=BAD_BALANCES.keys())
def test_a_plan_that_cannot_be_rebalanced_is_refused(schema, kit, make):
    Plan(schema, make(kit.cells))
    with pytest.raises(PlanError, match="a plan with rebalance needs the count as its first"):
        Plan(schema, make(kit.cells), rebalance=True)


def test_where_the_number_of_rows_is_public_no_count_is_needed_to_rebalance(schema_dict, kit):
    swap = Schema.from_dict({**schema_dict, "privacy": {"protects": "replace one row"}})
    _, columns, pairs = two_rounds(kit.cells)
    blocks = (PlannedBlock("columns", columns.map, 0.4), pairs)
    assert Plan(swap, blocks, rebalance=True).rebalance


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_merging_does_not_change_the_planned_noise(schema, kit, delta):
    """The noise is calibrated for the fine cells: which are merged is not known beforehand."""
    plain, merging = (Plan(schema, two_rounds(kit.cells, merge=m)) for m in (None, 5.0))
    assert noise_of(plain, Budget(1.0, delta)) == noise_of(merging, Budget(1.0, delta))
