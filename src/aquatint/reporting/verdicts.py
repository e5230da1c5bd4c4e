"""What a release answers well and badly, from the noise that was added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from aquatint.analyst.query.describe import Described
from aquatint.columns import RANGED
from aquatint.features import Count
from aquatint.release.histograms import counting_parts, noisy_leaves
from aquatint.release.model import Block, Release
from aquatint.reporting.charts import brief, percent
from aquatint.reporting.counted import rows_of, wide_of

Grade = Literal["well", "roughly", "badly"]
SIZES = (0.01, 0.1)
"""Groups from this share of the rows up can be counted within 10 %: well, and roughly."""
MEANS = (0.01, 0.05)
"""Half an interval of a mean, as a share of the column's range: well, and roughly."""
CORRELATIONS = (0.05, 0.15)
"""Half an interval of a correlation: well, and roughly."""
STANDS_OUT = 3.0
_NAMED = 8


@dataclass(frozen=True)
class Verdict:
    """A kind of question, how well it is answered, and the figures behind that."""

    question: str
    grade: Grade
    because: str


@dataclass(frozen=True)
class Signal:
    """How much of a block is signal.

    Attributes
    ----------
    noise
        The standard deviation of the noise, of the first of its numbers.
    ratio
        The signal's root mean square over the noise's.
    stands_out
        The share of numbers more than three standard deviations from zero.
    """

    name: str
    kind: str
    numbers: int
    noise: float
    ratio: float
    stands_out: float


def signal(block: Block) -> Signal:
    """Set a block's numbers against its noise, whose part of the squares is known."""
    squares = outstanding = 0.0
    for _, sums, deviation in noisy_leaves(block):
        squares += float(sums @ sums) / deviation**2
        far = STANDS_OUT * deviation
        outstanding += np.count_nonzero((sums > far) | (sums < -far))
    size = block.map.dim
    above = max(squares / size - 1.0, 0.0)
    share = outstanding / size
    return Signal(block.name, block.map.kind, size, block.deviations[0], above**0.5, share)


def verdicts(
    release: Release, described: Sequence[Described], correlations: pd.DataFrame | None
) -> list[Verdict]:
    """Say what can be asked: counts by how many columns, means, correlations, and what cannot."""
    found = [_total(release), *_counts(release), *_means(described)]
    if correlations is not None and len(correlations):
        found.append(_correlations(correlations))
    return found


def _total(release: Release) -> Verdict:
    rows, unsure = rows_of(release)
    if not unsure:
        return Verdict("How many rows are there?", "well", "it is public")
    wide = wide_of(release) * unsure
    grade = _grade(wide / rows, SIZES)
    return Verdict("How many rows are there?", grade, f"within ± {brief(wide)} rows")


def _counts(release: Release) -> list[Verdict]:
    """Judge counts of groups by as many columns as were counted together, and by one more."""
    rows, _ = rows_of(release)
    noise: dict[int, float] = {}
    for block in release.blocks:
        for part, _, deviation in counting_parts(block):
            for size in {len(s) for s in part.sets}:
                noise[size] = min(noise.get(size, np.inf), deviation)
    found = []
    for size in sorted(noise):
        least = 10 * wide_of(release) * noise[size]
        what = "one column" if size == 1 else f"{size} columns together"
        because = f"within 10 % for groups of {brief(least)} rows or more ({percent(least / rows)})"
        found.append(
            Verdict(f"How many rows in a group, by {what}?", _grade(least / rows, SIZES), because)
        )
    if any(isinstance(block.map, Count) for block in release.blocks) or noise:
        most = max(noise, default=0) + 1
        because = "never counted together: a model fills in, and its intervals are a rule of thumb"
        what = f"{most} columns or more" if most > 1 else "any column"
        found.append(Verdict(f"How many rows in a group, by {what}?", "badly", because))
    return found


def _means(described: Sequence[Described]) -> list[Verdict]:
    graded: dict[Grade, list[tuple[float, str]]] = {"well": [], "roughly": [], "badly": []}
    for one in described:
        if isinstance(one.column, RANGED) and "mean" in one.statistics:
            answer, (low, high) = one.statistics["mean"], one.column.limits
            half = (answer.high - answer.low) / 2 / (high - low)
            graded[_grade(half, MEANS)].append((half, one.name))
    found = []
    for grade, named in graded.items():
        if named:
            worst = max(half for half, _ in named)
            because = f"within {percent(worst)} of the range: {_some([n for _, n in named])}"
            found.append(Verdict("What is the mean?", grade, because))
    return found


def _correlations(found: pd.DataFrame) -> Verdict:
    half = (found["high"] - found["low"]) / 2
    typical = float(half.median())
    sure = int(((found["low"] > 0) | (found["high"] < 0)).sum())
    because = (
        f"within ± {brief(typical)} typically; {sure} of {len(found)} shown differ from zero surely"
    )
    return Verdict("How do two numbers go together?", _grade(typical, CORRELATIONS), because)


def _grade(error: float, limits: tuple[float, float]) -> Grade:
    if not np.isfinite(error):
        return "badly"
    return "well" if error <= limits[0] else "roughly" if error <= limits[1] else "badly"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
