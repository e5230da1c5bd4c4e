"""Fitting a mixture of products to the terms of a release, by Adam, in closed form throughout."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.descent import MEMORY, Descent
from aquatint.analyst.synthesize.normalise import normalise
from aquatint.analyst.synthesize.terms import Term
from aquatint.analyst.synthesize.threads import one_thread, without_subnormals
from aquatint.progress import Advance

SCALES = (2, 4, 8)
"""Neighbouring atoms of a column with an order also share parameters, in runs of these lengths."""
FEWEST_ROWS = 1e-5
"""An atom is taken to hold at least this share of the rows to begin with."""
NEVER = -60.0
"""The logit of another class than a component's own: 10⁻²⁶ of its rows."""
PART = 512
"""So many atoms are looked at together when those parameters are added up."""


@dataclass(frozen=True)
class Effort:
    """How much work a fit is worth.

    Attributes
    ----------
    components
        K, the products in one fit.
    steps
        The gradient steps of a fit: `effort.steps_for` the noise.
    fits
        Fits from different starts, side by side, then averaged: their components are put together.
    rate
        Adam's first learning rate; it falls to a fiftieth along a cosine.
    jitter
        How far components start from the product of the histograms, in log-probability.
    memory
        How much of the mean squared gradient each of Adam's steps keeps: `effort.memory_for` the
        noise.
    by_class
        Whether each component has rows of one class of the label only, if there is a label.
    """

    components: int = 100
    steps: int = 600
    fits: int = 8
    rate: float = 0.1
    jitter: float = 0.7
    memory: float = MEMORY
    by_class: bool = False


