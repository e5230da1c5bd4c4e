"""How fast a sketch of images is, stage by stage, and a step of training; beside their limits.

The limit of the sums is the network's own pass over the images, at the precision and block size at
which no image's bits depend on others. The limit of a step of training is one pass of the generator
and one of the network, forward and backward.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import torch
from image_tasks import Place
from runs import DELTA, Found, Job, Log, Settings, run_all

import aquatint as aq
from aquatint.accounting import Noised
from aquatint.analyst.images.fit import fit_images
from aquatint.curator.finishing import finish
from aquatint.curator.noise import add_noise
from aquatint.curator.sketch import accumulate, on_device
from aquatint.curator.sums import PrivateSum
from aquatint.features.algebra import ByLabel
from aquatint.features.perceptual import Perceptual
from aquatint.features.steady import one_algorithm, steady_block
from aquatint.image_files import ImageBatch
from aquatint.networks import PublicNetwork, resnet18
from aquatint.schema import Schema

IMAGES = {"cuda": 20_000, "cpu": 128}
STEPS = {"cuda": (100, 400), "cpu": (2, 4)}
NOISED = 500_000
"""How many numbers are given real noise; a whole release has ten times as many."""
SHOW = ("block_size", "pass_images_s", "sums_images_s", "noise_s", "step_ms")


def speed(asked: argparse.Namespace, log: Log) -> int:
    """Measure every stage once."""
    place = Place(asked.device, asked.work, asked.quick)
    settings = {"part": "speed", "network": "resnet18", "device": place.device, "tiny": place.tiny}
    return run_all(log, [Job(settings, lambda: measure(settings, place))], SHOW, again=asked.again)


def measure(settings: Settings, place: Place) -> Found:
    """Time a sketch of made-up images, and training on it."""
    del settings
    count = 64 if place.tiny else IMAGES[place.device]
    schema, images = made_up(count)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = resnet18(width=2 if place.tiny else 64)
    public = PublicNetwork.of(module, input_size=32, architecture="resnet18")
    plan = on_device(aq.dp_mepf(schema, public), place.device)
    found = passes(plan, images, place)
    private, seconds = timed(lambda: accumulate(images, plan), place)
    found |= {"sums_images_s": round(count / seconds)}
    found |= noise(private)
    release = finish(private, aq.Budget(1.0, DELTA), simulate=0)
    few, many = (1, 2) if place.tiny else STEPS[place.device]
    sizes = {"widths": (8, 8), "batch": 20} if place.tiny else {}
    took = [
        timed(lambda n=n: fit_images(release, steps=n, device=place.device, **sizes), place)[1]
        for n in (few, many)
    ]
    return found | {"step_ms": round(1000 * (took[1] - took[0]) / (many - few), 2)}


def made_up(count: int) -> tuple[Schema, ImageBatch]:
    """Give images of noise, of the size of MNIST."""
    classes = [str(digit) for digit in range(10)]
    schema = Schema.from_dict(
        {
            "name": "noise",
            "label": "label",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "image": {"kind": "image", "size": [28, 28], "channels": 1},
                "label": {"kind": "categorical", "categories": classes},
            },
        }
    )
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 28, 28, 1), dtype=np.uint8)
    return schema, ImageBatch(pixels, rng.integers(0, 10, count).astype(str))


def passes(plan: aq.Plan, images: ImageBatch, place: Place) -> Found:
    """Find the block in which images go, and time the network alone in such blocks."""
    mapped = next(block.map for block in plan.blocks if block.name == "perceptual")
    seeing = mapped.inner if isinstance(mapped, ByLabel) else mapped
    assert isinstance(seeing, Perceptual)
    block, tried = timed(lambda: steady_block(seeing, seeing.together), place)
    pixels = torch.from_numpy(images.pixels.transpose(0, 3, 1, 2).copy())

    def alone() -> None:
        with torch.no_grad(), one_algorithm():
            for some in torch.split(pixels, block.size):
                seeing.raw_outputs(seeing.prepared(some), block.precision)

    alone()
    _, seconds = timed(alone, place)
    return {
        "block_size": block.size,
        "precision": block.precision,
        "block_s": round(tried, 2),
        "pass_images_s": round(len(images) / seconds),
    }


def noise(private: PrivateSum) -> Found:
    """Time real noise on some of the numbers, and say what all of them would take."""
    whole = max(private.totals, key=len).numpy()
    some = min(NOISED, len(whole))
    begun = perf_counter()
    add_noise(whole[:some].copy(), Noised(some, 2.0**24, 2**45, 2**30), "discrete gaussian")
    seconds = (perf_counter() - begun) * len(whole) / some
    return {"numbers": len(whole), "noise_s": round(seconds, 1)}


def timed(work: Callable[[], Any], place: Place) -> tuple[Any, float]:
    """Run something; give its result and its seconds."""
    begun = perf_counter()
    result = work()
    if place.device == "cuda":
        torch.cuda.synchronize()
    return result, perf_counter() - begun
