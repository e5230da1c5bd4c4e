"""Counting the most dependent sets once more: chosen from published numbers, within the budget."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from aquatint.accounting import Budget
from aquatint.curator.sketch import sketch
from aquatint.errors import PlanError
from aquatint.features import Count, onehot
from aquatint.features.marginals import marginals
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.schema import Schema

NAMES = "abcde"
SETS = [("a", "b"), ("c", "d"), ("a", "e"), ("b", "c"), ("d", "e")]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({name: rng.integers(0, 3, 20_000) for name in NAMES})
    made["b"] = np.where(rng.random(20_000) < 0.8, made["a"], made["b"])
    made["d"] = np.where(rng.random(20_000) < 0.8, made["c"], made["d"])
    return made


def schema(protects: str = "add or remove one row") -> Schema:
    column = {"kind": "categorical", "categories": [0, 1, 2]}
    return Schema.from_dict(
        {
            "name": "t",
            "privacy": {"protects": protects},
            "columns": dict.fromkeys(NAMES, column),
        }
    )


def plan(declared: Schema, best: int = 2) -> Plan:
    cells = declared.cells()
    joint = marginals(cells, SETS)
    blocks = [
        PlannedBlock("columns", onehot(cells), 0.2),
        PlannedBlock("pairs", joint, 0.4, merge=10.0),
        PlannedBlock("best pairs", joint, 0.3, best=best),
    ]
    counted = [] if declared.privacy.replaces else [PlannedBlock("count", Count(), 0.1)]
    whole = sum(b.share for b in blocks + counted)
    return Plan(declared, tuple(replace(b, share=b.share / whole) for b in counted + blocks))


@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
def test_the_dependent_pairs_are_counted_once_more(table: pd.DataFrame, protects: str) -> None:
    # At this budget a dependent pair scores thousands of standard deviations above the others.
    declared = schema(protects)
    release = sketch(table, declared, epsilon=1, delta=1e-6, plan=plan(declared))
    again = release.block("best pairs")
    assert again.map.sets == (("a", "b"), ("c", "d"))
    assert again.map.groups == release.block("pairs").map.groups
    exact = pd.crosstab(table["a"], table["b"]).to_numpy().ravel()
    assert np.abs(again.sum[:9] - exact).max() < 8 * again.stderr[0]
    assert release.loss.epsilon(1e-6) <= 1


def test_noise_is_that_of_so_many_sets_whichever_they_are(table: pd.DataFrame) -> None:
    declared = schema()
    made = plan(declared)
    budget = Budget(1, 1e-6)
    planned = noise_of(made, budget)
    release = sketch(table, declared, epsilon=1, delta=1e-6, plan=made)
    assert release.block("best pairs").scales == (planned[3][0].scale,)
    assert planned[3][0].l2_squared / planned[2][0].l2_squared == pytest.approx(2 / 5)
    ratio = release.block("best pairs").stderr[0] / release.block("pairs").stderr[0]
    assert ratio == pytest.approx(sqrt(2 / 5) * sqrt(0.4 / 0.3))


def test_plans_with_best_sets_survive_a_file(tmp_path) -> None:
    made = plan(schema())
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == made


@pytest.mark.parametrize("best", [0, 6, -1])
def test_too_many_or_too_few_are_refused(best: int) -> None:
    with pytest.raises(PlanError, match="between 1 and the number of its sets"):
        plan(schema(), best=best)


def test_the_choice_needs_an_earlier_block() -> None:
    declared = schema()
    made = plan(declared)
    count, columns, pairs, again = made.blocks
    with pytest.raises(PlanError, match="put it before this one"):
        Plan(declared, (count, columns, again, pairs))
