"""The sketches for asking: their blocks, sensitivities and shares, and what they release."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.errors import PlanError
from aquatint.features import Count, leaves
from aquatint.features.algebra import ByLabel, Product, Scaled
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.features.grid import grid_of, sensitivity
from aquatint.features.marginals import Marginals
from aquatint.features.race import Race
from aquatint.m2m_recipes import COUNT_SHARE, MOST_CELLS
from aquatint.planning import noise_of

ADD, REPLACE = "add or remove one row", "replace one row"
COLUMNS = {
    "age": {"kind": "integer", "bounds": [17, 90]},
    "pay": {"kind": "numeric", "bounds": [0, 1000], "missing": True},
    "born": {"kind": "date", "bounds": ["1930-01-01", "2020-01-01"]},
    "job": {"kind": "categorical", "categories": ["a", "b", "c"], "other": True},
    "grade": {"kind": "ordered", "categories": ["low", "high"]},
    "ill": {"kind": "boolean"},
}
NUMBERS = {f"x{i}": {"kind": "numeric", "bounds": [0, 1]} for i in range(10)}
RECIPES = [aq.m2m, aq.m2m_hist, aq.m2m_rff, aq.m2m_race]


def schema_of(protects=ADD, label="ill", columns=COLUMNS):
    data = {"name": "people", "privacy": {"protects": protects}, "columns": columns}
    return aq.Schema.from_dict(data | ({"label": label} if label else {}))


def numeric(protects=ADD):
    return schema_of(protects, None, NUMBERS)


def moved(plan, name):
    """The squared L2 and the L1 sensitivity of a block, in units of its features."""
    parts = leaves(next(b for b in plan.blocks if b.name == name).map)
    found = [sensitivity(p, plan.schema.privacy) for p in parts]
    steps = [grid_of(p).steps for p in parts]
    squared = sum(s / step**2 for (s, _), step in zip(found, steps, strict=True))
    return squared, sum(one / step for (_, one), step in zip(found, steps, strict=True))


def shares(plan):
    return {b.name: b.share for b in plan.blocks}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("protects", [ADD, REPLACE])
@pytest.mark.parametrize("label", ["ill", "job", "age", None])
def test_plans_are_whole(recipe, protects, label):
    plan = recipe(schema_of(protects, label))
    assert any(isinstance(b.map, Count) for b in plan.blocks) is (protects == ADD)
    assert shares(plan).get("count", COUNT_SHARE) == COUNT_SHARE
    assert sum(shares(plan).values()) == pytest.approx(1)
    read = {name for b in plan.blocks for part in b.map.reads for name in part}
    assert read == set(COLUMNS)
    again = aq.Plan.from_dict(plan.to_dict())
    assert again == plan
    for budget in (Budget(1.0, 1e-6), Budget(1.0, 0)):
        assert noise_of(again, budget) == noise_of(plan, budget)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("some", [("age",), ("job",), ("ill", "job"), ("age", "job"), ("pay",)])
def test_small_tables_have_plans_too(recipe, some):
    plan = recipe(schema_of(label=None, columns={name: COLUMNS[name] for name in some}))
    assert sum(shares(plan).values()) == pytest.approx(1)
    assert plan.coordinates > 1


def test_the_sensitivity_of_hist_is_the_number_of_columns():
    """Not the paper's undefined k, nor one, nor the number of bins."""
    plan = aq.m2m_hist(numeric(), bins=50)
    assert plan.coordinates == 1 + 10 * 50
    assert moved(plan, "histograms") == (10, 10)
    assert moved(aq.m2m_hist(numeric(REPLACE), bins=50), "histograms") == (20, 20)
    assert aq.m2m_hist(numeric()).schema.cells()["x0"] == 100
    assert aq.m2m_hist(schema_of()).schema.cells()["age"] == 74  # whole numbers: no empty bins


def test_noise_of_the_papers_sketches_under_laplace():
    """The scale is Δ₁/(0.98·ε), with Δ₁ = √m for RFF of norm one."""
    budget = Budget(1.0, 0)
    for plan, wanted in [
        (aq.m2m_hist(numeric()), 10),
        (aq.m2m_race(numeric()), 80),
        (aq.m2m_rff(numeric()), sqrt(200)),
    ]:
        (count,), (part,) = noise_of(plan, budget)
        sketch = plan.blocks[1].map
        assert part.scale / grid_of(sketch).steps == pytest.approx(wanted / 0.98, rel=1e-4)
        assert count.scale / grid_of(Count()).steps == pytest.approx(1 / 0.02, rel=1e-4)


def test_the_papers_settings_are_the_defaults():
    rff, race = aq.m2m_rff(numeric()).blocks[1].map, aq.m2m_race(numeric()).blocks[1].map
    assert isinstance(rff, Fourier)
    assert (rff.features, set(rff.length_scales)) == (200, {1.0})
    assert isinstance(race, Race)
    assert (race.repetitions, race.buckets, set(race.widths)) == (80, 80, {0.1})


def test_rff_and_race_have_the_label_among_their_columns():
    waves, cells = leaves(aq.m2m_rff(schema_of()).blocks[1].map)
    assert waves.columns == ("age", "pay", "born", "grade", "ill")
    assert [s for (s,) in cells.inner.sets] == ["job", "pay"]
    hashes, cells = leaves(aq.m2m_race(schema_of()).blocks[1].map)
    assert hashes.columns == waves.columns
    assert [s for (s,) in cells.sets] == ["job"]


