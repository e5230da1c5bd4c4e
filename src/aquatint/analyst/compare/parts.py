"""One look at two releases, and how several looks make one test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from aquatint.analyst.compare.counts import Cells, bounded
from aquatint.analyst.compare.counts import two_sided as counts_beyond
from aquatint.analyst.compare.sides import Sides
from aquatint.analyst.compare.tails import in_deviations, two_sided


@dataclass(frozen=True)
class Part:
    """What one look found.

    Attributes
    ----------
    name
        What was looked at, in words.
    columns
        The columns that it looks at.
    pvalue
        Valid by itself: no smaller than the probability of so large a difference under the null.
    details
        If one look is at several things at once: each of them, to say where the difference is.
    whole
        Whether this is a look at many features at once, for a difference spread over all of them.
    """

    name: str
    columns: tuple[str, ...]
    pvalue: float
    details: tuple[Part, ...] = ()
    whole: bool = False

    @property
    def statistic(self) -> float:
        """The p-value in standard deviations."""
        return in_deviations(self.pvalue)


def best_of(pvalues: Sequence[float] | np.ndarray) -> float:
    """Combine p-values by the smallest, times their number: valid however they depend."""
    found = np.asarray(pvalues)
    return float(min(1.0, found.size * found.min()))


def adjusted(found: Sequence[Part]) -> list[float]:
    """Adjust the p-values of all looks, so that the smallest is valid however they depend.

    Looks at many features at once share one half of the level, looks at single ones the other:
    Bonferroni's correction with weights that add up to one. A few of the first kind would drown
    among hundreds of the second.
    """
    counts = {kind: sum(part.whole == kind for part in found) for kind in (True, False)}
    kinds = sum(count > 0 for count in counts.values())
    return [min(1.0, kinds * counts[part.whole] * part.pvalue) for part in found]


def singly(
    sides: Sides,
    difference: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    deviations: tuple[float, float],
    times: tuple[np.ndarray | float, np.ndarray | float] = (1.0, 1.0),
    *,
    counts: bool = False,
) -> np.ndarray:
    """Test every coordinate of a difference of means by itself.

    Parameters
    ----------
    sides
        The two releases.
    difference, mean
        Of the two means, and the mean of both.
    variance
        The variance of one row, or more.
    deviations
        The standard deviation of the noise on each side's sum, of one noisy number.
    times
        How many noisy numbers were added up for a coordinate on each side.
    counts
        Whether coordinates are shares of rows: a Gaussian's tail is too light for few of them.
    """
    gaussian, one = variance * sides.sampling, np.ones_like(mean)
    laplaces = []
    for side, release in enumerate(sides.both):
        scale = deviations[side] / sides.rows[side]
        count = np.abs(mean) * sides.row_noise[side] / sides.rows[side]
        if release.statement.noise == "discrete gaussian":
            gaussian = gaussian + times[side] * scale**2 + count**2
        else:
            laplaces += [(scale * one / sqrt(2), times[side] * one), (count / sqrt(2), one)]
    found = two_sided(difference, gaussian, laplaces)
    if not counts:
        return found
    noise = gaussian - variance * sides.sampling
    cells = Cells(mean, noise, sides.rows, sides.together)
    return _heavier(found, cells, difference, laplaces)


def _heavier(
    found: np.ndarray,
    cells: Cells,
    difference: np.ndarray,
    laplaces: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Put the tails of counts in the place of those of Gaussians, where they are heavier."""
    some = cells.far_from_gaussian(difference)
    if not some.any():
        return found
    few, size = cells.only(some), np.abs(difference[some])
    if laplaces:
        tails = bounded(few, size, [(scale[some], times[some]) for scale, times in laplaces])
    else:
        tails = counts_beyond(few, size)
    found = found.copy()
    found[some] = np.maximum(found[some], tails)
    return found
