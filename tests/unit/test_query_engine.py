"""What stands between a question and its answer: pooled counts, levels, beliefs, features."""

import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aquatint as aq
from aquatint.analyst.query import sketched as sk
from aquatint.analyst.query.answers import answer
from aquatint.analyst.query.counted import Counted
from aquatint.analyst.query.draws import drawn
from aquatint.analyst.query.expectations import expectations
from aquatint.analyst.query.front import QUICK
from aquatint.analyst.query.levels import Levels, levels_of, meeting
from aquatint.analyst.query.moments import Knowledge
from aquatint.analyst.query.posterior import Doubt, Observed, believe, gather
from aquatint.analyst.query.priors import flat
from aquatint.analyst.query.question import ask
from aquatint.analyst.query.sketched import Sketched
from aquatint.analyst.query.statistics import first
from aquatint.analyst.query.tilts import hidden, sides, tilts
from aquatint.analyst.query.within import roughness
from aquatint.analyst.synthesize.mixture import fit_mixture
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "label": "ill",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 9]},
            "height": {"kind": "numeric", "bounds": [0, 2]},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
            "city": {"kind": "categorical", "categories": ["A", "B", "C"], "missing": True},
            "ill": {"kind": "boolean"},
        },
    }
)
ROWS = 4000
pytestmark = pytest.mark.filterwarnings("ignore:epsilon = .* promises very little")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    age = np.minimum(rng.poisson(3, ROWS), 9)
    sex = np.where(rng.random(ROWS) < 0.3 + 0.05 * age, "F", "M")
    city = rng.choice(["A", "B", "C", None], ROWS, p=[0.5, 0.2, 0.2, 0.1])
    height = np.clip(rng.normal(1.2 + 0.05 * age, 0.2), 0, 2)
    ill = rng.random(ROWS) < 0.1 + 0.3 * (sex == "F") * (age > 3)
    return pd.DataFrame({"age": age, "height": height, "sex": sex, "city": city, "ill": ill})


@pytest.fixture(scope="module")
def release(frame):
    return aq.sketch(frame, SCHEMA, epsilon=2, delta=1e-6, simulate=1, progress=False)


@pytest.fixture(scope="module")
def model(release):
    return fit_mixture(release, effort=QUICK, progress=False)


def test_pooled_tables_are_least_squares(release):
    """Tables of age with one more column, all added up to age: weights are one over variance."""
    found = Counted(release).over(("age",))
    tables = Counted(release).tables
    for pooled in found:
        parts = [t.onto(("age",)) for t in tables if "age" in t.columns and t.onto(("age",)).groups]
        same = [p for p in parts if p.groups == pooled.groups]
        weight = sum(1 / p.variance for p in same)
        mean = sum(p.counts / p.variance for p in same) / weight
        np.testing.assert_allclose(pooled.counts, mean)
        assert pooled.variance == pytest.approx(1 / weight)
        assert pooled.variance <= min(p.variance for p in same)


def test_every_table_is_used_once(release):
    counts = Counted(release)
    for size in (1, 2, 3):
        for columns in combinations(SCHEMA.columns, size):
            weight = sum(1 / t.variance / t.counts.size for t in counts.over(columns))
            apart = [t for t in counts.tables if set(t.columns) & set(columns)]
            whole = sum(1 / (t.variance * t.counts.size) for t in apart)
            assert weight == pytest.approx(whole)  # their totals have all the information


def test_axes_are_put_in_the_order_asked_for(release):
    table = next(t for t in Counted(release).tables if len(t.columns) > 1)
    turned = table.onto(table.columns[::-1])
    np.testing.assert_array_equal(turned.counts, table.counts.T)
    assert turned.groups == table.groups[::-1]


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12), st.integers(0, 2**32 - 1))
def test_levels_and_groups_meet_in_what_both_add_up_to(level, seed):
    rng = np.random.default_rng(seed)
    level = np.unique(level, return_inverse=True)[1]
    group = np.unique(rng.integers(0, 4, len(level)), return_inverse=True)[1]
    levels = Levels(level, int(level.max()) + 1)
    met = meeting(levels, np.arange(len(level)), group)
    assert (met.of_level[level] == met.of_group[group]).all()
    rows = rng.integers(0, 100, len(level))
    by_level = np.bincount(met.of_level, weights=np.bincount(level, weights=rows))
    by_group = np.bincount(met.of_group, weights=np.bincount(group, weights=rows))
    np.testing.assert_array_equal(by_level, by_group)