def fit(
    terms: Sequence[Term],
    atoms: Atoms,
    shares: np.ndarray,
    effort: Effort,
    seed: int,
    ordered: Collection[str] = (),
    label: str | None = None,
    advance: Advance = lambda _: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit several mixtures and average them.

    Parameters
    ----------
    terms
        What is to be fitted.
    atoms
        The cells that are told apart.
    shares
        The share of rows that each atom seems to hold: where the fits begin.
    effort
        How much work the fit is worth.
    seed
        Draws the starts.
    ordered
        The columns whose atoms have an order. There, neighbours share parameters besides their own:
        what they have in common is found first, and the noise of single cells followed less.
    label
        A column of which every component has one atom only, if given. Components come in families
        then, one member for each class, which share parameters as neighbours do: a rare class takes
        from the others what its own few rows do not tell.
    advance
        Is told of each step.

    Returns
    -------
        Weights (K·fits,) and probabilities (K·fits, atoms) of the averaged mixture.
    """
    generator = torch.Generator().manual_seed(seed)
    start, share = _start(shares, atoms.slices[label] if label else None)
    runs = _runs(atoms, ordered)
    covered = sum(float(part.sum()) for part in runs)
    jitter = effort.jitter / (1 + covered / atoms.total) ** 0.5
    families = max(effort.components // len(start), 1)

    def parameters(members: int, spread: float) -> list[Tensor]:
        shape = effort.fits, members, families
        own, shared = (
            torch.randn(*shape, count, generator=generator).mul_(spread)
            for count in (atoms.total, sum(map(len, runs)))
        )
        return [part.requires_grad_() for part in (own, shared, torch.zeros(shape))]

    parts = [parameters(1, jitter)]
    if label:
        parts.append(parameters(len(start), 0.0))
    columns = _columns(atoms)
    levels = [start.new_zeros(effort.fits, families * len(start), c.shape[1]) for c in columns]
    held = _held(share)

    def mixtures() -> tuple[Tensor, Tensor]:
        own, shared, sizes = parts[0]
        if label:
            members = parts[1]
            own = own + held[..., None] * members[0]
            shared = shared + held[..., None] * members[1]
            sizes = sizes + members[2]
        logits = (start + own + _spread(shared, runs)).flatten(1, 2)
        found = []
        for i, part in enumerate(torch.split(logits, [len(part) for part in columns], -1)):
            probabilities, levels[i] = normalise(part, columns[i], levels[i])
            found.append(probabilities)
        return torch.softmax((share + sizes).flatten(1, 2), -1), _beside(found)

    descent = Descent([p for part in parts for p in part], effort.rate, effort.steps, effort.memory)
    with one_thread(), without_subnormals():
        for _ in range(effort.steps):
            weights, probabilities = mixtures()
            misfits = [term(weights, probabilities, generator) for term in terms]
            torch.autograd.backward(torch.stack(misfits).sum())
            descent.step()
            advance(1)
        with torch.no_grad():
            weights, probabilities = mixtures()
    return (weights / effort.fits).flatten().numpy(), probabilities.flatten(0, 1).numpy()


def _start(shares: np.ndarray, label: slice | None) -> tuple[Tensor, Tensor]:
    """Give the logits where members of a family begin, (classes, 1, atoms), and of their weights.

    Without a label a family has one member. With one, what a member has of other classes than its
    own is too little ever to matter.
    """
    logits = np.log(np.maximum(shares, FEWEST_ROWS))
    if label is None:
        return torch.from_numpy(logits).float()[None, None], torch.zeros(1, 1)
    count = label.stop - label.start
    share = torch.from_numpy(logits[label].copy()).float()
    logits = np.repeat(logits[None], count, axis=0)
    logits[:, label] = np.where(np.eye(count) > 0, 0.0, NEVER)
    return torch.from_numpy(logits).float()[:, None], share[:, None]


def _held(share: Tensor) -> Tensor:
    """Say how far members of each class go from their family, (classes, 1), by its log-share.

    A class with less than its even part of the rows has less to say against the same noise: its
    parameters count by the root of what it has of that part, so that they are fitted more slowly.
    """
    even = torch.softmax(share, 0) * len(share)
    return even.clamp(max=1.0).sqrt()


def _runs(atoms: Atoms, ordered: Collection[str]) -> list[Tensor]:
    """Give a 1 for each atom of each run of neighbours that share a parameter: (runs, atoms).

    No run leaves its column, so that a wide table has one such matrix for some columns at a time:
    a single one would be nearly all zeros, and most of the time of a fit.
    """
    found = []
    for columns in _parts(atoms):
        begin, end = columns[0][1].start, columns[-1][1].stop
        ends = [
            (first - begin, min(first + length, place.stop) - begin)
            for name, place in columns
            for length in SCALES
            if name in ordered and place.stop - place.start >= 2 * length
            for first in range(place.start, place.stop, length)
        ]
        runs = torch.zeros(len(ends), end - begin)
        for line, (first, last) in zip(runs, ends, strict=True):
            line[first:last] = 1.0
        found.append(runs)
    return found


def _parts(atoms: Atoms) -> list[list[tuple[str, slice]]]:
    """Put neighbouring columns together until they have many atoms."""
    parts: list[list[tuple[str, slice]]] = [[]]
    for name, place in atoms.slices.items():
        if parts[-1] and place.stop - parts[-1][0][1].start > PART:
            parts.append([])
        parts[-1].append((name, place))
    return parts


def _spread(shared: Tensor, runs: Sequence[Tensor]) -> Tensor:
    """Give each atom what the runs that it is in share."""
    parts = torch.split(shared, [len(part) for part in runs], -1)
    return _beside([some @ part for some, part in zip(parts, runs, strict=True)])


def _beside(parts: Sequence[Tensor]) -> Tensor:
    """Put parts side by side; one alone is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), -1)


def _columns(atoms: Atoms) -> list[Tensor]:
    """Give, one-hot, which column each atom belongs to, for some columns at a time."""
    sizes = [[place.stop - place.start for _, place in part] for part in _parts(atoms)]
    return [torch.repeat_interleave(torch.eye(len(s)), torch.tensor(s), 0) for s in sizes]
