"""The benchmark of two-sample tests: its problems, the plain tests, and what was published."""

from math import pi, sqrt

import numpy as np
import pytest
from benchmark_scripts import fetch
from scipy.stats import binom

import aquatint as aq

problems = fetch("compare_problems")
plain = fetch("compare_plain")
published = fetch("compare_published")
power = fetch("compare_power")
ours = fetch("compare_ours")
cases = fetch("compare_cases")
real = fetch("compare_real")
tables = fetch("results_compare_tables")
script = fetch("compare")
runs = fetch("runs")


@pytest.mark.parametrize("name", problems.PROBLEMS)
def test_a_problem_is_what_its_schema_says(name):
    pair = problems.draw(name, 2000, 0)
    first, second = pair.tables
    assert first.column_names == second.column_names == list(pair.schema.columns)
    assert first.num_rows == second.num_rows == 2000
    low, high = problems.PROBLEMS[name].bounds
    beyond = np.mean([(x < low) | (x > high) for x in (pair.first, pair.second)])
    assert beyond < 1e-3
    again = problems.draw(name, 2000, 0)
    np.testing.assert_array_equal(pair.second, again.second)
    assert not np.array_equal(pair.first, problems.draw(name, 2000, 1).first)
    assert not np.array_equal(pair.first[:500], problems.draw(name, 2000, 0, training=True).first)


def test_problems_differ_where_the_paper_says():
    rows = 200_000  # means are off by .0022 and variances by .0032, one standard deviation each
    for name, columns in (("gmd", 100), ("gmdr", 100), ("gvd", 50), ("gvdr", 50)):
        direction = problems.diagonal(columns) if name.endswith("r") else problems.axis(columns)
        made = problems.PROBLEMS[name].second(np.random.default_rng(0), rows)
        part, rest = made @ direction, made @ np.eye(columns)[-1]
        mean, variance = (1.0, 1.0) if name.startswith("gmd") else (0.0, 2.0)
        assert part.mean() == pytest.approx(mean, abs=0.02)
        assert part.var() == pytest.approx(variance, abs=0.05)
        if not name.endswith("r"):
            assert rest.mean() == pytest.approx(0.0, abs=0.02)
            assert rest.var() == pytest.approx(1.0, abs=0.03)


def test_blobs_are_turned_and_stretched():
    rng, grid = np.random.default_rng(0), 25 * (16 - 1) / 12  # the variance of four places, 5 apart
    for angle, covariance in ((0.0, [[2, 0], [0, 1]]), (pi / 4, [[1.5, 0.5], [0.5, 1.5]])):
        made = problems.blobs(2.0, angle)(rng, 400_000)
        found = np.cov(made.T) - grid * np.eye(2)  # off by .07 on the diagonal, .05 beside it
        np.testing.assert_allclose(found, covariance, atol=0.35)


def test_the_plain_test_holds_its_level_and_finds_a_difference():
    rng, runs, rejected = np.random.default_rng(0), 300, 0
    features = plain.sampled("sg", 0)
    for _ in range(runs):
        pair = problems.Pair(*rng.standard_normal((2, 400, 50)), None)
        rejected += plain.plain_pvalue(features, pair) <= 0.01
    assert rejected <= binom.isf(1e-6, runs, 0.02)
    assert plain.plain_pvalue(plain.sampled("gmd", 0), problems.draw("gmd", 10_000, 0)) < 1e-4


def test_optimised_places_separate_better():
    training = problems.draw("blobs", 8000, 0, training=True)
    pair = problems.draw("blobs", 4000, 1)
    found = plain.optimised(training, True, 0)
    assert plain.plain_pvalue(found, pair) < 1e-6
    assert plain.plain_pvalue(found, problems.draw("blobs_null", 4000, 1)) > 1e-6


@pytest.mark.parametrize("kappa", [1.0, 2.0])
def test_theorem_1_of_the_paper_is_false(kappa):
    rows = 10_000
    before, after = published.counterexample(rows)
    regular = published.TCS_REGULAR
    moved = abs(plain.statistic(before, regular) - plain.statistic(after, regular))
    claimed = published.statistic_sensitivity(rows, 1, regular, kappa)
    assert moved / rows == pytest.approx(90.9, abs=0.5)  # without the n of eq. 1
    assert moved / rows > 50 * claimed
    assert regular < before.T @ before / rows  # its own condition: γ below Λ's least eigenvalue


