"""Comparing two releases: what is found, where, and what is refused.

Noise is simulated from fixed seeds here, so that results are the same in every run; the level under
real noise is in tests/statistical.
"""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import binom, chi2, laplace, norm
from wide_release import wide_release

import aquatint as aq
from aquatint.analyst.compare.parts import Part, adjusted
from aquatint.analyst.compare.sides import checked
from aquatint.analyst.compare.tables import contrasts, tables
from aquatint.analyst.compare.tails import (
    independent,
    joint,
    sum_of_squares,
    two_sided,
    two_squares,
)
from aquatint.analyst.compare.waves import either_way
from aquatint.comparison import holm
from aquatint.features import Count, by_label, cosines, fourier, onehot, pairs, race
from aquatint.progress import heard_by

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "pay": {"kind": "numeric", "bounds": [0, 100], "missing": True},
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
    "job": {"kind": "categorical", "categories": ["a", "b", "c", "d"]},
}


def schema_of(protects="add or remove one row", columns=COLUMNS, **more):
    privacy = {"protects": protects, **more}
    return aq.Schema.from_dict({"name": "people", "privacy": privacy, "columns": columns})


def table(count, seed, shift=0.0, jobs=(1, 1, 1, 1)):
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(count) < 0.1, np.nan, rng.normal(50 + shift, 10, count))
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, count),
            "pay": pay,
            "sex": rng.choice(["F", "M"], count),
            "job": rng.choice(list("abcd"), count, p=np.array(jobs) / sum(jobs)),
        }
    )


PLANS = {
    "default": aq.plan,
    "me_test": aq.me_test,
    "scf_test": aq.scf_test,
    "mixed_fourier": aq.mixed_fourier,
    "m2m": aq.m2m,
    "m2m_hist": aq.m2m_hist,
    "m2m_rff": aq.m2m_rff,
    "m2m_race": aq.m2m_race,
    "dp_merf": aq.dp_merf,
    "dp_hp": aq.dp_hp,
}


def release_of(data, plan, seed, schema=None, epsilon=3.0, delta=1e-6):
    schema = schema or schema_of()
    made = plan(schema) if callable(plan) else plan
    return aq.sketch(data, schema, epsilon=epsilon, delta=delta, plan=made, simulate=seed)


# --- every plan ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_two_halves_of_one_table_do_not_differ_by_any_plan(name):
    whole = table(6000, 1)
    one, two = (release_of(whole[i::2], PLANS[name], i) for i in range(2))
    for conservative in (False, True):
        found = aq.compare(one, two, conservative=conservative)
        assert not found.reject
        assert 0.01 < found.pvalue <= 1
        assert found.n == (one.count, two.count)
        assert len(found.differences) >= 1


@pytest.mark.parametrize("name", [n for n in PLANS if n not in {"me_test", "dp_hp"}])
def test_a_shift_is_found_and_named(name):
    one = release_of(table(8000, 2), PLANS[name], 1)
    two = release_of(table(8000, 3, shift=10), PLANS[name], 2)
    found = aq.compare(one, two)
    assert found.reject
    assert found.pvalue < 1e-4
    assert "pay" in found.differences[0].columns
    padded = aq.compare(one, two, conservative=True)
    assert found.pvalue <= padded.pvalue <= 0.01


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("name", ["default", "mixed_fourier", "scf_test", "m2m"])
def test_a_change_of_jobs_is_found_under_both_noises_and_relations(name, protects, delta):
    schema = schema_of(protects)
    data = table(20_000, 4), table(10_000, 5, jobs=(4, 1, 1, 1)), table(5_000, 6)
    made = [
        release_of(t, PLANS[name], s, schema, epsilon=5, delta=delta) for s, t in enumerate(data)
    ]
    found = aq.compare(made[0], made[1])
    assert found.reject
    assert "job" in found.differences[0].columns
    assert not aq.compare(made[0], made[2]).reject


def test_whitened_means_use_the_second_moment_and_say_so():
    one, two = (release_of(table(3000, s), aq.me_test, s) for s in (1, 2))
    found = aq.compare(one, two)
    assert "whitened" in found.method
    assert {d.part for d in found.differences} == {f"location {j}" for j in range(1, 6)}
    assert aq.compare(one, two, method="whitened").pvalue == found.pvalue
    assert "whitened" not in aq.compare(one, two, method="parts").method


