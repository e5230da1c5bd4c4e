"""Which of several public feature maps to test by: chosen privately, on rows set aside for it.

The maps, that is their bandwidths and locations, are public. Which of them tells the two samples
apart is not, so it is bought: by OpenDP's noisy maximum of a score, on one part of `splitting`.

*Score.* With m and n rows in this part, N = m + n and U the statistic of `permutation`, labels
dealt out anew have E U² = mn/(N(N−1))·Q for Q = Σ‖φ_i − φ̄‖². So U is large for a map with a
short bandwidth even if nothing differs, and what counts is by how much U is above the root of that.
The score is U − R with

    R = √(gP),  g = m̃ñ/Ñ²,  P = Q + c²D²,  m̃ = m + c²,  ñ = n + c²,  Ñ = m̃ + ñ,

D the largest distance of two rows' features and c = 5: 25 rows that are not there on either side
make R nearly as smooth as a constant. The score is divided by its own sensitivity, so that a unit
of it is as much noise in the test for every map. That U varies more from labelling to labelling for
some maps is left out of it: a spread in the denominator would have no small sensitivity.

*Sensitivity.* U moves by at most what `permutation` proves for the true labels, D·max(m, n)/N or D.
Q is Σ_{i<j}‖φ_i − φ_j‖²/N ≤ (N − 1)D²/2, so P ≤ D²Ñ/2; g ≤ 1/4; P ≥ c²D².

Replace one row: Q = Q₋ + (N−1)/N·‖φ_i − φ̄₋‖², where Q₋ and φ̄₋ are without the row, so Q moves by
at most D², √P by at most D²/(2cD), and R by at most half of that: D/4c = D/20.

Add a row, say to the first sample; a prime is for after it. Q' − Q = N/(N+1)·‖φ − φ̄‖² ≤ D², so

    |R' − R| ≤ √g'·(√P' − √P) + |√g' − √g|·√P ≤ D/4c + |√g' − √g|·√P.

√(g'/g) = √(1 + 1/m̃)·Ñ/(Ñ + 1) is at most 1 + 1/2m̃ and at least 1 − 1/Ñ. In the first case the last
term is at most √(gP)/2m̃ ≤ √(P/(m̃Ñ))/2 ≤ D/√(8m̃) ≤ D/√8c, in the second √(gP)/Ñ ≤ D/√(8Ñ) ≤ D/4c.
Together R moves by at most (1/4 + 1/√8)·D/c < D/8. All of this holds for parts without rows too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt, nextafter

import numpy as np

from aquatint.accounting import Noised, chosen
from aquatint.comparison import CompareError
from aquatint.curator.compare import permutation
from aquatint.curator.compare.permutation import SHIFT
from aquatint.curator.compare.samples import CoarseMap, Samples
from aquatint.features.algebra import concat, leaves
from aquatint.features.base import FeatureMap
from aquatint.progress import track

EXTRA = 25
"""c²: so many rows that are not there on either side."""
UNIT = 2**20
"""One row moves a score by at most so much."""


@dataclass(frozen=True, repr=False)
class Choice:
    """A private choice among feature maps.

    Attributes
    ----------
    samples
        The rows to choose by, opened with `all_columns` of the candidates.
    candidates
        The maps, at least two.
    epsilon
        What the choice spends.
    """

    samples: Samples
    candidates: tuple[FeatureMap, ...]
    epsilon: float

    @property
    def noised(self) -> Noised:
        """The noise on the scores: that of one noisy maximum that is ε-DP."""
        return chosen(1, UNIT, nextafter(2 * UNIT / self.epsilon, inf) * (1 + 1e-12))

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Read the rows: one int64 vector with the score of every candidate, private."""
        gathered = [_Gathered(CoarseMap(each)) for each in self.candidates]
        with track("choosing features", sum(self.samples.sizes), show=progress) as advance:
            for side in (0, 1):
                for encoded in self.samples.rows(side):
                    for one in gathered:
                        one.add(side, one.coarse.integers(encoded))
                    advance(len(encoded))
        found = []
        for each, one in zip(self.candidates, gathered, strict=True):
            seen = self.samples.seen_by(each)
            found.append(one.above(seen.sizes) * UNIT // sensitivity(seen))
        return [np.array(found, dtype=np.int64)]

    @property
    def everyone(self) -> tuple[float, float]:
        """How many rows the two datasets have, those to test too: private, unless sizes are not."""
        first, second = self.samples.kept or ((), ())
        return float(len(first)), float(len(second))

    def told(self, place: int) -> str:
        """Say which candidate was chosen: public, since the choice is private."""
        name = described(self.candidates[place])
        return (
            f"features chosen privately on a third of the rows: candidate {place + 1} of "
            f"{len(self.candidates)}, {name}"
        )


class _Gathered:
    """Exact sums of one map over both sides: private."""

    def __init__(self, coarse: CoarseMap) -> None:
        self.coarse = coarse
        self.sums = np.zeros((2, coarse.map.dim), dtype=np.int64)
        self.squares = 0

    def add(self, side: int, tile: np.ndarray) -> None:
        """Add integer rows; sums of whole numbers below 2**53 are exact in float64."""
        whole = tile.astype(np.float64)
        self.sums[side] += whole.sum(axis=0).astype(np.int64)
        self.squares += int(np.vdot(whole, whole))

    def above(self, sizes: tuple[int, int]) -> int:
        """Give U − R in the units of `permutation.statistics`; both are rounded down."""
        everyone = self.sums.sum(axis=0).tolist()
        found = permutation.distance(self.sums[0].tolist(), everyone, sizes)
        return found - by_chance(everyone, self.squares, sizes, self.coarse.distance_squared)


def by_chance(
    everyone: list[int], squares: int, sizes: tuple[int, int], distance_squared: int
) -> int:
    """Give R, rounded down: about what U is for labels that are dealt out anew.

    Parameters
    ----------
    everyone
        The sum of the integer features over all rows.
    squares
        The sum of their squared norms.
    sizes
        m and n.
    distance_squared
        D², in squared steps.
    """
    first, second = (size + EXTRA for size in sizes)
    around = squares - Fraction(sum(a * a for a in everyone), max(1, sum(sizes)))
    spread = around + EXTRA * distance_squared
    share = Fraction(first * second, (first + second) ** 2)
    return isqrt(int(share * spread * 4**SHIFT))


def sensitivity(samples: Samples) -> int:
    """Bound how far one row moves U − R, in the units of `permutation.statistics`.

    Rounding R down adds at most one.
    """
    part = 20 if samples.schema.privacy.replaces else 8
    moved = isqrt(samples.coarse.distance_squared * 4**SHIFT // part**2) + 1
    return permutation.sensitivity(samples) + moved + 1


def all_columns(candidates: Sequence[FeatureMap]) -> FeatureMap:
    """Give a map that reads whatever any candidate reads; too few candidates are refused."""
    if len(candidates) < 2:
        msg = f"there is nothing to choose from {len(candidates)} feature maps: give at least two"
        raise CompareError(msg)
    return concat(*candidates)


def described(feature_map: FeatureMap) -> str:
    """Name a map by its kinds and length scales: all of it is public."""
    kinds: list[str] = []
    scales: list[str] = []
    for leaf in leaves(feature_map):
        inner = getattr(leaf, "inner", leaf)
        kinds.append(inner.kind)
        found = getattr(inner, "length_scales", None) or (getattr(inner, "length_scale", None),)
        scales.extend(f"{each:.3g}" for each in found if each is not None)
    text = " and ".join(dict.fromkeys(kinds))
    if scales:
        text += f" with length scale {', '.join(dict.fromkeys(scales))}"
    return text