def test_scf_breaks_the_published_sensitivities():
    """Two rows in opposite phase at every frequency: features r·u and −r·u."""
    rows, size = 1000, 10
    phase = np.tile([1.0, 0.0], size // 2)  # cos, sin of t·x = 0; with t·x = π they change sign
    first, second = np.tile(phase, (rows, 1)), np.tile(-phase, (rows, 1))
    changed = first.copy()
    changed[0] = -phase
    gap = np.linalg.norm(first.mean(axis=0) - changed.mean(axis=0))
    assert gap == pytest.approx(sqrt(2 * size) / rows)
    assert gap > 1.4 * published.mean_sensitivity(rows, size)
    z, other = first - second, changed - second
    gap = np.linalg.norm(z.T @ z - other.T @ other) / (rows - 1)
    assert gap == pytest.approx(2 * size / (rows - 1))
    assert gap > 1.9 * published.covariance_sensitivity(rows, size)


@pytest.mark.parametrize("test", [published.tcmc, published.tcs])
def test_published_tests_find_a_great_difference(test):
    rng = np.random.default_rng(0)
    z = np.clip(rng.normal(0.3, 0.2, (10_000, 5)), -1, 1)
    assert test(z, 5.0, 1e-5, rng) < 0.001
    assert test(z - z.mean(axis=0), 5.0, 1e-5, np.random.default_rng(1)) > 0.001


def test_published_owners_find_a_great_difference():
    rng = np.random.default_rng(0)
    a, b = np.clip(rng.normal(0.5, 0.2, (2, 10_000, 5)), 0, 1)
    assert published.nte(a, 0.8 * b, 5.0, 1e-5, rng) < 0.001
    assert published.nte(a, b, 5.0, 1e-5, rng) > 0.001


def test_runs_are_counted_once(tmp_path):
    log = runs.Log(tmp_path / "compare-power.jsonl")
    for first, decisions in ((0, "01"), (0, "0100"), (4, "1")):
        cell = {"problem": "sg", "method": "plain", "rows": 9, "epsilon": None}
        log.add({**cell, "first": first, "runs": len(decisions)}, {"decisions": decisions})
    (found,) = tables.rates(log).values()
    assert (found.rejected, found.runs) == (2, 5)
    assert tables.rates(runs.Log(tmp_path / "none.jsonl")) == {}
    low, high = tables.Rate(0, 1000).interval
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 1000))


def test_blocks_cover_every_run_and_share_what_epsilon_has_no_say_in():
    groups = [("gmd", "published_nte", 100, (1.0, 2.0)), ("gmd", "plain", 100, (1.0, 2.0))]
    made = [job.settings for job in power.jobs("power", groups, 120)]
    for epsilon, method in ((1.0, "published_nte"), (2.0, "published_nte"), (None, "plain")):
        mine = [s for s in made if s["method"] == method and s["epsilon"] == epsilon]
        assert [(s["first"], s["runs"]) for s in mine] == [(0, 50), (50, 50), (100, 20)]
    assert [s["epsilon"] for s in made[:4]] == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("part", "methods"),
    [("power", ["plain", "published_tcs", "mixed", "permutation"]), ("level", ["default", "tcmc"])],
)
def test_a_quick_look_writes_a_line_for_each_cell(part, methods, tmp_path):
    words = [part, "--quick", "--work", str(tmp_path), "--methods", *methods]
    asked = script.read_words([*words, "--problems", "blobs", "blobs_null"])
    log = runs.Log(asked.results / f"compare-{part}.jsonl")
    assert script.PARTS[part](asked, log) == 0
    lines = list(log.lines().values())
    assert {line["settings"]["method"] for line in lines} == set(methods)
    assert all(line["found"]["runs"] == len(line["found"]["decisions"]) == 2 for line in lines)
    assert script.PARTS[part](asked, log) == 0  # there already: nothing is run again
    assert len(log.path.read_text().splitlines()) == len(lines)


def test_figures_stand_beside_the_bars(tmp_path):
    log = runs.Log(tmp_path / "compare-power.jsonl")
    groups = [("gvd", "tcmc", power.ROWS, (1.0,)), ("gvd", "mixed", power.ROWS, (1.0,))]
    for job, decisions in zip(power.jobs("power", groups, 10), ("1" * 10, "10" * 5), strict=True):
        log.add(job.settings, {"decisions": decisions})
    found = tables.rates(log)
    rows = tables.bars(found)[2:4]
    assert rows[0].endswith("| ≥ .80 | 1.00 | .692 to 1.000 | met |")
    assert rows[1].endswith("| ≥ .95 | .50 | .187 to .813 | **missed** |")
    said = tables.missed(found)
    assert said.startswith("1 of 2 bars are met.")
    assert said.endswith("mixed Fourier on GVD is missed, with .50 for .95.\n")


def test_the_rows_of_an_occupation_do_not_tell_it():
    try:
        first, second, schema = real.occupations()
    except fetch("datasets").NotHereError as absent:
        pytest.skip(str(absent))
    assert "occupation" not in {*schema.columns, *first.column_names, *second.column_names}
    assert (first.num_rows, second.num_rows) == (4893, 4944)
    a, b, _ = real.halves("adult", 0)
    assert a.num_rows == b.num_rows == 39_073 // 2


@pytest.mark.parametrize("test", ["permutation", "signflip", "tcmc", "tcs"])
def test_a_curator_of_the_benchmark_decides_as_the_library_does(test):
    decided = []
    for seed, (name, epsilon) in enumerate([("sg", 1.0), ("gmd", 5.0)]):
        case = cases.Case(name, 8000, seed)
        made = ours.OURS[test].prepare(case)
        first, second, schema = cases.samples(case)
        told = {"delta": runs.DELTA, "test": test, "simulate": seed, "progress": False}
        found = aq.compare_private(first, second, schema, epsilon=epsilon, **told).reject
        assert ours.OURS[test].rejects(made, epsilon, seed) == found
        decided.append(found)
    assert decided == [False, True]
