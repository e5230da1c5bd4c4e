"""Which of several public feature maps to test by: chosen privately, on rows set aside for it.

The maps, that is their bandwidths and locations, are public. Which of them tells the two samples
apart is not, so it is bought: by OpenDP's noisy maximum of a score, on one part of `splitting`.

*Score.* On these rows, let T₀ be the statistic U of `permutation`, T₁, …, T_B the same for labels
that were dealt out anew, and q the k-th largest of these: T₀ − q is by how much the permutation
test would reject, without noise. It is divided by the sensitivity, so that a unit of it is as much
noise in the test for every map. T₀ alone would not do: it is large for short bandwidths, and varies
much for long ones, if nothing differs at all.

*Sensitivity.* Let Δ be what `permutation` proves for each T_i. An order statistic moves by no more
than the largest move of what is ordered, so T₀ − q moves by at most 2Δ. If a row is replaced, this
holds for every labelling. If one is added, it holds for labellings that are coupled as it says
there, map by map: a choice that is ε-DP for every such couple is ε-DP on average over them.

A proxy, then, and for the permutation test: sign-flip whitens its features, which this does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nextafter

import numpy as np

from aquatint.accounting import Noised, chosen
from aquatint.comparison import CompareError
from aquatint.curator.compare import permutation
from aquatint.curator.compare.samples import Samples
from aquatint.features.algebra import concat, leaves
from aquatint.features.base import FeatureMap

LABELLINGS, LARGEST = 99, 5
"""B and k: the score is the distance to where one in twenty labellings would be above."""
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
    coins
        Gives random bytes.
    """

    samples: Samples
    candidates: tuple[FeatureMap, ...]
    epsilon: float
    coins: permutation.Coins

    @property
    def noised(self) -> Noised:
        """The noise on the scores: that of one noisy maximum that is ε-DP."""
        return chosen(1, UNIT, nextafter(2 * UNIT / self.epsilon, inf) * (1 + 1e-12))

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Read the rows: one int64 vector with the score of every candidate, private."""
        found = []
        for each in self.candidates:
            seen = self.samples.seen_by(each)
            values = permutation.statistics(seen, LABELLINGS, self.coins, progress=progress)
            found.append(above(values) * UNIT // (2 * permutation.sensitivity(seen)))
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


def above(values: np.ndarray) -> int:
    """Give by how much the first statistic is above the k-th largest of the others."""
    return int(values[0]) - int(np.sort(values[1:])[-LARGEST])


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