def test_levels_tell_apart_what_some_vector_does():
    levels = levels_of([np.array([0.0, 0, 1, 1]), np.array([5.0, 5, 5, 7])])
    assert levels.count == 3
    assert levels.of_atom[0] == levels.of_atom[1] != levels.of_atom[2] != levels.of_atom[3]
    assert levels.coarser().count == 2


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_beliefs_are_those_of_conditioning(cells, seed, tilted):
    """The textbook formula with the whole covariance matrix gives the same."""
    rng = np.random.default_rng(seed)
    p, rows, variance, doubt = rng.dirichlet(np.ones(cells)), 1000.0, 400.0, Doubt(0.2, 0.0)
    part = np.unique(rng.integers(0, 3, cells), return_inverse=True)[1]
    observed = [
        Observed(part, rng.normal(300, 50, part.max() + 1), np.full(part.max() + 1, 90.0), 1),
        Observed(np.arange(cells), rng.normal(rows * p, 20), np.full(cells, 500.0), 2),
    ]
    functions = rng.normal(size=(cells, 2))
    below, signs = p / 3, [rng.uniform(-1, 1, cells) for _ in range(tilted)]
    more = tilts(p, below, signs) if tilted else None
    found = believe(p, rows, variance, gather(p, rows, observed), functions, doubt, more)
    spread = (0.2 * rows) ** 2 * (np.diag(p) - np.outer(p, p)) + variance * np.outer(p, p)
    if more is not None:
        assert more.shape == (cells, 1 + tilted)
        assert np.abs(more.sum(0)).max() < 1e-12
        spread += rows**2 * more @ more.T
    seen = np.concatenate([np.eye(part.max() + 1)[part].T, np.eye(cells)])
    sums = np.concatenate([o.sums for o in observed])
    noise = np.diag(np.concatenate([o.variance for o in observed]))
    gain = spread @ seen.T @ np.linalg.inv(seen @ spread @ seen.T + noise)
    counts = rows * p + gain @ (sums - seen @ (rows * p))
    covariance = spread - gain @ seen @ spread
    total = counts.sum()
    np.testing.assert_allclose(found.mean[-1], total, rtol=1e-6)
    np.testing.assert_allclose(found.mean[:-1], counts @ functions / total, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.covariance[-1, -1], covariance.sum(), rtol=1e-4)
    about = functions - counts @ functions / total
    np.testing.assert_allclose(
        found.covariance[:-1, :-1], about.T @ covariance @ about / total**2, rtol=1e-3, atol=1e-9
    )
    assert (np.diag(found.noise) <= np.diag(found.covariance) * (1 + 1e-9)).all()


def test_rows_below_the_noise_are_hidden():
    tables = [
        Observed(np.array([0, 1, 1, 2]), np.zeros(3), np.array([100.0, 400.0, 900.0]), 2),
        Observed(np.array([0, 0, 0, 0]), np.zeros(1), np.array([1e6]), 1),
    ]
    found = hidden(np.array([0.9, 0.05, 0.045, 0.005]), 1000, tables)
    np.testing.assert_allclose(found, [0.01, 0.05 * 20 / 95, 0.045 * 20 / 95, 0.005])
    assert hidden(np.array([0.5, 0.5]), 1000, []).tolist() == [0, 0]


def test_the_middle_row_divides_a_column_and_missing_values_are_on_no_side(model):
    found = sides(model)
    assert set(found) == {"age", "height"}
    share = model.histogram("age")
    low = np.cumsum(share) < share.sum() / 2 - share.max()
    assert (found["age"][low] == -1).all()
    assert set(found["age"]) <= {-1, 0, 1}


