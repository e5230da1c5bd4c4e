"""Means and second moments of two owners who trust nobody (Raj et al. 2019, §4–5), noise and all.

The paper whitens the difference w of the two means by the covariance of the rows and then looks for
the law of the result, whose weights depend on noise it has to guess (§5). Here w is whitened by its
own covariance, noise included, which makes the law almost a plain χ².
"""

from __future__ import annotations

import numpy as np
import torch

from aquatint.analyst.compare.parts import Part, best_of, singly
from aquatint.analyst.compare.sides import Shared, Sides
from aquatint.analyst.compare.tails import joint, positive
from aquatint.features.base import FeatureMap
from aquatint.features.fourier import Fourier
from aquatint.features.locations import Locations
from aquatint.features.moments import SecondMoment


def whitened_part(
    sides: Sides, mean: Shared, moment: Shared, second: SecondMoment, *, conservative: bool
) -> Part:
    """Test the mean features of two releases by T = w'(NΣ + noise + c·μμ')⁻¹w.

    N = 1/n + 1/m and Σ is the covariance of one row: under the null both releases estimate the same
    one, so it is pooled by the noise of each, and projected on the positive semidefinite matrices.
    c·μμ' is what noise on the numbers of rows adds: small, because features are centred. T would
    be χ²_J with Σ known; the law is Hotelling's, with the freedom that the noise on Σ leaves.
    ``conservative`` pads Σ by the spectral size of its noise, β√J.

    Means of Fourier features have a second look, at w along the pooled means: data that spread out
    move every mean towards zero, and one direction has less noise than all. The smaller p-value of
    the two is doubled.
    """
    covariance, deviation = _covariance(sides, mean, moment, second)
    difference, centre = sides.difference(mean.sums), sides.pooled(mean.sums)
    added = np.eye(len(centre)) * sides.noise(mean.deviations)
    added += np.outer(centre, centre) * sides.count_noise

    def together(covariance: np.ndarray) -> float:
        whole = covariance * sides.sampling + added
        off, rows = deviation * sides.sampling, sum(sides.rows)
        found = joint(difference, whole, off, rows)
        if not isinstance(mean.map, Fourier):
            return found
        towards = _pooled_apart(sides, mean, covariance)
        variance = np.array([[towards @ whole @ towards]])
        # w'Ew has variance at most 2β²·‖w‖⁴ for the noise E of a covariance.
        off *= float(np.sqrt(2) * (towards @ towards))
        return best_of([found, joint(np.array([towards @ difference]), variance, off, rows)])

    # A padded covariance is also less affected by its noise: never the smaller p-value of the two.
    padded = covariance + deviation * np.sqrt(len(covariance)) * np.eye(len(covariance))
    pvalue = max(map(together, (covariance, padded) if conservative else (covariance,)))
    covariance = padded if conservative else covariance
    each = singly(sides, difference, centre, np.diag(covariance), mean.deviations)
    columns = tuple(sorted(second.reads[0] | second.reads[1]))
    named = _names(mean.map)
    details = tuple(Part(n, columns, float(p)) for n, p in zip(named, each, strict=True))
    if sides.laplace:
        return Part(f"{mean.map.kind}, one by one", columns, best_of(each), details, whole=True)
    return Part(f"{mean.map.kind} together", columns, pvalue, details, whole=True)


def _pooled_apart(sides: Sides, mean: Shared, covariance: np.ndarray) -> np.ndarray:
    """Pool the means by their precision, so that they say nothing about the difference of both."""
    typical = float(np.trace(covariance)) / len(covariance)
    pairs = zip(mean.sums, mean.deviations, sides.rows, strict=True)
    known = [(sums / n, 1 / (typical / n + (d / n) ** 2)) for sums, d, n in pairs]
    return np.asarray(sum(w * m for m, w in known) / sum(w for _, w in known))


def _names(leaf: FeatureMap) -> list[str]:
    if isinstance(leaf, Locations):
        return [f"location {number + 1}" for number in range(leaf.dim)]
    half = leaf.dim // 2
    return [f"frequency {n + 1}, {wave}" for wave in ("cosine", "sine") for n in range(half)]


def _covariance(
    sides: Sides, mean: Shared, moment: Shared, second: SecondMoment
) -> tuple[np.ndarray, float]:
    """Pool the covariance of the features; also give the noise of one of its entries."""
    weights, found = [], []
    for side, rows in enumerate(sides.rows):
        centre = mean.sums[side] / rows
        entries = torch.from_numpy(moment.sums[side] / rows)
        own = (mean.deviations[side] / rows) ** 2  # the noise's share of the squared means
        matrix = second.matrix(entries).numpy() - np.outer(centre, centre)
        found.append(matrix + own * np.eye(len(centre)))
        weights.append((rows / moment.deviations[side]) ** 2)
    pooled = sum(w * m for w, m in zip(weights, found, strict=True)) / sum(weights)
    return positive(np.asarray(pooled)), float(sum(weights) ** -0.5)
