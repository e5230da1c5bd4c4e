"""A private choice of sets: the score's bound, the law of the choice, what it costs and states."""

from dataclasses import replace
from math import exp

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import aquatint as aq
from aquatint.accounting import (
    Budget,
    Loss,
    Noised,
    chosen,
    gaussian_loss,
    laplace_loss,
    zcdp_epsilon,
)
from aquatint.curator.choosing import scores
from aquatint.curator.noise import choose, chooser
from aquatint.curator.sketch import accumulate
from aquatint.errors import BudgetError, PlanError, ReleaseError
from aquatint.features import Count, fourier, marginals, onehot
from aquatint.features.grid import COUNT_STEPS, grid_of, one_set
from aquatint.planning import SELECTION, noise_of
from aquatint.release.model import Block
from aquatint.show import release_data, verified_data

UNITS = {
    "row": {"protects": "add or remove one row"},
    "swap": {"protects": "replace one row"},
    "person": {"protects": "all rows of one person", "person": "id", "max_rows": 2},
}
NAMES = "abcde"
SETS = [(x, y) for i, x in enumerate(NAMES) for y in NAMES[i + 1 :]]
DEPENDENT = (("a", "b"), ("c", "d"))
GAUSSIAN, LAPLACE = "discrete gaussian", "discrete laplace"
BOTH_NOISES = pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gaussian", "laplace"])
EVERY_UNIT = pytest.mark.parametrize("unit", UNITS)
FALSE_ALARM = 1e-7


def schema_of(unit="row"):
    columns = {name: {"kind": "numeric", "bounds": [0, 1], "bins": 6} for name in NAMES}
    return aq.Schema.from_dict({"name": "x", "privacy": UNITS[unit], "columns": columns})


def plan_of(unit="row", *, select=2, merge=5.0, **more):
    schema = schema_of(unit)
    cells = schema.cells()
    blocks = [
        aq.PlannedBlock("columns", onehot(cells), 0.3),
        aq.PlannedBlock(
            "chosen",
            marginals(cells, SETS),
            0.7 if unit == "swap" else 0.6,
            merge,
            select=select,
            **more,
        ),
    ]
    if unit != "swap":
        blocks.insert(0, aq.PlannedBlock("count", Count(), 0.1))
    return aq.Plan(schema, tuple(blocks))


def table(number=4000):
    rng = np.random.default_rng(0)
    data = {name: rng.random(number) for name in NAMES}
    data["b"] = np.clip(data["a"] + rng.normal(0, 0.05, number), 0, 1)
    data["d"] = np.clip(1 - data["c"] + rng.normal(0, 0.05, number), 0, 1)
    return pa.table({**data, "id": rng.integers(0, number, number)})


def sketch(plan, delta=1e-6, **options):
    return aq.sketch(
        table(), plan.schema, epsilon=1, delta=delta, plan=plan, progress=False, **options
    )


# --- the bound ------------------------------------------------------------------------------------


def published(plan):
    """Noisy histograms, made by hand: the scores take them as given."""
    rng = np.random.default_rng(3)
    part = plan.blocks[-2].map
    sums = (rng.normal(50, 30, part.dim) * COUNT_STEPS).astype(np.int64)
    return [Block("columns", part, sums, (1e6,), GAUSSIAN)]


def moved(scorer, unit, seed, *, merge):
    """Give how far a score moves at most between two neighbouring tables, drawn at random."""
    plan, rng = plan_of(unit), np.random.default_rng(seed)
    number = int(rng.integers(2, 30))
    values = {name: rng.random(number).round(1) for name in NAMES}
    rows = pa.table({**values, "id": np.arange(number)})
    many = {"row": 1, "swap": 1, "person": 2}[unit]
    extra = pa.table({**{n: rng.random(many).round(1) for n in NAMES}, "id": np.full(many, -1)})
    other = pa.concat_tables([rows.slice(1) if unit == "swap" else rows, extra])
    fine = plan.blocks[-1].map
    part = fine.merge(dict.fromkeys(NAMES[:3], (0, 0, 1, 1, 2, 2))) if merge else fine
    first, second = (
        scorer(part, fine.add_up(accumulate(t, plan).totals[-1].numpy(), part), published(plan),
               40.0, 3e6)
        for t in (rows, other)
    )  # fmt: skip
    return int(np.abs(first - second).max())


def limit(unit):
    part = plan_of(unit).blocks[-1].map
    bound = one_set(part, schema_of(unit).privacy)
    assert bound == {"row": 1, "swap": 2, "person": 2}[unit] * COUNT_STEPS
    return bound


@EVERY_UNIT
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), merge=st.booleans())
def test_no_neighbour_moves_a_score_beyond_its_bound(unit, seed, merge):
    """Search for a violation: any table, any unit added or swapped, any merging."""
    assert moved(scores, unit, seed, merge=merge) <= limit(unit)


