"""Features other than counts in two releases: frequencies, cosines, and anything with a bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from aquatint.analyst.compare.parts import Part, best_of, singly
from aquatint.analyst.compare.sides import Shared, Sides
from aquatint.analyst.compare.tails import joint, positive, sum_of_squares, two_squares
from aquatint.features.algebra import ByLabel
from aquatint.features.base import FeatureMap
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.release.histograms import histograms, unscaled

NAMED = 3
"""A part that looks at more columns than this is said to look at so many columns."""


def frequency_parts(
    sides: Sides,
    leaf: Fourier,
    found: Shared,
    *,
    share: float = 1.0,
    within: str = "",
    conservative: bool,
) -> Iterator[Part]:
    """Test every frequency by its cosine and sine together, and the squares of all by their sum.

    cos² + sin² = 1, so the two variances add up to τ = 2/D − ‖Φ‖² per row, known from the release;
    how τ divides between two directions is not. For ‖D‖² the least favourable division of a given
    sum is all to one direction, far in the tail (proved at `sum_of_squares`), or to both alike,
    near the middle (Székely & Bakirov 2003): the larger of the two p-values is taken. The sum over
    all frequencies, too, has a known trace and the noise as a floor. A row that misses a value maps
    to zero, which only lowers the variance.

    Parameters
    ----------
    sides, leaf, found
        The two releases, the map and its sums.
    share
        The share of rows that are not zero by construction, or more: τ = share·2/D − ‖Φ‖².
    within
        What those rows are, in words.
    conservative
        Take τ as if Φ were zero.
    """
    half = leaf.dim // 2
    difference = sides.difference(found.sums).reshape(2, half)
    mean = sides.pooled(found.sums).reshape(2, half)
    power = _power(sides, mean, found.deviations)
    most = share * 2 / leaf.dim
    trace = np.full(half, most) if conservative else np.maximum(most - power, 0.0)
    if sides.laplace:
        each = singly(sides, difference, mean, trace, found.deviations)
        pvalues = np.minimum(1.0, 2 * each.min(axis=0))
    else:
        data = trace * sides.sampling + power * sides.count_noise
        size = (difference**2).sum(axis=0)
        pvalues = either_way(size, data, sides.noise(found.deviations))
        if half > 1:
            least = sides.noise(found.deviations)
            pvalue = sum_of_squares(float(size.sum()), float(data.sum()), least, 2 * half)
            yield Part(f"{half} frequencies together{within}", leaf.columns, pvalue, whole=True)
    turns = leaf.frequencies.numpy()
    for number, pvalue in enumerate(pvalues):
        used = np.flatnonzero(turns[:, number])
        names = tuple(leaf.columns[i] for i in used)
        what = f"{len(used)} columns, number {number + 1}"
        if len(used) <= NAMED:
            each_turn = zip(names, np.abs(turns[used, number]), strict=True)
            what = ", ".join(f"{name} {turn:.2g} turns" for name, turn in each_turn)
        yield Part(f"frequency: {what}{within}", names, float(pvalue))


def either_way(size: np.ndarray, data: np.ndarray, noise: float) -> np.ndarray:
    """Bound P(λ₁Z₁² + λ₂Z₂² ≥ size) where λ₁ + λ₂ = data + 2·noise and neither is below noise."""
    least = np.full_like(data, noise)
    one = two_squares(size, data + least, least)
    alike = np.exp(-size / (2 * (data / 2 + least)))
    return np.asarray(np.maximum(one, alike))


def _power(sides: Sides, mean: np.ndarray, deviations: tuple[float, float]) -> np.ndarray:
    """Estimate ‖Φ‖² of every frequency without the noise's own share, between 0 and what it was."""
    noise = 2 * sum(d**2 for d in deviations) / sum(sides.rows) ** 2
    return np.asarray(np.maximum((mean**2).sum(axis=0) - noise, 0.0))


def cosine_parts(
    sides: Sides,
    leaf: Cosines,
    found: Shared,
    known: Mapping[str, np.ndarray],
    *,
    conservative: bool,
) -> Iterator[Part]:
    """Test the cosines of each column, and of each pair of columns.

    2·cos(πkx)·cos(πlx) = cos(π(k−l)x) + cos(π(k+l)x): the covariance of the lower half of a
    column's cosines is in the release, so they are also tested together. What is not is bounded.
    """
    weights = leaf.weights.numpy()
    difference = sides.difference(found.sums) / weights
    mean = sides.pooled(found.sums) / weights
    squares = {name: _squares(known.get(name), conservative=conservative) for name in leaf.columns}

    def coordinates(place: slice, second: np.ndarray) -> np.ndarray:
        variance = np.clip(second - mean[place] ** 2, 0.0, 1 - np.minimum(mean[place] ** 2, 1.0))
        w = weights[place]
        return singly(
            sides, difference[place] * w, mean[place] * w, variance * w**2, found.deviations
        )

    start = 0
    for name in leaf.columns if leaf.order else ():
        place = slice(start, start + leaf.order)
        start += leaf.order
        pvalue = best_of(coordinates(place, squares[name](np.arange(1, leaf.order + 1))))
        low = leaf.order // 2
        if low > 1 and not sides.laplace:
            whole = _column(sides, found, place, low, conservative=conservative)
            pvalue = best_of([pvalue, whole])
        yield Part(name, (name,), pvalue)
    orders = np.arange(1, leaf.pair_order + 1)
    for first, second in leaf.pairs:
        place = slice(start, start + leaf.pair_order**2)
        start += leaf.pair_order**2
        both = np.minimum(squares[first](orders)[:, None], squares[second](orders)[None, :])
        yield Part(
            f"{first} × {second}", (first, second), best_of(coordinates(place, both.ravel()))
        )


