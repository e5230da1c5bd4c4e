"""How well a trained model does on rows of the release's model that it was not trained on.

This is an estimate without a single real row: it tells models apart, and shows that one has learnt
anything at all. On real rows a model may do worse, because what the release does not know of the
data is missing from the rows that it is judged on too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class Score:
    """One measure: its name, the model's, and what guessing without any feature gives."""

    name: str
    value: float
    guess: float


def scores(trained: Pipeline, rows: pd.DataFrame, target: str, names: Sequence[str]) -> list[Score]:
    """Judge a trained model on synthetic rows that it has not seen."""
    from sklearn.base import is_classifier

    rows = rows[rows[target].notna()].reset_index(drop=True)
    told = trained.predict(rows[list(names)])
    if is_classifier(trained):
        return _of_classes(trained, rows, told, target, names)
    truth = rows[target].to_numpy(dtype=float)
    wrong, spread = truth - told, truth - truth.mean()
    explained = 1 - float(wrong @ wrong) / max(float(spread @ spread), 1e-300)
    middle = float(np.abs(truth - np.median(truth)).mean())
    return [
        Score("variance explained (R²)", explained, 0.0),
        Score("mean absolute error", float(np.abs(wrong).mean()), middle),
    ]


def _of_classes(
    trained: Pipeline, rows: pd.DataFrame, told: np.ndarray, target: str, names: Sequence[str]
) -> list[Score]:
    from sklearn.metrics import roc_auc_score

    truth = rows[target].to_numpy(dtype=told.dtype)
    kinds, counts = np.unique(truth, return_counts=True)
    found = [Score("accuracy", float((told == truth).mean()), float(counts.max() / len(truth)))]
    if len(trained.classes_) == 2 and len(kinds) == 2 and hasattr(trained, "predict_proba"):
        chance = trained.predict_proba(rows[list(names)])[:, 1]
        found.append(Score("ROC AUC", float(roc_auc_score(truth == kinds[1], chance)), 0.5))
    return found