def test_strong_dependence_that_noise_blurs_is_read_off_the_counts():
    """A model has rows in cells that are empty, and would halve what two columns share.

    The estimates differ by more than ten standard deviations over 20 draws of the noise.
    """
    cells, noise, rng = 12, 60.0, np.random.default_rng(3)
    place = np.linspace(-1, 1, cells)
    truth = np.exp(-(((place[:, None] - place) / 0.2) ** 2))
    truth /= truth.sum()
    model = 0.6 * truth + 0.4 * np.outer(truth.sum(1), truth.sum(0))
    product = np.outer(place, place).reshape(-1, 1)
    sign = np.sign(product[:, 0])
    errors: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(20):
        counts = 10_000 * truth.reshape(-1) + noise * rng.normal(size=cells**2)
        seen = [Observed(np.arange(cells**2), counts, np.full(cells**2, noise**2), 2)]
        below = hidden(model.reshape(-1), 10_000, seen)
        more = tilts(model.reshape(-1), below, [sign])
        told = gather(model.reshape(-1), 10_000, seen)
        for tilted, found in errors.items():
            belief = believe(
                model.reshape(-1),
                10_000,
                1.0,
                told,
                product,
                Doubt(0.02, 0.3),
                more if tilted else None,
            )
            found.append(abs(belief.mean[0] - truth.reshape(-1) @ product[:, 0]))
    assert np.mean(errors[True]) < 0.6 * np.mean(errors[False])


def test_without_doubt_the_model_is_believed_and_with_much_the_counts():
    p, functions = np.array([0.5, 0.3, 0.2]), np.eye(3)
    counted = np.array([700.0, 200.0, 100.0])
    observed = [Observed(np.arange(3), counted, np.full(3, 1.0), 1)]
    sure = believe(p, 1000, 1.0, gather(p, 1000, observed), functions, Doubt(1e-6, 0.0))
    np.testing.assert_allclose(sure.mean[:-1], p, atol=1e-4)
    open_ = believe(p, 1000, 1.0, gather(p, 1000, observed), functions, Doubt(10.0, 0.0))
    np.testing.assert_allclose(open_.mean[:-1], counted / 1000, atol=1e-3)


TRUE = [
    ("count(*)", "sex = 'F'", lambda f: (f["sex"] == "F").sum()),
    ("count(*)", "age >= 4 and ill", lambda f: ((f["age"] >= 4) & f["ill"]).sum()),
    ("avg(age)", "sex = 'M'", lambda f: f[f["sex"] == "M"]["age"].mean()),
    ("var(age)", "true", lambda f: f["age"].var(ddof=0)),
    ("corr(age, ill)", "true", lambda f: f["age"].corr(f["ill"].astype(float))),
    ("avg(age * age)", "city = 'A'", lambda f: (f[f["city"] == "A"]["age"] ** 2).mean()),
]


def test_with_hardly_any_noise_answers_are_those_of_the_rows(frame):
    exact = aq.sketch(frame, SCHEMA, epsilon=100, delta=1e-6, simulate=1, progress=False)
    query = aq.Query(exact, progress=False)
    for asked, where, truth in TRUE:
        line = query.sql(f"select {asked} from data where {where}").iloc[0]
        assert line["value"] == pytest.approx(truth(frame), rel=1e-2)
        assert abs(line["value"] - truth(frame)) <= 6 * line["stderr"]
        assert line["how"] == "exact linear"
        assert line["mostly"] == "noise"


def test_answers_say_how_they_were_come_by(release, model):
    query = aq.Query(release, model=model)
    assert query.count("sex = 'F'").how == "exact linear"
    assert query.mean("height").how == "m2m"
    assert query.count("sex = 'F' and age > 3 and city = 'A'").how == "model"
    assert query.count().how == "exact linear"


def test_wider_bins_make_wider_intervals(frame):
    found = {}
    for bins in (4, 40):
        schema = SCHEMA.with_bins({"height": bins})
        release = aq.sketch(frame, schema, epsilon=50, delta=1e-6, simulate=1, progress=False)
        found[bins] = aq.Query(release, progress=False).cdf("height", 1.23)
    assert found[4].stderr > found[40].stderr
    assert found[4].mostly == "bins"


def test_a_smooth_column_is_taken_to_be_smooth_inside_its_bins():
    column = SCHEMA.with_bins({"height": 20}).columns["height"]
    middle = np.arange(20) + 0.5
    smooth = 1e4 * np.exp(-((middle - 10) ** 2) / 50)
    lumpy = np.where(np.arange(20) % 2 == 0, smooth, 0.0)
    assert roughness(column, smooth, 1.0) < 0.05 < roughness(column, lumpy, 1.0)


