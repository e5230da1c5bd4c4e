"""The twelve classifiers of DP-MERF and DP-HP, with fixed settings, trained on one table.

The settings are those of DP-MERF's code for tables: scikit-learn's and XGBoost's defaults, but for
the iterations of the logistic regression and the smoothing of the Bernoulli naive Bayes. DP-HP
tries up to 14 settings of each classifier and keeps the best on the test set; here there is one,
and the test set chooses nothing. AdaBoost's SAMME.R, the default of their time, has since left
scikit-learn: SAMME stands in for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aquatint.evaluate.design import Design
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.tables import Encoded, Grid
from aquatint.extras import need
from aquatint.progress import track


@dataclass(frozen=True)
class Recipe:
    """One classifier with its settings.

    Attributes
    ----------
    title
        Its name in tables and plots.
    module, name
        Where the estimator lives.
    settings
        What differs from its defaults.
    seeded
        Whether it draws random numbers.
    ordinal
        Whether it takes categories as numbers instead of one-hot cells.
    """

    title: str
    module: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    ordinal: bool = False

    def build(self, seed: int, categorical: Sequence[bool] = ()) -> Any:
        """Make the estimator, not fitted yet."""
        settings = dict(self.settings)
        if self.seeded:
            settings["random_state"] = seed
        if self.ordinal:
            settings["categorical_features"] = list(categorical)
        return getattr(need(self.module), self.name)(**settings)


_FOREST, _BAYES = "sklearn.ensemble", "sklearn.naive_bayes"
RECIPES: dict[str, Recipe] = {
    "logistic": Recipe(
        "logistic regression", "sklearn.linear_model", "LogisticRegression", {"max_iter": 2000}
    ),
    "gaussian_nb": Recipe("Gaussian naive Bayes", _BAYES, "GaussianNB", seeded=False),
    "bernoulli_nb": Recipe(
        "Bernoulli naive Bayes", _BAYES, "BernoulliNB", {"alpha": 0.02}, seeded=False
    ),
    "linear_svc": Recipe("linear SVM", "sklearn.svm", "LinearSVC"),
    "decision_tree": Recipe("decision tree", "sklearn.tree", "DecisionTreeClassifier"),
    "lda": Recipe(
        "linear discriminant",
        "sklearn.discriminant_analysis",
        "LinearDiscriminantAnalysis",
        seeded=False,
    ),
    "adaboost": Recipe("AdaBoost", _FOREST, "AdaBoostClassifier"),
    "bagging": Recipe("bagging", _FOREST, "BaggingClassifier"),
    "random_forest": Recipe("random forest", _FOREST, "RandomForestClassifier"),
    "gradient_boosting": Recipe("gradient boosting", _FOREST, "GradientBoostingClassifier"),
    "mlp": Recipe("multi-layer perceptron", "sklearn.neural_network", "MLPClassifier"),
    "xgboost": Recipe("XGBoost", "xgboost", "XGBClassifier", {"n_jobs": 1, "verbosity": 0}),
    "hist_gradient_boosting": Recipe(
        "histogram gradient boosting", _FOREST, "HistGradientBoostingClassifier", ordinal=True
    ),
}
SETS: dict[str, tuple[str, ...]] = {
    "papers": tuple(name for name in RECIPES if name != "hist_gradient_boosting"),
    "quick": ("logistic", "random_forest", "hist_gradient_boosting"),
}
"""Named choices: the papers' twelve, and three that are strong and quick."""
_MOST_CELLS = 255
"""Histogram gradient boosting takes no more categories in a column."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What one fitted classifier says of the test rows.

    Attributes
    ----------
    classifier
        Its key in `RECIPES`.
    labels
        The predicted cell of the target, one for each row: the hard labels.
    scores
        With two classes, a number that is larger where the positive one is likelier: a probability
        or a decision score.
    note
        Empty, or what was wrong: it had not converged, or could not be fitted and predicts the
        commonest class.
    """

    classifier: str
    labels: np.ndarray
    scores: np.ndarray | None
    note: str


def choose(classifiers: str | Sequence[str]) -> tuple[str, ...]:
    """Give the keys for a named set, one key, or several."""
    if isinstance(classifiers, str):
        classifiers = SETS.get(classifiers, (classifiers,))
    unknown = [name for name in classifiers if name not in RECIPES]
    if unknown or not classifiers:
        wrong = repr(unknown[0]) if unknown else "an empty list"
        msg = (
            f"no classifier is named {wrong}: choose from {', '.join(RECIPES)}, "
            f"or a set: {', '.join(SETS)}"
        )
        raise EvaluationError(msg)
    return tuple(dict.fromkeys(classifiers))


