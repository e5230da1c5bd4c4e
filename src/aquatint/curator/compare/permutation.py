"""The permutation test: the distance of two mean embeddings, against labels dealt out anew.

With m rows in the first sample, n in the second, N = m + n and S_A the sum of φ over the rows
labelled A, the statistic is

    U = ‖S_A − (m/N)·S‖ = (mn/N)·‖mean_A − mean_B‖,

the biased MMD of the kernel ⟨φ(x), φ(y)⟩ times a factor that is the same for all labels, so that it
does not change any rank (Gretton et al. 2012; Schrab et al. 2024 for the private test).

Sensitivity. Let D be the largest distance of two rows' features.

*Replace one row*, sizes public. For every labelling the vector moves by (1 − m/N)(φ' − φ) if the
row is labelled A and by −(m/N)(φ' − φ) if not: U moves by at most D·max(m, n)/N. This holds for
each labelling by itself, so the labels need not be secret.

*Add or remove one row*, sizes private. Add a row φ to the first sample, which makes m + 1 and N + 1
(for the second sample swap the roles of A and B, which leaves U as it is). A uniform labelling of
N + 1 rows with m + 1 A's is dealt so: with probability (m + 1)/(N + 1) the new row is A and the
others get a uniform labelling with m A's; otherwise the new row is B, the others get a uniform
labelling with m A's, and one j of its B's, at random, becomes A. Compare with that labelling of N:

* new row A: the vector moves by φ − ((m+1)/(N+1))(S + φ) + (m/N)S = (n/(N+1))·(φ − S/N);
* new row B: it moves by φ_j − ((m+1)/(N+1))·φ − (n/(N+1))·S/N.

S/N is an average of rows, so the first is n/(N+1) times the distance of φ to a point of the convex
hull of rows, and the second the distance of φ_j to such a point ((m+1) + n = N + 1): both are at
most D. The true labels are of the first sort. So U moves by at most D under this coupling, and a
mechanism that is ε-DP for each coupled pair of labellings is ε-DP on average over them. Here the
labels have to be uniform and secret, and they are: exactly uniform, from the operating system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from aquatint.accounting import Budget, Noised
from aquatint.analyst.synthesize.threads import one_thread
from aquatint.comparison import CompareError
from aquatint.curator.compare import ranks
from aquatint.curator.compare.samples import Samples
from aquatint.curator.compare.trial import Conclusion
from aquatint.curator.fused import compiled
from aquatint.curator.interrupts import delayed
from aquatint.progress import track
from aquatint.release.model import Noise

SHIFT = 8
"""Statistics are counted in 2**-SHIFT of a step."""

Coins = Callable[[int], np.ndarray]


@dataclass(frozen=True, repr=False)
class Permutation:
    """One permutation test; `Trial` says what the parts are."""

    samples: Samples
    budget: Budget
    alpha: float
    count: int
    coins: Coins
    noise: Noise = "discrete laplace"

    @property
    def noised(self) -> tuple[Noised, ...]:
        """Laplace noise on every statistic."""
        return (ranks.noise_for(sensitivity(self.samples), self.count + 1, self.budget.epsilon),)

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Give the statistics of the data and of all labellings: private."""
        return [statistics(self.samples, self.count, self.coins, progress=progress)]

    def conclude(self, noisy: Sequence[np.ndarray]) -> Conclusion:
        """Decide by the rank; nothing else of it is private."""
        first, second = self.samples.sizes
        public = self.samples.schema.privacy.replaces
        return Conclusion(
            ranks.rejects(noisy[0], self.alpha),
            f"permutation test of the mean embeddings, {self.samples.coarse.map.dim} features",
            f"rank among {self.count:,} random labellings: exact level",
            sizes=(float(first), float(second)) if public else None,
        )


