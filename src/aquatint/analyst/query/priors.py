"""Priors for regression on features: the uniform one, and a fitted one with a uniform part."""

from __future__ import annotations

from typing import Any

import numpy as np

from aquatint.analyst.synthesize.atoms import Atoms, widths_and_edges
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED
from aquatint.release.model import Release

EVEN = 0.05
"""The share of the uniform part: chosen on development tables, see docs/results/notes.md."""


def flat(release: Release) -> Mixture:
    """Give the uniform distribution over the declared domain (M2M's own prior)."""
    columns = release.schema.columns
    of_cell = {name: np.arange(column.cells) for name, column in columns.items()}
    within = {name: np.ones(column.cells) for name, column in columns.items()}
    shares = np.concatenate([_by_width(column) for column in columns.values()])
    return Mixture(release.schema, Atoms(of_cell, within), np.ones(1), shares[None])


def broadened(model: Mixture) -> Mixture:
    """Mix a little of the uniform distribution into a model.

    A regression is good where it was fitted: where a model has no rows at all and the data have
    some, it would be wrong by any amount.
    """
    columns = model.schema.columns.items()
    parts = [np.bincount(model.atoms.of_cell[n], weights=_by_width(c)) for n, c in columns]
    return Mixture(
        model.schema,
        model.atoms,
        np.append(model.weights * (1 - EVEN), EVEN),
        np.concatenate([model.probabilities, np.concatenate(parts)[None]]),
    )


def _by_width(column: Any) -> np.ndarray:
    share = np.ones(column.cells)
    if isinstance(column, RANGED):
        _, width, _ = widths_and_edges(column)
        share[: len(width)] = width / width.mean()
    return np.asarray(share / share.sum())
