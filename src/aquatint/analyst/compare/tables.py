"""Counts of cells in two releases: a quadratic form over each table, and its cells one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc

from aquatint.analyst.compare.counts import Cells
from aquatint.analyst.compare.parts import Part, best_of, singly
from aquatint.analyst.compare.sides import Shared, Sides, plain_leaves
from aquatint.analyst.compare.tails import independent, joint
from aquatint.columns import RANGED, Ordered
from aquatint.features.marginals import Marginals
from aquatint.features.race import Race
from aquatint.release.histograms import on_simplex
from aquatint.release.model import Release

FEW_FUNCTIONS = 8
"""How many smooth functions of a column are tested; half as many of each column of several."""
MOST_KURTOSIS = 0.05
"""A cell whose difference has more excess kurtosis than this is far from Gaussian."""
MOST_FUNCTIONS = 120
"""With more functions than this a table is wide in unordered columns, and they are left out."""


@dataclass(frozen=True)
class Table:
    """The counts of one set of cells that every row falls into exactly once, in both releases.

    Attributes
    ----------
    counts
        Of each release.
    deviations
        The standard deviation of the noise on one released number of each.
    times
        For each release, how many released numbers were added up for every cell.
    shape
        The number of cells along each column.
    ordered
        Whether the cells of each column have an order.
    """

    name: str
    columns: tuple[str, ...]
    counts: tuple[np.ndarray, np.ndarray]
    deviations: tuple[float, float]
    times: tuple[np.ndarray, np.ndarray]
    shape: tuple[int, ...]
    ordered: tuple[bool, ...]


def table_part(sides: Sides, table: Table, *, conservative: bool) -> Part:
    """Test whether the two rows of a table have the same shares.

    With pooled shares p, K cells and D the difference of the two rows' shares, the covariance is
    C = N(diag p − pp') + diag(noise) + c·pp', where N = 1/n + 1/m and c is what noise on the counts
    adds. It is a diagonal plus one outer product, so D'C⁻¹D ~ χ²_K needs no matrix. It sees a
    difference that is spread over the table; the largest cell, whose rows are counted, sees one
    that is not; and along
    columns with an order and many cells, a few smooth contrasts see a shift. The smallest p-value
    times their number is valid for all. Under Laplace noise, whose tails are longer, cells alone
    are looked at.
    """
    parts = zip(table.deviations, table.times, sides.rows, strict=True)
    noise = np.asarray(sum(times * (deviation / rows) ** 2 for deviation, times, rows in parts))
    difference = sides.difference(table.counts)
    share = _shares(sides, table, conservative=conservative)
    variance = share if conservative else share * (1 - share)
    cells = singly(sides, difference, share, variance, table.deviations, table.times, counts=True)
    if sides.laplace:
        return Part(table.name, table.columns, best_of(cells))
    spread = share * sides.sampling + noise
    shift = sides.count_noise - (0.0 if conservative else sides.sampling)
    counted = Cells(share, noise, sides.rows, sides.together)
    looks = [spread_out(difference, counted, spread, shift), best_of(cells)]
    smooth = contrasts(share, table.shape, table.ordered)
    if smooth is not None:
        smooth = smooth * (share / spread)[:, None]  # cells that are noise alone say little
        along = smooth.T @ share
        covariance = (smooth.T * spread) @ smooth + shift * np.outer(along, along)
        looks.append(joint(*independent(smooth.T @ difference, covariance)))
    return Part(table.name, table.columns, best_of(looks))


def spread_out(difference: np.ndarray, cells: Cells, spread: np.ndarray, shift: float) -> float:
    """Test D'C⁻¹D with C = diag(spread) + shift·pp'.

    Cells that are far from Gaussian, since few rows are expected and noise is small beside these,
    are added up to one, or left out if that is no better. What kurtosis the others have makes the
    variance of D'C⁻¹D larger, K(2 + κ): it is compared with a multiple of χ² that has both moments.
    """
    share, kurtosis = cells.share, cells.kurtosis
    rare = kurtosis > MOST_KURTOSIS
    if rare.any():
        one = replace(cells, share=share[rare].sum()[None], noise=cells.noise[rare].sum()[None])
        kept, joined = ~rare, one.kurtosis <= MOST_KURTOSIS

        def without(each: np.ndarray) -> np.ndarray:
            return np.concatenate([each[kept], each[rare].sum()[None][joined]])

        difference, spread, share = without(difference), without(spread), without(share)
        kurtosis = np.concatenate([kurtosis[kept], one.kurtosis[joined]])
    if not len(share):
        return 1.0
    along = (share * difference / spread).sum()
    statistic = (difference**2 / spread).sum()
    statistic -= shift * along**2 / (1 + shift * (share**2 / spread).sum())
    times = 1 + kurtosis.mean() / 2
    return float(chdtrc(len(share) / times, statistic / times))


def contrasts(
    share: np.ndarray, shape: tuple[int, ...], ordered: tuple[bool, ...]
) -> np.ndarray | None:
    """Give smooth functions of the cells, shape (cells, functions), where there are many cells.

    Along a column with an order they are cosines of the rank, which is even under the pooled shares
    whatever the column's shape: the first sees a shift, the second a change of spread. Along
    other columns every cell is a function of its own.
    """
    few = FEW_FUNCTIONS if len(shape) == 1 else FEW_FUNCTIONS // 2
    axes, reduced = [], []
    for axis, (size, has_order) in enumerate(zip(shape, ordered, strict=True)):
        if not has_order or size <= few + 1:
            axes.append(np.eye(size))
            continue
        reduced.append(axis)
        others = tuple(a for a in range(len(shape)) if a != axis)
        weight = share.reshape(shape).sum(axis=others)
        rank = np.cumsum(weight) - weight / 2
        axes.append(np.cos(np.pi * np.outer(rank / weight.sum(), np.arange(few + 1))))
    if not reduced or np.prod([axis.shape[1] for axis in axes]) > MOST_FUNCTIONS:
        return None
    found = axes[0]
    for axis_functions in axes[1:]:
        found = np.einsum("if,jg->ijfg", found, axis_functions).reshape(
            len(found) * len(axis_functions), -1
        )
    return found[:, 1:] if len(reduced) == len(shape) else found  # the first is the constant


def _shares(sides: Sides, table: Table, *, conservative: bool) -> np.ndarray:
    """Pool the shares of the cells, none below one row; conservatively, pad by the noise."""
    rows, cells = sum(sides.rows), len(table.counts[0])
    # Each side by its precision at even shares: then the pooled shares and the difference of the
    # two are all but independent, and functions chosen by the one do not favour the other.
    parts = zip(table.counts, table.deviations, table.times, sides.rows, strict=True)
    found = [(c / n, 1 / (1 / (cells * n) + t * (d / n) ** 2)) for c, d, t, n in parts]
    precision = sum(weight for _, weight in found)
    pooled = sum(weight * shares for shares, weight in found) / precision
    share = np.maximum(on_simplex(np.asarray(pooled)), 1 / rows)
    if conservative:
        return np.asarray(np.minimum(share + np.sqrt(1 / precision), 1.0))
    return np.asarray(share / share.sum())


Counted = tuple[Marginals, np.ndarray, float]
"""A map of counts, its noisy counts and the standard deviation of their noise."""


def tables(sides: Sides) -> Iterator[Table]:
    """Give the tables over the same columns that both releases count, over common cells."""
    theirs: dict[tuple[str, ...], list[Counted]] = {}
    for columns, counted in _sets(sides.second):
        theirs.setdefault(columns, []).append(counted)
    known: dict[tuple[int, int, str], tuple[np.ndarray, np.ndarray]] = {}
    for columns, ours in _sets(sides.first):
        if not theirs.get(columns):
            continue
        other = theirs[columns].pop(0)
        keys = [(id(ours[0]), id(other[0]), name) for name in columns]
        for key in keys:
            if key not in known:
                known[key] = _common(ours[0], other[0], key[2])
        first, second = zip(*(known[key] for key in keys), strict=True)
        shape = tuple(int(group.max()) + 1 for group in first)
        if prod(shape) > 1:
            both = _coarse(ours, columns, first), _coarse(other, columns, second)
            (one, one_times), (two, two_times) = both
            kinds = (sides.first.schema.columns[name] for name in columns)
            yield Table(
                name=" × ".join(columns),
                columns=columns,
                counts=(one, two),
                deviations=(ours[2], other[2]),
                times=(one_times, two_times),
                shape=shape,
                ordered=tuple(isinstance(kind, (*RANGED, Ordered)) for kind in kinds),
            )


def _sets(release: Release) -> Iterator[tuple[tuple[str, ...], Counted]]:
    for leaf, sums, deviation in plain_leaves(release):
        if isinstance(leaf, Marginals):
            for columns in leaf.sets:
                yield columns, (leaf, sums, deviation)


def _common(first: Marginals, second: Marginals, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Find the finest groups of a column that both count: for each counted cell, its group.

    Cells that either release merged cannot be told apart, nor can what they are linked to: groups
    are the connected components.
    """
    size = dict(first.columns)[name]
    one, two = (np.array(leaf.merged.get(name, range(size))) for leaf in (first, second))
    width = one.max() + 1
    links = coo_array((np.ones(size), (one, width + two)), shape=(width + two.max() + 1,) * 2)
    group = connected_components(links, directed=False)[1]
    return group[:width], group[width:]


def _coarse(
    counted: Counted, columns: tuple[str, ...], groups: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Add up counted cells into common groups; also say how many went into each."""
    leaf, sums, _ = counted
    place = np.zeros(1, dtype=np.int64)
    for group in groups:
        place = (place[:, None] * (int(group.max()) + 1) + group[None, :]).reshape(-1)
    return np.bincount(place, weights=sums[leaf.set_slice(columns)]), np.bincount(place)


def hash_tables(leaf: Race, found: Shared) -> Iterator[Table]:
    """Give the buckets of every hash of RACE as a table."""
    ones = np.ones(leaf.buckets)
    for number in range(leaf.repetitions):
        place = slice(number * leaf.buckets, (number + 1) * leaf.buckets)
        counts = found.sums[0][place], found.sums[1][place]
        name, shape = f"hash {number + 1}", (leaf.buckets,)
        yield Table(
            name, leaf.columns, counts, found.deviations, (ones, ones), shape, ordered=(False,)
        )
