"""What a report says: columns as counted, pairs by strength, verdicts, and a part of a release."""

import numpy as np
import pandas as pd
import pytest
from release_files import release_of
from wide_release import released, wide_release, wide_schema

import aquatint as aq
from aquatint.analyst.query.answers import Answer
from aquatint.analyst.query.describe import Described
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import fit_mixture
from aquatint.errors import DataError
from aquatint.features import Count
from aquatint.reporting import contents as contents_module
from aquatint.reporting.contents import contents
from aquatint.reporting.counted import describe_counted, rows_of
from aquatint.reporting.focus import can_focus, focus
from aquatint.reporting.pictures import statistics_of
from aquatint.reporting.strengths import counted_strengths, modelled_strengths
from aquatint.reporting.verdicts import signal, verdicts


@pytest.fixture(scope="module")
def small():
    return wide_release(12, rows=3_000, noise=20.0, bins=5)


def test_shares_as_counted_have_the_errors_that_they_claim():
    """In 200 releases × 40 shares, 95 % intervals cover all but 5 %; by chance never 3.5 or 6.5 %.

    Counts of one release are independent but for the noisy number of rows, which moves all shares
    by little: the standard deviation of the share of misses is about 0.25 %, and 1.5 % is six.
    """
    schema = wide_schema(4)
    rng = np.random.default_rng(2)
    size = sum(schema.cells().values())
    codes = [rng.integers(0, cells, 2_000) for cells in schema.cells().values()]
    hot = np.concatenate(
        [np.eye(n)[c] for n, c in zip(schema.cells().values(), codes, strict=True)], axis=1
    )
    missed = shares = 0
    for _ in range(200):
        described = describe_counted(released(schema, hot, 10.0, rng))
        found = pd.concat([one.histogram for one in described])
        truth = hot.mean(0)
        missed += int(((found["low"] > truth) | (found["high"] < truth)).sum())
        shares += size
    assert 0.035 < missed / shares < 0.065


def test_the_mean_as_counted_has_the_error_that_it_claims():
    """Of 400 means 95 % are covered: fewer than 350 or all of them is beyond six deviations."""
    schema = wide_schema(2)
    rng = np.random.default_rng(3)
    code = rng.binomial(19, 0.3, 2_000)
    hot = np.concatenate([np.eye(3)[rng.integers(0, 3, 2_000)], np.eye(20)[code]], axis=1)
    truth = (-4 + 0.4 * (code + 0.5)).mean()
    covered = 0
    for _ in range(400):
        mean = describe_counted(released(schema, hot, 10.0, rng))[1].statistics["mean"]
        covered += mean.low <= truth <= mean.high
    assert 350 < covered < 400


def test_noise_alone_makes_no_pair_strong():
    rng = np.random.default_rng(4)
    schema = wide_schema(40)
    hot = [np.eye(n)[rng.integers(0, n, 4_000)] for n in schema.cells().values()]
    release = released(schema, np.concatenate(hot, axis=1), 20.0, rng)
    assert len(counted_strengths(release)) == 40 * 39 // 2
    # Chance dependence of 4,000 independent rows is there, but far below what noise hides.
    assert all(pair.strength == 0 for pair in counted_strengths(release))


def test_strong_pairs_come_first_and_equal_columns_are_strongest():
    rng = np.random.default_rng(5)
    schema = wide_schema(6)
    codes = {name: rng.integers(0, n, 4_000) for name, n in schema.cells().items()}
    codes["number 3"] = codes["number 1"]
    hot = [np.eye(n)[codes[name]] for name, n in schema.cells().items()]
    first, *rest = counted_strengths(released(schema, np.concatenate(hot, axis=1), 5.0, rng))
    assert {first.first, first.second} == {"number 1", "number 3"}
    assert first.strength == pytest.approx(1.0, abs=0.05)
    assert all(pair.strength < 0.1 for pair in rest)


def test_the_model_agrees_with_the_counts_on_what_is_strong(small):
    model = fit_mixture(small, effort=Effort(components=30, steps=100, fits=1), progress=False)
    counted = {(p.first, p.second): p.strength for p in counted_strengths(small)}
    strongest = modelled_strengths(model)[0]
    assert counted[strongest.first, strongest.second] > 0.8 * max(counted.values())


def test_a_part_of_a_release_holds_the_same_numbers(small):
    names = ["number 1", "category 2", "number 5"]
    part = focus(small, names)
    assert set(part.schema.columns) == set(names)
    assert part.count == small.count
    for a, b in [("number 1", "category 2"), ("category 2", "number 5")]:
        whole, kept = (r.block("pairs") for r in (small, part))
        columns = tuple(sorted((a, b), key=list(small.schema.columns).index))
        np.testing.assert_array_equal(
            whole.integers[whole.map.set_slice(columns)], kept.integers[kept.map.set_slice(columns)]
        )
        assert kept.stderr[0] == whole.stderr[0]
    assert part.loss.zcdp_rho < small.loss.zcdp_rho
    assert aq.Query(part, progress=False).count().value == pytest.approx(3_000, abs=150)