@EVERY_UNIT
def test_the_search_finds_a_score_that_moves_too_far(unit):
    """Planted fault: distances from the table's own histograms, not from the published ones."""

    def careless(part, sums, before, rows, deviation):
        exact = [
            replace(before[0], integers=sums_of_columns(part, sums)),
        ]
        return scores(part, sums, exact, sums.sum() / len(part.sets) / COUNT_STEPS, deviation)

    found = [moved(careless, unit, seed, merge=False) for seed in range(20)]
    assert max(found) > limit(unit)


def sums_of_columns(part, sums):
    """The exact histograms, from the pairs of the first column and of the others with it."""
    tables = {s: sums[part.set_slice(s)].reshape(6, 6) for s in part.sets}
    first = tables["a", "b"].sum(1)
    return np.concatenate([first, *(tables["a", name].sum(0) for name in "bcde")])


def test_the_bound_is_reached():
    plan = plan_of()
    one = pa.table({name: [0.01] for name in NAMES})
    two = pa.table({name: [0.01, 0.01] for name in NAMES})
    before = [replace(published(plan)[0], integers=np.zeros(30, np.int64))]
    first, second = (
        scores(plan.blocks[-1].map, accumulate(t, plan).totals[-1].numpy(), before, 1.0, 0.0)
        for t in (one, two)
    )
    assert np.abs(first - second).max() == COUNT_STEPS


@EVERY_UNIT
def test_sets_of_one_cell_do_not_lend_their_sensitivity_to_others(unit):
    """Replacing a row never moves a set of one cell, but it moves the others by two."""
    privacy = schema_of(unit).privacy
    full = {"row": 1, "swap": 2, "person": 2}[unit] * COUNT_STEPS
    for cells in ({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 1, "c": 1}):
        part = marginals(cells, [("a", "b"), ("b", "c")])
        assert one_set(part, privacy) == full
    few = aq.PlannedBlock("x", part_of_two(), 0.5, 1.0, select=1)
    assert few.bounding.sets == (("b", "c"),)


def part_of_two():
    return marginals({"a": 1, "b": 1, "c": 2}, [("a", "b"), ("b", "c")])


def test_the_score_is_the_stated_one():
    cells = {"a": 2, "b": 3}
    part = marginals(cells, [("a", "b")])
    shares = np.array([0.25, 0.75, 0.2, 0.3, 0.5])
    steps = grid_of(part).steps
    before = [
        Block("columns", onehot(cells), (100 * shares * steps).astype(np.int64), (1e6,), GAUSSIAN)
    ]
    counts = np.array([10, 5, 10, 20, 25, 30])
    expected = 100 * np.outer(shares[:2], shares[2:]).flatten()
    found = scores(part, (counts * steps).astype(np.int64), before, 100.0, 2 * steps)
    wanted = np.abs(counts - expected).sum() - 6 * 2 * np.sqrt(2 / np.pi)
    assert found[0] / steps == pytest.approx(wanted, abs=1e-4)


# --- the choice -----------------------------------------------------------------------------------