def test_persons_with_several_rows_widen_the_sampling_variance():
    columns = {"x": {"kind": "numeric", "bounds": [0, 1], "bins": 4}}
    made = {}
    for most in (1, 5):
        schema = schema_of("all rows of one person", columns, person="id", max_rows=most)
        plan = aq.Plan(
            schema,
            (
                aq.PlannedBlock("count", Count(), 0.1),
                aq.PlannedBlock("cells", onehot(schema.cells()), 0.9),
            ),
        )
        sides = []
        for seed in (1, 2):
            x = np.repeat(np.random.default_rng(seed).random(400), 5)
            data = pd.DataFrame({"x": x, "id": np.arange(2000) // 5})
            sides.append(release_of(data, plan, seed, schema, epsilon=10))
        made[most] = checked(*sides)
        assert not aq.compare(*sides).reject
    assert made[1].sampling == pytest.approx(made[5].sampling, rel=0.1)


# --- releases that do not match -----------------------------------------------------------------


def test_cells_that_were_merged_differently_are_compared_over_common_groups():
    cells = {"age": 6, "sex": 2}
    columns = {
        "age": {"kind": "integer", "bounds": [0, 5], "bins": 6},
        "sex": {"kind": "categorical", "categories": ["F", "M"]},
    }
    schema = schema_of("replace one row", columns)
    counted = pairs(cells)
    maps = counted.merge({"age": (0, 0, 1, 2, 2, 3)}), counted.merge({"age": (0, 1, 2, 2, 3, 4)})
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"age": rng.integers(0, 6, 5000), "sex": rng.choice(["F", "M"], 5000)})
    made = [
        release_of(data[i::2], aq.Plan(schema, (aq.PlannedBlock("p", m, 1.0),)), i, schema, 10)
        for i, m in enumerate(maps)
    ]
    (found,) = tables(checked(*made))
    assert found.shape == (3, 2)  # ages 0–1, 2–4, 5: what both can tell apart
    assert [t.tolist() for t in found.times] == [[1, 1, 2, 2, 1, 1], [2, 2, 2, 2, 1, 1]]
    for side, counts in enumerate(found.counts):
        group = np.array([0, 0, 1, 1, 1, 2])[data["age"][side::2]] * 2
        exact = np.bincount(group + (data["sex"][side::2] == "M"), minlength=6)
        assert np.abs(counts - exact).max() < 10
    assert not aq.compare(*made).reject


def test_only_what_both_hold_is_compared():
    schema = schema_of("replace one row")
    both, mine = onehot({"sex": 2}), onehot({"job": 4})
    waves = fourier(["age"], 4, seed=1)
    one = aq.Plan(schema_plan(schema), planned(both, mine, waves))
    two = aq.Plan(schema_plan(schema), planned(waves, both))
    found = aq.compare(
        release_of(table(3000, 1), one, 1, schema), release_of(table(3000, 2), two, 2, schema)
    )
    assert {d.columns for d in found.differences} == {("sex",), ("age",)}


def schema_plan(schema):
    return schema.with_bins({"age": 4, "pay": 4})


def planned(*maps):
    return tuple(aq.PlannedBlock(f"b{i}", m, 1 / len(maps)) for i, m in enumerate(maps))


def test_maps_by_label_and_of_any_other_kind_are_compared_by_their_range():
    schema = schema_of("replace one row")
    maps = by_label(cosines(["age"], 3), "sex", 2), race(["age"], 4, 5)
    plan = aq.Plan(schema_plan(schema), planned(*maps, onehot({"sex": 2})))
    one, two = (release_of(table(20_000, s), plan, s, schema) for s in (1, 2))
    found = aq.compare(one, two)
    assert not found.reject
    assert "cosines of age, sex = F" in {d.part for d in found.differences}
    assert "hash 4" in {d.part for d in found.differences}


