"""Rows to train on: drawn from a model of the release, with weights from the sketch if asked for.

Implicit M2M (§3.5) trains on Σ_i w(x_i)·L_θ(x_i), rows x_i from a prior and weights w from the
sketch. Some of its weights are negative, and then the loss has no minimum: a model that is ever
more wrong about such a row is rewarded without bound. Here the weights are replaced by the nearest
ones that are a distribution, min |v − w|² subject to v ≥ 0 and Σ v = 1.

That was better than to set negative ones to zero (RACE on a validation part of Occupancy at ε = 1
and 0.3: AUC .83 and .94 against .81 and .85). Ridge regression under v ≥ 0, or a tilt exp(a·Φ),
matches the noise of the sketch too well: few rows are left that count, and boosted trees lose
(insurance, `m2m` at ε = 1: AUC .83 against .85 with equal weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from aquatint.analyst.query.priors import flat
from aquatint.analyst.query.sketched import Sketched
from aquatint.analyst.synthesize import draw
from aquatint.analyst.synthesize.expect import has_closed_form
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import (
    Mixture,
    can_mix,
    check_same_table,
    fit_mixture,
)
from aquatint.errors import DataError, ReleaseError
from aquatint.features import FeatureMap, leaves
from aquatint.features.algebra import ByLabel, Scaled
from aquatint.features.cosines import Cosines
from aquatint.features.hermite import Hermite
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import on_simplex
from aquatint.release.model import Release

How = Literal["auto", "rows", "weights"]
OFF = 0.3
"""How far a model that was fitted to the whole sketch may be off, in standard deviations of what is
asked; Theorem 1 of M2M has 1, which any other prior is given here."""
FEWEST, MOST = 1_000, 100_000
"""By default as many rows are drawn as were sketched, within these limits."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a model is trained on.

    Attributes
    ----------
    table
        Rows in the schema's own types. None is real.
    weights
        One for each row, none negative; they add up to the number of rows sketched.
    """

    table: pd.DataFrame
    weights: np.ndarray

    @property
    def equal(self) -> bool:
        """Whether all rows count alike."""
        return bool(np.ptp(self.weights) == 0)

    def kept(self, keep: np.ndarray) -> TrainingRows:
        """Take some of the rows."""
        return TrainingRows(self.table[keep].reset_index(drop=True), self.weights[keep])

    def drawn(self, seed: int) -> pd.DataFrame:
        """Give as many rows that all count alike, by drawing each in proportion to its weight."""
        if self.equal:
            return self.table
        rng = np.random.default_rng(seed)
        chosen = draw.components(self.weights, len(self.table), rng)
        return self.table.iloc[rng.permutation(chosen)].reset_index(drop=True)


def training_rows(
    release: Release,
    *,
    how: How = "auto",
    rows: int | None = None,
    model: Mixture | None = None,
    effort: Effort | None = None,
    seed: int = 0,
    progress: bool = True,
) -> TrainingRows:
    """Draw rows to train on; see `learn` for the parameters."""
    if rows is not None and rows < 1:
        msg = f"cannot train on {rows} rows: give a number from 1 on"
        raise DataError(msg)
    if model is None:
        model = _prior(release, effort, seed, progress=progress)
    check_same_table(model, release)
    told = _all_told(release)
    if how == "rows" or (how == "auto" and told):
        count = rows or round(min(max(release.count, FEWEST), MOST))
        table = model.sample(count, seed=seed)
        return TrainingRows(table, np.full(count, max(release.count, 1.0) / count))
    sketched = Sketched(release, model, OFF if told else 1.0, count=rows, seed=seed)
    weights = on_simplex(sketched.weights) * sketched.rows[0]
    return TrainingRows(sketched.draws.frame(), weights).kept(weights > 0)


def check_told(release: Release, target: str) -> None:
    """Refuse a release that has nothing to say of a column together with any other."""
    parts = [leaf for block in release.blocks for leaf in leaves(block.map)]
    if not any(joins(leaf, target) for leaf in parts):
        msg = (
            f"the release never looked at {target!r} together with another column, so nothing can "
            "be learned of it: sketch with the default plan, or with a block by its label"
        )
        raise ReleaseError(msg)


def joins(leaf: FeatureMap, target: str) -> bool:
    """Whether a feature depends on a column and on another one at once."""
    if isinstance(leaf, Scaled):
        return joins(leaf.inner, target)
    if isinstance(leaf, ByLabel) and leaf.label == target:
        return True
    if isinstance(leaf, Marginals):
        return any(target in columns and len(columns) > 1 for columns in leaf.sets)
    if isinstance(leaf, Cosines):
        return any(target in pair for pair in leaf.pairs)
    if isinstance(leaf, Hermite):  # a sum over columns
        return False
    read = leaf.reads[0] | leaf.reads[1]
    return target in read and len(read) > 1


def _prior(release: Release, effort: Effort | None, seed: int, *, progress: bool) -> Mixture:
    if not can_mix(release):
        return flat(release)
    return fit_mixture(release, effort=effort, seed=seed, progress=progress)


def _all_told(release: Release) -> bool:
    """Whether a mixture is fitted to every block, so that no block has more to say than it."""
    return all(has_closed_form(leaf) for block in release.blocks for leaf in leaves(block.map))
