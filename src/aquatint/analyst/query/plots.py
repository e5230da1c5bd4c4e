"""Answers in pictures: every point or bar with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from aquatint import drawing
from aquatint.analyst.query.describe import Described
from aquatint.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 24
MOST_BARS = 40
WRITTEN = 16


def correlations(found: pd.DataFrame, title: str) -> Figure:
    """Draw correlations as a heat map; those whose interval holds zero are written in grey."""
    names = list(dict.fromkeys([*found["first"], *found["second"]]))
    place = {name: i for i, name in enumerate(names)}
    matrix = np.eye(len(names))
    side = max(4.5, 1.8 + (0.5 if len(names) <= WRITTEN else 0.25) * len(names))
    figure = drawing.figure_of(side + 1.5, side, "compressed")
    axes = figure.add_subplot()
    for line in found.to_dict("records"):
        i, j = place[line["first"]], place[line["second"]]
        matrix[i, j] = matrix[j, i] = line["value"]
        sure = line["low"] > 0 or line["high"] < 0
        if len(names) <= WRITTEN:
            dark = abs(line["value"]) > 0.6
            colour = "white" if dark else ("black" if sure else drawing.GREY)
            for x, y in ((i, j), (j, i)):
                axes.text(
                    x, y, f"{line['value']:.2f}", ha="center", va="center", fontsize=7, color=colour
                )
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    labels = [drawing.short(name, 22) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), labels, fontsize=8)
    drawing.title(axes, f"{title}\n(grey: the 95 % interval holds zero)")
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def columns(described: Sequence[Described], title: str) -> Figure:
    """Draw the histogram of every column with its intervals."""
    shown = described[:MOST_PANELS]
    if len(described) > MOST_PANELS:
        title += f" (the first {MOST_PANELS} of {len(described)})"
    figure, panels = drawing.panels(len(shown), title, width=4.0, height=2.7)
    for one, axes in zip(shown, panels, strict=True):
        _bars(axes, one.histogram, [drawing.short(str(n), 14) for n in one.histogram.index])
        drawing.title(axes, drawing.short(one.name, 30))
    return figure


def answers(found: pd.DataFrame, title: str) -> Figure:
    """Draw the answers to a question, a panel for each statistic and a bar for each group."""
    keys = list(found.columns[: list(found.columns).index("statistic")])
    statistics = list(dict.fromkeys(found["statistic"]))
    if found.empty:
        msg = "there is no answer to draw: no group is left"
        raise DataError(msg)
    figure, panels = drawing.panels(len(statistics), title, width=5.0, height=3.2)
    for statistic, axes in zip(statistics, panels, strict=True):
        part = found[found["statistic"] == statistic][:MOST_BARS]
        labels = [", ".join(str(v) for v in line) for line in part[keys].to_numpy()]
        _bars(axes, part, [drawing.short(label, 20) for label in labels])
        drawing.title(axes, str(statistic))
    return figure


def _bars(axes: object, lines: pd.DataFrame, labels: Sequence[str]) -> None:
    value, low, high = (lines[name].to_numpy(dtype=float) for name in ("value", "low", "high"))
    place = np.arange(len(value))
    error = np.maximum(np.stack([value - low, high - value]), 0.0)
    axes.bar(place, value, color=drawing.BLUE, alpha=0.75)  # type: ignore[attr-defined]
    axes.errorbar(place, value, yerr=error, fmt="none", color="black", lw=0.8)  # type: ignore[attr-defined]
    step = max(1, len(place) // 12)
    axes.set_xticks(place[::step], list(labels)[::step], rotation=60, ha="right", fontsize=7)  # type: ignore[attr-defined]
