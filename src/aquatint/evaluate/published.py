"""Scores as the papers' code computes them, faults included, to lay figures side by side.

Use these next to the papers' tables and for nothing else. What is wrong with each is said where it
is defined; the right versions are in `fidelity`, `utility` and `likelihood`.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from aquatint.evaluate.classifiers import Prediction
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.fidelity import subsets, total_variation
from aquatint.evaluate.tables import Encoded, Grid
from aquatint.evaluate.utility import Score, Task
from aquatint.extras import need
from aquatint.progress import track

UNDERSAMPLING: Mapping[str, float] = {
    "adult": 0.4,
    "census": 0.4,
    "cervical": 1.0,
    "credit": 0.005,
    "epileptic": 1.0,
    "isolet": 1.0,
    "covtype": 0.03,
    "intrusion": 0.1,
}
"""The share of the commonest class that is kept, from DP-MERF's Table 4."""
UNDERSAMPLING_OF_DP_HP: Mapping[str, float] = {
    **UNDERSAMPLING,
    "census": 0.2,
    "cervical": 0.3,
    "credit": 0.002,
}
"""The same as DP-HP's code is read to have it: fewer on three tables. Its paper prints no rates."""
ALPHAS = (2, 3, 4)
"""The α of DP-HP's Table 1."""


def undersampled(labels: np.ndarray, commonest: int, keep: float, seed: int) -> np.ndarray:
    """Give the rows that are left when the commonest class is thinned.

    The papers do this to all rows before they split off the test rows. So their test set is not
    what a model would meet: on Adult 42 % of it is positive, instead of 24 %. That alone lifts the
    area under the precision-recall curve, whose chance level is the share of positives. And their
    classifiers learn from thinned rows, so they say "positive" more often: with hard labels that
    lifts the ROC too. A generator's rows are thinned after they are drawn, which costs no privacy;
    the papers thin private rows, and do not count it.
    """
    if not 0 < keep <= 1:
        msg = f"the share to keep must be above 0 and at most 1, got {keep}"
        raise EvaluationError(msg)
    many = np.flatnonzero(labels == commonest)
    chosen = np.random.default_rng(seed).permutation(many)[: int(len(many) * keep)]
    return np.sort(np.concatenate([np.flatnonzero(labels != commonest), chosen]))


def hard_label_score(
    found: Prediction, truth: np.ndarray, task: Task, *, keep: float = 1.0, seed: int = 0
) -> Score:
    """Score hard labels on an undersampled test set, as DP-MERF and DP-HP do.

    What is wrong: a ROC curve needs scores, and the papers hand it the output of ``predict``. The
    curve then has one corner, and its area is the balanced accuracy at whatever threshold the
    classifier has; a model that ranks well but seldom predicts the rare class gets one half. The
    precision-recall curve suffers likewise. The test set is thinned too (`undersampled`).
    With more than two classes they use the weighted F1 score, which needs hard labels and is
    right, but for the thinning.

    What is not copied: they train on unscaled numbers and integer codes of categories. Here the
    classifiers are the very ones of the right scores. DP-HP also keeps, per classifier, the best of
    2 to 14 settings on the test set; here there is one setting.
    """
    metrics = need("sklearn.metrics")
    rows = undersampled(truth, task.commonest, keep, seed)
    actual, said = truth[rows], found.labels[rows]
    if task.positive is None:
        f1 = metrics.f1_score(actual, said, average="weighted", zero_division=0.0)
        return Score(found.classifier, {"f1": float(f1)}, found.note)
    actual, said = actual == task.positive, said == task.positive
    values = {
        "roc": float(metrics.roc_auc_score(actual, said)),
        "prc": float(metrics.average_precision_score(actual, said)),
    }
    return Score(found.classifier, values, found.note)


def alpha_way_error(
    real: Encoded,
    synthetic: Encoded,
    grid: Grid,
    alpha: int,
    *,
    limit: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> float:
    """Give DP-HP's "α-way marginal" error, as ``marginals_eval.py`` computes it.

    Three things are wrong. (1) The loop that makes the column subsets runs once too often, so "α"
    compares marginals of α + 1 columns. (2) A column of levels low … high gets high − low bins, one
    too few: its top two levels share a bin, and a binary column has a single bin and no error.
    (3) Each table's bins span that table's own smallest to largest level, so the bins of the two
    tables disagree where one of them lacks an extreme level.

    Here the levels are the grid's cells. A column with one level has no bins in the original, which
    then stops; here it has one.

    Parameters
    ----------
    real, synthetic
        The tables.
    grid
        The cells of both.
    alpha
        The published α.
    limit
        The most subsets to look at, chosen at random; the original takes them all.
    seed
        Chooses the subsets.
    progress
        Whether to show progress on standard error.
    """
    names = tuple(grid.schema.columns)
    wanted = subsets(names, alpha + 1, limit, seed)
    if not wanted:
        msg = f"published alpha = {alpha} needs {alpha + 1} columns, and there are {len(names)}"
        raise EvaluationError(msg)
    codes, bins = {}, {}
    for name in names:
        ours, theirs = real.codes[name], synthetic.codes[name]
        low, high = int(ours.min()), int(ours.max())
        bins[name] = max(1, high - low)
        parts = (_own_bins(c, bins[name]) for c in (ours, np.clip(theirs, low, high)))
        codes[name] = np.concatenate(list(parts))
    with track(f"published alpha = {alpha}", len(wanted), show=progress) as advance:
        errors = []
        for subset in wanted:
            errors.append(total_variation(codes, bins, subset, real.rows))
            advance(1)
    return fmean(errors)


def _own_bins(levels: np.ndarray, count: int) -> np.ndarray:
    """Cut a column as NumPy's histogram does: over its own range, the last bin closed."""
    low, high = float(levels.min()), float(levels.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, count + 1)
    return np.minimum(np.searchsorted(edges, levels, side="right") - 1, count - 1)
