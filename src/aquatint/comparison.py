"""What a two-sample test found: public, whichever side of the wall the test was made on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aquatint import drawing
from aquatint.errors import AquatintError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_BARS = 20
"""How many differences a plot shows."""


class CompareError(AquatintError):
    """Two datasets cannot be compared as asked, or the result was not paid for."""


def holm(pvalues: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, by Holm's method: valid however they depend.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [1.0] * len(pvalues), 0.0
    for rank, place in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[place]))
        adjusted[place] = largest
    return adjusted


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
        """Say which columns or frequencies differ most, as a table and, if asked, as a plot.

        Parameters
        ----------
        plot
            Also draw the largest differences into this file, .png or .svg.

        Returns
        -------
        DataFrame
            A row for each thing that was looked at, most different first: ``part``, ``columns``,
            ``statistic`` in standard deviations, ``pvalue`` by itself, ``adjusted`` for all that
            was looked at (Holm), and whether it ``differs`` at the test's level.
        """
        import pandas as pd

        if not self.differences:
            msg = (
                "this result says only whether the datasets differ: where they do was not paid for"
            )
            raise CompareError(msg)
        if plot is not None:
            drawing.save(self._drawn(), plot)
        table = pd.DataFrame([asdict(one) for one in self.differences])
        table["columns"] = [", ".join(one.columns) for one in self.differences]
        table["differs"] = table["adjusted"] <= self.alpha
        return table

    def _drawn(self) -> Figure:
        """Draw the largest differences as bars, those that count in orange."""
        shown = self.differences[:MOST_BARS][::-1]
        figure, (axes,) = drawing.panels(
            1, f"what differs most: {self.method}", width=7.5, height=0.6 + 0.28 * len(shown)
        )
        colours = [drawing.ORANGE if one.adjusted <= self.alpha else drawing.GREY for one in shown]
        axes.barh(range(len(shown)), [one.statistic for one in shown], color=colours)
        axes.set_yticks(range(len(shown)), [drawing.short(one.part, 48) for one in shown])
        axes.set_xlabel("standard deviations")
        drawing.legend(
            figure,
            (f"differs at level {self.alpha:g}, after Holm's adjustment", drawing.ORANGE),
            ("may be chance", drawing.GREY),
        )
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON."""
        return asdict(self)
