"""M2M: averages over the rows by ridge regression on features, whatever they are.

Rows are drawn from a prior ψ and every feature of the release is computed for them. With Φ their
features in units of the noise and F the functions asked about, both centred, the average of f is
taken for

    E_ψ[f] + a·(sketch − E_ψ[Φ]),    a = argmin E_ψ[(f − a·Φ)²] + λ·|a|²,    λ = σ²/(τ·n)²

Theorem 1 of M2M has τ = 1; its eq. 5, λ = σ²/n, is τ = 1/√n. The error is Gaussian with the noise
a·σ and, as what the features leave unexplained, τ times the standard deviation of f − a·Φ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch

from aquatint.analyst.query.draws import Draws, drawn
from aquatint.analyst.query.expectations import expectations
from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.moments import How, Moments
from aquatint.analyst.query.points import Points
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.analyst.synthesize.threads import one_thread
from aquatint.errors import ReleaseError
from aquatint.features import Count, FeatureMap, leaves
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import noisy_leaves, unscaled
from aquatint.release.model import Release

ROWS = 16_384
FEW_ROWS = 4_096
"""So many rows are drawn; fewer where there are more features than that."""
MOST_COUNTED = 1_000
"""Joint counts with more cells than this are left to the model."""


def counts_alone(release: Release) -> bool:
    """Whether a release has joint counts and no other features."""
    return all(
        isinstance(unscaled(leaf)[0], (Marginals, Count))
        for block in release.blocks
        for leaf in leaves(block.map)
    )


class Sketched:
    """What the features of a release and a prior tell about averages over the rows."""

    def __init__(
        self,
        release: Release,
        prior: Mixture,
        tau: float,
        *,
        count: int | None = None,
        seed: int = 0,
    ) -> None:
        self.release, self.prior, self.tau = release, prior, tau
        self._count, self._seed = count, seed

    @cached_property
    def used(self) -> list[tuple[FeatureMap, np.ndarray, float]]:
        """The features to regress on, their noisy sums and the noise's standard deviation."""
        found = []
        for block in self.release.blocks:
            for leaf, sums, deviation in noisy_leaves(block):
                plain, _ = unscaled(leaf)
                joint = isinstance(plain, Marginals) and leaf.dim > MOST_COUNTED
                if not isinstance(plain, Count) and not joint:
                    found.append((leaf, sums, deviation))
        if not found:
            msg = "no block of the release is small enough to regress on: ask in SQL, by counts"
            raise ReleaseError(msg)
        return found

    @cached_property
    def size(self) -> int:
        """How many features there are."""
        return sum(leaf.dim for leaf, _, _ in self.used)

    @cached_property
    def draws(self) -> Draws:
        """Rows of the prior."""
        usual = FEW_ROWS if self.size > FEW_ROWS else ROWS
        return drawn(self.prior, self._count or usual, self._seed)

    @cached_property
    def features(self) -> np.ndarray:
        """Every row's features in units of the noise, shape (rows, features)."""
        parts = [leaf(self.draws.rows).numpy() / sd for leaf, _, sd in self.used]
        return np.concatenate(parts, 1).astype(np.float32)

    @cached_property
    def centre(self) -> np.ndarray:
        """The mean of the features over the prior's rows."""
        return np.asarray(self.features.mean(0, dtype=np.float64))

    @cached_property
    def centred(self) -> np.ndarray:
        """The features, centred, in units of a prior row's share of the doubt."""
        times = self.tau * self.rows[0] / np.sqrt(len(self.draws))
        return np.asarray((self.features - self.centre.astype(np.float32)) * np.float32(times))

    @cached_property
    def rows(self) -> tuple[float, float]:
        """The number of rows and the variance of its noise."""
        if self.release.rows is not None:
            return float(self.release.rows), 0.0
        block = next(b for b in self.release.blocks if isinstance(b.map, Count))
        return max(float(block.sum[0]), 1.0), float(block.stderr[0]) ** 2

    @cached_property
    def surprise(self) -> np.ndarray:
        """The sketch minus what the prior expects, in units of the noise."""
        seen = np.concatenate([sums / sd for _, sums, sd in self.used])
        return np.asarray(seen - self.rows[0] * self.centre)

    @cached_property
    def _tall(self) -> np.ndarray:
        """The centred features and, last, what an error in the number of rows does to them.

        In double precision, which every question would otherwise turn them into.
        """
        last = np.sqrt(self.rows[1]) * self.centre[None]
        return np.concatenate([self.centred, last], dtype=np.float64)

    @cached_property
    def _factor(self) -> torch.Tensor:
        """The regression's matrix: over features, or over rows where those are fewer."""
        if self.size <= len(self.centred):
            matrix = _gram(self.centred) + self.rows[1] * np.outer(self.centre, self.centre)
        else:
            matrix = _gram(self._tall.T)
        matrix[np.diag_indices(len(matrix))] += 1.0
        factor: torch.Tensor = torch.linalg.cholesky(torch.from_numpy(matrix))
        return factor

    def _solve(self, right: np.ndarray) -> np.ndarray:
        """Apply (1 + U·Uᵀ)⁻¹, where U has the centred features and, last, the number of rows."""
        if self.size <= len(self.centred):
            return self._apply(right)
        return np.asarray(right - self._tall.T @ self._apply(self._tall @ right))

    def _apply(self, right: np.ndarray) -> np.ndarray:
        with one_thread():
            return torch.cholesky_solve(torch.from_numpy(right), self._factor).numpy()

    @cached_property
    def weights(self) -> np.ndarray:
        """A weight for each drawn row, so that weighted averages are those `regress` gives.

        They add up to one; some may be negative (implicit M2M, §3.5).
        """
        total = self.rows[0] + self.rows[1] * float(self.centre @ self._surprised)
        score = self.centred @ self._surprised.astype(np.float32)
        times = self.tau * self.rows[0] / np.sqrt(len(self.draws)) / max(total, 1.0)
        return np.asarray(1 / len(score) + times * (score - score.mean()), dtype=float)

    @cached_property
    def _surprised(self) -> np.ndarray:
        return self._solve(self.surprise[:, None])[:, 0]

    def moments(self, functions: Sequence[Function], points: Mapping[str, Points]) -> Moments:
        """Give the averages of functions over the rows, and their errors."""
        values = self.draws.evaluate(functions, points)
        exact = expectations(self.prior, functions, points)
        return self.regress(values, exact, np.array([f.size for f in functions]))

    def apart(
        self,
        functions: Sequence[Function],  # noqa: ARG002
        points: Mapping[str, Points],  # noqa: ARG002
    ) -> bool:
        """Whether the functions can be asked about at once: here always."""
        return True

    def regress(
        self, values: np.ndarray, exact: np.ndarray, size: np.ndarray | None = None
    ) -> Moments:
        """Give averages from the values in the drawn rows and the exact means under the prior.

        Parameters
        ----------
        values
            Of each function in each row, shape (rows, m).
        exact
            Their means under the prior, shape (m,).
        size
            How large each function can be: one drawn row more or less is always possible, also
            where a function is zero in all of them.
        """
        size = np.abs(values).max(0) if size is None else size
        rows, variance = self.rows
        mean = values.mean(0)
        times = self.tau * rows / np.sqrt(len(self.draws))
        asked = np.column_stack([(values - mean) * times, np.zeros(len(values))])
        last = np.zeros(asked.shape[1])
        last[-1] = np.sqrt(variance)
        joint = self.centred.T @ asked.astype(np.float32) + np.outer(
            np.sqrt(variance) * self.centre, last
        )
        slope = self._solve(joint)
        sums = joint.T @ self._surprised
        prior = asked.T @ asked + np.outer(last, last)
        covariance = prior - joint.T @ slope
        noise = slope.T @ slope
        total = max(rows + float(sums[-1]), 1.0)
        # The drawn rows' own means are by chance off the prior's: as far as the features explain a
        # function, this is in their means too and cancels; the rest is put right.
        explained = 1 - np.diag(covariance)[:-1] / np.maximum(np.diag(prior)[:-1], 1e-300)
        right = mean + (exact - mean) * (1 - np.clip(explained, 0, 1))
        to_average = np.diag(np.append(np.full(len(mean), 1 / total), 1.0))
        to_average[:-1, -1] = -sums[:-1] / total**2
        noise = to_average @ noise @ to_average.T
        chance = (size / len(values)) ** 2
        how: How = "m2m"
        return Moments(
            np.append(right + sums[:-1] / total, total),
            noise,
            np.zeros_like(noise),
            to_average @ covariance @ to_average.T - noise + np.diag([*chance, 0.0]),
            (how,) * len(mean),
        )


def _gram(u: np.ndarray) -> np.ndarray:
    """Give Uᵀ·U in double precision: in single, the small directions drown in rounding."""
    with one_thread():
        double = torch.from_numpy(u).double()
        product: np.ndarray = (double.T @ double).numpy()
        return product
