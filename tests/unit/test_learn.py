"""Models trained from a release: what they learn, what they read, what is refused."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import aquatint as aq
from aquatint.analyst.learn.columns import preparation
from aquatint.analyst.learn.front import train
from aquatint.analyst.learn.models import MODELS, named_model
from aquatint.analyst.learn.rows import TrainingRows, joins, training_rows
from aquatint.analyst.query.sketched import Sketched
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import fit_mixture
from aquatint.errors import DataError, ReleaseError
from aquatint.extras import MissingExtraError
from aquatint.features import (
    Count,
    by_label,
    cosines,
    fourier,
    hermite,
    onehot,
    pairs,
    race,
)

SCHEMA = aq.Schema.from_dict(
    {
        "name": "people",
        "label": "sex",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [17, 90], "missing": True},
            "height": {"kind": "numeric", "bounds": [0.5, 2.5], "missing": True},
            "born": {"kind": "date", "bounds": ["1990-01-01", "2020-12-31"]},
            "seen": {"kind": "datetime", "bounds": ["2000-01-01T00:00", "2020-12-31T00:00"]},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
            "job": {
                "kind": "categorical",
                "categories": ["a", "b"],
                "other": True,
                "missing": True,
            },
            "code": {"kind": "categorical", "categories": [3, 1, 2], "missing": True},
            "ill": {"kind": "boolean", "missing": True},
        },
    }
)
QUICK = Effort(components=20, steps=80, fits=1)


def people(rows=3000):
    """Rows where height tells the sex, age tells illness, and some of everything is missing."""
    rng = np.random.default_rng(0)
    height = rng.normal(1.7, 0.1, rows)
    age = rng.integers(17, 91, rows)
    table = pd.DataFrame(
        {
            "age": pd.array(age, dtype="Int64"),
            "height": height,
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), "D"),
            "seen": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 6**11, rows), "s"),
            "sex": np.where(height + rng.normal(0, 0.05, rows) > 1.7, "M", "F"),
            "job": rng.choice(["a", "b", "zz"], rows),
            "code": pd.array(rng.integers(1, 4, rows), dtype="Int64"),
            "ill": pd.array(rng.random(rows) < age / 100, dtype="boolean"),
        }
    )
    for column, step in {"age": 5, "height": 7, "job": 11, "code": 13, "ill": 9}.items():
        table.loc[::step, column] = None
    return table


@pytest.fixture(scope="module")
def rows():
    return people()


@pytest.fixture(scope="module")
def release(rows):
    return aq.sketch(rows, SCHEMA, epsilon=5, delta=1e-6, simulate=1, progress=False)


@pytest.fixture(scope="module")
def model(release):
    return fit_mixture(release, effort=QUICK, progress=False)


@pytest.fixture(scope="module")
def trained(release, model):
    return aq.learn(release, LogisticRegression(), model=model, rows=2000)


# --- what is learnt -------------------------------------------------------------------------------


def test_a_classifier_learns_what_tells_the_label(trained, rows):
    assert trained.score(rows, rows["sex"]) > 0.75
    assert list(trained.classes_) == ["F", "M"]


@pytest.mark.parametrize(
    ("target", "classes"), [("ill", [False, True]), ("code", [1, 2, 3]), ("sex", ["F", "M"])]
)
def test_classes_have_the_schemas_own_types(release, model, rows, target, classes):
    found = aq.learn(
        release, DecisionTreeClassifier(max_depth=3), target=target, model=model, rows=500
    )
    assert found.classes_.tolist() == classes
    assert set(found.predict(rows).tolist()) <= set(classes)


@pytest.mark.parametrize("estimator", [Ridge(), HistGradientBoostingRegressor(max_iter=20)])
def test_a_regressor_learns_numbers(release, model, rows, estimator):
    found = aq.learn(release, estimator, target="height", model=model)
    known = rows.dropna(subset=["height"])
    assert found.score(known, known["height"]) > 0.3


def test_features_are_the_columns_that_were_asked_for(release, model, rows):
    found = aq.learn(release, LogisticRegression(), features=["height"], model=model, rows=500)
    assert list(found[0].columns) == ["height"]
    assert len(found.predict(rows[["height"]])) == len(rows)


def test_the_same_seed_gives_the_same_model(release, model, rows):
    one, two, other = (
        aq.learn(release, LogisticRegression(), model=model, rows=500, seed=seed)
        for seed in (1, 1, 2)
    )
    assert (one.predict_proba(rows) == two.predict_proba(rows)).all()
    assert (one.predict_proba(rows) != other.predict_proba(rows)).any()


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(20),
        make_pipeline(PolynomialFeatures(1), LinearSVC()),
        LogisticRegression(),
    ],
)
def test_weights_reach_estimators_that_take_none(release, model, rows, estimator):
    found = aq.learn(release, estimator, how="weights", model=model, rows=2000)
    assert found.score(rows, rows["sex"]) > 0.7


def test_the_estimator_that_was_given_stays_unfitted(release, model):
    given = LogisticRegression()
    aq.learn(release, given, model=model, rows=200)
    assert not hasattr(given, "coef_")


def test_weights_count_as_often_repeated_rows_do(rows):
    """A weighted fit is the fit to rows that are there as often as their weight says."""
    table = rows.iloc[:400]
    times = np.random.default_rng(0).integers(1, 4, len(table))
    names = ["height", "ill"]
    repeated = table.loc[table.index.repeat(times)].reset_index(drop=True)
    estimator = LogisticRegression(tol=1e-10, max_iter=10_000)
    one = train(TrainingRows(table, times.astype(float)), estimator, SCHEMA, "sex", names)
    many = train(TrainingRows(repeated, np.ones(len(repeated))), estimator, SCHEMA, "sex", names)
    assert np.allclose(one.predict_proba(rows), many.predict_proba(rows), atol=0.02)


# --- weights --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hashed(rows):
    """A RACE sketch, which no mixture can be fitted to: weights have to do it."""
    plan = aq.m2m_race(SCHEMA, repetitions=40, buckets=20, width=0.3)
    table = rows.dropna()
    return aq.sketch(table, SCHEMA, plan=plan, epsilon=10, delta=1e-6, simulate=1, progress=False)


def test_weights_are_a_distribution_of_the_rows(hashed):
    found = training_rows(hashed, rows=3000, effort=QUICK)
    assert not found.equal
    assert (found.weights > 0).all()
    assert found.weights.sum() == pytest.approx(hashed.count)


def test_weights_bring_the_rows_nearer_to_the_sketch(hashed, rows):
    """Height is far from even over its range: weighted rows have its mean, the prior's have not."""
    found = training_rows(hashed, rows=6000, effort=QUICK)
    known = found.table["height"].notna().to_numpy()
    mean = np.average(found.table["height"][known], weights=found.weights[known])
    truth = rows.dropna()["height"].mean()
    assert abs(mean - truth) < 0.5 * abs(1.5 - truth)


