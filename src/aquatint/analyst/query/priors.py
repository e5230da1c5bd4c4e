"""A plainer prior than a fitted model, for releases that none can be fitted to."""

from __future__ import annotations

import numpy as np

from aquatint.analyst.synthesize.atoms import Atoms, widths_and_edges
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED
from aquatint.release.model import Release


def flat(release: Release) -> Mixture:
    """Give the uniform distribution over the declared domain (M2M's own prior)."""
    of_cell, parts = {}, []
    for name, column in release.schema.columns.items():
        of_cell[name] = np.arange(column.cells)
        share = np.ones(column.cells)
        if isinstance(column, RANGED):
            _, width, _ = widths_and_edges(column)
            share[: len(width)] = width / width.mean()
        parts.append(share / share.sum())
    within = {name: np.ones(len(cells)) for name, cells in of_cell.items()}
    atoms = Atoms(of_cell, within)
    return Mixture(release.schema, atoms, np.ones(1), np.concatenate(parts)[None])