def test_incompatible_releases_get_one_clear_sentence():
    base = release_of(table(1000, 1), aq.m2m_hist, 1)
    fewer = {n: c for n, c in COLUMNS.items() if n != "job"}
    cases = {
        "declare column 'job' differently": release_of(
            table(1000, 2), aq.m2m_hist, 2, schema_of(columns=fewer)
        ),
        "protects 'add or remove one row' and the other 'replace one row'": release_of(
            table(1000, 2), aq.m2m_hist, 2, schema_of("replace one row")
        ),
        "the same release": base,
    }
    for said, other in cases.items():
        with pytest.raises(aq.CompareError, match=said):
            aq.compare(base, other)
    schema = schema_of("replace one row")
    left, right = (aq.Plan(schema_plan(schema), planned(onehot({n: k}))) for n, k in CELLS)
    with pytest.raises(aq.CompareError, match="no features in common"):
        aq.compare(
            release_of(table(1000, 1), left, 1, schema),
            release_of(table(1000, 2), right, 2, schema),
        )
    with pytest.raises(aq.CompareError, match="no means with their second moments in common"):
        aq.compare(base, release_of(table(1000, 2), aq.m2m_hist, 2), method="whitened")
    for options, said in (({"alpha": 0}, "alpha"), ({"method": "best"}, "must be one of")):
        with pytest.raises(aq.CompareError, match=said):
            aq.compare(base, release_of(table(1000, 2), aq.m2m_hist, 2), **options)


CELLS = (("sex", 2), ("job", 4))


def test_too_noisy_a_number_of_rows_is_refused():
    one, two = (release_of(table(60, s), aq.m2m_hist, s, epsilon=0.05) for s in (1, 2))
    with pytest.raises(aq.CompareError, match="says only that it has"):
        aq.compare(one, two)


def test_persons_must_count_alike():
    columns = {"x": {"kind": "numeric", "bounds": [0, 1], "bins": 4}}
    made = []
    for most in (1, 2):
        schema = schema_of("all rows of one person", columns, person="id", max_rows=most)
        data = pd.DataFrame({"x": np.linspace(0, 1, 500), "id": np.arange(500)})
        made.append(release_of(data, aq.m2m_hist, most, schema))
    with pytest.raises(aq.CompareError, match="max_rows"):
        aq.compare(*made)


# --- the result ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    one = release_of(table(8000, 2), aq.mixed_fourier, 1, epsilon=1)
    two = release_of(table(6000, 3, shift=8), aq.mixed_fourier, 2, epsilon=2, delta=1e-5)
    return aq.compare(one, two)


def test_the_result_is_frozen_and_unpacks_as_scipys_do(found):
    statistic, pvalue = found
    assert (statistic, pvalue) == (found.statistic, found.pvalue)
    assert statistic == pytest.approx(norm.isf(found.differences[0].pvalue / 2))
    assert (found.epsilon, found.delta, found.alpha) == (2, 1e-5, 0.01)
    assert found.neighbours == "add or remove one row"
    with pytest.raises(FrozenInstanceError):
        found.reject = False


def test_simulated_noise_is_carried_in_words(found):
    assert "NOT PRIVATE" in found.null


def test_real_noise_is_not_called_simulated():
    schema = schema_of()
    plan = aq.m2m_hist(schema)
    one, two = (aq.sketch(table(500, s), schema, epsilon=1, delta=1e-6, plan=plan) for s in (1, 2))
    assert "NOT PRIVATE" not in aq.compare(one, two).null


def test_the_result_is_plain_json(found):
    data = json.loads(json.dumps(found.to_dict()))
    assert data["reject"] is True
    assert data["differences"][0]["part"] == found.differences[0].part


