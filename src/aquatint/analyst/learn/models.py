"""The estimators that the command line knows by name.

Trees have leaves of several rows: what a single row of a synthetic table says is chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aquatint.columns import RANGED
from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.schema import Schema


@dataclass(frozen=True)
class Named:
    """One name: its estimators for classes and for numbers, empty where there is none.

    Attributes
    ----------
    module
        Where they live.
    classifier, regressor
        Their names there.
    settings
        What differs from scikit-learn's defaults.
    seeded
        Whether they draw random numbers.
    """

    module: str
    classifier: str = ""
    regressor: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False


MODELS: dict[str, Named] = {
    "logistic": Named(
        "sklearn.linear_model", classifier="LogisticRegression", settings={"max_iter": 1_000}
    ),
    "linear": Named("sklearn.linear_model", regressor="LinearRegression"),
    "ridge": Named("sklearn.linear_model", regressor="Ridge"),
    "tree": Named(
        "sklearn.tree",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        {"min_samples_leaf": 20},
        seeded=True,
    ),
    "forest": Named(
        "sklearn.ensemble",
        "RandomForestClassifier",
        "RandomForestRegressor",
        {"min_samples_leaf": 5},
        seeded=True,
    ),
    "boosting": Named(
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        seeded=True,
    ),
}


def named_model(name: str, schema: Schema, target: str, seed: int) -> Any:
    """Make the estimator of a name that fits the target: of classes, or of numbers."""
    if name not in MODELS:
        msg = f"unknown model {name!r}: choose one of {', '.join(MODELS)}"
        raise DataError(msg)
    known = MODELS[name]
    numbers = isinstance(schema.columns[target], RANGED)
    chosen = known.regressor if numbers else known.classifier
    if not chosen:
        fit = [n for n, m in MODELS.items() if (m.regressor if numbers else m.classifier)]
        what = "numbers" if numbers else "classes"
        msg = f"column {target!r} has {what}, which {name!r} does not predict: {', '.join(fit)} do"
        raise DataError(msg)
    settings = {**known.settings, **({"random_state": seed} if known.seeded else {})}
    return getattr(need(known.module, extra="learn"), chosen)(**settings)
