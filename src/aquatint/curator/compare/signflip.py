"""The sign-flip test: √q against the same with the two rows of each pair swapped at random.

If nothing differs, swapping x_i and y_i changes nothing, and swapping turns z_i into −z_i. Λ stays
as it is, so only the mean has to be computed anew. The statistics are exchangeable, so the rank
test of `ranks` has its exact level; each of them moves by what `roots` bounds, so it is ε-DP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aquatint.accounting import Budget, Noised
from aquatint.curator.compare import ranks, roots
from aquatint.curator.compare.samples import Samples
from aquatint.curator.compare.trial import Conclusion, need_public_sizes
from aquatint.release.model import Noise

_TILE = 2**13


@dataclass(frozen=True, repr=False)
class SignFlip:
    """One sign-flip test; `Trial` says what the parts are."""

    samples: Samples
    budget: Budget
    alpha: float
    count: int
    coins: Callable[[int], np.ndarray]
    ridge: float = roots.RIDGE
    noise: Noise = "discrete laplace"

    def __post_init__(self) -> None:
        need_public_sizes(self.samples.schema, "signflip", self.samples.sizes)
        roots.check_ridge(self.ridge, self.samples.coarse.map.dim, "signflip")

    @property
    def noised(self) -> tuple[Noised, ...]:
        """Laplace noise on every statistic."""
        rows, features = self.samples.sizes[0], self.samples.coarse.map.dim
        moved = roots.sensitivity(rows, self.ridge, features)
        return (ranks.noise_for(moved, self.count + 1, self.budget.epsilon),)

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Give the statistics of the data and of all swaps: private."""
        pairs = roots.pairs_of(self.samples, self.coins, progress=progress)
        means = np.vstack([pairs.sum(axis=0), flipped(pairs, self.count, self.coins)])
        return [roots.roots(pairs, means, self.samples, self.ridge)]

    def conclude(self, noisy: Sequence[np.ndarray]) -> Conclusion:
        """Decide by the rank; nothing else of it is private."""
        return Conclusion(
            ranks.rejects(noisy[0], self.alpha),
            f"sign-flip test, {self.samples.coarse.map.dim} features, ridge {self.ridge:g}",
            f"rank among {self.count:,} random swaps within pairs: exact level",
            sizes=(float(self.samples.sizes[0]), float(self.samples.sizes[1])),
        )


def flipped(pairs: np.ndarray, count: int, coins: Callable[[int], np.ndarray]) -> np.ndarray:
    """Sum the pairs under random signs, exactly, shape (count, J)."""
    found = np.zeros((count, pairs.shape[1]))
    for start in range(0, len(pairs), _TILE):
        tile = pairs[start : start + _TILE]
        width = -(-len(tile) // 8)
        bits = np.unpackbits(coins(count * width).reshape(count, width), axis=1)[:, : len(tile)]
        # Sums of whole numbers below 2**53 are exact in float64.
        found += 2.0 * (bits.astype(np.float64) @ tile) - tile.sum(axis=0)
    return found
