"""What synthetic rows are good for: train on them, test on real rows that nothing was tuned on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from aquatint.columns import RANGED
from aquatint.errors import DataError
from aquatint.evaluate.classifiers import Prediction
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.tables import Encoded, Grid
from aquatint.extras import need

_CURVE = 200
"""The most points of a ROC curve that are kept for plots."""


@dataclass(frozen=True)
class Task:
    """What is predicted.

    Attributes
    ----------
    target
        The column.
    classes
        The cells of the column that occur in real rows; missing is not a class.
    positive
        With two classes, the cell that counts as positive; otherwise None.
    commonest
        The cell that most real training rows are in.
    """

    target: str
    classes: tuple[int, ...]
    positive: int | None
    commonest: int

    @classmethod
    def of(
        cls, real: Encoded, test: Encoded, grid: Grid, target: str, positive: str | None = None
    ) -> Task:
        """Settle the classes, and which is positive: the rarer one unless it is named."""
        _check_target(grid, target)
        cells = grid.cells[target]
        # The last cell is for missing values.
        found = np.bincount(real.codes[target], minlength=cells)[:-1]
        tested = np.bincount(test.codes[target], minlength=cells)[:-1]
        if (tested > 0).sum() < 2:
            msg = f"the test rows have one class of {target!r}: give test rows that have more"
            raise DataError(msg)
        classes = tuple(int(c) for c in np.flatnonzero(found + tested))
        wanted = None if positive is None else _named(grid, target, classes, positive)
        if len(classes) == 2 and wanted is None:
            wanted = min(reversed(classes), key=lambda c: found[c])
        return cls(target, classes, wanted, int(found.argmax()))

    def rows(self, table: Encoded, what: str) -> Encoded:
        """Keep the rows whose label is one of the classes."""
        kept = np.isin(table.codes[self.target], self.classes)
        if not kept.any():
            msg = f"the {what} rows have no label that real rows have: check column {self.target!r}"
            raise DataError(msg)
        return table if kept.all() else table.take(kept)


@dataclass(frozen=True, eq=False)
class Score:
    """How one classifier did on the test rows.

    Attributes
    ----------
    classifier
        Its key.
    metrics
        With two classes ``roc_auc`` and ``average_precision``, both from probabilities or decision
        scores; with more ``f1_weighted``, the papers' average, and ``f1_macro``.
    note
        Empty, or what was wrong with the fit.
    roc
        With two classes, the curve: false positive rates and true positive rates.
    """

    classifier: str
    metrics: dict[str, float]
    note: str = ""
    roc: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Utility:
    """How classifiers did that were trained on one table and tested on untouched real rows.

    Attributes
    ----------
    target
        The column they predict.
    positive
        With two classes, the name of the positive one.
    scores
        One for each classifier.
    published
        The same classifiers, scored as the papers' code does; empty unless asked for.
    """

    target: str
    positive: str | None
    scores: tuple[Score, ...]
    published: tuple[Score, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return {
            "target": self.target,
            "positive": self.positive,
            "classifiers": {s.classifier: {**s.metrics, "note": s.note} for s in self.scores},
            "mean": mean_metrics(self.scores),
            "as_published": {
                "classifiers": {s.classifier: s.metrics for s in self.published},
                "mean": mean_metrics(self.published),
            }
            if self.published
            else None,
        }


def score(found: Prediction, truth: np.ndarray, task: Task) -> Score:
    """Score one classifier's predictions of the test rows."""
    metrics = need("sklearn.metrics")
    if task.positive is None or found.scores is None:
        kinds = {"f1_weighted": "weighted", "f1_macro": "macro"}
        values = {name: _f1(truth, found.labels, task, average) for name, average in kinds.items()}
        return Score(found.classifier, values, found.note)
    positive = truth == task.positive
    values = {
        "roc_auc": float(metrics.roc_auc_score(positive, found.scores)),
        "average_precision": float(metrics.average_precision_score(positive, found.scores)),
    }
    false, true, _ = metrics.roc_curve(positive, found.scores)
    kept = np.unique(np.linspace(0, len(false) - 1, min(_CURVE, len(false))).astype(int))
    return Score(found.classifier, values, found.note, (false[kept], true[kept]))


def mean_metrics(scores: Iterable[Score]) -> dict[str, float]:
    """Average each metric over the classifiers, as the papers' tables do."""
    rows = [s.metrics for s in scores]
    return {name: fmean(row[name] for row in rows) for name in rows[0]} if rows else {}


def _f1(truth: np.ndarray, labels: np.ndarray, task: Task, average: str) -> float:
    metrics = need("sklearn.metrics")
    # A class that no test row has tells nothing: it is left out of the macro average.
    present = [c for c in task.classes if (truth == c).any()]
    given = {"labels": present, "average": average, "zero_division": 0.0}
    return float(metrics.f1_score(truth, labels, **given))


def _check_target(grid: Grid, target: str) -> None:
    column = grid.schema.columns.get(target)
    if column is None:
        msg = f"the target {target!r} is not among the schema's columns: {_some(grid)}"
        raise EvaluationError(msg)
    if isinstance(column, RANGED):
        msg = f"the target {target!r} is a range: classifiers need a column with categories"
        raise EvaluationError(msg)
    if len(grid.schema.columns) == 1:
        msg = f"the target {target!r} is the only column: there is nothing to predict it from"
        raise EvaluationError(msg)


def _named(grid: Grid, target: str, classes: tuple[int, ...], positive: str) -> int:
    names = {grid.names(target)[c]: c for c in classes}
    if len(classes) > 2:
        msg = f"{target!r} has {len(classes)} classes: a positive class goes with two"
        raise EvaluationError(msg)
    if str(positive) not in names:
        msg = f"the positive class {positive!r} is not among {', '.join(map(repr, names))}"
        raise EvaluationError(msg)
    return names[str(positive)]


def _some(grid: Grid) -> str:
    names = list(grid.listed)
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
