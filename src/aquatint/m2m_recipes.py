"""Sketches for asking questions: those of M2M under right bounds, and a default that does better.

M2M (Houssiau, Schellekens, Chatalic, Annamraju & de Montjoye 2022) answers E f(x) by ⟨a, z⟩, with z
the noisy mean of a feature map Φ and a fitted to f on points that cost no privacy. Any Φ will do.
The paper's three are here by name, and `m2m`, which is more accurate on tables of numbers.

The noise follows from δ, as for every plan. A sketch with ``delta=0`` has the paper's Laplace
noise, and the shares divide ε; with δ > 0 it has Gaussian noise, which is far smaller for maps of
many coordinates, and they divide ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

from aquatint.columns import RANGED
from aquatint.errors import PlanError
from aquatint.features import (
    FeatureMap,
    by_label,
    concat,
    cosines,
    fourier,
    onehot,
    pairs,
    product,
    race,
    scale,
)
from aquatint.planning import Plan
from aquatint.recipe_parts import (
    COUNT_SHARE,
    beside,
    cells_of,
    divided,
    label_of,
    settled_bins,
    with_order,
)
from aquatint.schema import Schema

PAIR_SHARE = 0.6
DENSE_SHARE = 0.05
LENGTH = 0.3
MOST_CELLS = 10_000
"""Joint cells of one pair; columns whose pairs would have more are counted on their own only."""


def m2m_hist(schema: Schema, *, bins: int = 100, count_share: float = COUNT_SHARE) -> Plan:
    """Plan M2M's HIST (§2.1): the histogram of every column.

    The paper gives its sensitivity as k (§2.3) without saying what k is. A row has a one in one bin
    of each of the d columns, so it is d in L1 and √d in L2, and 2d and √(2d) if a row is replaced:
    not 1, and not the number of bins.

    Parameters
    ----------
    schema
        What is public about the table.
    bins
        Bins of equal width for each range that declares none.
    count_share
        The share of the number of rows, where it is private.
    """
    if bins < 1:
        msg = f"a histogram has at least one bin, got {bins}"
        raise PlanError(msg)
    settled = settled_bins(schema, bins)
    return divided(settled, {"histograms": (onehot(settled.cells()), 1.0)}, count_share)


def m2m_rff(
    schema: Schema,
    *,
    features: int = 200,
    length_scale: float = 1.0,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan M2M's RFF (§2.1): random Fourier features of all columns with an order.

    Columns without an order have one-hot cells beside them, which the paper leaves open. The paper
    takes bounds from the private rows; here they are the schema's. Its error without noise
    (table 1) needs far lower frequencies than the length scale that it states.

    Parameters
    ----------
    schema
        What is public about the table.
    features
        m, half of them cosines and half sines. Their norm is 1 in L2, and at most √m in L1.
    length_scale
        The paper's σ, a fraction of each column's range.
    count_share
        The share of the number of rows, where it is private.
    seed
        Public: the frequencies are drawn from it.
    """
    settled = settled_bins(schema)
    numbers, others = with_order(settled)
    waves = None
    if numbers:
        waves = fourier(numbers, features, length_scale=length_scale, seed=seed)
    return divided(settled, {"rff": (beside(settled, waves, numbers, others), 1.0)}, count_share)