def predictions(
    train: Encoded,
    test: Encoded,
    grid: Grid,
    target: str,
    *,
    positive: int | None,
    classifiers: str | Sequence[str] = "papers",
    seed: int = 0,
    progress: bool = False,
    what: str = "synthetic",
) -> Iterator[Prediction]:
    """Train each classifier on one table and let it predict another.

    Parameters
    ----------
    train, test
        The tables; the target of the test rows is not looked at.
    grid
        The cells of both.
    target
        The column to predict.
    positive
        With two classes, the cell of the target that `scores` are for.
    classifiers
        A named set, a key, or several keys.
    seed
        Seeds every classifier that draws random numbers.
    progress
        Whether to show progress on standard error.
    what
        The name of the training rows, for progress.
    """
    chosen = choose(classifiers)
    classes, numbers = np.unique(train.codes[target], return_inverse=True)
    if positive is not None and positive in classes[:1]:  # the positive class has to come last
        classes, numbers = classes[::-1], len(classes) - 1 - numbers
    design = Design.fit(train, grid, target)
    matrices = _Matrices(design, train, test)
    with track(f"training on {what} rows", len(chosen), show=progress) as advance:
        for name in chosen:
            yield _predict(name, matrices, classes, numbers, positive, seed)
            advance(1)


class _Matrices:
    """The training and test rows as matrices, each kind made once and when it is asked for."""

    def __init__(self, design: Design, train: Encoded, test: Encoded) -> None:
        self.design, self.train, self.test = design, train, test
        self.made: dict[bool, tuple[np.ndarray, np.ndarray, list[bool]]] = {}

    def get(self, *, ordinal: bool) -> tuple[np.ndarray, np.ndarray, list[bool]]:
        if ordinal not in self.made:
            if ordinal:
                fit, marks = self.design.ordinal(self.train)
                self.made[True] = fit, self.design.ordinal(self.test)[0], marks
            else:
                fit, ask = (self.design.one_hot(t) for t in (self.train, self.test))
                self.made[False] = fit, ask, []
        return self.made[ordinal]


def _predict(
    name: str,
    matrices: _Matrices,
    classes: np.ndarray,
    numbers: np.ndarray,
    positive: int | None,
    seed: int,
) -> Prediction:
    recipe = RECIPES[name]
    fit, ask, marks = matrices.get(ordinal=recipe.ordinal)
    marks = [bool(m and fit[:, i].max() < _MOST_CELLS) for i, m in enumerate(marks)]
    if len(classes) == 1 or not np.ptp(fit, axis=0).any():
        return _constant(name, classes, numbers, len(ask), positive, "")
    model = recipe.build(seed, marks)
    # One thread: two evaluations side by side, each with a thread for every core, starve both.
    with need("threadpoolctl").threadpool_limits(1), np.errstate(all="ignore"):
        try:
            note = fit_quietly(model, fit, numbers)
        except ValueError:  # AdaBoost, for one, refuses when no column tells about the target
            return _constant(name, classes, numbers, len(ask), positive, "could not be fitted")
        labels = classes[np.asarray(model.predict(ask)).astype(int)]
        scores = None if positive is None else _scores(model, ask)
    return Prediction(name, labels, scores, note)


def fit_quietly(model: Any, rows: np.ndarray, numbers: np.ndarray) -> str:
    """Fit, and say so if the iterations ran out; that is no reason to stop a comparison."""
    unfinished = need("sklearn.exceptions").ConvergenceWarning
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", unfinished)
        model.fit(rows, numbers)
    return "did not converge" if caught else ""


def _scores(model: Any, rows: np.ndarray) -> np.ndarray:
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(rows))[:, 1]
    else:
        scores = np.asarray(model.decision_function(rows))
    # Gaussian naive Bayes gives NaN where every variance is zero: it knows nothing there.
    known: np.ndarray = np.nan_to_num(scores, nan=0.0)
    return known


def _constant(
    name: str,
    classes: np.ndarray,
    numbers: np.ndarray,
    rows: int,
    positive: int | None,
    note: str,
) -> Prediction:
    """Predict the commonest class: all that can be said without a second class or a column."""
    commonest = classes[np.bincount(numbers).argmax()]
    scores = None if positive is None else np.zeros(rows)
    return Prediction(name, np.full(rows, commonest), scores, note)