def test_m2m_has_columns_pairs_and_a_dense_share():
    plan = aq.m2m(numeric(REPLACE), order=5, pair_order=2, pair_share=0.5, dense_share=0.2)
    assert shares(plan) == pytest.approx({"columns": 0.3, "pairs": 0.5, "dense": 0.2})
    columns, both, dense = (b.map for b in plan.blocks)
    assert (columns.dim, both.dim, dense.dim) == (10 * 5, 45 * 4, 50)
    assert isinstance(columns.inner, Cosines)
    assert columns.bound.l2_squared == pytest.approx(10)  # one for each column
    assert both.bound.l2_squared == pytest.approx(45)  # one for each pair
    assert isinstance(dense, Fourier)
    assert dense.length_scales == pytest.approx([0.3 * sqrt(10)] * 10)


def test_m2m_of_a_mixed_table_has_every_column_and_every_pair_once():
    plan = aq.m2m(schema_of(), pair_order=2)
    columns, both, dense = (b.map for b in plan.blocks[1:])
    waves, cells = leaves(columns)
    assert waves.inner.columns == ("age", "pay", "born")
    assert [s for (s,) in cells.sets] == ["job", "grade", "ill", "pay"]
    assert cells.counted["pay"] == 2  # present and missing
    assert moved(plan, "columns")[0] == pytest.approx(3 + 4, rel=1e-5)
    numbers, mixed, others = leaves(both)
    assert isinstance(numbers, Scaled)
    assert isinstance(mixed.inner, Product)
    assert mixed.inner.left.ones == 3
    assert isinstance(others, Marginals)
    assert moved(plan, "pairs")[0] == pytest.approx(3 + 9 + 3, rel=1e-5)
    assert isinstance(dense, ByLabel)
    assert dense.inner.columns == ("age", "pay", "born")


def test_m2m_leaves_out_what_it_is_told_to():
    assert "dense" not in shares(aq.m2m(schema_of(), features=0))
    assert "pairs" not in shares(aq.m2m(schema_of(), pair_order=0))
    assert isinstance(aq.m2m(schema_of(), labelled=False).blocks[-1].map, Fourier)
    assert isinstance(aq.m2m(schema_of(label="age"), labelled=True).blocks[-1].map, ByLabel)
    others = {name: COLUMNS[name] for name in ("job", "ill")}
    assert list(shares(aq.m2m(schema_of(columns=others)))) == ["count", "columns", "pairs"]


def test_m2m_counts_a_column_of_very_many_categories_on_its_own_only():
    many = {"kind": "categorical", "categories": [f"c{i}" for i in range(MOST_CELLS)]}
    plan = aq.m2m(schema_of(columns={**COLUMNS, "city": many}))
    assert "city" in plan.blocks[1].map.reads[0]
    assert "city" not in plan.blocks[2].map.reads[0]


def test_the_preview_says_how_long_an_embedding_can_be():
    seen = aq.preview(aq.m2m(numeric(REPLACE)), rows=10_000, epsilon=1, delta=1e-5)
    assert [e.unit for e in seen.expected] == [f"of at most {v}" for v in ("3.16", "6.71", "1")]


@pytest.mark.parametrize(
    "build",
    [
        lambda s: aq.m2m_hist(s, bins=0),
        lambda s: aq.m2m_hist(s, count_share=0.0),
        lambda s: aq.m2m_hist(s, count_share=1.0),
        lambda s: aq.m2m_rff(s, features=7),
        lambda s: aq.m2m_race(s, repetitions=0),
        lambda s: aq.m2m(s, order=0),
        lambda s: aq.m2m(s, pair_share=0.95),
        lambda s: aq.m2m(s, pair_share=0.0),
        lambda s: aq.m2m(s, dense_share=-0.1),
        lambda s: aq.m2m(s, features=3),
        lambda s: aq.m2m(schema_of(label=None), labelled=True),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_sentence(build):
    with pytest.raises(PlanError, match=r".{20,}"):
        build(numeric())


def table(count=3_000, seed=0):
    rng = np.random.default_rng(seed)
    pay = rng.normal(500, 150, count).clip(0, 1000)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, count),
            "pay": np.where(rng.random(count) < 0.1, np.nan, pay),
            "born": np.datetime64("1950-01-01") + rng.integers(0, 20_000, count),
            "job": rng.choice(["a", "b", "c", "d"], count),
            "grade": rng.choice(["low", "high"], count),
            "ill": rng.random(count) < pay / 1000,
        }
    )


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("delta", [0, 1e-6], ids=["laplace", "gaussian"])
def test_every_sketch_is_released_saved_and_read_again(recipe, delta, tmp_path):
    schema = schema_of()
    plan = recipe(schema)
    release = aq.sketch(table(), schema, epsilon=2, delta=delta, plan=plan, progress=False)
    release.save(tmp_path / "people.aqt")
    again = aq.load(tmp_path / "people.aqt")
    assert [b.map for b in again.blocks] == [b.map for b in plan.blocks]
    assert again.statement.epsilon == 2


@pytest.mark.usefixtures("one_thread")
def test_a_table_is_drawn_from_an_m2m_release():
    schema, real = schema_of(REPLACE), table(8_000)
    release = aq.sketch(
        real, schema, epsilon=10, delta=1e-6, plan=aq.m2m(schema), progress=False, simulate=1
    )
    drawn = aq.synthesize(release, progress=False).sample(10_000, seed=1)
    assert abs(drawn["pay"].mean() - real["pay"].mean()) < 15
    assert abs(drawn["pay"].isna().mean() - 0.1) < 0.03
    assert abs(drawn["ill"].mean() - real["ill"].mean()) < 0.03
    gap = real.groupby("ill")["pay"].mean().diff().iloc[-1]
    assert abs(drawn.groupby("ill")["pay"].mean().diff().iloc[-1] - gap) < 0.4 * gap
