"""The front door: `compare` two releases, or `compare_all` of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from aquatint.analyst.compare.parts import Part, adjusted
from aquatint.analyst.compare.sides import Shared, Sides, checked, plain_leaves, shared
from aquatint.analyst.compare.tables import hash_tables, table_part, tables
from aquatint.analyst.compare.waves import (
    bounded_parts,
    cosine_means,
    cosine_parts,
    frequency_parts,
)
from aquatint.analyst.compare.whitened import whitened_part
from aquatint.comparison import CompareError, Comparison, Difference, holm
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.features.marginals import Marginals
from aquatint.features.moments import SecondMoment
from aquatint.features.race import Race
from aquatint.progress import track
from aquatint.release.model import Release

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["auto", "whitened", "parts"]


def compare(
    first: Release,
    second: Release,
    *,
    alpha: float = 0.01,
    conservative: bool = False,
    method: Method = "auto",
    progress: bool = True,
) -> Comparison:
    """Test whether two datasets differ, from their releases alone and at no privacy cost.

    Parameters
    ----------
    first, second
        Releases of two disjoint sets of rows under one schema, best by one plan: what only one of
        them holds is left out.
    alpha
        The level: how often at most it may say that equal distributions differ.
    conservative
        Take every variance that is estimated from noisy numbers as large as its noise may hide.
    method
        ``"whitened"`` tests means by their noisy second moments, which plans like `me_test`
        release. ``"parts"`` looks at every table, frequency and column that both releases hold.
        ``"auto"`` takes means with second moments whole and everything else part by part.
    progress
        Show progress on a terminal when it takes longer than two seconds.

    Returns
    -------
    Comparison
        The decision, the p-value, and what differs most.

    Examples
    --------
    >>> import numpy as np, pandas as pd, aquatint as aq
    >>> schema = aq.Schema.from_dict({"name": "points", "privacy": {"protects": "replace one row"},
    ...     "columns": {"x": {"kind": "numeric", "bounds": [-5, 5]}}})
    >>> rng = np.random.default_rng(0)
    >>> one, other = (
    ...     aq.sketch(pd.DataFrame({"x": rng.normal(shift, 1, 5_000)}), schema, epsilon=1,
    ...               delta=1e-6, plan=aq.mixed_fourier(schema))
    ...     for shift in (0, 0.5))
    >>> aq.compare(one, other).reject
    True
    """
    if not 0 < alpha < 1:
        msg = f"alpha must be between 0 and 1, got {alpha}"
        raise CompareError(msg)
    if method not in get_args(Method):
        msg = f"the method must be one of {', '.join(get_args(Method))}, got {method!r}"
        raise CompareError(msg)
    sides = checked(first, second)
    found = []
    with track("comparing", _looks_at(first), show=progress) as advance:
        for part in _parts(sides, method, conservative=conservative):
            found.append(part)
            advance(1)
    if not found:
        what = "means with their second moments" if method == "whitened" else "features"
        msg = f"the releases have no {what} in common: make both by one plan, shared as a file"
        raise CompareError(msg)
    pvalue, strongest = min(
        zip(adjusted(found), found, strict=True), key=lambda one: (one[0], one[1].pvalue)
    )
    statements = [release.statement for release in sides.both]
    return Comparison(
        reject=pvalue <= alpha,
        statistic=strongest.statistic,
        pvalue=pvalue,
        alpha=alpha,
        epsilon=max(s.epsilon for s in statements),
        delta=max(s.delta for s in statements),
        neighbours=first.schema.privacy.protects,
        n=sides.rows,
        method=_method(found, conservative=conservative),
        null=_null(sides, found),
        differences=_differences(found),
    )


def compare_all(
    releases: Mapping[str, Release],
    *,
    alpha: float = 0.01,
    conservative: bool = False,
    method: Method = "auto",
) -> pd.DataFrame:
    """Compare every two of several releases, with Holm's adjustment for the number of pairs.

    Returns
    -------
    DataFrame
        A row for each pair, in order: ``first``, ``second``, ``statistic``, ``pvalue`` by itself,
        ``adjusted`` and ``reject``. At most alpha is the chance that any pair that does not differ
        is rejected.
    """
    import pandas as pd

    if len(releases) < 2:
        msg = f"comparing takes two releases at least, got {len(releases)}"
        raise CompareError(msg)
    names = list(combinations(releases, 2))
    found = [
        compare(releases[a], releases[b], alpha=alpha, conservative=conservative, method=method)
        for a, b in names
    ]
    pvalues = [1.0 if one.pvalue is None else one.pvalue for one in found]
    after = holm(pvalues)
    return pd.DataFrame(
        {
            "first": [a for a, _ in names],
            "second": [b for _, b in names],
            "statistic": [one.statistic for one in found],
            "pvalue": pvalues,
            "adjusted": after,
            "reject": [p <= alpha for p in after],
        }
    )


def _parts(sides: Sides, method: Method, *, conservative: bool) -> Iterator[Part]:
    founds = shared(sides)
    whole = (
        {}
        if method == "parts"
        else {found.map.inner: found for found in founds if isinstance(found.map, SecondMoment)}
    )
    known = cosine_means(sides, founds)
    for found in founds:
        leaf = found.map
        if leaf in whole and isinstance(second := whole[leaf].map, SecondMoment):
            yield whitened_part(sides, found, whole[leaf], second, conservative=conservative)
        elif method != "whitened" and not isinstance(leaf, SecondMoment):
            yield from _looks(sides, found, known, conservative=conservative)
    if method != "whitened":
        for table in tables(sides):
            yield table_part(sides, table, conservative=conservative)


def _looks(
    sides: Sides, found: Shared, known: Mapping[str, np.ndarray], *, conservative: bool
) -> Iterator[Part]:
    leaf = found.map
    if isinstance(leaf, Fourier):
        yield from frequency_parts(sides, leaf, found, conservative=conservative)
    elif isinstance(leaf, Cosines):
        yield from cosine_parts(sides, leaf, found, known, conservative=conservative)
    elif isinstance(leaf, Race):
        for table in hash_tables(leaf, found):
            yield table_part(sides, table, conservative=conservative)
    else:
        yield from bounded_parts(sides, found, conservative=conservative)


def _looks_at(release: Release) -> int:
    """Give about how many parts there are to look at: nearly all of very many are tables."""
    leaves = (leaf for leaf, _, _ in plain_leaves(release))
    return sum(len(leaf.sets) if isinstance(leaf, Marginals) else 1 for leaf in leaves)


def _differences(found: list[Part]) -> tuple[Difference, ...]:
    shown = [one for part in found for one in (part.details or (part,))]
    every = [
        Difference(one.name, one.columns, one.statistic, one.pvalue, after)
        for one, after in zip(shown, holm([one.pvalue for one in shown]), strict=True)
    ]
    return tuple(sorted(every, key=lambda one: one.pvalue))


def _method(found: list[Part], *, conservative: bool) -> str:
    looks = sum(not part.whole for part in found)
    named = []
    if any(part.details for part in found):
        named.append("means whitened by their noisy covariance")
    if any(part.whole and not part.details for part in found):
        named.append("sums of squares over frequencies")
    if looks:
        named.append(f"the largest of {looks:,} differences" if looks > 1 else "one difference")
    listed = ", ".join(named[:-1]) + " and " * (len(named) > 1) + named[-1]
    return listed + (", conservatively" if conservative else "")


def _null(sides: Sides, found: list[Part]) -> str:
    text = "sampling and noise of known size, as if both were Gaussian"
    if sides.laplace:
        text = "Gaussian sampling, and Chernoff's bound for Laplace noise"
    if len(found) > 1:
        text += f", with Bonferroni's correction for {len(found):,} looks"
    if not all(release.private for release in sides.both):
        text += "; NOT PRIVATE: a release has simulated noise"
    return text