@pytest.fixture(scope="module")
def waves(frame):
    plan = aq.m2m(SCHEMA)
    kept = frame.dropna()
    return aq.sketch(
        kept, plan.schema, epsilon=2, delta=1e-6, simulate=2, plan=plan, progress=False
    )


def test_drawn_rows_have_the_means_of_the_model(model):
    draws = drawn(model, 16_384)
    question = ask(
        model.schema,
        "select avg(height * height), avg(case when age > 3 and sex = 'F' then 1 else 0 end) "
        "from data",
    )
    functions = [s.functions[0] for s in question.groups[0].statistics]
    wanted = expectations(model, functions, question.points)
    np.testing.assert_allclose(
        draws.evaluate(functions, question.points).mean(0), wanted, rtol=0.02
    )
    values = draws.rows.values["height"].numpy()
    table = draws.frame()
    np.testing.assert_allclose(values * 2, table["height"], atol=1e-5)
    assert set(table["city"].dropna()) == {"A", "B", "C"}


def test_regression_over_rows_is_that_over_features(waves, monkeypatch):
    """With more features than rows the same system is solved the other way round."""
    prior = flat(waves)
    monkeypatch.setattr(sk, "ROWS", 512)
    question = ask(waves.schema, "select avg(height), avg(age * height) from data")
    functions = [s.functions[0] for s in question.groups[0].statistics]
    plain = Sketched(waves, prior, 1.0)
    found = plain.moments(functions, question.points)
    turned = Sketched(waves, prior, 1.0)
    turned.__dict__["size"] = 10**9  # pretends to have too many features for a matrix of them
    turned.__dict__["draws"] = plain.draws
    other = turned.moments(functions, question.points)
    np.testing.assert_allclose(other.mean, found.mean, rtol=1e-3)
    np.testing.assert_allclose(np.diag(other.noise), np.diag(found.noise), rtol=2e-2)


def test_weights_give_the_averages_of_the_regression(waves):
    sketched = Sketched(waves, flat(waves), 1.0)
    values = np.random.default_rng(0).normal(size=(len(sketched.draws), 3))
    found = sketched.regress(values, values.mean(0))
    np.testing.assert_allclose(sketched.weights @ values, found.mean[:-1], atol=1e-5)
    assert sketched.weights.sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("prior", ["synthesizer", "marginals", "uniform"])
def test_features_answer_from_any_prior(waves, frame, prior):
    query = aq.Query(waves, prior=prior, progress=False)
    kept = frame.dropna()
    for found, truth in (
        (query.mean("height"), kept["height"].mean()),
        (query.moment("age", 2), (kept["age"] ** 2).mean()),
        (query.cdf("height", 1.3), (kept["height"] <= 1.3).mean()),
    ):
        assert abs(found.value - truth) <= 6 * found.stderr + 0.01 * abs(truth)
        assert found.how == "m2m"


@pytest.mark.parametrize("recipe", ["m2m_hist", "m2m_rff", "m2m_race"])
def test_the_papers_sketches_answer_too(frame, recipe):
    kept = frame[["age", "height"]]
    schema = Schema.from_dict(
        {
            "name": "two",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "age": {"kind": "integer", "bounds": [0, 9]},
                "height": {"kind": "numeric", "bounds": [0, 2]},
            },
        }
    )
    small = {"repetitions": 20, "buckets": 20} if recipe == "m2m_race" else {}
    plan = getattr(aq, recipe)(schema, **small)
    release = aq.sketch(
        kept, plan.schema, epsilon=20, delta=0, simulate=3, plan=plan, progress=False
    )
    query = aq.Query(release, progress=False)
    assert query.mean("height").value == pytest.approx(kept["height"].mean(), abs=0.05)
    assert query.count().value == ROWS


def test_any_function_of_a_row_can_be_averaged(release, model, frame):
    query = aq.Query(release, model=model)
    found = query.expect(lambda rows: rows["age"] * (rows["sex"] == "F"))
    truth = (frame["age"] * (frame["sex"] == "F")).mean()
    assert abs(found.value - truth) <= 6 * found.stderr
    with pytest.raises(aq.AquatintError, match="one finite number for each row"):
        query.expect(lambda rows: 1.0)
    with pytest.raises(aq.AquatintError, match="one finite number for each row"):
        query.expect(lambda rows: rows["age"] * np.nan)