def test_features_cannot_be_taken_apart():
    assert not can_focus(release_of())


def test_signal_is_set_against_noise(small):
    found = {s.name: s for s in map(signal, small.blocks)}
    rows, unsure = rows_of(small)
    assert found["count"].ratio == pytest.approx(rows / unsure, rel=0.01)
    assert found["count"].stands_out == 1
    assert found["columns"].ratio > found["pairs"].ratio > 0
    assert 0 < found["pairs"].stands_out < found["columns"].stands_out < 1


def described_mean(half):
    column = wide_schema(2).columns["number 1"]
    answer = Answer(0.0, -half * 8, half * 8, half * 4, "exact linear", "noise")
    return Described("number 1", column, {"mean": answer}, pd.DataFrame())


@pytest.mark.parametrize(("half", "grade"), [(0.009, "well"), (0.04, "roughly"), (0.06, "badly")])
def test_means_are_graded_by_their_interval(small, half, grade):
    found = [v for v in verdicts(small, [described_mean(half)], None) if "mean" in v.question]
    assert [v.grade for v in found] == [grade]
    assert "number 1" in found[0].because


@pytest.mark.parametrize(("noise", "grade"), [(0.5, "well"), (10.0, "roughly"), (50.0, "badly")])
def test_counts_are_graded_by_the_smallest_group(noise, grade):
    """With 3,000 rows, groups of 19.6 σ or more are within 10 %."""
    release = wide_release(4, rows=3_000, noise=noise)
    found = {v.question: v for v in verdicts(release, [], None)}
    one = found["How many rows in a group, by one column?"]
    assert one.grade == grade
    assert f"groups of {19.6 * noise:.3g} rows or more" in one.because
    assert found["How many rows in a group, by 3 columns or more?"].grade == "badly"


def test_correlations_are_graded_and_counted(small):
    lines = pd.DataFrame({"low": [-0.1, 0.2], "high": [0.1, 0.3], "value": [0.0, 0.25]})
    [found] = [v for v in verdicts(small, [], lines) if "two numbers" in v.question]
    assert found.grade == "roughly"
    assert "1 of 2 shown" in found.because


def test_a_spread_that_the_noise_has_swamped_is_unknown_and_not_nothing():
    swamped = Answer(0.0, 0.0, 6.5, 1.7, "m2m", "noise")
    column = wide_schema(2).columns["number 1"]
    one = Described("number 1", column, {"standard deviation": swamped}, pd.DataFrame())
    assert statistics_of(one) == [("s.d.", "unknown", "at most 6.5")]


def test_a_wide_table_is_shown_whole_and_modelled_in_part(monkeypatch):
    monkeypatch.setattr(contents_module, "WIDE", 10)
    found = contents(wide_release(14, rows=2_000, noise=10.0), progress=False)
    assert len(found.columns) == 14
    assert len(found.sample.columns) == contents_module.FOCUS
    assert found.pairs_left_out == 14 * 13 // 2 - len(found.pairs)
    assert len(found.pairs) == len(found.strengths) <= contents_module.PAIRS
    assert "14 columns" in found.notes[0]


def test_where_noise_hides_every_pair_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(contents_module, "WIDE", 10)
    release = wide_release(12, rows=1_000, noise=50.0)
    path = aq.report(release, tmp_path / "x.html", progress=False)
    assert "No two columns depend on each other so strongly" in path.read_text(encoding="utf-8")


def test_a_release_that_holds_only_the_number_of_rows_has_a_short_report(tmp_path):
    schema = wide_schema(2)
    plan = aq.Plan(schema, (aq.PlannedBlock("count", Count(), 1.0),))
    rows = pd.DataFrame({"category 0": ["kind 0"] * 50, "number 1": [0.0] * 50})
    options = {"epsilon": 1.0, "delta": 1e-6, "plan": plan, "simulate": 1, "progress": False}
    path = aq.report(aq.sketch(rows, schema, **options), tmp_path / "x.html", progress=False)
    page = path.read_text(encoding="utf-8")
    assert "no block that a table can be drawn from" in page
    assert "How many rows are there?" in page
    assert "Synthetic rows" not in page


def test_a_name_that_no_browser_opens_is_refused_before_anything_is_fitted(small, tmp_path):
    with pytest.raises(DataError, match=r"end the name people.pdf in .html"):
        aq.report(small, tmp_path / "people.pdf")
    with pytest.raises(DataError, match="cannot write"):
        aq.report(release_of(), tmp_path / "none" / "people.html", progress=False)
