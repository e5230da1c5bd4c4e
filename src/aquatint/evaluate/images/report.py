"""One call that compares synthetic images with real ones, and an object that holds the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.images.data import Images, classes_of, take_in
from aquatint.evaluate.images.diversity import Diversity, diversity, pixels_as_features
from aquatint.evaluate.images.downstream import Accuracy, accuracies, papers_mean
from aquatint.evaluate.images.fid import IMAGES, Features, Frechet, fid
from aquatint.evaluate.images.inception import Inception
from aquatint.evaluate.images.recipes import choose
from aquatint.evaluate.report import NOT_PRIVATE


@dataclass(frozen=True, eq=False)
class ImageEvaluation:
    """What was found about synthetic images: exact scores, which are not private.

    Attributes
    ----------
    images
        The number of images on each side: real, synthetic, and test where it was given.
    shape
        Height, width and channels.
    classes
        The classes of the real images; empty without labels.
    fid
        The Fréchet distance; None without a feature network.
    diversity
        How varied the synthetic images are.
    accuracies
        What classifiers trained on the synthetic images make of the test images.
    baseline
        The same for classifiers trained on the real images; empty unless asked for.
    device
        Where torch worked.
    seed
        The seed of everything random.
    """

    images: Mapping[str, int]
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    fid: Frechet | None
    diversity: Diversity
    accuracies: tuple[Accuracy, ...]
    baseline: tuple[Accuracy, ...]
    device: str
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return {
            "private": False,
            "note": NOT_PRIVATE,
            "images": dict(self.images),
            "shape": list(self.shape),
            "classes": list(self.classes),
            "device": self.device,
            "seed": self.seed,
            "fid": None if self.fid is None else asdict(self.fid),
            "diversity": self.diversity.to_dict(),
            "accuracy": _plain(self.accuracies),
            "baseline": _plain(self.baseline),
        }


def _plain(scores: Sequence[Accuracy]) -> dict[str, Any] | None:
    if not scores:
        return None
    return {
        "classifiers": {
            s.classifier: {"accuracy": s.accuracy, "seconds": round(s.seconds, 2), "note": s.note}
            for s in scores
        },
        "papers_mean": papers_mean(scores),
    }


def evaluate_images(
    real: Any,
    synthetic: Any,
    *,
    test: Any = None,
    classifiers: str | Sequence[str] = ("logreg", "mlp", "cnn"),
    baseline: bool = False,
    inception: str | Path | None = None,
    features: Features | None = None,
    fid_images: int = IMAGES,
    device: str = "cpu",
    jobs: int = 1,
    seed: int = 0,
    epochs: int | None = None,
    progress: bool = True,
) -> ImageEvaluation:
    """Compare synthetic images with real ones. The scores are exact, so they are not private.

    Parameters
    ----------
    real
        The images the synthetic ones were made from: a path that `read_images` reads, an
        `ImageBatch`, an array, or a pair of pixels and labels.
    synthetic
        The images to judge.
    test
        Real images that nothing was made from; None leaves out the classifiers.
    classifiers
        Names, in a list or with commas between: ``logreg``, ``mlp`` (scikit-learn), ``cnn``,
        ``resnet9``, ``logreg_torch``, ``mlp_torch`` (torch), ``papers`` for DP-MERF's twelve.
    baseline
        Whether to train on the real images as well: what perfect images could reach.
    inception
        The file with the Inception weights of FID; without it there is no FID.
    features
        Another feature network in its place: uint8 (n, channels, height, width) to (n, dimension).
    fid_images
        How many images of each side FID compares.
    device
        Where torch works: ``cpu`` or ``cuda``.
    jobs
        How many of scikit-learn's classifiers to train side by side.
    seed
        Seeds everything random.
    epochs
        Passes of the networks, other than as usual; for a quick look.
    progress
        Whether to show progress on standard error.
    """
    chosen = choose(classifiers)
    _check_device(device)
    network, name = features, "features given"
    if inception is not None:
        network, name = Inception.load(inception, device=device), "Inception"
    ours = take_in(real, "real")
    theirs = take_in(synthetic, "synthetic", ours)
    held = None if test is None else take_in(test, "test", ours)
    distance = None
    if network is not None:
        enough = held is not None and len(held) >= fid_images
        distance = fid(
            ours,
            theirs,
            network,
            test=held if enough else None,
            images=fid_images,
            name=name,
            seed=seed,
            progress=progress,
        )
    varied = diversity(
        ours,
        theirs,
        network or pixels_as_features,
        name=name if network is not None else "pixels",
        images=min(fid_images, IMAGES),
        seed=seed,
        progress=progress,
    )
    classes = classes_of(ours)
    given = {"device": device, "jobs": jobs, "seed": seed, "epochs": epochs, "progress": progress}
    found, reference = _utility(ours, theirs, held, classes, chosen, baseline, given)
    sides = {"real": ours, "test": held, "synthetic": theirs}
    height, width, channels = ours.pixels.shape[1:]
    return ImageEvaluation(
        images={name: len(side) for name, side in sides.items() if side is not None},
        shape=(height, width, channels),
        classes=classes,
        fid=distance,
        diversity=varied,
        accuracies=found,
        baseline=reference,
        device=device,
        seed=seed,
    )


def _utility(
    real: Images,
    synthetic: Images,
    test: Images | None,
    classes: tuple[str, ...],
    chosen: Sequence[str],
    baseline: bool,
    given: dict[str, Any],
) -> tuple[tuple[Accuracy, ...], tuple[Accuracy, ...]]:
    """Train and test where there are test images, and labels on all sides."""
    if test is None or not chosen or all(side.labels is None for side in (real, synthetic, test)):
        return (), ()
    for side in (real, synthetic, test):
        side.codes(classes)  # images without labels are refused before anything takes time
    found = accuracies(synthetic, test, classes, chosen, **given)
    return found, accuracies(real, test, classes, chosen, **given) if baseline else ()


def _check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError:
        msg = f"no device is named {device!r}: say cpu or cuda"
        raise EvaluationError(msg) from None
    if kind == "cuda" and not torch.cuda.is_available():
        msg = "torch finds no GPU here: say --device cpu, or install a torch with CUDA"
        raise EvaluationError(msg)