def test_the_same_question_has_the_same_answer(release, model):
    ours = [aq.Query(release, model=model).quantile("height", 0.3) for _ in range(2)]
    assert ours[0] == ours[1]


def test_a_statistic_of_nothing_is_unknown(release, model):
    moments = Knowledge(release, model).moments((), {})
    empty = replace(moments, mean=np.array([np.nan, 1.0]), noise=np.eye(2), bins=np.zeros((2, 2)))
    found = answer(first(), replace(empty, model=np.zeros((2, 2))))
    assert np.isnan(found.value)
    assert np.isnan(found.low)


def test_a_model_that_the_counts_contradict_is_believed_less():
    """A cell that the model has rows in and the counts have none: the counts win."""
    p, functions = np.array([0.02, 0.98]), np.array([[1.0], [0.0]])
    observed = [Observed(np.arange(2), np.array([20.0, 9980.0]), np.full(2, 900.0), 2)]
    found = believe(p, 10_000, 100.0, gather(p, 10_000, observed), functions, Doubt(0.02, 0.0))
    assert found.surprise > 3
    again = believe(
        p, 10_000, 100.0, gather(p, 10_000, observed), functions, Doubt(0.02 * found.surprise, 0.0)
    )
    assert again.mean[0] < 0.006 < found.mean[0]
    assert again.surprise == pytest.approx(1.0, abs=0.6)


def test_columns_that_were_never_counted_together_are_doubted(frame):
    """Histograms alone say nothing of dependence: the interval has to be wide enough for it."""
    twins = frame.assign(height=frame["age"] / 5)[["age", "height"]]
    columns = {name: SCHEMA.to_dict()["columns"][name] for name in twins}
    schema = Schema.from_dict({**SCHEMA.to_dict(), "columns": columns, "label": None})
    plan = aq.m2m_hist(schema)
    release = aq.sketch(
        twins, plan.schema, epsilon=20, delta=1e-6, simulate=1, plan=plan, progress=False
    )
    found = aq.Query(release, progress=False).covariance(["age", "height"]).iloc[0]
    truth = twins.cov(ddof=0).iloc[0, 1]
    assert found["low"] <= truth <= found["high"]
    assert found["how"] == "model"


def test_the_papers_regularisation_can_be_asked_for(waves, frame):
    truth = frame.dropna()["height"].mean()
    prior = aq.Query(waves, prior="uniform", tau=1e-6, progress=False).mean("height").value
    theorem = aq.Query(waves, prior="uniform", tau=1.0, progress=False).mean("height").value
    eq_5 = aq.Query(waves, prior="uniform", tau=ROWS**-0.5, progress=False).mean("height").value
    assert prior == pytest.approx(1.0, abs=0.01)  # the middle of the range: nothing is believed
    assert abs(theorem - truth) < abs(eq_5 - truth) < abs(prior - truth)
    with pytest.raises(aq.AquatintError, match="give a positive number"):
        aq.Query(waves, tau=0)


def test_what_no_drawn_row_shows_is_not_taken_for_impossible(waves):
    found = aq.Query(waves, prior="uniform", progress=False).count("height > 1.99999 and age = 9")
    assert found.high > 0


def test_a_column_of_very_many_cells_takes_no_longer(frame):
    names = [f"c{i}" for i in range(1500)]
    rng = np.random.default_rng(0)
    wide = frame[["age", "ill"]].assign(code=rng.choice(names, ROWS))
    kept = {name: SCHEMA.to_dict()["columns"][name] for name in ("age", "ill")}
    listed = {"kind": "categorical", "categories": names}
    schema = Schema.from_dict({**SCHEMA.to_dict(), "columns": {**kept, "code": listed}})
    release = aq.sketch(wide, schema, epsilon=5, delta=1e-6, simulate=1, progress=False)
    query = aq.Query(release, model=fit_mixture(release, effort=QUICK, progress=False))
    begun = time.process_time()
    query.count("code = 'c7' and age > 3")
    assert time.process_time() - begun < 5
