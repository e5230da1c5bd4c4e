"""Every column at a glance: mean, spread, quartiles and histogram, all with intervals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from aquatint.analyst.query.answers import Answer
from aquatint.analyst.query.front import COLUMNS, Query
from aquatint.columns import RANGED, Date, Datetime
from aquatint.progress import track

QUARTILES = {"quartile 1": 0.25, "median": 0.5, "quartile 3": 0.75}
BLOCKS = "▁▂▃▄▅▆▇█"
WIDEST = 16


@dataclass(frozen=True, eq=False)
class Described:
    """One column at a glance.

    Attributes
    ----------
    name
        The column.
    column
        What the schema says of it.
    statistics
        Mean, standard deviation and quartiles where it has numbers; the share of missing values.
    histogram
        The share of rows in each cell, as `Query.histogram` gives it.
    """

    name: str
    column: Any
    statistics: dict[str, Answer]
    histogram: pd.DataFrame

    @property
    def sparkline(self) -> str:
        """The histogram in a word."""
        return sparkline(self.histogram["value"].to_numpy()[: self.column.present_cells])


def describe(query: Query, *, progress: bool = True) -> list[Described]:
    """Describe every column of the table behind a release."""
    found = []
    columns = query.release.schema.columns
    with track("asking", len(columns), show=progress) as advance:
        for name, column in columns.items():
            statistics: dict[str, Answer] = {}
            if isinstance(column, RANGED):
                statistics["mean"] = query.mean(name)
                statistics["standard deviation"] = query.deviation(name)
                statistics |= {what: query.quantile(name, q) for what, q in QUARTILES.items()}
            histogram = query.histogram(name)
            if column.missing:
                last = histogram.iloc[-1][list(COLUMNS)].to_dict()
                statistics["missing"] = Answer(**last)
            found.append(Described(name, column, statistics, histogram))
            advance(1)
    return found


def described_frame(described: Sequence[Described]) -> pd.DataFrame:
    """Give a description as one table: column, statistic, and the parts of an answer."""
    lines = []
    for one in described:
        for what, found in one.statistics.items():
            lines.append({"column": one.name, "statistic": what, **asdict(found)})
        for cell, line in one.histogram.iterrows():
            lines.append({"column": one.name, "statistic": f"share of {cell}", **line.to_dict()})
    return pd.DataFrame(lines, columns=["column", "statistic", *COLUMNS])


def sparkline(shares: np.ndarray) -> str:
    """Draw shares as a word of blocks, neighbours put together where there are many."""
    parts = np.array_split(np.maximum(shares, 0.0), min(len(shares), WIDEST))
    heights = np.array([part.sum() for part in parts])
    top = heights.max()
    places = np.rint(heights / top * (len(BLOCKS) - 1)) if top > 0 else np.zeros(len(heights))
    return "".join(BLOCKS[int(place)] for place in places)


def readable(column: Any, number: float) -> str:
    """Write a column's number as people do: a date as a date."""
    if isinstance(column, (Date, Datetime)) and np.isfinite(number):
        seconds = number * 86_400 if isinstance(column, Date) else number
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=float(seconds))
        return moment.date().isoformat() if isinstance(column, Date) else f"{moment:%Y-%m-%d %H:%M}"
    return short_number(number)


def short_number(number: float) -> str:
    """Write a number in four figures, or whole if it is larger than that."""
    if not np.isfinite(number):
        return "unknown"
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:,.4g}"