def test_drawn_rows_follow_the_weights(hashed):
    found = training_rows(hashed, rows=3000, effort=QUICK)
    alike = found.drawn(0)
    assert len(alike) == len(found.table)
    share = found.weights[found.table["sex"] == "M"].sum() / found.weights.sum()
    assert (alike["sex"] == "M").mean() == pytest.approx(share, abs=0.02)


def test_negative_weights_would_have_no_minimum(hashed):
    """Why weights are put on the simplex: M2M's own are negative for many rows."""
    from aquatint.analyst.query.priors import flat

    weights = Sketched(hashed, flat(hashed), 1.0, count=2000).weights
    assert weights.sum() == pytest.approx(1.0)
    assert -weights[weights < 0].sum() > 0.1


# --- raw rows -------------------------------------------------------------------------------------


def test_rows_from_a_csv_file_are_read_the_same(trained, rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    read = pd.read_csv(tmp_path / "rows.csv")
    assert np.allclose(trained.predict_proba(read), trained.predict_proba(rows))


def test_columns_may_come_in_any_order_with_others_beside(trained, rows):
    shuffled = rows[list(rows.columns[::-1])].assign(more=1)
    assert (trained.predict_proba(shuffled) == trained.predict_proba(rows)).all()


def test_a_column_that_is_not_there_is_named(trained, rows):
    with pytest.raises(ValueError, match="height"):
        trained.predict(rows.drop(columns="height"))


def test_values_outside_the_schema_are_read_as_a_sketch_reads_them(rows):
    """Numbers are clipped to the bounds; unknown categories are others, or nothing at all."""
    names = ["age", "sex", "job", "ill"]
    prepared = preparation(SCHEMA, names).fit(rows[names])
    odd = pd.DataFrame({"age": [500, 90], "sex": ["?", "F"], "job": ["q", None], "ill": ["x", 1]})
    typed = prepared[0].transform(odd)
    assert typed["age"].tolist() == [90, 90]
    assert typed["job"].tolist() == ["(other)", "(missing)"]
    assert typed["ill"].tolist() == ["(other)", "true"]
    numbers = prepared.transform(odd)
    assert np.isfinite(numbers).all()
    assert prepared[1].named_transformers_["categories"].transform(typed[names[1:]])[0].sum() == 1


@pytest.mark.parametrize("name", ["born", "seen"])
def test_moments_are_numbers_however_they_are_written(rows, name):
    prepared = preparation(SCHEMA, [name]).fit(rows[[name]])
    text = rows[[name]].astype(str)
    assert np.allclose(prepared.transform(text), prepared.transform(rows[[name]]))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "options", "said"),
    [
        (LogisticRegression(), {"target": "height"}, "'height' has no classes .* take a regressor"),
        (LinearRegression(), {"target": "sex"}, "'sex' has no numbers .* take a classifier"),
        (LinearRegression(), {"target": "born"}, "'born' has no numbers"),
        (KMeans(), {}, "KMeans predicts no column"),
        (LogisticRegression, {}, r"not its class: LogisticRegression\(\)"),
        (LogisticRegression(), {"target": "wage"}, "there is no column 'wage'"),
        (LogisticRegression(), {"features": ["wage"]}, "there is no column 'wage'"),
        (LogisticRegression(), {"features": "age"}, r"like \['age'\]"),
        (LogisticRegression(), {"features": ["sex"]}, "and not the target 'sex'"),
        (LogisticRegression(), {"features": ["age", "age"]}, "each column once"),
        (LogisticRegression(), {"features": []}, "no column to predict 'sex' from"),
        (LogisticRegression(), {"how": "magic"}, "choose one of auto, rows, weights"),
        (LogisticRegression(), {"rows": 0}, "cannot train on 0 rows"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(release, model, estimator, options, said):
    with pytest.raises(DataError, match=said):
        aq.learn(release, estimator, model=model, **options)


def test_a_schema_without_a_label_needs_a_target(rows):
    plain = aq.Schema.from_dict({**SCHEMA.to_dict(), "label": None})
    found = aq.sketch(rows, plain, epsilon=1, delta=1e-6, simulate=1, progress=False)
    with pytest.raises(DataError, match="say which column to predict with target="):
        aq.learn(found, LogisticRegression())


def test_a_release_without_the_target_beside_another_column_trains_nothing(rows):
    plain = SCHEMA.with_bins(dict.fromkeys(SCHEMA.columns, 4))
    plan = aq.Plan(plain, (aq.PlannedBlock("count", Count(), 1.0),))
    found = aq.sketch(rows, plain, plan=plan, epsilon=1, delta=1e-6, simulate=1, progress=False)
    with pytest.raises(ReleaseError, match="never looked at 'sex' together with another"):
        aq.learn(found, LogisticRegression())


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (onehot({"sex": 2, "job": 3}), False),
        (pairs({"sex": 2, "job": 3, "ill": 2}, [("job", "ill")]), False),
        (pairs({"sex": 2, "job": 3}), True),
        (0.5 * pairs({"sex": 2, "job": 3}), True),
        (by_label(fourier(["age"], 4), "sex", 2), True),
        (by_label(fourier(["age"], 4), "ill", 2), False),
        (hermite(["sex", "age"], 3), False),
        (fourier(["sex", "age"], 4), True),
        (fourier(["sex"], 4), False),
        (cosines(["sex", "age"], 3, pair_order=0), False),
        (cosines(["sex", "age"], 3), True),
        (race(["sex", "age"], 2, 4, width=0.5), True),
    ],
)
def test_which_features_say_how_the_target_depends_on_others(made, told):
    assert joins(made, "sex") is told