def sensitivity(samples: Samples) -> int:
    """Bound how far one row moves any of the statistics, in the units of `statistics`.

    The vector is rounded down coordinate by coordinate, which moves two of them apart by less than
    √dim, and its norm is rounded down, which adds at most one; all arithmetic is exact.
    """
    share = Fraction(1)
    if samples.schema.privacy.replaces:
        share = Fraction(max(samples.sizes), sum(samples.sizes))
    squared = samples.coarse.distance_squared * share**2 * 4**SHIFT
    return (isqrt(int(squared)) + 1) + (isqrt(samples.coarse.map.dim) + 1) + 1


def statistics(samples: Samples, count: int, coins: Coins, *, progress: bool = False) -> np.ndarray:
    """Give the statistic of the data, and that of `count` labellings with the same sizes.

    Private: whole numbers, int64, without noise. Memory does not grow with the rows.

    Parameters
    ----------
    samples
        The two datasets.
    count
        How often the labels are dealt out anew.
    coins
        Gives random bytes.
    progress
        Show progress on a terminal.
    """
    first, rows = samples.sizes[0], sum(samples.sizes)
    dim = samples.coarse.map.dim
    dealt = np.zeros((count, dim), dtype=np.int64)
    sides = np.zeros((2, dim), dtype=np.int64)
    left = np.tile(np.array([first, rows], dtype=np.int64), (count, 1))
    with (
        one_thread(),
        ThreadPoolExecutor(1) as beside,
        track("comparing rows", rows, show=progress) as advance,
    ):
        for side in (0, 1):
            for encoded in samples.rows(side):
                labels = beside.submit(deal, left, len(encoded), coins)  # while features are made
                tile = samples.coarse.integers(encoded)
                dealt += (labels.result() @ tile).astype(np.int64)
                sides[side] += tile.sum(axis=0, dtype=np.float64).astype(np.int64)
                advance(len(encoded))
    everyone = sides.sum(axis=0)
    share = [(int(total) * first << SHIFT) // rows for total in everyone]
    kept = np.vstack([sides[:1], dealt])
    return np.array([_norm(row, share) for row in kept.tolist()], dtype=np.int64)


def _norm(sums: list[int], share: list[int]) -> int:
    return isqrt(sum(((a << SHIFT) - b) ** 2 for a, b in zip(sums, share, strict=True)))


def deal(left: np.ndarray, rows: int, coins: Coins) -> np.ndarray:
    """Draw which of the next rows are labelled A, for every labelling, as an urn without return.

    Parameters
    ----------
    left
        For every labelling, how many A's and how many rows are still to come; changed in place.
    rows
        How many rows there are now.
    coins
        Gives random bytes.

    Returns
    -------
    numpy.ndarray
        Ones and zeros in float32, shape (labellings, rows).
    """
    labels = np.empty((len(left), rows), dtype=np.float32)
    draws = coins(labels.size).reshape(labels.shape)
    spare = coins(labels.size // 64 + 4096)  # about one draw in 256 needs more than a byte
    with delayed():  # the first call compiles, and the compiler may swallow Ctrl-C
        used = _deal(left, draws, spare, labels)
    if used > len(spare):
        msg = "the random bytes ran out, which happens once in a lifetime: start again"
        raise CompareError(msg)
    return labels


@compiled
def _deal(left: np.ndarray, draws: np.ndarray, spare: np.ndarray, labels: np.ndarray) -> int:
    """Compare a uniform number with a/r byte by byte: exact, and nearly always one byte is enough.

    While the bytes so far agree with the digits of a/r in base 256, `rest` is what is left of
    256·a by these digits, and the next byte is compared in the same way.
    """
    used = 0
    for b in range(labels.shape[0]):
        some, rows = left[b, 0], left[b, 1]
        for i in range(labels.shape[1]):
            rest = 256 * some - np.int64(draws[b, i]) * rows
            while 0 < rest < rows:
                if used == len(spare):
                    return used + 1
                rest = 256 * rest - np.int64(spare[used]) * rows
                used += 1
            taken = np.int64(rest > 0)
            labels[b, i] = np.float32(taken)
            some -= taken
            rows -= 1
        left[b, 0], left[b, 1] = some, rows
    return used
