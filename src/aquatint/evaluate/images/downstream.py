"""What synthetic images are good for: train on them, tell the class of real test images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from aquatint.evaluate.classifiers import fit_quietly
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.images.data import Images
from aquatint.evaluate.images.recipes import NETWORKS, PAPERS
from aquatint.evaluate.images.torch_models import predict
from aquatint.extras import need
from aquatint.progress import track


@dataclass(frozen=True)
class Accuracy:
    """How one classifier did on the test images.

    Attributes
    ----------
    classifier
        Its key.
    accuracy
        The share of test images whose class it told.
    seconds
        How long training and testing took.
    note
        Empty, or what was wrong with the fit.
    """

    classifier: str
    accuracy: float
    seconds: float
    note: str = ""


def papers_mean(scores: Sequence[Accuracy]) -> float | None:
    """Average the papers' twelve, as DP-MERF's table 3 does; None unless all are there."""
    found = [score.accuracy for score in scores if score.classifier in PAPERS]
    return fmean(found) if len(found) == len(PAPERS) else None


def accuracies(
    train: Images,
    test: Images,
    classes: Sequence[str],
    chosen: Sequence[str],
    *,
    device: str = "cpu",
    jobs: int = 1,
    seed: int = 0,
    epochs: int | None = None,
    progress: bool = False,
) -> tuple[Accuracy, ...]:
    """Train each classifier on some images and test it on others.

    Parameters
    ----------
    train, test
        Images to learn from, and real ones that nothing was learnt from.
    classes
        All classes, in order.
    chosen
        Keys of classifiers, as `choose` gives them.
    device
        Where torch trains; scikit-learn has the processor only.
    jobs
        How many of scikit-learn's classifiers to train side by side, each with one thread.
    seed
        Seeds every classifier that draws random numbers.
    epochs
        Passes of the networks, other than as usual.
    progress
        Whether to show progress on standard error.
    """
    codes, truth = train.codes(classes), test.codes(classes)
    known = codes >= 0
    if not known.any():
        msg = f"the {train.what} images have no class that real images have: check the labels"
        raise EvaluationError(msg)
    train, codes = (train, codes) if known.all() else (train.take(known), codes[known])
    slow = [name for name in chosen if name in PAPERS]
    with track(f"training on {train.what} images", len(chosen), show=progress) as advance:
        found = {
            score.classifier: score
            for score in _scikit(slow, train, codes, test, truth, seed, jobs)
        }
        advance(len(slow))
        for name in (name for name in chosen if name in NETWORKS):
            start = perf_counter()
            labels, note = predict(
                name,
                train.pixels,
                codes,
                test.pixels,
                classes=len(classes),
                device=device,
                seed=seed,
                epochs=epochs,
            )
            right = float((labels == truth).mean())
            found[name] = Accuracy(name, right, perf_counter() - start, note)
            advance(1)
    return tuple(found[name] for name in chosen)


def _scikit(
    names: Sequence[str],
    train: Images,
    codes: np.ndarray,
    test: Images,
    truth: np.ndarray,
    seed: int,
    jobs: int,
) -> list[Accuracy]:
    if not names:
        return []
    given = (train.matrix(), codes, test.matrix(), truth, seed)
    if jobs == 1 or len(names) == 1:
        return [_fitted(name, *given) for name in names]
    joblib = need("joblib")
    found: list[Accuracy] = joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_fitted)(name, *given) for name in names
    )
    return found


def _fitted(
    name: str, rows: np.ndarray, codes: np.ndarray, asked: np.ndarray, truth: np.ndarray, seed: int
) -> Accuracy:
    """Fit one of scikit-learn's or XGBoost's; without a second class there is nothing to fit."""
    start = perf_counter()
    classes, numbers = np.unique(codes, return_inverse=True)
    commonest = classes[np.bincount(numbers).argmax()]
    labels, note = np.full(len(asked), commonest), ""
    if len(classes) > 1:
        model: Any = PAPERS[name].build(seed)
        with need("threadpoolctl").threadpool_limits(1), np.errstate(all="ignore"):
            try:
                note = fit_quietly(model, rows, numbers)
                labels = classes[np.asarray(model.predict(asked)).astype(int)]
            except ValueError:  # AdaBoost refuses if no pixel tells, LDA if a class has one image
                note = "could not be fitted"
    return Accuracy(name, float((labels == truth).mean()), perf_counter() - start, note)