def test_where_says_what_differs_most_and_draws_it(found, tmp_path):
    shown = found.where(tmp_path / "where.png")
    assert list(shown.columns) == [
        "part", "columns", "statistic", "pvalue", "adjusted", "differs",
    ]  # fmt: skip
    assert shown["pvalue"].is_monotonic_increasing
    assert shown["differs"].iloc[0]
    assert not shown["differs"].iloc[-1]
    assert (shown["adjusted"] >= shown["pvalue"]).all()
    assert (tmp_path / "where.png").stat().st_size > 10_000
    found.where(tmp_path / "a.svg")
    found.where(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_where_is_refused_where_it_was_not_paid_for(found):
    with pytest.raises(aq.CompareError, match="not paid for"):
        replace(found, differences=()).where()


def test_progress_is_told_table_by_table():
    """Of a wide release it takes a minute."""
    heard = []
    with heard_by(lambda *said: heard.append(said)):
        aq.compare(wide_release(6), wide_release(6, seed=1))
    assert heard[0] == ("comparing", 0, 6 + 15)
    assert heard[-1] == ("comparing", 6 + 15, 6 + 15)


def test_many_releases_are_compared_by_pairs():
    made = {
        "a": release_of(table(5000, 1), aq.mixed_fourier, 1),
        "b": release_of(table(5000, 2), aq.mixed_fourier, 2),
        "c": release_of(table(5000, 3, shift=15), aq.mixed_fourier, 3),
    }
    shown = aq.compare_all(made)
    assert list(zip(shown["first"], shown["second"], strict=True)) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert shown["reject"].tolist() == [False, True, True]
    assert shown["adjusted"].tolist() == holm(shown["pvalue"].tolist())
    with pytest.raises(aq.CompareError, match="two releases at least"):
        aq.compare_all({"a": made["a"]})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_between_the_p_value_and_bonferroni(pvalues):
    adjusted = holm(pvalues)
    for before, after in zip(pvalues, adjusted, strict=True):
        assert before <= after <= min(1.0, len(pvalues) * before)
    order = np.argsort(pvalues, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)


# --- tails --------------------------------------------------------------------------------------


def test_gaussian_tails_are_exact():
    sizes = np.array([0.0, 0.5, 3.0, 8.0])
    assert two_sided(sizes, np.full(4, 4.0)) == pytest.approx(2 * norm.sf(sizes / 2))


@pytest.mark.parametrize("size", [0.5, 2.0, 6.0, 15.0])
def test_laplace_tails_are_bounded_and_not_by_much(size):
    """Against the exact tail of N(0, 0.25) plus a Laplace variable of scale 1, by integration."""

    def above(x):
        return norm.pdf(x, scale=0.5) * laplace.sf(size - x)

    exact = 2 * integrate.quad(above, -10, 10 + size, limit=200)[0]
    one = np.ones(1)
    bound = float(two_sided(np.array([size]), 0.25 * one, [(one, one)])[0])
    assert exact <= bound
    assert np.log(bound) < np.log(exact) + np.log(4) + np.log1p(size)


def test_two_squares_have_the_tails_of_chi_squares():
    sizes = np.array([0.1, 2.0, 20.0])
    one = np.ones(3)
    assert two_squares(sizes, one, one) == pytest.approx(chi2.sf(sizes, 2))
    assert two_squares(sizes, one, 1e-9 * one)[:2] == pytest.approx(chi2.sf(sizes, 1)[:2], rel=0.05)


def test_no_division_of_a_variance_is_worse_than_the_two_that_are_tried():
    """A search: traces, noises and sizes of every order, a hundred divisions of each."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        trace, noise = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-3, 1)
        size = np.array([(trace + 2 * noise) * 10 ** rng.uniform(-1, 1.5)])
        bound = float(either_way(size, np.array([trace]), noise)[0])
        small = noise + trace * np.linspace(0, 0.5, 101)
        found = two_squares(np.repeat(size, 101), trace + 2 * noise - small, small).max()
        assert found <= bound * (1 + 1e-9) or found > 0.2


def test_hotelling_comes_to_chi_square_where_the_covariance_is_known():
    difference, covariance = np.array([1.0, -2.0, 0.5]), np.diag([1.0, 2.0, 0.5])
    statistic = 1 + 2 + 0.5
    assert joint(difference, covariance) == pytest.approx(chi2.sf(statistic, 3))
    assert joint(difference, covariance, 1e-7) == pytest.approx(chi2.sf(statistic, 3), rel=1e-3)
    assert joint(difference, covariance, 0.2) > joint(difference, covariance)


def test_a_column_that_is_nearly_all_in_one_cell_has_honest_contrasts():
    """As in Adult's capital gains: their contrasts are collinear to fifteen digits."""
    rng, rows, cells, noise = np.random.default_rng(0), 19_536, 33, 49.7
    share = np.full(cells, 0.5)
    share[:7] = [17_870, 343, 409, 320, 54, 248, 33]
    share[[9, 17, 18, 23, 32]] = [47, 40, 52, 14, 70]
    share /= share.sum()
    sampling, spread = 2 / rows, 2 * share / rows + (noise / rows) ** 2
    smooth = contrasts(share, (cells,), (True,)) * (share / spread)[:, None]
    along = smooth.T @ share
    covariance = (smooth.T * spread) @ smooth - sampling * np.outer(along, along)
    assert np.linalg.cond(covariance) > 1e12
    counts = rng.multinomial(rows, share, (2, 2000)) / rows
    gaps = counts[0] - counts[1] + rng.normal(0, noise / rows, (2000, cells))
    found = np.array([joint(*independent(smooth.T @ gap, covariance)) for gap in gaps])
    for level in (1e-5, 1e-3, 0.01, 0.1):
        assert (found < level).sum() <= binom.isf(1e-7, len(found), 1.05 * level)
    assert (found < 0.1).sum() >= binom.ppf(1e-7, len(found), 0.095)


def test_contrasts_are_orthogonal_under_the_shares_whatever_their_shape():
    share = np.random.default_rng(0).gamma(0.5, size=400)
    share /= share.sum()
    made = contrasts(share, (400,), (True,))
    gram = (made.T * share) @ made
    assert gram == pytest.approx(np.eye(8) / 2, abs=0.02)
    assert contrasts(share[:4] / share[:4].sum(), (4,), (True,)) is None
    assert contrasts(share, (20, 20), (True, False)).shape == (400, 5 * 20)


@pytest.mark.parametrize(("data", "noise", "count"), [(1, 0.02, 6), (1, 0.3, 6), (0.1, 1, 40)])
def test_no_division_of_the_variance_has_a_heavier_sum_of_squares(data, noise, count):
    """Searched over divisions, by draws of a fixed seed, to five standard deviations."""
    rng = np.random.default_rng(7)
    squares = rng.chisquare(1, (200_000, count))
    divisions = [np.eye(count)[0], np.full(count, 1 / count)]
    divisions += [np.repeat([1 / k, 0], [k, count - k]) for k in (2, 3)]
    divisions += list(rng.dirichlet(np.full(count, 0.3), 8))
    start = 3 * data + (count + 4) * noise
    for size in start + data * np.array([0, 1, 3, 6]):
        bound = sum_of_squares(size, data, noise, count)
        beyond = [float((squares @ (data * part + noise) >= size).mean()) for part in divisions]
        margin = 5 * np.sqrt(bound / len(squares)) + 10 / len(squares)
        assert max(beyond) <= bound + margin
        assert beyond[0] == pytest.approx(bound, abs=margin)
    assert sum_of_squares(0.99 * start, data, noise, count) == 1.0


def test_looks_at_everything_share_half_of_the_level():
    many = [Part(str(i), (), 0.01) for i in range(8)]
    whole = [Part("together", (), 0.01, whole=True)]
    assert adjusted(many + whole) == pytest.approx([0.16] * 8 + [0.02])
    assert adjusted(many) == pytest.approx([0.08] * 8)
    assert adjusted(whole) == [0.01]


def test_a_difference_that_every_column_has_a_little_of_is_found():
    names = [f"x{i}" for i in range(30)]
    number = {"kind": "numeric", "bounds": [-5, 5]}
    schema = aq.Schema.from_dict(
        {
            "name": "many",
            "privacy": {"protects": "replace one row"},
            "columns": dict.fromkeys(names, number),
        }
    )
    along = np.full(30, 1 / np.sqrt(30))
    found = {}
    for share in (0.0, 0.3):
        plan = aq.mixed_fourier(schema, length_scale=0.1, spread_share=share)
        sides = []
        for seed, more in enumerate((0.0, 0.8)):
            rng = np.random.default_rng(seed)
            rows = rng.normal(size=(10_000, 30))
            rows += more * np.outer(rows @ along, along)
            frame = pd.DataFrame(rows, columns=names)
            sides.append(aq.sketch(frame, schema, epsilon=1, delta=1e-5, plan=plan, simulate=seed))
        found[share] = aq.compare(*sides)
    assert found[0.3].pvalue < 1e-4
    assert found[0.3].pvalue < found[0.0].pvalue
    assert "whitened" in found[0.3].method
    assert "sums of squares" in found[0.0].method
