"""Training a generator on the noisy embedding: Adam on what stands out of the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.network_heads import Choice, Head, moved, soften
from aquatint.analyst.synthesize.network_means import Means
from aquatint.analyst.synthesize.network_model import Generator
from aquatint.analyst.synthesize.network_targets import Target, weights
from aquatint.progress import Advance

MEMORY = 0.95
"""How much of a table's misfit is remembered from step to step."""


@dataclass(frozen=True)
class Training:
    """How a generator is trained.

    Attributes
    ----------
    steps
        Steps of Adam.
    batch
        Rows of a step; every class gets as many.
    rate
        The highest learning rate: it is reached after a twentieth of the steps and then falls to
        zero along a cosine.
    seed
        Draws the start and the batches.
    device
        Where to compute.
    """

    steps: int
    batch: int
    rate: float
    seed: int
    device: str


def train(
    generator: Generator,
    heads: Mapping[str, Head],
    targets: Sequence[Target],
    label: str | None,
    chosen: Training,
    advance: Advance = lambda _: None,
) -> None:
    """Train a generator in place.

    The loss is Σ_t n_t·r_t over the tables t of all leaves (a class, or a set of counted columns),
    with r_t the mean squared residual in units of the noise: without tables, the Gaussian
    log-likelihood of the release. A table pulls with the weight 1/(1 + r_t), so that one with a
    strong signal does not drown the others while it converges, and stops pulling at r_t ≤ 1, the
    noise floor.
    """
    dice = torch.Generator().manual_seed(chosen.seed)
    device = torch.device(chosen.device)
    generator.to(device).train()
    means = Means(moved(heads, device))
    placed = [target.to(device) for target in targets]
    sizes = weights(placed)
    half = max(8, chosen.batch // (2 * generator.classes))
    classes = torch.arange(generator.classes).repeat_interleave(2 * half).to(device)
    given = {} if label is None else {label: torch.nn.functional.one_hot(classes).float()}
    adam = torch.optim.Adam(generator.parameters(), lr=chosen.rate, betas=(0.9, 0.99))
    misfit: Tensor | None = None
    for step in range(chosen.steps):
        for group in adam.param_groups:
            group["lr"] = chosen.rate * _schedule((step + 1) / chosen.steps)
        noise, component = (x.to(device) for x in _inputs(generator, half, len(heads), dice))
        outputs = generator(noise[:, len(heads) :], component, classes)
        weight = (generator.shares() * generator.components)[classes, component][:, None]
        rows = soften(means.heads, outputs, noise[:, : len(heads)], weight, given)
        now = torch.cat([target.misfit(means, rows) for target in placed])
        seen = now.detach()
        misfit = seen if misfit is None else MEMORY * misfit + (1 - MEMORY) * seen
        pull = sizes * (misfit > 1) / (1 + misfit.clamp(min=0))
        adam.zero_grad()
        torch.autograd.backward((pull * now).sum())
        adam.step()
        advance(1)
    generator.to("cpu").eval()


def _schedule(share: float) -> float:
    """Give the learning rate as a share of the highest."""
    return min(1.0, 20 * share) * (1 + cos(pi * share)) / 2


def _inputs(
    generator: Generator, half: int, heads: int, dice: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw noise for the heads and the network; every half of a class has all components alike."""
    halves = 2 * generator.classes
    noise = torch.randn(half * halves, heads + generator.latent, generator=dice)
    cycle = torch.arange(half) * generator.components // half
    first = torch.randint(generator.components, (halves, 1), generator=dice)
    return noise, ((cycle + first) % generator.components).flatten()


def start(
    generator: Generator, heads: Mapping[str, Head], histograms: Mapping[str, np.ndarray]
) -> None:
    """Start the choices at the columns' noisy histograms, by class where they are known so."""
    place = 0
    for name, head in heads.items():
        if isinstance(head, Choice) and name in histograms:
            counts = torch.from_numpy(histograms[name]).float()
            points = torch.bincount(head.cell, minlength=head.cells)
            shares = (counts / points)[:, head.cell]
            logits = (shares / shares.sum(1, keepdim=True)).log()
            with torch.no_grad():
                generator.base.weight[:, place : place + head.width] = logits
        place += head.width
