"""TCMC: the difference of means and the covariance, each with noise (Raj et al. 2019, §3.1).

With m and n rows, N = m + n, and S_A, S_B the sums of the features φ, what is released is

* the vector U = S_A − (m/N)(S_A + S_B) = (mn/N)(mean_A − mean_B), which has one noise for both
  samples where two sums would have two; `permutation` proves that it moves by at most
  D·max(m, n)/N if a row is replaced and by at most D if one is added or removed, D the largest
  distance of two rows' features (the true labels are of its first sort);
* the pooled sums of φ and of φφᵀ, under the bounds of their maps; one row moves one term of each;
* where sizes are private, m and n.

All of it is one Gaussian mechanism: the losses ρ = Δ²/2σ² add up exactly, where the paper halves ε
and δ. Everything else is post-processing, so the statistic and the p-value may be published.

*Null.* If nothing differs, U has mean zero and covariance (mn/N)Σ up to O(1/N), Σ the covariance of
φ over both samples, and its noise has covariance s²I. By default T = Uᵀ((mn/N)Σ̃ + s²I)⁻¹U, which
would be χ² with J degrees of freedom for a known Σ; the law is Hotelling's with the freedom that
the noise on Σ̃ leaves. ``conservative`` also adds that noise, β√J·I, to Σ̃.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, sqrt
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.stats import chi2

from aquatint.accounting import Budget, Noised, calibrate
from aquatint.analyst.compare.tails import joint, positive, two_sided
from aquatint.comparison import CompareError, Difference, holm
from aquatint.curator.compare.nulls import simulated_tail, weighted_tail
from aquatint.curator.compare.roots import MOST_FEATURES
from aquatint.curator.compare.trial import Conclusion
from aquatint.curator.gathering import accumulate
from aquatint.curator.sums import PrivateSum
from aquatint.features.base import FeatureMap
from aquatint.features.grid import COUNT_STEPS, grid_of, sensitivity
from aquatint.features.locations import Locations
from aquatint.features.marginals import Count
from aquatint.features.moments import second_moment
from aquatint.planning import Plan, PlannedBlock
from aquatint.recipe_parts import settled_bins
from aquatint.release.model import Noise
from aquatint.schema import Schema

Null = Literal["noise-aware", "weighted-chi2", "monte-carlo", "asymptotic-underestimates-noise"]
NULLS: tuple[str, ...] = get_args(Null)
SHARES = {"difference": 0.8, "mean": 0.05, "second moment": 0.15}
COUNT_SHARE = 0.02
"""What the two numbers of rows take of the budget where they are private."""
PUBLISHED_RIDGE = 1e-3
"""γ of the paper's statistic, eq. 4: the three nulls that are there for comparison use it."""


