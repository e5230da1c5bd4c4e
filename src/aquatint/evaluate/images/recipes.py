"""Which classifiers there are for images, by name, with the settings of the papers.

DP-MERF's code has settings for images that are not those for tables: fewer trees, subsamples and
thresholds that shorten the fits. They are taken over here, so that a mean over the twelve can be
laid beside its tables 3, 9 and 10. XGBoost's depth, rate and exact trees were its defaults then.
AdaBoost's SAMME.R has left scikit-learn: SAMME stands in.
DP-MEPF takes scikit-learn's logistic regression and multi-layer perceptron, and for CIFAR-10 the
ResNet9 of FFCV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aquatint.evaluate.classifiers import RECIPES, SETS, Recipe
from aquatint.evaluate.errors import EvaluationError

_SETTINGS: dict[str, dict[str, object]] = {
    "logistic": {"max_iter": 5000},
    "bernoulli_nb": {"binarize": 0.5},
    "linear_svc": {"loss": "hinge", "max_iter": 10_000, "tol": 1e-8},
    "decision_tree": {"class_weight": "balanced"},
    "lda": {"solver": "eigen", "shrinkage": 0.5, "tol": 1e-8},
    "adaboost": {"n_estimators": 100},
    "bagging": {"max_samples": 0.1, "n_estimators": 20},
    "random_forest": {"class_weight": "balanced"},
    "gradient_boosting": {"subsample": 0.1, "n_estimators": 50},
    "xgboost": {
        "colsample_bytree": 0.1,
        "n_estimators": 50,
        "max_depth": 3,
        "learning_rate": 0.1,
        "tree_method": "exact",
        "n_jobs": 1,
        "verbosity": 0,
    },
}
PAPERS: dict[str, Recipe] = {
    name: replace(RECIPES[name], settings=_SETTINGS.get(name, RECIPES[name].settings))
    for name in SETS["papers"]
}
"""The papers' twelve, with DP-MERF's settings for images."""
NETWORKS = {
    "logreg_torch": "logistic regression (torch)",
    "mlp_torch": "multi-layer perceptron (torch)",
    "cnn": "small CNN (torch)",
    "resnet9": "ResNet9 (torch)",
}
"""What torch trains, on the device that is asked for."""
SHORT = {"logreg": "logistic"}
TITLES = {name: recipe.title for name, recipe in PAPERS.items()} | NETWORKS


def choose(classifiers: str | Sequence[str]) -> tuple[str, ...]:
    """Give the keys for names with commas between; ``papers`` stands for the twelve."""
    asked = classifiers.split(",") if isinstance(classifiers, str) else list(classifiers)
    chosen: list[str] = []
    for name in (word.strip() for word in asked):
        if name == "papers":
            chosen += PAPERS
        elif SHORT.get(name, name) in TITLES:
            chosen.append(SHORT.get(name, name))
        else:
            others = ", ".join(n for n in TITLES if n not in SHORT.values())
            msg = f"no classifier is named {name!r}: choose from papers, logreg, {others}"
            raise EvaluationError(msg)
    return tuple(dict.fromkeys(chosen))
