"""Fitting a mixture of products to the terms of a release, by Adam, in closed form throughout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.terms import Term
from aquatint.progress import Advance


@dataclass(frozen=True)
class Effort:
    """How much work a fit is worth.

    Attributes
    ----------
    components
        K, the products in one fit.
    steps
        The gradient steps of one fit.
    fits
        Fits from different starts, averaged: their components are put side by side.
    rate
        Adam's first learning rate; it falls to a fiftieth along a cosine.
    jitter
        How far components start from the product of the histograms, in log-probability.
    """

    components: int = 300
    steps: int = 600
    fits: int = 3
    rate: float = 0.05
    jitter: float = 0.7


def fit(
    terms: Sequence[Term],
    atoms: Atoms,
    shares: np.ndarray,
    effort: Effort,
    seed: int,
    advance: Advance = lambda _: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Give the weights (K·fits,) and the probabilities (K·fits, atoms) of the averaged mixture."""
    with _one_thread():
        fitted = [
            _one_fit(terms, atoms, shares, effort, torch.Generator().manual_seed(each), advance)
            for each in np.random.SeedSequence(seed).generate_state(effort.fits).tolist()
        ]
    weights = np.concatenate([w for w, _ in fitted]) / effort.fits
    return weights, np.concatenate([p for _, p in fitted])


def _one_fit(
    terms: Sequence[Term],
    atoms: Atoms,
    shares: np.ndarray,
    effort: Effort,
    generator: torch.Generator,
    advance: Advance,
) -> tuple[np.ndarray, np.ndarray]:
    start = torch.from_numpy(np.log(np.maximum(shares, 1e-5))).float()
    jitter = torch.randn(effort.components, atoms.total, generator=generator)
    logits = (start + effort.jitter * jitter).requires_grad_()
    sizes = torch.zeros(effort.components, requires_grad=True)
    adam = torch.optim.Adam([logits, sizes], lr=effort.rate, betas=(0.9, 0.99))
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(adam, effort.steps, effort.rate / 50)
    for _ in range(effort.steps):
        adam.zero_grad()
        misfit = _misfit(terms, sizes, logits, atoms, generator)
        torch.autograd.backward(misfit)
        adam.step()
        rates.step()
        advance(1)
    with torch.no_grad():
        return torch.softmax(sizes, 0).numpy(), _softmax(logits, atoms).numpy()


def _misfit(
    terms: Sequence[Term],
    sizes: Tensor,
    logits: Tensor,
    atoms: Atoms,
    generator: torch.Generator,
) -> Tensor:
    weights, probabilities = torch.softmax(sizes, 0), _softmax(logits, atoms)
    return torch.stack([term(weights, probabilities, generator) for term in terms]).sum()


def _softmax(logits: Tensor, atoms: Atoms) -> Tensor:
    """Normalise each column's atoms on their own."""
    sizes = [s.stop - s.start for s in atoms.slices.values()]
    return torch.cat([torch.softmax(part, 1) for part in torch.split(logits, sizes, 1)], 1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep to one core: the matrices are small, and a second thread mostly waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