@BOTH_NOISES
@EVERY_UNIT
def test_dependent_pairs_are_found(unit, delta):
    # Their scores are about 5,000 rows above the others', with noise below 150: certain.
    release = sketch(plan_of(unit), delta)
    assert release.block("chosen").map.sets == DEPENDENT
    assert len(release.block("chosen").integers) == release.block("chosen").map.dim


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_the_choice_follows_its_law(noise):
    """Two scores, two noise scales apart: exact probabilities, false alarm below 1e-7.

    With Gumbel noise the better one is chosen with probability e²/(1 + e²), with exponential noise
    with 1 − e⁻²/2.
    """
    gap, runs = 2.0, 4000
    part = chosen(1, 1, scale=1000.0)
    hits = sum(int(choose(np.array([0, 2000], np.int64), part, 1, noise)[0]) for _ in range(runs))
    chance = exp(gap) / (1 + exp(gap)) if noise == GAUSSIAN else 1 - exp(-gap) / 2
    low, high = binom.interval(1 - FALSE_ALARM, runs, chance)
    assert low <= hits <= high


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_simulated_choice_follows_its_seed(noise):
    values = np.arange(50, dtype=np.int64)
    part = chosen(5, 1, scale=20.0)
    first, again, other = (chooser(seed)(values, part, 5, noise) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (np.sort(first) != np.sort(other)).any()


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_a_choice_that_opendp_accounts_for_otherwise_is_refused(noise):
    values, honest = np.arange(9, dtype=np.int64), chosen(2, 5, scale=100.0)
    cheap = replace(honest, l2_squared=honest.l2_squared // 2, l1=honest.l1)
    cheap = cheap if noise == GAUSSIAN else replace(honest, scale=100.0, l1=honest.l1 + 1)
    with pytest.raises(BudgetError, match="nothing was released"):
        choose(values, cheap, 2, noise)


def test_only_a_choice_among_more_is_a_choice():
    values = np.arange(3, dtype=np.int64)
    for scores_, part, count in (
        (values, chosen(3, 1, 9.0), 3),
        (values, chosen(0, 1, 9.0), 0),
        (values.astype(float), chosen(1, 1, 9.0), 1),
        (values, Noised(3, 9.0, 1, 1), 1),
    ):
        with pytest.raises(BudgetError):
            choose(scores_, part, count, GAUSSIAN)


# --- what it costs --------------------------------------------------------------------------------


def test_a_choice_costs_what_the_exponential_mechanism_costs():
    part = chosen(4, 3, scale=12.0)
    loss = gaussian_loss([part])
    assert loss == Loss(0.0, 0.0, pure=2.0, pure_rho=0.125)  # 4·(2·3/12), 4·(2·3/12)²/8
    assert laplace_loss([part]).pure == 2.0
    noised = Noised(10, 2.0**30, 2**50, 2**25)
    both = gaussian_loss([part, noised])
    assert both.rho == gaussian_loss([noised]).rho
    assert both.epsilon(1e-6) == pytest.approx(zcdp_epsilon(both.rho + both.pure_rho, 1e-6))


@BOTH_NOISES
@EVERY_UNIT
def test_the_whole_budget_is_spent_and_not_more(unit, delta):
    plan = plan_of(unit)
    release = sketch(plan, delta)
    assert 1 - 1e-5 < release.loss.epsilon(delta) <= 1 + 1e-9
    parts = [part for parts in noise_of(plan, Budget(1.0, delta)) for part in parts]
    choices = [part for part in parts if part.choice]
    assert len(choices) == 1
    measure = laplace_loss if delta == 0 else gaussian_loss
    total, alone = measure(parts), measure(choices)
    spent = alone.pure / total.pure if delta == 0 else alone.pure_rho / (total.rho + total.pure_rho)
    assert spent == pytest.approx(plan.blocks[-1].share * SELECTION, rel=1e-6)


@BOTH_NOISES
def test_the_file_states_the_choice_and_the_reader_recomputes_it(tmp_path, delta):
    release = sketch(plan_of(), delta)
    release.save(tmp_path / "a.aqt")
    again = aq.load(tmp_path / "a.aqt")
    assert again.loss == release.loss
    if delta:  # what people are told is the loss of everything, the choice included
        whole = pytest.approx(release.loss.rho + release.loss.pure_rho)
        assert release_data(release)["privacy"]["rho"] == whole
        assert verified_data(again)["rho_recomputed"] == whole
    assert again.block("chosen").choice == release.block("chosen").choice
    with pytest.raises(ReleaseError, match="promises epsilon = 1"):
        replace(
            release,
            blocks=(*release.blocks[:-1], replace(release.blocks[-1], choice=1e3)),
        )


def test_a_choice_that_is_kept_secret_is_not_in_the_loss_which_is_why_it_is_stated():
    release = sketch(plan_of())
    quiet = replace(
        release, blocks=(*release.blocks[:-1], replace(release.blocks[-1], choice=None))
    )
    assert quiet.loss.pure_rho == 0 < release.loss.pure_rho


@pytest.mark.parametrize("choice", [0.0, -1.0])
def test_a_choice_without_noise_is_refused(choice):
    release = sketch(plan_of())
    with pytest.raises(ReleaseError, match="chosen"):
        replace(
            release,
            blocks=(*release.blocks[:-1], replace(release.blocks[-1], choice=choice)),
        )


def test_the_ledger_takes_the_choice_into_account(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = aq.Ledger(path)
    ledger.open_account("people", Budget(2.0, 1e-5), "add or remove one row")
    release = sketch(plan_of(), ledger=path, dataset="people")
    assert ledger.account("people").spent == pytest.approx(release.loss.epsilon(1e-5))


# --- plans ----------------------------------------------------------------------------------------


def test_a_plan_with_a_choice_survives_json():
    plan = plan_of(select=3)
    assert aq.Plan.from_dict(plan.to_dict()) == plan
    assert plan.to_dict()["blocks"][-1]["select"] == 3


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"select": 0}, "at least 1"),
        ({"select": 10}, "below the number"),
        ({"merge": None}, "needs merge"),
        ({"best": 2}, "best"),
    ],
)
def test_plans_that_cannot_choose_are_refused(more, told):
    with pytest.raises(PlanError, match=told):
        plan_of(**more)


def test_only_counts_are_chosen_among():
    schema = schema_of()
    with pytest.raises(PlanError):
        aq.Plan(
            schema,
            (
                aq.PlannedBlock("count", Count(), 0.1),
                aq.PlannedBlock("columns", onehot(schema.cells()), 0.3),
                aq.PlannedBlock(
                    "waves", fourier("ab", features=8, length_scale=1.0, seed=0), 0.6, 5.0, select=1
                ),
            ),
        )