def test_a_matrix_that_would_fill_the_memory_is_refused(release, model, monkeypatch):
    monkeypatch.setattr("aquatint.analyst.learn.columns.MOST_NUMBERS", 1000)
    with pytest.raises(DataError, match="choose columns with features="):
        aq.learn(release, LogisticRegression(), model=model, rows=500)


def test_without_scikit_learn_it_says_what_to_install(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aquatint\[learn\]'"):
        aq.learn(release, None)


# --- as scikit-learn estimators -------------------------------------------------------------------

APPLY = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
"""Checks of scikit-learn's that apply, and pass."""
DO_NOT_APPLY = {
    "which type of rows fit takes": {
        "check_array_api_input",
        "check_classifier_data_not_an_array",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_f_contiguous_array_estimator",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_supervised_y_no_nan",
    },
    "what is learnt from the rows": {
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_train",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_regressors_int",
        "check_regressors_train",
    },
    "a fitted estimator, made from rows; `test_once_fitted_it_behaves` looks at the same": {
        "check_decision_proba_consistency",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_regressors_no_decision_function",
    },
}
"""Checks that do not apply, by what they look at: all hand rows of their own to ``fit``, which
refuses them."""


@pytest.mark.parametrize("kind", [aq.AquatintClassifier, aq.AquatintRegressor])
def test_scikit_learns_own_checks(kind, release, model):
    found = check_estimator(kind(release, model=model), on_skip=None, on_fail=None)
    assert {line["check_name"] for line in found if line["status"] == "passed"} >= APPLY
    known = set.union(*DO_NOT_APPLY.values())
    for line in found:
        if line["status"] == "failed":
            assert line["check_name"] in known
            assert refusal(line["exception"]), line["check_name"]


def refusal(error):
    """Whether an error is the refusal of rows, or was raised while that was dealt with."""
    while error is not None:
        if isinstance(error, DataError) and "trained from its release alone" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@pytest.fixture(scope="module")
def classifier(release, model):
    return aq.AquatintClassifier(release, model=model, rows=1000).fit()


def test_a_classifier_fits_without_rows_and_predicts(classifier, rows):
    assert classifier.score(rows, rows["sex"]) > 0.7
    assert classifier.classes_.tolist() == ["F", "M"]
    assert classifier.predict_proba(rows).sum(axis=1) == pytest.approx(1)
    assert classifier.n_features_in_ == len(classifier.feature_names_in_) == 7
    assert "sex" not in classifier.feature_names_in_


def test_a_regressor_fits_without_rows_and_predicts(release, model, rows):
    found = aq.AquatintRegressor(release, target="height", model=model).fit()
    known = rows.dropna(subset=["height"])
    assert found.score(known, known["height"]) > 0.3


@pytest.mark.parametrize("given", [{"X": people(5)}, {"X": people(5), "y": [1] * 5}, {"y": [1]}])
def test_rows_are_refused(release, given):
    with pytest.raises(DataError, match=r"call fit\(\) without any"):
        aq.AquatintClassifier(release).fit(**given)


def test_without_a_release_it_says_so():
    with pytest.raises(DataError, match="no release to train from"):
        aq.AquatintRegressor().fit()


def test_before_fitting_it_says_so(release, rows):
    with pytest.raises(NotFittedError):
        aq.AquatintClassifier(release).predict(rows)


def test_once_fitted_it_behaves(release, model, rows):
    """What the checks with rows of their own look at, after a fit without any."""
    made = aq.AquatintClassifier(release, model=model, rows=500)
    given = made.get_params()
    assert made.fit() is made
    assert all(made.get_params()[name] is value for name, value in given.items())
    state = dict(vars(made))
    found = made.predict_proba(rows)
    assert vars(made) == state
    order = np.random.default_rng(0).permutation(len(rows))
    assert np.allclose(made.predict_proba(rows.iloc[order]), found[order])
    assert np.allclose(made.predict_proba(rows.iloc[:7]), found[:7])
    assert ((made.decision_function(rows) > 0) == (found[:, 1] > 0.5)).all()
    assert (made.fit().predict_proba(rows) == found).all()
    assert not hasattr(aq.AquatintRegressor(release), "decision_function")


def test_it_can_be_pickled_cloned_and_changed(classifier, rows):
    again = pickle.loads(pickle.dumps(classifier))
    assert (again.predict(rows) == classifier.predict(rows)).all()
    other = clone(classifier).set_params(estimator=LinearSVC(), rows=300)
    assert other.get_params()["rows"] == 300
    assert not hasattr(other, "pipeline_")
    assert not hasattr(other, "predict_proba")
    assert other.fit().decision_function(rows).shape == (len(rows),)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models_by_name_are_saved_and_opened_again(name, release, model, rows, tmp_path):
    target = "sex" if MODELS[name].classifier else "height"
    estimator = named_model(name, release.schema, target, seed=1)
    if name in {"forest", "boosting"}:
        estimator.set_params(**{"n_estimators" if name == "forest" else "max_iter": 5})
    found = aq.learn(release, estimator, target=target, model=model, rows=500)
    aq.save_learned(found, tmp_path / "model.skops")
    again = aq.load_learned(tmp_path / "model.skops")
    assert (again.predict(rows) == found.predict(rows)).all()


def test_a_name_for_the_wrong_target_says_which_are_right():
    with pytest.raises(DataError, match=r"'height' has numbers.*linear, ridge, tree, forest"):
        named_model("logistic", SCHEMA, "height", 0)
    with pytest.raises(DataError, match="'sex' has classes"):
        named_model("ridge", SCHEMA, "sex", 0)
    with pytest.raises(DataError, match="unknown model 'gpt'"):
        named_model("gpt", SCHEMA, "sex", 0)


def test_a_file_that_names_something_else_is_not_opened(tmp_path):
    import skops.io

    path = tmp_path / "model.skops"
    skops.io.dump({"model": exec}, path)
    with pytest.raises(ReleaseError, match="it is not opened"):
        aq.load_learned(path)


@pytest.mark.parametrize("content", [b"", b"nothing", pickle.dumps({"a": 1})])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match="not a trained model, or is damaged"):
        aq.load_learned(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match="cannot read"):
        aq.load_learned(tmp_path / "none.skops")


def test_a_name_that_does_not_say_the_format_is_refused(trained, tmp_path):
    with pytest.raises(DataError, match=r"end its name in \.skops"):
        aq.save_learned(trained, tmp_path / "model.pickle")
