"""Which sets of columns are worth counting: scores for a private choice among them.

DP-HP leaves open which columns to multiply. Here the sets are chosen by the exponential mechanism,
from how far their exact joint counts are from what the published histograms would give if the
columns were independent.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import pi, sqrt

import numpy as np

from aquatint.features.grid import grid_of
from aquatint.features.marginals import Marginals
from aquatint.release.histograms import histograms, on_simplex
from aquatint.release.model import Block


def scores(
    part: Marginals, sums: np.ndarray, before: Iterable[Block], rows: float, deviation: float
) -> np.ndarray:
    """Score every set of a map by what counting it would tell, in grid steps.

    With the exact counts c of a set, and e the counts that independent columns would have by the
    noisy histograms, the score is Σ|c − e| less the error Σ E|noise| that counting would leave.

    Only c is private. Σ|c − e| moves by at most the L1 distance of the counts of two neighbouring
    tables (triangle inequality), which `features.grid.one_set` bounds; e and the error are
    published or public. The result is in whole steps, so nothing is lost to rounding.

    Parameters
    ----------
    part
        The map, over merged cells.
    sums
        Its exact sums in grid steps: private.
    before
        The blocks that are published already; they hold the histograms of all columns.
    rows
        The number of rows, public or noisy.
    deviation
        The standard deviation of the noise that the counts would get, in grid steps.
    """
    known = histograms(before)
    shares = {}
    for name in part.reads[0]:
        counts = np.asarray(known[name][0])
        grouped = np.bincount(part.merged.get(name, range(len(counts))), weights=counts)
        shares[name] = on_simplex(grouped / max(float(grouped.sum()), 1.0))
    steps = grid_of(part).steps
    found = []
    for start, size, columns in zip(part.offsets, part.sizes, part.sets, strict=True):
        alone = reduce(np.multiply.outer, [shares[name] for name in columns]).flatten()
        expected = np.rint(max(rows, 1.0) * steps * alone).astype(np.int64)
        error = int(sqrt(2 / pi) * deviation * size)
        found.append(int(np.abs(sums[start : start + size] - expected).sum()) - error)
    return np.array(found, dtype=np.int64)
