"""Plans that two owners share so that their releases can be compared (Raj et al. 2019, §4).

`me_test` and `scf_test` are the paper's features, each as a mean and a second moment, from which
the tester has the covariance. `mixed_fourier` is a sketch for everything that also tells datasets
apart, and better where the difference is in one or two columns.

Locations, frequencies and widths are public: drawn from a seed around the middle of each declared
range, or fitted to two tables that are declared public. The paper takes them from the private rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import ndtri

from aquatint.errors import PlanError
from aquatint.features import FeatureMap, fourier, second_moment
from aquatint.features.frequencies import uniforms
from aquatint.features.locations import Locations, locations
from aquatint.features.smooth import smooth
from aquatint.planning import Plan
from aquatint.public_tables import PublicTables
from aquatint.public_training import fitted_frequencies, fitted_locations
from aquatint.recipe_parts import (
    beside,
    cells_of,
    divided,
    settled_bins,
    waves_of,
    with_order,
)
from aquatint.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

MEAN_SHARE = 0.8
"""What the mean gets of the budget beside the second moment: it is the mean that is tested."""
COUNT_SHARE = 0.1
"""What the number of rows gets where it is private. Its noise moves every mean by the same factor,
and a test, unlike a question, has nothing else to lean on along that direction."""
CELLS_SHARE = 0.3
"""What one-hot cells get beside smoothed frequencies, which see no column without an order."""
SPREAD_SHARE, SPREAD_FREQUENCIES, FEW_COLUMNS = 0.4, 24, 3
"""What frequencies of all columns get beside mixed ones, and how many these are; with so few
columns the mixed ones will do. Chosen on problems of our own, none of which is reported."""
SPREAD = 0.2
"""A guess at the standard deviation of a column, as a fraction of its declared range."""


def me_test(
    schema: Schema,
    *,
    locations: int = 5,
    length_scale: float | None = None,
    spread: float = SPREAD,
    kernel: Literal["gaussian", "laplace"] = "gaussian",
    public_train: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    mean_share: float = MEAN_SHARE,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan the ME test: kernel values at a few public locations, their mean and second moment.

    Parameters
    ----------
    schema
        What is public about both tables.
    locations
        J, how many locations.
    length_scale
        Of the kernel, a fraction of each range; by default spread·√d over d columns (Gaussian) or
        spread·d (Laplace), at which typical rows are about one length scale apart.
    spread
        Locations are drawn around the middle of each range with this standard deviation, as a
        fraction of the range; in columns without an order, evenly over the cells.
    kernel
        ``"gaussian"`` or ``"laplace"``.
    public_train
        Two tables that are PUBLIC and differ as the private ones are suspected to: locations and
        length scale are fitted to them. Never pass private rows.
    mean_share
        The mean's share of the budget beside the second moment.
    count_share
        The share of the number of rows, where it is private.
    seed
        Public: the locations are drawn from it.

    Examples
    --------
    >>> number = {"kind": "numeric", "bounds": [-5, 5]}
    >>> schema = Schema.from_dict({"name": "points", "privacy": {"protects": "replace one row"},
    ...     "columns": {"x": number, "y": number}})
    >>> [(block.name, block.map.dim) for block in me_test(schema).blocks]
    [('mean', 5), ('second moment', 15)]
    """
    _check(locations, spread, mean_share)
    settled = settled_bins(schema)
    drawn = _drawn_locations(settled, locations, length_scale, spread, kernel, seed)
    if public_train is not None:
        tables = PublicTables.of(*public_train, settled)
        drawn = fitted_locations(drawn, tables, seed, keep_scale=length_scale is not None)
    return _mean_and_moment(settled, drawn, None, mean_share, count_share)