@dataclass(frozen=True, repr=False)
class MeanAndCovariance:
    """One TCMC test; `Trial` says what the parts are."""

    data: tuple[Any, Any]
    schema: Schema
    map: FeatureMap
    sizes: tuple[int, int]
    budget: Budget
    alpha: float
    null: Null = "noise-aware"
    conservative: bool = False
    noise: Noise = "discrete gaussian"

    def __post_init__(self) -> None:
        if self.budget.pure:
            msg = "tcmc adds Gaussian noise: give a delta above 0, or use permutation or signflip"
            raise CompareError(msg)
        if self.map.dim > MOST_FEATURES:
            msg = (
                f"tcmc releases the covariance of all features, at most {MOST_FEATURES}, got "
                f"{self.map.dim}: give it a map with fewer, or use permutation"
            )
            raise CompareError(msg)
        if self.null not in NULLS:
            msg = f"the null must be one of {', '.join(NULLS)}, got {self.null!r}"
            raise CompareError(msg)

    @cached_property
    def plan(self) -> Plan:
        """What is summed on either side."""
        blocks: dict[str, FeatureMap] = {"mean": self.map}
        blocks["second moment"] = second_moment(self.map)
        if not self.schema.privacy.replaces:
            blocks["count"] = Count()
        share = 1 / len(blocks)
        return Plan(
            settled_bins(self.schema), tuple(PlannedBlock(n, m, share) for n, m in blocks.items())
        )

    @cached_property
    def noised(self) -> tuple[Noised, ...]:
        """Gaussian noise on the difference, the pooled sums and, if private, the sizes."""
        privacy = self.schema.privacy
        mean, second = (block.map for block in self.plan.blocks[:2])
        moved = difference_sensitivity(self.map, self.sizes, replaces=privacy.replaces)
        vectors = [
            Noised(mean.dim, 1.0, moved**2, mean.dim * moved),
            *(Noised(part.dim, 1.0, *sensitivity(part, privacy)) for part in (mean, second)),
        ]
        shares = list(SHARES.values())
        if not privacy.replaces:  # one row moves one of the two numbers of rows by one
            vectors.append(Noised(2, 1.0, COUNT_STEPS**2, COUNT_STEPS))
            shares = [share * (1 - COUNT_SHARE) for share in shares] + [COUNT_SHARE]
        scales = calibrate(self.budget, vectors, shares)
        return tuple(replace(v, scale=s) for v, s in zip(vectors, scales, strict=True))

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Sum both datasets: private."""
        first, second = (accumulate(each, self.plan, progress=progress) for each in self.data)
        if (first.rows, second.rows) != self.sizes:
            msg = "the data changed while they were read: start again with data that stay still"
            raise CompareError(msg)
        pairs = [(a.numpy(), b.numpy()) for a, b in zip(first.totals, second.totals, strict=True)]
        vectors = [difference(first, second), *(a + b for a, b in pairs[:2])]
        return [*vectors, *(np.concatenate(counted) for counted in pairs[2:])]

    def conclude(self, noisy: Sequence[np.ndarray]) -> Conclusion:
        """Whiten the noisy difference and look it up in the null."""
        sizes = (float(self.sizes[0]), float(self.sizes[1]))
        if not self.schema.privacy.replaces:
            told = np.maximum(noisy[3] / COUNT_STEPS, 1.0)
            sizes = (float(told[0]), float(told[1]))
        steps = grid_of(self.map).steps
        moved = noisy[0] / steps
        spread = self.noised[0].scale / steps
        covariance = self._covariance(noisy, sum(sizes))
        weight = sizes[0] * sizes[1] / sum(sizes)
        statistic, pvalue = self._judge(moved, covariance * weight, spread, weight, sum(sizes))
        each = np.sqrt(np.diag(covariance) * weight + spread**2)
        return Conclusion(
            pvalue <= self.alpha,
            f"TCMC: means and covariance with noise, {self.map.dim} features"
            + (", conservative" if self.conservative else ""),
            _NULL_TEXT[self.null],
            statistic=statistic,
            pvalue=pvalue,
            sizes=sizes,
            differences=self._one_by_one(moved / each),
        )

    def _one_by_one(self, deviations: np.ndarray) -> tuple[Difference, ...]:
        """Say how far each feature differs: post-processing, as everything here."""
        pvalues = [float(p) for p in two_sided(deviations, np.ones_like(deviations))]
        columns = tuple(sorted(self.map.reads[0] | self.map.reads[1]))
        what = "location" if isinstance(self.map, Locations) else "feature"
        found = [
            Difference(f"{what} {number}", columns, abs(float(z)), p, adjusted)
            for number, (z, p, adjusted) in enumerate(
                zip(deviations, pvalues, holm(pvalues), strict=True), start=1
            )
        ]
        return tuple(sorted(found, key=lambda one: one.pvalue))

    def _covariance(self, noisy: Sequence[np.ndarray], rows: float) -> np.ndarray:
        """Give the noisy covariance of the features, with no eigenvalue below zero."""
        second = second_moment(self.map)
        mean = noisy[1] / (grid_of(self.map).steps * rows)
        moments = noisy[2] / (grid_of(second).steps * rows)
        own = (self.noised[1].scale / (grid_of(self.map).steps * rows)) ** 2
        found = second.matrix(torch.from_numpy(moments)).numpy() - np.outer(mean, mean)
        found = found + own * np.eye(len(mean))  # the square of a noisy mean is too large by it
        kept = positive(found)
        if self.conservative:
            kept = kept + self._spread(rows) * sqrt(self.map.dim) * np.eye(self.map.dim)
        return kept

    def _spread(self, rows: float) -> float:
        """Give the standard deviation of the noise on an entry of the covariance."""
        return self.noised[2].scale / (grid_of(second_moment(self.map)).steps * rows)

    def _judge(
        self, moved: np.ndarray, covariance: np.ndarray, spread: float, weight: float, rows: float
    ) -> tuple[float, float]:
        size = len(moved)
        if self.null == "noise-aware":
            whole = covariance + spread**2 * np.eye(size)
            statistic = float(moved @ np.linalg.solve(whole, moved))
            return statistic, joint(moved, whole, weight * self._spread(rows), rows)
        # Σ of the paper is that of z = φ(x) − φ(y), twice the covariance of φ.
        ridge = weight * PUBLISHED_RIDGE / 2
        regular = covariance + ridge * np.eye(size)
        statistic = float(moved @ np.linalg.solve(regular, moved))
        if self.null == "asymptotic-underestimates-noise":
            return statistic, float(chi2.sf(statistic, size))
        values = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
        weights = (values + spread**2) / (values + ridge)
        tail = weighted_tail if self.null == "weighted-chi2" else simulated_tail
        return statistic, tail(statistic, weights)


_NULL_TEXT = {
    "noise-aware": "Hotelling's, with the noise in the covariance",
    "weighted-chi2": "weighted chi-squares of the paper, §5.1: the noisy covariance as if exact",
    "monte-carlo": "the paper's weighted chi-squares, by simulation: the noisy covariance as if "
    "exact",
    "asymptotic-underestimates-noise": "chi-square that ignores the noise: rejects far too often",
}


def difference(first: PrivateSum, second: PrivateSum) -> np.ndarray:
    """Give ⌊S_A − (m/N)·S⌋ of the first block in grid steps, exactly."""
    rows = first.rows + second.rows
    pairs = zip(first.totals[0].tolist(), second.totals[0].tolist(), strict=True)
    found = [(second.rows * a - first.rows * b) // rows for a, b in pairs]
    return np.array(found, dtype=np.int64)


def difference_sensitivity(
    feature_map: FeatureMap, sizes: tuple[int, int], *, replaces: bool
) -> int:
    """Bound how far one row moves `difference` in L2, in grid steps; rounding down adds √J."""
    squared = int(grid_of(feature_map).bound.replace_l2_squared)
    if replaces:
        squared = -(-squared * max(sizes) ** 2 // sum(sizes) ** 2)
    return (isqrt(squared) + 1) + (isqrt(feature_map.dim) + 1)
