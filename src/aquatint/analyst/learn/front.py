"""The front door of learning: a release and an estimator in, a trained pipeline out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd

from aquatint.analyst.learn.rows import How, TrainingRows, check_told, training_rows
from aquatint.analyst.literals import column_of
from aquatint.columns import RANGED, Boolean, Integer, Numeric
from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.release.model import Release
from aquatint.schema import Schema

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from aquatint.analyst.synthesize.mixture import Mixture

MOST_CLASSES = 1_000


def learn(
    release: Release,
    estimator: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    rows: int | None = None,
    how: How = "auto",
    model: Mixture | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Pipeline:
    """Train a scikit-learn estimator from a release alone, at no privacy cost.

    No real row is seen. The estimator is trained on rows that follow a model of the release:

    - ``how="rows"``: rows of the model that `synthesize` fits, all counting alike.
    - ``how="weights"``: implicit M2M (§3.5). Rows of the model have weights from a ridge regression
      on the sketch, the nearest ones to M2M's that are not negative: with negative weights most
      losses have no minimum. An estimator that takes no weights gets rows drawn in proportion.
    - ``how="auto"``: rows if the model is fitted to every block of the release, and otherwise, as
      for a RACE sketch, weights; on rows drawn evenly from the declared domain, as the paper does,
      if no model can be fitted at all. A model that was fitted to the whole sketch has its averages
      already: weights correct little, and leave fewer rows that count, which flexible estimators
      pay for (docs/how-to/train-a-model.md).

    Parameters
    ----------
    release
        What the curator published.
    estimator
        A classifier or regressor with scikit-learn's interface, not fitted yet. It is cloned.
    target
        The column to predict; by default the schema's label.
    features
        The columns to predict it from; by default all others.
    rows
        How many rows to train on; by default about as many as were sketched.
    how
        See above.
    model
        A mixture that was fitted to this release before, to save the time.
    seed
        The same seed gives the same model, if the estimator's own random state is set too.
    progress
        Show progress on a terminal when it takes longer than two seconds.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Fitted. It predicts from raw rows in the schema's own types: it reads them as the schema
        declares, fills in what is missing, scales numbers and one-hot encodes categories.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> trained = learn(release, LogisticRegression(), target="income")  # doctest: +SKIP
    >>> trained.predict(new_rows)  # doctest: +SKIP
    """
    need("sklearn", extra="learn")
    release.schema.require_table("learning from a release")
    target, names = chosen_columns(release.schema, target, features)
    check_estimator(estimator, release.schema, target)
    if how not in get_args(How):
        msg = f"unknown way {how!r} to train: choose one of {', '.join(get_args(How))}"
        raise DataError(msg)
    check_told(release, target)
    found = training_rows(release, how=how, rows=rows, model=model, seed=seed, progress=progress)
    return train(found, estimator, release.schema, target, names, seed=seed)


def train(
    rows: TrainingRows,
    estimator: Any,
    schema: Schema,
    target: str,
    names: Sequence[str],
    *,
    seed: int = 0,
) -> Pipeline:
    """Train an estimator on rows that are there already, see `training_rows`."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    from aquatint.analyst.learn.columns import check_size, preparation

    check_size(schema, names, len(rows.table))
    rows = rows.kept(rows.table[target].notna().to_numpy())
    model = clone(estimator)
    prepared = preparation(schema, names)
    # Medians and scales should be those of the weighted rows; the steps take no weights.
    alike = rows.drawn(seed)
    prepared.fit(alike[list(names)])
    if has_fit_parameter(model, "sample_weight"):
        wanted = _wanted(rows.table[target], estimator, schema, target)
        model.fit(prepared.transform(rows.table[list(names)]), wanted, sample_weight=rows.weights)
    else:
        wanted = _wanted(alike[target], estimator, schema, target)
        model.fit(prepared.transform(alike[list(names)]), wanted)
    return Pipeline([*prepared.steps, ("model", model)])


def chosen_columns(
    schema: Schema, target: str | None, features: Sequence[str] | None
) -> tuple[str, list[str]]:
    """Settle the column to predict and those to predict it from."""
    target = schema.label if target is None else target
    if target is None:
        msg = "the schema has no label: say which column to predict with target="
        raise DataError(msg)
    column_of(schema, target)
    if isinstance(features, str):
        msg = f"give features as a list of columns, like [{features!r}]"
        raise DataError(msg)
    names = [n for n in schema.columns if n != target] if features is None else list(features)
    for name in names:
        column_of(schema, name)
    if target in names or len(set(names)) < len(names):
        msg = f"features should name each column once, and not the target {target!r}"
        raise DataError(msg)
    if not names:
        msg = f"there is no column to predict {target!r} from: name one or more in features="
        raise DataError(msg)
    return target, names


def check_estimator(estimator: Any, schema: Schema, target: str) -> None:
    """Refuse an estimator that the target is not fit for, before anything is fitted."""
    from sklearn.base import is_classifier, is_regressor

    if isinstance(estimator, type):
        msg = f"give an estimator, not its class: {estimator.__name__}()"
        raise DataError(msg)
    column = schema.columns[target]
    if is_classifier(estimator):
        counted = isinstance(column, Integer) and column.steps <= MOST_CLASSES
        if isinstance(column, RANGED) and not counted:
            msg = f"column {target!r} has no classes to tell apart: take a regressor"
            raise DataError(msg)
    elif is_regressor(estimator):
        if not isinstance(column, (Numeric, Integer, Boolean)) and not _whole(column):
            msg = f"column {target!r} has no numbers to predict: take a classifier"
            raise DataError(msg)
    else:
        kind = type(estimator).__name__
        msg = f"{kind} predicts no column: give a scikit-learn classifier or regressor"
        raise DataError(msg)


def _whole(column: Any) -> bool:
    return isinstance(getattr(column, "categories", [""])[0], int)


def _wanted(values: pd.Series, estimator: Any, schema: Schema, target: str) -> np.ndarray:
    """Give the target's values as plain numbers, text or booleans."""
    from sklearn.base import is_classifier

    column = schema.columns[target]
    kind: type = object
    if isinstance(column, Boolean):
        kind = bool if is_classifier(estimator) else float
    elif isinstance(column, Integer) or _whole(column):
        kind = np.int64
    elif isinstance(column, Numeric):
        kind = float
    return np.asarray(values.to_numpy(dtype=kind))
