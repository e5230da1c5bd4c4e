"""DP-HP's figures 3 and 6: how well classifiers do by the number of images they learn from.

    python benchmarks/book_sizes.py [--runs 1]

As few as 60 images are drawn, a thousandth of the training set, as in the paper. The paper averages
twelve classifiers; here the six quick ones. Every run is a line of
benchmarks/results/book-sizes.jsonl, known by its settings, and is made once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from time import process_time

import numpy as np
import torch
from image_published import HP_SIZES
from image_runs import sums
from image_tasks import GREYS, METHODS, Place, images_of
from runs import DELTA, Found, Job, Log, Settings, run_all, words

import aquatint as aq
from aquatint.analyst.images.front import synthesize_images
from aquatint.curator.finishing import finish
from aquatint.evaluate.images.data import Images
from aquatint.evaluate.images.downstream import accuracies

SIX = ("logistic", "gaussian_nb", "bernoulli_nb", "lda", "decision_tree", "random_forest")
EPSILON = 1.0


def jobs(asked: argparse.Namespace, place: Place) -> Iterator[Job]:
    """Give the runs: those of the first seed come first."""
    for seed in range(asked.runs):
        for name in GREYS:
            for method in ("dp_hp", "gaussian_alone"):
                settings = {"part": "sizes", "images": name, "method": method, "epsilon": EPSILON}
                settings |= {"delta": DELTA, "seed": seed, "public": METHODS[method].public}
                yield Job(settings, partial(_run, settings, place))


def _run(settings: Settings, place: Place) -> Found:
    """Draw once; let classifiers learn from the first 60 images, the first 300, and so on."""
    begun, seed = process_time(), settings["seed"]
    private, _ = sums(settings["images"], settings["method"], place)
    release = finish(private, aq.Budget(EPSILON, DELTA), simulate=seed)
    model = synthesize_images(release, seed=seed, progress=False)
    drawn = model.sample(max(HP_SIZES), seed=seed)
    order = np.random.default_rng(seed).permutation(max(HP_SIZES))
    images = images_of(settings["images"], place.tiny)
    test = Images("test", images.x_test, np.array(images.classes)[images.y_test])
    found: dict[str, dict[str, float]] = {}
    for size in HP_SIZES:
        few = order[:size]
        train = Images("synthetic", drawn.pixels[few], drawn.labels[few])
        told = accuracies(train, test, images.classes, SIX, seed=seed)
        found[str(size)] = {score.classifier: round(score.accuracy, 4) for score in told}
        found[str(size)]["mean"] = round(fmean(score.accuracy for score in told), 4)
    return {"sizes": found, "cpu_s": process_time() - begun}


def main() -> None:
    """Run what is missing."""
    asked = words(__doc__, runs=1).parse_args()
    torch.set_num_threads(1)
    place = Place("cpu", Path(tempfile.gettempdir()) / "aquatint-bench")
    log = Log(asked.results / "book-sizes.jsonl")
    raise SystemExit(bool(run_all(log, list(jobs(asked, place)), ("cpu_s",), again=asked.again)))


if __name__ == "__main__":
    main()