def m2m_race(
    schema: Schema,
    *,
    repetitions: int = 80,
    buckets: int = 80,
    width: float = 0.1,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan M2M's RACE (§2.1, definition 3): counts under hashes of all columns with an order.

    A row is in one bucket of each of the R hashes: its norm is R in L1 and √R in L2. Columns
    without an order have one-hot cells beside them. A row that misses a number has the bucket of
    its own that `features.race` gives it.

    Parameters
    ----------
    schema
        What is public about the table.
    repetitions, buckets
        The paper's R and W.
    width
        The width of a bucket, a fraction of each column's range: the paper's σ, which it states for
        one experiment (§4.3) only.
    count_share
        The share of the number of rows, where it is private.
    seed
        Public: the hashes are drawn from it.
    """
    settled = settled_bins(schema)
    numbers, others = with_order(settled)
    cells = cells_of(settled, others, ())
    parts: list[FeatureMap] = [] if cells is None else [cells]
    if numbers:
        parts.insert(0, race(numbers, repetitions, buckets, width=width, seed=seed))
    sketched = concat(*parts) if len(parts) > 1 else parts[0]
    return divided(settled, {"race": (sketched, 1.0)}, count_share)


def m2m(
    schema: Schema,
    *,
    order: int = 32,
    pair_order: int = 3,
    features: int = 50,
    pair_share: float = PAIR_SHARE,
    dense_share: float = DENSE_SHARE,
    length_scale: float | None = None,
    labelled: bool | None = None,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan the sketch to ask questions of a table of numbers: means, counts, covariances, models.

    It has the low cosines of every column and of every pair of columns, which is what moments,
    distribution functions, covariances and most counts are made of, and a few random Fourier
    features of all columns together for what is not. Columns without a range have one-hot cells in
    the place of cosines. With a label the Fourier features are by class, to train classifiers from.

    Take it with δ > 0: it has many coordinates, and Gaussian noise grows with the root of their
    number only.

    Parameters
    ----------
    schema
        What is public about the table.
    order, pair_order
        The highest order of a column's cosines, and of those of a pair.
    features
        Random Fourier features of all numbers together; 0 leaves them out.
    pair_share, dense_share
        The shares of the pairs and of the Fourier features in what the number of rows leaves; the
        columns have the rest.
    length_scale
        Of the Fourier features, a fraction of each range; by default 0.3·√d for d columns.
    labelled
        Whether to condition on the schema's label; by default, if it has one without a range.
    count_share
        The share of the number of rows, where it is private.
    seed
        Public: the frequencies are drawn from it.

    Examples
    --------
    >>> number = {"kind": "numeric", "bounds": [0, 1]}
    >>> schema = Schema.from_dict({"name": "points", "privacy": {"protects": "replace one row"},
    ...     "columns": {"x": number, "y": number}})
    >>> [(block.name, block.map.dim) for block in m2m(schema).blocks]
    [('columns', 64), ('pairs', 9), ('dense', 50)]
    """
    if not (0 < pair_share < 1 and 0 < dense_share < 1 and pair_share + dense_share < 1):
        msg = f"pair_share and dense_share leave nothing for columns: {pair_share}, {dense_share}"
        raise PlanError(msg)
    settled, label = settled_bins(schema), label_of(schema, labelled)
    columns = settled.columns
    numbers = [n for n, c in columns.items() if isinstance(c, RANGED) and n != label]
    others = [name for name in columns if name not in numbers]
    blocks = {"columns": (_columns(settled, numbers, others, order), 1 - pair_share - dense_share)}
    joint = _pairs(settled, numbers, others, pair_order)
    if joint is not None:
        blocks["pairs"] = (joint, pair_share)
    if numbers and features:
        length = length_scale or LENGTH * sqrt(len(numbers))
        dense: FeatureMap = fourier(numbers, features, length_scale=length, seed=seed)
        if label is not None:
            dense = by_label(dense, label, settled.cells()[label])
        blocks["dense"] = (dense, dense_share)
    return divided(settled, blocks, count_share)


def _columns(
    schema: Schema, numbers: Sequence[str], others: Sequence[str], order: int
) -> FeatureMap:
    """Put columns side by side, each with norm one."""
    cells = cells_of(schema, others, numbers)
    if not numbers:
        return onehot(schema.cells())
    waves = scale(cosines(numbers, order, pair_order=0), sqrt(len(numbers)))
    return waves if cells is None else concat(waves, cells)


def _pairs(
    schema: Schema, numbers: Sequence[str], others: Sequence[str], order: int
) -> FeatureMap | None:
    """Put pairs of columns side by side, each with norm one, as far as there are any."""
    if order < 1:
        return None
    cells = schema.cells()
    parts: list[FeatureMap] = []
    if len(numbers) > 1:
        count = len(numbers) * (len(numbers) - 1) // 2
        parts.append(scale(cosines(numbers, 0, pair_order=order), sqrt(count)))
    few = {name: cells[name] for name in others if cells[name] * order <= MOST_CELLS}
    if numbers and few:
        waves = cosines(numbers, order, pair_order=0)
        parts.append(scale(product(onehot(few), waves), sqrt(len(numbers))))
    chosen = [(a, b) for a, b in combinations(few, 2) if few[a] * few[b] <= MOST_CELLS]
    if chosen:
        parts.append(pairs(few, chosen))
    return concat(*parts) if len(parts) > 1 else next(iter(parts), None)
