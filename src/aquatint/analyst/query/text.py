"""Answers as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from aquatint.analyst.query.answers import Answer
from aquatint.analyst.query.describe import QUARTILES, Described, readable, short_number
from aquatint.columns import Date, Datetime

MOST_CATEGORIES = 4
NUMBERS = {"value", "95 % interval", "mean", "deviation", "quartiles"}
LEGEND = (
    "95 % intervals. how: exact linear, the release counted just this; m2m, in cells that the "
    "question cuts or through other features; model, never together, so the interval is a rule of "
    "thumb. mostly: where the error comes from."
)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        side: Literal["right", "left"] = "right" if column in NUMBERS else "left"
        table.add_column(Text(column), justify=side, no_wrap=True)
    return table


def answers_table(found: pd.DataFrame) -> Table:
    """Give one line for each answer."""
    keys = list(found.columns[: list(found.columns).index("statistic")])
    table = _table(*keys, "statistic", "value", "95 % interval", "how", "mostly")
    for line in found.to_dict("records"):
        table.add_row(
            *(Text(str(line[key])) for key in keys),
            Text(str(line["statistic"])),
            short_number(line["value"]),
            _interval(line["low"], line["high"]),
            str(line["how"]),
            str(line["mostly"]),
        )
    return table


def described_table(described: Sequence[Described]) -> Table:
    """Give one line for each column; ± is half of the widest interval of those before it."""
    table = _table("column", "mean", "deviation", "quartiles", "distribution", "missing")
    for one in described:
        found = one.statistics
        mean, deviation, quartiles = "", "", ""
        shown = f"{one.sparkline}  " + _categories(one)
        if "mean" in found:
            mean = _give_or_take(one.column, found["mean"])
            deviation = _give_or_take(None, found["standard deviation"])
            three = [found[q] for q in QUARTILES]
            most = max(three, key=lambda one: one.high - one.low)
            values = "  ".join(readable(one.column, q.value) for q in three)
            quartiles = f"{values} ± {_half(one.column, most)}"
            shown = one.sparkline
        missing = ""
        if "missing" in found:
            absent = found["missing"]
            missing = f"{absent.value:.1%} ± {(absent.high - absent.low) / 2:.1%}"
        table.add_row(Text(one.name), mean, deviation, quartiles, Text(shown), missing)
    return table


def pairs_table(found: pd.DataFrame, most: int = 20) -> Table:
    """Give the strongest correlations first."""
    table = _table("first", "second", "value", "95 % interval", "how", "mostly")
    order = found["value"].abs().sort_values(ascending=False, na_position="last").index[:most]
    for line in found.loc[order].to_dict("records"):
        table.add_row(
            Text(line["first"]),
            Text(line["second"]),
            f"{line['value']:.3f}",
            f"{line['low']:.3f} to {line['high']:.3f}",
            line["how"],
            line["mostly"],
        )
    return table


def _categories(one: Described) -> str:
    names, shares = list(one.histogram.index), one.histogram["value"].to_numpy()
    kept = [i for i in np.argsort(-shares) if i < one.column.present_cells][:MOST_CATEGORIES]
    said = ", ".join(f"{names[i]} {shares[i]:.1%}" for i in kept)
    half = (one.histogram["high"] - one.histogram["low"]).to_numpy()[kept].max() / 2
    return said + (", …" if len(kept) < one.column.present_cells else "") + f" ± {half:.1%}"


def _interval(low: float, high: float) -> str:
    return f"{short_number(low)} to {short_number(high)}"


def _give_or_take(column: Any, found: Answer) -> str:
    return f"{readable(column, found.value)} ± {_half(column, found)}"


def _half(column: Any, found: Answer) -> str:
    half = (found.high - found.low) / 2
    if isinstance(column, (Date, Datetime)):
        return f"{half if isinstance(column, Date) else half / 86_400:.2g} d"
    return f"{half:.2g}"
