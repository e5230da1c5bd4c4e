"""What a two-sample test found: public, whichever side of the wall the test was made on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aquatint.errors import AquatintError

if TYPE_CHECKING:
    import pandas as pd


class CompareError(AquatintError):
    """Two datasets cannot be compared as asked, or the result was not paid for."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two datasets differ in one respect.

    Attributes
    ----------
    part
        What was looked at, in words: a column, a pair of columns, a frequency or a location.
    columns
        The columns that it looks at.
    statistic
        The difference in standard deviations under the null hypothesis, or a statistic like it.
    pvalue
        How likely so large a statistic is when nothing differs; by itself, not adjusted.
    adjusted
        The p-value after Holm's adjustment for all parts that were looked at.
    """

    part: str
    columns: tuple[str, ...]
    statistic: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a two-sample test; unpacks as ``(statistic, pvalue)``, as in scipy.

    Everything in it is differentially private: nothing that was not noised ever gets here.

    Attributes
    ----------
    reject
        Whether the test says, at level alpha, that the two datasets differ.
    statistic, pvalue
        None where only the decision was paid for.
    alpha
        The level: how often at most the test may say so when nothing differs.
    epsilon, delta
        What was promised to each row: the larger of the two where they differ.
    neighbours
        The relation that the promise speaks of, as in a schema.
    n
        How many rows each side has: public, or as the release says; None if it is private.
    method, null
        The test, and how its null distribution was found, in words.
    differences
        What differs, most of all first; empty where that was not paid for.
    """

    reject: bool
    statistic: float | None
    pvalue: float | None
    alpha: float
    epsilon: float
    delta: float
    neighbours: str
    n: tuple[float, float] | None
    method: str
    null: str
    differences: tuple[Difference, ...] = ()

    def __iter__(self) -> Iterator[float | None]:
        return iter((self.statistic, self.pvalue))

    def where(self, plot: str | Path | None = None) -> pd.DataFrame:
        """Say which columns or frequencies differ most, as a table and, if asked, as a plot."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON."""
        return asdict(self)
