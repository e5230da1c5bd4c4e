"""Training a generator of images on the noisy embedding of a release: Adam, on whole batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import cos, pi
from typing import Literal, get_args

import torch
from torch import Tensor

from aquatint.analyst.images.generators import Generator, recalibrate
from aquatint.analyst.images.matching import Match, weights_of
from aquatint.analyst.images.steps import stepper

Matching = Literal["batch", "moving"]
MATCHINGS: tuple[str, ...] = get_args(Matching)
MEMORY = 0.99
"""How much of a misfit is remembered from step to step."""
VALIDATIONS = 20
"""How often a fit with a validation block looks at it."""
VALIDATED = 8
"""How many batches of images it draws for that."""
BATCHES = 40
"""Over how many batches the statistics of normalisation are taken in the end, at most."""


@dataclass(frozen=True)
class Training:
    """How a generator is trained.

    Attributes
    ----------
    steps, batch, rate
        Steps of Adam, images in each (as many of every class), and the highest learning rate: it
        warms up over a twentieth of the steps and falls to zero along a cosine.
    average
        The weights that are kept are a moving average with this memory.
    matching
        ``"batch"`` compares the batch with the target, without bias. ``"moving"`` compares a moving
        average over batches, as DP-MEPF does (GFMN, dos Santos et al. 2019).
    floor
        Nothing pulls any more while the misfit is down to what noise alone explains.
    shrink
        Noise is taken off the means of convolutions first.
    aside
        The share of the information that validates, for the record: `train` is given the parts.
    patience
        Training ends once this share of all steps has passed without a better validation.
    seed
        Draws the start and the batches.
    """

    steps: int
    batch: int
    rate: float
    average: float
    matching: Matching
    floor: bool
    shrink: bool
    aside: float
    patience: float
    seed: int


@dataclass
class Progress:
    """Where a fit stands: everything that a checkpoint holds.

    Attributes
    ----------
    step
        How many steps are done.
    generator, averaged
        The network in training, and its moving average.
    adam
        The optimiser.
    best
        The weights that were best by validation, how far off they were, and at which step.
    misfits
        The remembered misfit of every line, in units of its noise floor, for reports.
    """

    step: int
    generator: Generator
    averaged: Generator
    adam: torch.optim.Adam
    best: tuple[float, dict[str, Tensor], int] | None = None
    misfits: Tensor | None = None


def start(generator: Generator, chosen: Training) -> Progress:
    """Begin at a generator."""
    weight = next(generator.parameters())
    cuda = weight.is_cuda
    # A recorded step reads the rate from the device; a number would be recorded with it.
    rate = torch.tensor(chosen.rate, device=weight.device) if cuda else chosen.rate
    adam = torch.optim.Adam(
        generator.parameters(), rate, betas=(0.9, 0.999), fused=cuda, capturable=cuda
    )
    return Progress(0, generator, deepcopy(generator), adam)


def train(
    progress: Progress,
    matches: Sequence[Match],
    validation: Sequence[Match],
    chosen: Training,
    report: Callable[[Progress], None] = lambda _: None,
) -> Generator:
    """Go on until all steps are done, and give the averaged generator, ready to draw from.

    The loss is the sum over all lines of all targets of the squared distance over the variance of
    the noise: the negative log-likelihood of the release, without bias (see `matching`).
    """
    generator = progress.generator
    device = next(generator.parameters()).device
    each = _each(generator, chosen)
    classes = torch.arange(generator.classes, device=device).repeat_interleave(each)
    dice = torch.Generator(device=device).manual_seed(chosen.seed + 7919 * progress.step)
    weights = torch.cat(weights_of(matches))
    floors = torch.cat([match.floor for match in matches])
    pull = torch.ones_like(floors)
    least = float((weights * floors).sum())
    noise = torch.empty(len(classes), generator.latent, device=device).normal_(generator=dice)
    _set_rate(progress.adam, chosen.rate * _schedule((progress.step + 1) / chosen.steps))
    generator.train()
    step_once = stepper(
        generator, progress.adam, matches, noise, classes, weights, pull, chosen.matching
    )
    kept: list[Tensor] = list(progress.averaged.parameters())
    made: list[Tensor] = list(generator.parameters())
    while progress.step < chosen.steps and not _stale(progress, chosen):
        _set_rate(progress.adam, chosen.rate * _schedule((progress.step + 1) / chosen.steps))
        noise.normal_(generator=dice)
        seen = step_once() / floors.clamp(min=1e-30)
        before = progress.misfits
        progress.misfits = seen.clone() if before is None else before.lerp_(seen, 1 - MEMORY)
        if chosen.floor:
            # a line's own noise may be shorter than expected: all lines together tell it better
            pull.fill_((weights * floors * progress.misfits).sum() > least)
        memory = min(chosen.average, (1 + progress.step) / (10 + progress.step))
        with torch.no_grad():
            torch._foreach_lerp_(kept, made, 1 - memory)
        progress.step += 1
        if validation and progress.step % max(1, chosen.steps // VALIDATIONS) == 0:
            _validate(progress, validation, chosen, device)
        report(progress)
    if progress.best is not None:
        progress.averaged.load_state_dict(progress.best[1])
    ready(progress.averaged, each, max(4, min(BATCHES, chosen.steps // 4)))
    return progress.averaged


def _each(generator: Generator, chosen: Training) -> int:
    """Say how many images of every class a batch has."""
    return max(2, chosen.batch // generator.classes)


def as_it_is(progress: Progress, chosen: Training) -> Generator:
    """Give the averaged generator as it would be if training ended here."""
    candidate = deepcopy(progress.averaged)
    ready(candidate, _each(candidate, chosen), BATCHES // 4)
    return candidate


def ready(generator: Generator, each: int, batches: int) -> None:
    """Take the statistics of normalisation anew; they belong to the averaged weights."""
    device = next(generator.parameters()).device
    classes = torch.arange(generator.classes, device=device).repeat_interleave(each)

    def draw(one: Generator) -> None:
        noise = torch.randn(len(classes), one.latent, device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            one(noise, classes)

    recalibrate(generator, draw, batches)


def _validate(
    progress: Progress, validation: Sequence[Match], chosen: Training, device: torch.device
) -> None:
    """Keep the weights that are nearest to what is kept aside, by its own noise (§3.2).

    Every candidate draws from the same noise, so that they differ by their weights alone.
    """
    candidate, each = as_it_is(progress, chosen), _each(progress.generator, chosen)
    classes = torch.arange(candidate.classes, device=device).repeat_interleave(VALIDATED * each)
    dice = torch.Generator(device=device).manual_seed(0)
    noise = torch.randn(len(classes), candidate.latent, device=device, generator=dice)
    off = 0.0
    with torch.no_grad():
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            images = candidate(noise, classes)
        for match, weight in zip(validation, weights_of(validation), strict=True):
            off += float((weight * (match.misfit(images) - match.floor)).sum())
    if progress.best is None or off < progress.best[0]:
        state = {name: tensor.clone() for name, tensor in candidate.state_dict().items()}
        progress.best = (off, state, progress.step)


def _stale(progress: Progress, chosen: Training) -> bool:
    """Whether validation has not found better weights for long."""
    if progress.best is None:
        return False
    return progress.step - progress.best[2] >= chosen.patience * chosen.steps


def _schedule(share: float) -> float:
    """Give the learning rate as a share of the highest."""
    return min(1.0, 20 * share) * (1 + cos(pi * share)) / 2


def _set_rate(adam: torch.optim.Adam, rate: float) -> None:
    for group in adam.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