def scf_test(
    schema: Schema,
    *,
    frequencies: int = 5,
    length_scale: float | None = None,
    width: float | None = None,
    spread: float = SPREAD,
    public_train: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    mean_share: float = MEAN_SHARE,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan the SCF test: a smoothed characteristic function at a few public frequencies.

    Columns without an order, which have no frequencies, have one-hot cells in a block beside it,
    and so has whether a number is missing.

    Parameters
    ----------
    schema
        What is public about both tables.
    frequencies
        J/2, how many frequencies: each is a cosine and a sine.
    length_scale
        Frequencies are Gaussian with standard deviation one over it, in radians over the range of a
        column; by default spread·√d over d columns.
    width
        Of the smoothing bell, a fraction of each range; by default 2·spread·√d.
    spread
        A guess at the standard deviation of a column, as a fraction of its range.
    public_train
        Two tables that are PUBLIC: frequencies and width are fitted to them. Never private rows.
    mean_share, count_share, seed
        As for `me_test`.

    Examples
    --------
    >>> number = {"kind": "numeric", "bounds": [-5, 5]}
    >>> schema = Schema.from_dict({"name": "points", "privacy": {"protects": "replace one row"},
    ...     "columns": {"x": number, "y": number}})
    >>> [(block.name, block.map.dim) for block in scf_test(schema, frequencies=3).blocks]
    [('mean', 6), ('second moment', 21)]
    """
    _check(frequencies, spread, mean_share)
    settled = settled_bins(schema)
    numbers, others = with_order(settled)
    if not numbers:
        msg = "no column has an order, so there are no frequencies: use me_test, or plan(schema)"
        raise PlanError(msg)
    usual = spread * sqrt(len(numbers))
    scale = max(0.01, length_scale or usual)
    normal = ndtri(uniforms(seed, (frequencies, len(numbers)), "scf"))
    bell = max(0.01, width or 2 * usual)
    made = smooth(numbers, normal / (2 * np.pi * scale), width=bell)
    if public_train is not None:
        tables = PublicTables.of(*public_train, settled)
        made = fitted_frequencies(made, tables, seed, keep_width=width is not None)
    return _mean_and_moment(
        settled, made, cells_of(settled, others, numbers), mean_share, count_share
    )


def mixed_fourier(
    schema: Schema,
    *,
    frequencies: int | None = None,
    length_scale: float | None = None,
    spread_share: float = SPREAD_SHARE,
    count_share: float = COUNT_SHARE,
    seed: int = 0,
) -> Plan:
    """Plan a Fourier sketch of which half sees one column at a time, a quarter two, a quarter all.

    A difference in one column is spread thin over frequencies of all columns, and a difference in
    a mixture of all columns is nearly invisible to frequencies of one: so it has both. Columns
    without an order have one-hot cells beside it. Two releases of it are compared frequency by
    frequency, and by the sum over all of them.

    From four columns with an order up, a few frequencies of all columns have a block of their own
    and their second moments beside it, so that they are also tested together, by their covariance.
    They find what every column has a little of, which no frequency shows by itself.

    Parameters
    ----------
    schema
        What is public about the tables.
    frequencies
        By default 100, or twice the columns if that is more; each is a cosine and a sine. Without
        a length scale, 34 or twice the columns for each of three scales.
    length_scale
        A fraction of each range, about the size of the differences to be seen: typically the
        standard deviation of a column. By default there are three scales, 0.3, 0.1 and 1/30.
    spread_share
        What the block for differences spread over all columns gets; 0 leaves it out.
    count_share
        The share of the number of rows, where it is private.
    seed
        Public: the frequencies are drawn from it.

    Examples
    --------
    >>> number = {"kind": "numeric", "bounds": [-5, 5]}
    >>> schema = Schema.from_dict({"name": "points", "privacy": {"protects": "replace one row"},
    ...     "columns": {name: number for name in "abcde"}})
    >>> [(block.name, block.map.dim) for block in mixed_fourier(schema, length_scale=0.1).blocks]
    [('fourier', 200), ('all columns', 48), ('all columns, second moment', 1176)]
    """
    if not 0 <= spread_share < 1:
        msg = f"spread_share must be at least 0 and below 1, got {spread_share}"
        raise PlanError(msg)
    if frequencies is not None and length_scale is None:
        msg = "a number of frequencies goes with one length scale: give length_scale too"
        raise PlanError(msg)
    settled = settled_bins(schema)
    numbers, others = with_order(settled)
    waves = _mixed(numbers, frequencies, length_scale, seed) if numbers else None
    blocks = {"fourier": (beside(settled, waves, numbers, others), 1 - spread_share)}
    if spread_share and len(numbers) > FEW_COLUMNS:
        spread = _over_all(numbers, length_scale or SPREAD, seed)
        blocks["all columns"] = (spread, spread_share * MEAN_SHARE)
        moments = second_moment(spread)
        blocks["all columns, second moment"] = (moments, spread_share * (1 - MEAN_SHARE))
    return divided(settled, blocks, count_share)


def _mixed(
    numbers: list[str], frequencies: int | None, length_scale: float | None, seed: int
) -> FeatureMap:
    if length_scale is None:
        return waves_of(numbers, seed)
    count = frequencies or max(100, 2 * len(numbers))
    return fourier(numbers, 2 * count, length_scale=length_scale, kernel="mixed", seed=seed)


def _over_all(numbers: list[str], spread: float, seed: int) -> FeatureMap:
    """Draw frequencies of all columns, of length √2/spread each but for chance.

    If a column's standard deviation is v, a little more variance in some direction moves the
    characteristic function at a frequency of length w by about exp(−w²v²/2)·w²v², which is largest
    at w = √2/v: a Gaussian kernel of length v·√(d/2) on d columns has frequencies of that length.
    """
    scale = max(0.01, spread * sqrt(len(numbers) / 2))
    return fourier(numbers, 2 * SPREAD_FREQUENCIES, length_scale=scale, seed=seed)


def _check(count: int, spread: float, mean_share: float) -> None:
    if count < 1:
        msg = f"a test needs at least one location or frequency, got {count}"
        raise PlanError(msg)
    if not 0 < spread <= 10:
        msg = f"spread must be a positive fraction of a column's range, got {spread}"
        raise PlanError(msg)
    if not 0 < mean_share < 1:
        msg = f"mean_share must be between 0 and 1, got {mean_share}"
        raise PlanError(msg)


def _drawn_locations(
    schema: Schema,
    count: int,
    length_scale: float | None,
    spread: float,
    kernel: Literal["gaussian", "laplace"],
    seed: int,
) -> Locations:
    """Draw locations from a prior over the schema: nothing is read off any rows."""
    numbers, others = with_order(schema)
    cells = {name: schema.cells()[name] for name in others}
    places = 0.5 + spread * ndtri(uniforms(seed, (count, len(numbers)), "locations"))
    chosen = np.floor(uniforms(seed, (count, len(cells)), "cells") * [*cells.values()])
    every = len(numbers) + len(others)
    usual = spread * (sqrt(every) if kernel == "gaussian" else every)
    points: Sequence[Sequence[float]] = np.hstack([places, chosen]).tolist()
    scale = length_scale if length_scale is not None else max(0.01, usual)
    return locations(numbers, points, cells=cells, length_scale=scale, kernel=kernel)


def _mean_and_moment(
    schema: Schema,
    features: FeatureMap,
    cells: FeatureMap | None,
    mean_share: float,
    count_share: float,
) -> Plan:
    blocks = {
        "mean": (features, mean_share),
        "second moment": (second_moment(features), 1 - mean_share),
    }
    if cells is not None:
        blocks["cells"] = (cells, CELLS_SHARE / (1 - CELLS_SHARE))
    return divided(schema, blocks, count_share)
