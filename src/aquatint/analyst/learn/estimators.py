"""A release as a scikit-learn estimator: fitted without rows, it predicts like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from aquatint.analyst.learn.front import learn
from aquatint.errors import DataError
from aquatint.extras import need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aquatint.analyst.learn.rows import How
    from aquatint.analyst.synthesize.mixture import Mixture
    from aquatint.release.model import Release

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # the names can be imported all the same; making one says what to install

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands for scikit-learn's where that is not installed."""

        def __new__(cls, *_: Any, **__: Any) -> Self:
            """Say what to install."""
            need("sklearn", extra="learn")
            return super().__new__(cls)

    class ClassifierMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's."""

    def available_if(_check: Any) -> Any:
        """Stand for scikit-learn's."""
        return lambda method: method


class _FromRelease(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share."""

    def __init__(
        self,
        release: Release | None = None,
        estimator: Any = None,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        rows: int | None = None,
        how: How = "auto",
        model: Mixture | None = None,
        seed: int = 0,
    ) -> None:
        self.release = release
        self.estimator = estimator
        self.target = target
        self.features = features
        self.rows = rows
        self.how = how
        self.model = model
        self.seed = seed

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: N803
        """Train from the release.

        Parameters
        ----------
        X, y
            There for scikit-learn's interface. Leave them out: rows are refused, since a model
            fitted to them would no longer be covered by the release's promise.
        """
        if X is not None or y is not None:
            msg = (
                f"{type(self).__name__} is trained from its release alone, and fitting it to rows "
                "would leave them unprotected: call fit() without any"
            )
            raise DataError(msg)
        if self.release is None:
            msg = f"there is no release to train from: {type(self).__name__}(aq.load('….aqt'))"
            raise DataError(msg)
        self.pipeline_ = learn(
            self.release,
            self._usual() if self.estimator is None else self.estimator,
            target=self.target,
            features=self.features,
            rows=self.rows,
            how=self.how,
            model=self.model,
            seed=self.seed,
            progress=False,
        )
        self.feature_names_in_ = np.array(list(self.pipeline_[0].columns), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows are tables of any types, and that fitting takes none."""
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.target_tags.required = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _usual(self) -> Any:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Predict the target of rows in the schema's own types."""
        check_is_fitted(self)
        return np.asarray(self.pipeline_.predict(X))


def _has(method: str) -> Any:
    """Whether the estimator has a method, once fitted or, before that, by its class."""

    def check(self: Any) -> bool:
        inner = self.pipeline_[-1] if hasattr(self, "pipeline_") else self.estimator
        getattr(self._usual() if inner is None else inner, method)
        return True

    return check


class AquatintClassifier(ClassifierMixin, _FromRelease):  # type: ignore[misc]
    """A classifier that is trained from a release, with scikit-learn's interface.

    ``fit()`` takes no rows. What it predicts, and how, is said at `learn`.

    Parameters
    ----------
    release
        What the curator published.
    estimator
        The classifier to train; by default a logistic regression.
    target, features, rows, how, model, seed
        As for `learn`.

    Attributes
    ----------
    pipeline_
        The trained pipeline.
    classes_
        The classes, in the order of ``predict_proba``.
    feature_names_in_, n_features_in_
        The columns it predicts from.

    Examples
    --------
    >>> AquatintClassifier(release).fit().predict(new_rows)  # doctest: +SKIP
    """

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: N803
        """Train from the release; rows are refused."""
        super().fit(X, y)
        self.classes_ = self.pipeline_.classes_
        return self

    def _usual(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1_000)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Give the probability of every class, shape (rows, classes)."""
        check_is_fitted(self)
        return np.asarray(self.pipeline_.predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:  # noqa: N803
        """Give the estimator's scores."""
        check_is_fitted(self)
        return np.asarray(self.pipeline_.decision_function(X))


class AquatintRegressor(RegressorMixin, _FromRelease):  # type: ignore[misc]
    """A regressor that is trained from a release, with scikit-learn's interface.

    Parameters
    ----------
    release
        What the curator published.
    estimator
        The regressor to train; by default a ridge regression.
    target, features, rows, how, model, seed
        As for `learn`.

    Attributes
    ----------
    pipeline_
        The trained pipeline.
    feature_names_in_, n_features_in_
        The columns it predicts from.
    """

    def _usual(self) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge()
