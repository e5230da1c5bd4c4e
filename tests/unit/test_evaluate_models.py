"""Classifiers trained on synthetic rows: fixed settings, honest scores, and the papers' own."""

import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from aquatint.errors import DataError
from aquatint.evaluate import design as design_module
from aquatint.evaluate.classifiers import RECIPES, SETS, Prediction, choose, predictions
from aquatint.evaluate.design import Design
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.published import alpha_way_error, hard_label_score, undersampled
from aquatint.evaluate.tables import Grid, encode
from aquatint.evaluate.utility import Task, mean_metrics, score
from aquatint.extras import MissingExtraError
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "t",
        "label": "ill",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99]},
            "dose": {"kind": "numeric", "bounds": [0, 1], "missing": True},
            "ward": {"kind": "categorical", "categories": ["a", "b", "c"], "missing": True},
            "grade": {"kind": "ordered", "categories": ["low", "middle", "high"]},
            "ill": {"kind": "boolean", "missing": True},
        },
    }
)
GRID = Grid(SCHEMA)


def people(count, seed, *, signal=1.0, label=None):
    """Rows in which illness, about one in four, grows with age and dose and is rarer in ward a."""
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(0, 100, count), rng.random(count)
    ward = rng.choice(["a", "b", "c"], count)
    logit = signal * (age / 12 - 7 + 3 * dose - 2.0 * (ward == "a"))
    frame = pd.DataFrame({"age": age, "dose": dose, "ward": ward})
    frame.loc[rng.random(count) < 0.1, "dose"] = np.nan
    frame.loc[rng.random(count) < 0.05, "ward"] = None
    frame["grade"] = np.where(age < 33, "low", np.where(age < 66, "middle", "high"))
    frame["ill"] = rng.random(count) < 1 / (1 + np.exp(-logit)) if label is None else label
    return frame


def table(frame, grid=GRID):
    return encode(frame, grid, strict=True)


REAL, TEST = people(400, 0), people(300, 1)


def scores_of(train, test=TEST, classifiers="quick", grid=GRID, target="ill", seed=0):
    ours, held, fit = table(REAL, grid), table(test, grid), encode(train, grid)
    task = Task.of(ours, held, grid, target)
    asked = task.rows(held, "test")
    found = predictions(
        task.rows(fit, "synthetic"),
        asked,
        grid,
        target,
        positive=task.positive,
        classifiers=classifiers,
        seed=seed,
    )
    return {f.classifier: (score(f, asked.codes[target], task), f) for f in found}


@pytest.fixture(scope="module")
def twelve():
    return scores_of(people(400, 2), classifiers="papers")


# --- the twelve -----------------------------------------------------------------------------------


def test_the_papers_have_twelve_classifiers_and_each_learns(twelve):
    assert tuple(twelve) == SETS["papers"]
    assert len(twelve) == 12
    for name, (found, _) in twelve.items():
        assert found.metrics["roc_auc"] > 0.7, name
        assert found.metrics["average_precision"] > 0.45, name
        assert found.note in {"", "did not converge"}, name


def test_only_the_perceptron_runs_out_of_iterations(twelve):
    assert [n for n, (found, _) in twelve.items() if found.note] in ([], ["mlp"])


def test_scores_are_probabilities_or_decisions_and_not_hard_labels(twelve):
    for name, (found, prediction) in twelve.items():
        if name == "decision_tree":  # a full tree is sure of everything
            continue
        assert len(np.unique(prediction.scores)) > 5, name
        low, high = (a for a in found.roc)
        area = float(np.trapezoid(high, low))
        assert area == pytest.approx(found.metrics["roc_auc"], abs=0.01), name


def test_the_mean_is_over_the_classifiers(twelve):
    scores = [found for found, _ in twelve.values()]
    values = [found.metrics["roc_auc"] for found in scores]
    assert mean_metrics(scores)["roc_auc"] == pytest.approx(np.mean(values))
    assert mean_metrics([]) == {}