def _column(sides: Sides, found: Shared, place: slice, low: int, *, conservative: bool) -> float:
    """Test the lower half of a column's cosines together."""
    if not isinstance(leaf := found.map, Cosines):
        raise TypeError
    weights = leaf.weights.numpy()[place]
    mean = (sides.pooled(found.sums)[place] / weights)[: 2 * low]
    difference = (sides.difference(found.sums)[place] / weights)[:low]
    # An entry of the covariance is half the sum of two noisy means.
    own = np.sqrt(sum(d**2 for d in found.deviations)) / sum(sides.rows)
    deviation = float(own / weights[2 * low - 1] / np.sqrt(2))
    covariance = _covariance(mean, low)
    if conservative:
        covariance += deviation * np.sqrt(low) * np.eye(low)
    covariance = covariance * sides.sampling
    covariance += np.diag(sides.noise(found.deviations) / weights[:low] ** 2)
    covariance += np.outer(mean[:low], mean[:low]) * sides.count_noise
    return joint(difference, covariance, deviation * sides.sampling, sum(sides.rows))


def _squares(means: np.ndarray | None, *, conservative: bool) -> _Squares:
    return _Squares(None if conservative else means)


class _Squares:
    """E cos²(πkx) = (1 + E cos(2πkx))/2 where the release knows it, otherwise at most one."""

    def __init__(self, means: np.ndarray | None) -> None:
        self.means = np.zeros(0) if means is None else means

    def __call__(self, orders: np.ndarray) -> np.ndarray:
        found = np.ones(len(orders))
        inside = 2 * orders <= len(self.means)
        found[inside] = (1 + np.clip(self.means[2 * orders[inside] - 1], -1.0, 1.0)) / 2
        return found


def _covariance(means: np.ndarray, low: int) -> np.ndarray:
    """Give the covariance of cos(πkx), k up to `low`, from the means of twice as many cosines."""
    padded = np.concatenate([[1.0], means])
    k = np.arange(1, low + 1)
    second = (padded[np.abs(k[:, None] - k)] + padded[k[:, None] + k]) / 2
    return positive(second - np.outer(means[:low], means[:low]))


def cosine_means(sides: Sides, founds: list[Shared]) -> dict[str, np.ndarray]:
    """Gather the pooled means of every column's cosines."""
    known = {}
    for found in founds:
        if isinstance(leaf := found.map, Cosines) and leaf.order:
            mean = sides.pooled(found.sums) / leaf.weights.numpy()
            for number, name in enumerate(leaf.columns):
                known[name] = mean[number * leaf.order : (number + 1) * leaf.order]
    return known


def bounded_parts(sides: Sides, found: Shared, *, conservative: bool) -> Iterator[Part]:
    """Test the coordinates of any map by its range alone; of a map by label, class by class."""
    if not isinstance(leaf := found.map, ByLabel):
        yield _bounded(sides, leaf, found, 1.0, "")
        return
    names = sides.first.schema.cell_names(leaf.label)
    inner, weight = unscaled(leaf.inner)
    for number, share in enumerate(_class_shares(sides, leaf)):
        place = slice(number * inner.dim, (number + 1) * inner.dim)
        sums = found.sums[0][place] / weight, found.sums[1][place] / weight
        deviations = found.deviations[0] / weight, found.deviations[1] / weight
        one, within = Shared(inner, sums, deviations), f", {leaf.label} = {names[number]}"
        if isinstance(inner, Fourier):
            yield from frequency_parts(
                sides, inner, one, share=float(share), within=within, conservative=conservative
            )
        else:
            yield _bounded(sides, inner, one, float(share), within)


def _bounded(sides: Sides, leaf: FeatureMap, found: Shared, share: float, within: str) -> Part:
    """Test coordinates whose variance is bounded by their range.

    A variable between l and h with mean μ has variance at most (h − μ)(μ − l) (Bhatia & Davis
    2000). If it is zero outside a class of share q, it is at most q·max(h², l²) − μ² too.
    """
    low, high = min(float(leaf.bound.low), 0.0), float(leaf.bound.high)
    difference, mean = sides.difference(found.sums), sides.pooled(found.sums)
    range_alone = (high - mean) * (mean - low)
    by_class = share * max(high, -low) ** 2 - mean**2
    variance = np.maximum(np.minimum(range_alone, by_class), 0.0)
    pvalues = singly(sides, difference, mean, variance, found.deviations)
    columns = tuple(sorted(leaf.reads[0] | leaf.reads[1]))
    shown = ", ".join(columns) if len(columns) <= NAMED else f"{len(columns)} columns"
    return Part(f"{leaf.kind} of {shown}{within}", columns, best_of(pvalues))


def _class_shares(sides: Sides, leaf: ByLabel) -> np.ndarray:
    """Bound the share of every class by what both releases count, three deviations added."""
    found = [histograms(release.blocks).get(leaf.label) for release in sides.both]
    if found[0] is None or found[1] is None:
        return np.ones(leaf.classes)
    counts, rows = found[0][0] + found[1][0], sum(sides.rows)
    spread = np.sqrt(found[0][1] ** 2 + found[1][1] ** 2 + np.maximum(counts, 1.0))
    return np.asarray(np.clip((counts + 3 * spread) / rows, 0.0, 1.0))
