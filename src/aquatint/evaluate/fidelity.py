"""How close the marginals of synthetic rows are to those of real rows.

The error of a marginal is its total variation distance ½‖p − q‖₁ between real and synthetic rows,
as DP-HP states in section 5.2; its code computes something else (`aquatint.evaluate.published`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from statistics import fmean

import numpy as np
from scipy.stats import wasserstein_distance

from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.tables import Encoded, Grid
from aquatint.progress import Advance, track

TRIPLES = 100
"""How many 3-way marginals are looked at unless told otherwise."""
_DENSE = 1_000_000
"""Joint cells up to which counting every cell is quicker than sorting the rows."""
_LISTABLE = 1_000_000
"""Subsets up to which a random choice numbers them all."""

Subset = tuple[str, ...]


@dataclass(frozen=True)
class Fidelity:
    """Total variation of marginals, and the Wasserstein distance of ranged columns.

    Attributes
    ----------
    one, two, three
        The total variation of each marginal looked at: all single columns, all pairs, and some
        triples.
    wasserstein
        For each ranged column, the Wasserstein-1 distance over the width of its bounds.
    """

    one: Mapping[Subset, float]
    two: Mapping[Subset, float]
    three: Mapping[Subset, float]
    wasserstein: Mapping[str, float]

    @property
    def means(self) -> dict[str, float | None]:
        """The mean over the marginals of each kind; None where there are none."""
        return {
            "tv1": _mean(self.one.values()),
            "tv2": _mean(self.two.values()),
            "tv3": _mean(self.three.values()),
            "wasserstein": _mean(self.wasserstein.values()),
        }


def fidelity(
    real: Encoded,
    synthetic: Encoded,
    grid: Grid,
    *,
    triples: int = TRIPLES,
    seed: int = 0,
    progress: bool = False,
) -> Fidelity:
    """Compare all 1-way, all 2-way and `triples` random 3-way marginals, and ranged columns."""
    names = tuple(grid.schema.columns)
    wanted = [subsets(names, way, limit, seed) for way, limit in ((1, None), (2, None))]
    wanted.append(subsets(names, 3, triples, seed))
    with track("comparing marginals", sum(map(len, wanted)), show=progress) as advance:
        one, two, three = (marginals(real, synthetic, grid, s, advance) for s in wanted)
    return Fidelity(one, two, three, wasserstein(real, synthetic))


def alpha_way(
    real: Encoded,
    synthetic: Encoded,
    grid: Grid,
    alpha: int,
    *,
    limit: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> float:
    """Give the mean total variation of the α-way marginals, all of them or `limit` at random."""
    wanted = subsets(tuple(grid.schema.columns), alpha, limit, seed)
    with track(f"comparing {alpha}-way marginals", len(wanted), show=progress) as advance:
        return fmean(marginals(real, synthetic, grid, wanted, advance).values())


def subsets(names: Subset, size: int, limit: int | None = None, seed: int = 0) -> list[Subset]:
    """List the subsets of a size in order, or a random `limit` of them.

    Examples
    --------
    >>> subsets(("a", "b", "c"), 2)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> len(subsets(tuple("abcdefgh"), 3, limit=5))
    5
    """
    if not size >= 1:
        msg = f"a marginal has at least one column, got {size}"
        raise EvaluationError(msg)
    total = comb(len(names), size)
    if limit is None or total <= limit:
        return list(combinations(names, size))
    if total <= _LISTABLE:
        # The legacy generator: its choice is the same for ever, so scores stay comparable.
        rng = np.random.RandomState(seed)
        chosen = set(rng.choice(total, limit, replace=False).tolist())
        return [s for place, s in enumerate(combinations(names, size)) if place in chosen]
    dice = np.random.default_rng(seed)
    found: set[tuple[int, ...]] = set()
    while len(found) < limit:
        found.add(tuple(sorted(dice.choice(len(names), size, replace=False).tolist())))
    return [tuple(names[i] for i in places) for places in sorted(found)]


def marginals(
    real: Encoded,
    synthetic: Encoded,
    grid: Grid,
    wanted: Iterable[Subset],
    advance: Advance = lambda _: None,
) -> dict[Subset, float]:
    """Give the total variation of each marginal that is wanted."""
    codes = {n: np.concatenate([real.codes[n], synthetic.codes[n]]) for n in grid.schema.columns}
    distances = {}
    for subset in wanted:
        distances[subset] = total_variation(codes, grid.cells, subset, real.rows)
        advance(1)
    return distances


def total_variation(
    codes: Mapping[str, np.ndarray], cells: Mapping[str, int], subset: Subset, first: int
) -> float:
    """Give ½‖p − q‖₁ of the first rows against the rest, over the joint cells of some columns."""
    joint, size = codes[subset[0]].astype(np.int64), cells[subset[0]]
    for name in subset[1:]:
        joint = joint * cells[name] + codes[name]
        size *= cells[name]
        if (
            size > _DENSE
        ):  # number only the cells that occur; this also keeps int64 from overflowing
            present, joint = np.unique(joint, return_inverse=True)
            size = len(present)
    p = np.bincount(joint[:first], minlength=size) / first
    q = np.bincount(joint[first:], minlength=size) / (len(joint) - first)
    return float(np.abs(p - q).sum() / 2)


def wasserstein(real: Encoded, synthetic: Encoded) -> dict[str, float]:
    """Give each ranged column's Wasserstein-1 distance over the width of its bounds.

    Missing values are left out: the 1-way marginal counts them. A column that is wholly missing on
    one side only is as far away as can be, 1.
    """
    distances = {}
    for name, values in real.values.items():
        ours, theirs = (v[~np.isnan(v)] for v in (values, synthetic.values[name]))
        if len(ours) and len(theirs):
            distances[name] = float(wasserstein_distance(ours, theirs))
        else:
            distances[name] = float(len(ours) != len(theirs))
    return distances


def _mean(numbers: Iterable[float]) -> float | None:
    found = list(numbers)
    return fmean(found) if found else None