def test_results_follow_the_seed():
    first, again, other = (
        scores_of(people(200, 2), classifiers="random_forest", seed=s)["random_forest"][1].scores
        for s in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_classifiers_keep_to_one_thread_and_give_the_others_back(monkeypatch):
    seen = []

    def fit(self, *given):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return plain(self, *given)

    plain = DecisionTreeClassifier.fit
    monkeypatch.setattr(DecisionTreeClassifier, "fit", fit)
    with threadpool_limits(2):
        before = threadpool_info()
        scores_of(people(50, 2), classifiers="decision_tree")
        assert threadpool_info() == before
    assert set(seen) == {1}


def test_the_labels_of_the_test_rows_are_not_looked_at():
    shuffled = TEST.assign(ill=TEST["ill"].sample(frac=1, random_state=0).to_numpy())
    plain, mixed = (scores_of(people(200, 2), t)["logistic"][1].scores for t in (TEST, shuffled))
    assert (plain == mixed).all()


def test_labels_without_a_meaning_teach_nothing():
    frame = people(400, 2)
    frame["ill"] = np.random.default_rng(0).permutation(frame["ill"])
    found = scores_of(frame)["logistic"][0]
    assert abs(found.metrics["roc_auc"] - 0.5) < 0.2
    assert found.metrics["roc_auc"] < scores_of(people(400, 2))["logistic"][0].metrics["roc_auc"]


def test_choosing_classifiers():
    assert choose("quick") == SETS["quick"]
    assert choose("lda") == ("lda",)
    assert choose(["lda", "mlp", "lda"]) == ("lda", "mlp")
    for wrong in ("svm", [], ["lda", "svm"]):
        with pytest.raises(EvaluationError, match="choose from logistic"):
            choose(wrong)


def test_every_recipe_is_in_a_set_and_has_a_title():
    assert {n for names in SETS.values() for n in names} == set(RECIPES)
    assert all(recipe.title for recipe in RECIPES.values())


# --- degenerate tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("label", [True, False])
def test_a_synthetic_label_with_one_class_scores_as_chance(label):
    base = TEST["ill"].mean()
    for name, (found, _) in scores_of(people(50, 2, label=label), classifiers="papers").items():
        assert found.metrics["roc_auc"] == 0.5, name
        assert found.metrics["average_precision"] == pytest.approx(base), name


def test_columns_that_never_vary_score_as_chance():
    frame = people(60, 2).assign(age=5, dose=0.5, ward="a", grade="low")
    for name, (found, _) in scores_of(frame, classifiers="papers").items():
        assert found.metrics["roc_auc"] == 0.5, name


def test_columns_that_tell_nothing_are_survived_by_all():
    """Each row comes with both labels, so that no split is better than chance."""
    frame = people(40, 2)
    twice = pd.concat([frame.assign(ill=True), frame.assign(ill=False)])
    found = scores_of(twice, classifiers="papers")
    assert found["adaboost"][0].note == "could not be fitted"
    assert all(np.isfinite(f.metrics["roc_auc"]) for f, _ in found.values())


def test_rows_whose_label_is_missing_neither_train_nor_test():
    holes = people(200, 2)
    labels = holes["ill"].astype(object)
    labels[::2] = None
    whole = scores_of(holes[1::2])["logistic"][1]
    assert (scores_of(holes.assign(ill=labels))["logistic"][1].scores == whole.scores).all()
    tested = TEST.assign(ill=TEST["ill"].astype(object).where(TEST.index % 3 > 0, None))
    assert len(scores_of(holes, tested)["logistic"][1].scores) == 200


def test_synthetic_rows_without_any_known_label_are_refused():
    frame = people(20, 2).assign(ill=pd.Series([None] * 20, dtype=object))
    with pytest.raises(DataError, match="no label that real rows have"):
        scores_of(frame)


# --- the task -------------------------------------------------------------------------------------


def test_the_rarer_class_of_the_real_rows_is_positive_unless_it_is_named():
    ours, held = table(REAL), table(TEST)
    assert REAL["ill"].mean() < 0.5
    assert Task.of(ours, held, GRID, "ill").positive == 1
    flipped = table(REAL.assign(ill=~REAL["ill"]))
    assert Task.of(flipped, held, GRID, "ill").positive == 0
    assert Task.of(ours, held, GRID, "ill", "false").positive == 0
    with pytest.raises(EvaluationError, match="'maybe' is not among 'false', 'true'"):
        Task.of(ours, held, GRID, "ill", "maybe")
    with pytest.raises(EvaluationError, match="has 3 classes: a positive class goes with two"):
        Task.of(ours, held, GRID, "grade", "low")


def test_the_positive_class_may_be_the_first_cell():
    first = REAL.assign(ill=~REAL["ill"])
    ours, held = table(first), table(TEST.assign(ill=~TEST["ill"]))
    task = Task.of(ours, held, GRID, "ill")
    (found,) = predictions(
        table(people(400, 2).assign(ill=lambda f: ~f["ill"])),
        held,
        GRID,
        "ill",
        positive=task.positive,
        classifiers="logistic",
    )
    usual = scores_of(people(400, 2), classifiers="logistic")["logistic"][0]
    assert score(found, held.codes["ill"], task).metrics["roc_auc"] == pytest.approx(
        usual.metrics["roc_auc"], abs=1e-3
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [("age", "is a range"), ("colour", "is not among the schema's columns: ward, grade, ill")],
)
def test_targets_that_cannot_be_predicted_are_refused(target, said):
    with pytest.raises(EvaluationError, match=said):
        Task.of(table(REAL), table(TEST), GRID, target)


def test_a_lone_column_is_refused_as_target():
    lone = Grid(SCHEMA.model_copy(update={"columns": {"ill": SCHEMA.columns["ill"]}}))
    tables = [encode(f[["ill"]], lone) for f in (REAL, TEST)]
    with pytest.raises(EvaluationError, match="only column"):
        Task.of(*tables, lone, "ill")


def test_test_rows_with_one_class_are_refused():
    with pytest.raises(DataError, match="the test rows have one class"):
        Task.of(table(REAL), table(people(10, 1, label=True)), GRID, "ill")


# --- more than two classes ------------------------------------------------------------------------


def test_several_classes_are_scored_by_f1_weighted_as_in_the_papers_and_macro():
    frame = people(300, 2)
    truth = table(TEST).codes["grade"]
    for name, (found, said) in scores_of(frame, target="grade", classifiers="papers").items():
        assert said.scores is None
        for average in ("weighted", "macro"):
            expected = f1_score(truth, said.labels, average=average)
            assert found.metrics[f"f1_{average}"] == pytest.approx(expected), name
        assert found.metrics["f1_weighted"] > (0.55 if name == "bernoulli_nb" else 0.7), name


def test_a_class_that_the_synthetic_rows_lack_costs_and_breaks_nothing():
    frame = people(300, 2)
    lacking = frame[frame["grade"] != "middle"]
    for name, (found, said) in scores_of(lacking, target="grade", classifiers="papers").items():
        assert set(said.labels) <= {0, 2}, name
        assert found.metrics["f1_macro"] < 0.7, name
    alone = scores_of(frame[frame["grade"] == "low"], target="grade")
    assert all((said.labels == 0).all() for _, said in alone.values())


def test_classes_that_no_test_row_has_are_left_out_of_the_macro_average():
    tested = TEST[TEST["grade"] != "middle"]
    found, said = scores_of(people(300, 2), tested, target="grade")["random_forest"]
    truth = table(tested).codes["grade"]
    expected = f1_score(truth, said.labels, labels=[0, 2], average="macro")
    assert found.metrics["f1_macro"] == pytest.approx(expected)


# --- the matrix -----------------------------------------------------------------------------------


def test_scaling_and_medians_come_from_the_training_rows():
    train, test = table(people(200, 2)), table(people(50, 3).assign(age=99))
    made = Design.fit(train, GRID, "ill")
    rows = made.one_hot(train)
    assert rows[:, :2].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert rows[:, :2].std(axis=0) == pytest.approx([1, 1])
    age = train.values["age"]  # not a frame
    assert made.one_hot(test)[0, 0] == pytest.approx((1 - age.mean()) / age.std(), abs=1e-4)


def test_a_missing_number_is_the_training_median_with_an_indicator():
    frame = people(101, 2)
    train = table(frame)
    row = Design.fit(train, GRID, "ill").one_hot(train)[np.flatnonzero(frame["dose"].isna())[0]]
    filled = frame["dose"].fillna(frame["dose"].median())
    assert row[1] == pytest.approx(
        (frame["dose"].median() - filled.mean()) / filled.std(ddof=0), abs=1e-4
    )
    assert row[2] == 1  # dose may be missing, age may not: there is one indicator


def test_categories_come_from_the_schema_and_not_from_the_training_rows():
    train = table(people(50, 2).assign(ward="a"))
    made = Design.fit(train, GRID, "ill")
    assert made.one_hot(train).shape[1] == made.one_hot(table(TEST)).shape[1]
    others = made.one_hot(table(TEST))[(TEST["ward"] == "b").to_numpy()]
    assert others[:, 3 + 1].all()  # after two ranges and one indicator, ward b


def test_the_target_is_no_feature():
    frame = people(50, 2)
    made = Design.fit(table(frame), GRID, "ill")
    flipped = table(frame.assign(ill=~frame["ill"]))
    assert (made.one_hot(table(frame)) == made.one_hot(flipped)).all()
    assert (made.ordinal(table(frame))[0] == made.ordinal(flipped)[0]).all()


def test_a_matrix_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(design_module, "_ROOM", 100)
    with pytest.raises(DataError, match="more than fits in memory"):
        scores_of(people(50, 2), classifiers="logistic")


# --- as published ---------------------------------------------------------------------------------


def test_published_roc_is_the_balanced_accuracy_of_hard_labels(twelve):
    held = table(TEST)
    task, truth = Task.of(table(REAL), held, GRID, "ill"), held.codes["ill"]
    for name, (right, said) in twelve.items():
        found = hard_label_score(said, truth, task).metrics
        expected = balanced_accuracy_score(truth, said.labels)
        assert found["roc"] == pytest.approx(expected), name
        assert found["prc"] == pytest.approx(average_precision_score(truth, said.labels)), name
        if name != "decision_tree":
            assert found["roc"] < right.metrics["roc_auc"], name


def test_undersampling_thins_the_commonest_class_only():
    labels = np.array([0] * 100 + [1] * 10)
    kept = undersampled(labels, 0, 0.25, seed=0)
    assert len(kept) == len(set(kept)) == 35
    assert (labels[kept] == 1).sum() == 10
    assert (undersampled(labels, 0, 1.0, seed=0) == np.arange(110)).all()
    for wrong in (0, 1.5):
        with pytest.raises(EvaluationError, match="share to keep"):
            undersampled(labels, 0, wrong, seed=0)


def test_undersampling_lifts_the_published_precision():
    truth = np.array([0] * 90 + [1] * 10)
    said = np.array([0] * 80 + [1] * 20)
    task = Task("y", (0, 1), 1, 0)
    prediction = Prediction("lda", said, None, "")
    full, thin = (hard_label_score(prediction, truth, task, keep=k).metrics for k in (1.0, 0.1))
    assert full["prc"] == pytest.approx(0.5)  # ten of twenty are right
    assert thin["prc"] > full["prc"]
    several = Task("y", (0, 1), None, 0)
    expected = f1_score(truth, said, average="weighted")
    assert hard_label_score(prediction, truth, several).metrics == {"f1": pytest.approx(expected)}


def histogramdd_error(real, synthetic, alpha):
    """The published metric in NumPy's words: α + 1 columns, max − min bins, each its own range."""
    low, high = real.min(axis=0), real.max(axis=0)
    synthetic = np.clip(synthetic, low, high)
    errors = []
    for places in combinations(range(real.shape[1]), alpha + 1):
        bins = [int(max(1, high[p] - low[p])) for p in places]
        p, q = (np.histogramdd(t[:, places], bins=bins)[0] / len(t) for t in (real, synthetic))
        errors.append(np.abs(p - q).sum() / 2)
    return np.mean(errors)


@pytest.mark.parametrize("alpha", [0, 1, 2, 3])
def test_published_marginals_repeat_what_numpy_would_say(alpha):
    ours, theirs = table(people(300, 0)), table(people(250, 5, signal=0.3))
    matrices = [np.stack(list(t.codes.values()), axis=1) for t in (ours, theirs)]
    found = alpha_way_error(ours, theirs, GRID, alpha)
    assert found == pytest.approx(histogramdd_error(*matrices, alpha))


def test_published_marginals_clip_synthetic_levels_to_those_of_the_real_rows():
    ours, theirs = table(people(300, 0).query("20 <= age < 70")), table(people(250, 5))
    matrices = [np.stack(list(t.codes.values()), axis=1) for t in (ours, theirs)]
    found = alpha_way_error(ours, theirs, GRID, 1)
    assert found == pytest.approx(histogramdd_error(*matrices, 1))


def test_published_marginals_are_blind_to_binary_columns_and_blur_misaligned_ones():
    frame = people(300, 0).assign(ill=True)
    frame.loc[:149, "ill"] = False
    ill = Grid(SCHEMA.model_copy(update={"columns": {"ill": SCHEMA.columns["ill"]}}))
    ours, theirs = (encode(f[["ill"]], ill) for f in (frame, frame.head(160)))
    assert alpha_way_error(ours, theirs, ill, 0) == 0
    grade = Grid(SCHEMA.model_copy(update={"columns": {"grade": SCHEMA.columns["grade"]}}))
    low, high = (
        encode(pd.DataFrame({"grade": g}), grade) for g in (["low", "middle", "high"], ["high"] * 3)
    )
    # All three rows are "high", whose own range is one point: NumPy puts it in the upper half.
    assert alpha_way_error(low, high, grade, 0) == pytest.approx(1 / 3)


def test_published_marginals_need_one_column_more_than_they_say():
    ours = table(people(50, 0))
    with pytest.raises(EvaluationError, match="needs 6 columns, and there are 5"):
        alpha_way_error(ours, ours, GRID, 5)


# --- extras ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "classifier"), [("sklearn.linear_model", "logistic"), ("xgboost", "xgboost")]
)
def test_a_missing_package_is_asked_for_by_its_extra(monkeypatch, module, classifier):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    said = rf"^{package} is not installed: pip install 'aquatint\[evaluate\]'$"
    with pytest.raises(MissingExtraError, match=said):
        scores_of(people(50, 2), classifiers=classifier)
