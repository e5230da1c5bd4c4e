"""One run of the benchmark of images: noise, fit, draw, score, and a contact sheet.

The sums of a set of images by a plan are made once, for every ε and seed (`accumulate`, `finish`),
as `aq.sketch` makes them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from image_data import ImageSet, inception
from image_tasks import METHODS, PARTS, TINY, Part, Place, images_of, schema_of, summed
from runs import DELTA, Found, Job, Log, Settings, run_all
from torch import Tensor

import aquatint as aq
from aquatint.accounting import gaussian_epsilon, gaussian_mu, left
from aquatint.analyst.images.centring import centred_view
from aquatint.analyst.images.front import synthesize_images
from aquatint.analyst.images.model import ImageNetwork
from aquatint.curator.finishing import finish
from aquatint.curator.sums import PrivateSum
from aquatint.evaluate.images.data import Images
from aquatint.evaluate.images.downstream import accuracies, papers_mean
from aquatint.evaluate.images.fid import IMAGES, Features, fid, frechet, moments
from aquatint.evaluate.images.inception import Inception
from aquatint.evaluate.images.recipes import choose
from aquatint.image_files import ImageBatch, contact_sheet

SHOW = ("mean", "logistic", "logreg_torch", "mlp_torch", "cnn", "resnet9", "fid", "fit_s")
TINY_CLASSIFIERS = {"papers": ("logreg", "lda")}
TINY_EPOCHS = 1
FIRST = 0.03
"""What the release that centres a view takes of the squared μ of the whole."""
FIRST_TINY = 0.5
"""The same for a few hundred images, which noise would hide."""
APART = 1_000
"""How far the seeds of first and second releases are apart."""
SHEET = 10
"""Images of each class on a contact sheet."""


def part(asked: argparse.Namespace, log: Log) -> int:
    """Run one part of the benchmark."""
    place = Place(asked.device, asked.work, asked.quick)
    chosen = PARTS[asked.part]
    if chosen.gpu and place.device == "cpu" and not place.tiny:
        print(f"{asked.part} is made for a GPU: give --device cuda, or look at it with --quick")
        return 0
    return run_all(log, list(jobs(asked, chosen, place)), SHOW, again=asked.again)


def jobs(asked: argparse.Namespace, chosen: Part, place: Place) -> Iterator[Job]:
    """Give the runs: those of the first seed come first."""
    names = [name for name in chosen.images if name in (asked.images or chosen.images)]
    epsilons = [e for e in chosen.epsilons if e in (asked.epsilon or chosen.epsilons)]
    methods = [name for name in chosen.methods if name in (asked.methods or chosen.methods)]
    for seed, name, method, epsilon in product(range(asked.runs), names, methods, epsilons):
        settings = {
            "part": asked.part,
            "images": name,
            "method": method,
            "public": METHODS[method].public,
            "epsilon": epsilon,
            "delta": DELTA,
            "seed": seed,
            "fit": METHODS[method].fit,
            "drawn": asked.drawn,
            "classifiers": list(asked.classifiers or chosen.classifiers),
        }
        yield Job(settings, lambda s=settings: run(s, chosen, place, asked))


@lru_cache(maxsize=1)
def sums(name: str, method: str, place: Place) -> tuple[PrivateSum, float]:
    """Sum a set of images by the plan of a method; give how long it took as well."""
    images = images_of(name, place.tiny)
    made, schema = METHODS[method], schema_of(images)
    views = () if made.view is None else (made.view(schema, place),)
    begun = perf_counter()
    return summed(images, made.plan(schema, place, *views), place), perf_counter() - begun


@lru_cache(maxsize=1)
def first_sums(name: str, method: str, place: Place) -> PrivateSum:
    """Sum what the first release tells of the view of a method: moments of all images together."""
    images, made = images_of(name, place.tiny), METHODS[method]
    schema = schema_of(images)
    if made.view is None:
        msg = f"{method} has no view to centre"
        raise ValueError(msg)
    plan = aq.pixel_gaussian(schema, made.view(schema, place), labelled=False)
    return summed(images, plan, place)


def released(
    name: str, method: str, place: Place, budget: aq.Budget, seed: int
) -> tuple[aq.Release, float]:
    """Give a release, and how long its sums took; where a view is centred, after a first release.

    The first takes `FIRST` of the budget, and the second whatever that left. Sums of the blocks
    that do not depend on the view are not made again.
    """
    private, seconds = sums(name, method, place)
    if METHODS[method].view is None:
        return finish(private, budget, simulate=seed), seconds
    begun, images = perf_counter(), images_of(name, place.tiny)
    share = FIRST_TINY if place.tiny else FIRST
    mu = gaussian_mu(budget.epsilon, budget.delta) * share**0.5
    small = aq.Budget(gaussian_epsilon(budget.delta, mu), budget.delta)
    first = finish(first_sums(name, method, place), small, simulate=seed + APART)
    schema, view = schema_of(images), centred_view(first)
    plan = METHODS[method].plan(schema, place, view)
    moments = summed(images, aq.pixel_gaussian(schema, view), place).totals[0]
    totals = tuple(
        moments if block.name == "gaussian" else total
        for block, total in zip(plan.blocks, private.totals, strict=True)
    )
    rest = aq.Budget(left(first.loss, budget), budget.delta)
    second = finish(replace(private, plan=plan, totals=totals), rest, simulate=seed)
    return second, seconds + perf_counter() - begun


def run(settings: Settings, chosen: Part, place: Place, asked: argparse.Namespace) -> Found:
    """Make one run."""
    name, method, seed = settings["images"], settings["method"], settings["seed"]
    budget = aq.Budget(settings["epsilon"], DELTA)
    release, sketch_s = released(name, method, place, budget, seed)
    given: dict[str, Any] = dict(METHODS[method].fit)
    if (begin := METHODS[method].begin) is not None:
        given["begin"] = begin(place)
    looks = Looks(images_of(name, place.tiny), place)
    if chosen.fid and METHODS[method].watched:
        given["watch"] = looks
    begun = perf_counter()
    if not method.startswith("gaussian"):
        given |= {"device": place.device} | (TINY if place.tiny else {})
    model = synthesize_images(release, seed=seed, progress=False, **given)
    fit_s, begun = perf_counter() - begun - looks.seconds, perf_counter()
    drawn = model.sample(settings["drawn"], seed=seed, device=place.device)
    draw_s = perf_counter() - begun
    if seed == 0:
        sheet = asked.pictures / f"images-{name}-{method}-{settings['epsilon']:g}.png"
        sheet.parent.mkdir(parents=True, exist_ok=True)
        contact_sheet(drawn.pixels, drawn.labels, sheet, columns=SHEET, scale=1)
    found = scores(images_of(name, place.tiny), drawn, settings, chosen, place)
    found |= {"fid_by_step": looks.found} if looks.found else {}
    found["generator"] = getattr(model, "settings", None)
    times = {"sketch_s": sketch_s, "fit_s": fit_s, "draw_s": draw_s}
    return found | {name: round(value, 2) for name, value in times.items()}


def scores(
    images: ImageSet, drawn: ImageBatch, settings: Settings, chosen: Part, place: Place
) -> Found:
    """Train classifiers on drawn images and test them on real ones; measure FID if asked to."""
    names = np.array(images.classes)
    test = Images("test", images.x_test, names[images.y_test])
    synthetic = Images("synthetic", drawn.pixels, drawn.labels)
    asked = settings["classifiers"]
    if place.tiny:
        asked = [c for name in asked for c in TINY_CLASSIFIERS.get(name, (name,))]
    told = accuracies(
        synthetic,
        test,
        images.classes,
        choose(asked),
        device=place.device,
        seed=settings["seed"],
        epochs=TINY_EPOCHS if place.tiny else None,
    )
    found: Found = {score.classifier: round(score.accuracy, 4) for score in told}
    if (mean := papers_mean(told)) is not None:
        found["mean"] = round(mean, 4)
    if chosen.fid:
        real = Images("real", images.x_train, names[images.y_train])
        count = min(IMAGES, len(images.x_test), len(drawn.pixels))
        seen = fid(real, synthetic, _features(place), test=test, images=count)
        found |= {"fid": seen.value, "fid_sanity": seen.sanity, "fid_images": seen.images}
    notes = sorted({f"{score.classifier} {score.note}" for score in told if score.note})
    return found | ({"notes": notes} if notes else {})


@dataclass
class Looks:
    """FID while a generator is trained, from before the first step on; and how long that took."""

    images: ImageSet
    place: Place
    found: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    kept: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __call__(self, step: int, model: ImageNetwork) -> None:
        """Look at a model."""
        begun = perf_counter()
        count = min(IMAGES, len(self.images.x_test))
        drawn = model.sample(count, seed=0, device=self.place.device)
        synthetic = moments(Images("drawn", drawn.pixels, drawn.labels), _features(self.place))
        self.found[step] = frechet(self.real(count), synthetic)
        self.seconds += perf_counter() - begun

    def real(self, count: int) -> tuple[Tensor, Tensor]:
        """Give the moments of real images, as many as are drawn: once for all looks."""
        if not self.kept:
            some = Images("real", self.images.x_train, None).some(count, 0)
            self.kept.append(moments(some, _features(self.place)))
        return self.kept[0]


@lru_cache(maxsize=1)
def _features(place: Place) -> Features:
    if place.tiny:
        return lambda pixels: pixels.flatten(1)[:, ::16].float()
    return Inception.load(inception(), device=place.device)
