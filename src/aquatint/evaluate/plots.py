"""An evaluation in pictures: columns side by side, distances of pairs, and ROC curves.

The two tables differ in colour and in form.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aquatint import drawing
from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.columns import POINT, RANGED, Date, Datetime
from aquatint.evaluate.classifiers import RECIPES
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.report import Evaluation
from aquatint.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REAL, SYNTHETIC, GREY = drawing.BLUE, drawing.ORANGE, drawing.GREY
_PANELS = 24
"""The most columns drawn side by side: those that differ most."""
_MATRIX = 40
"""The most columns in the heat map of pairs."""
_BARS = 10
"""The most categories drawn of a column; the others are drawn as one."""
_UNEVEN = 4
"""Bins that differ in width by this factor are drawn alike: a bin for a point has no area."""
_WRITTEN = 16
"""The most columns at which the numbers are written into the heat map."""


def draw(evaluation: Evaluation, folder: str | Path, *, suffix: str = ".png") -> list[Path]:
    """Draw every figure that an evaluation has the numbers for, and give the files' paths."""
    figures: dict[str, Callable[[Evaluation], Figure]] = {"marginals": marginals}
    if evaluation.closeness.fidelity.two:
        figures["pairs"] = pairs
    if evaluation.utility is not None and evaluation.utility.positive is not None:
        figures["roc"] = roc_curves
    paths = []
    for name, make in figures.items():
        path = Path(folder) / f"{name}{suffix}"
        drawing.save(make(evaluation), path)
        paths.append(path)
    return paths


def marginals(evaluation: Evaluation) -> Figure:
    """Draw every column's shares in real and synthetic rows; the farthest, if there are many."""
    distances = {name: tv for (name,), tv in evaluation.closeness.fidelity.one.items()}
    names = list(distances)
    title = f"{evaluation.name}: columns of real and synthetic rows"
    if len(names) > _PANELS:
        title += f" ({_PANELS} of {len(names)}, those that differ most)"
        names = sorted(names, key=lambda n: -distances[n])[:_PANELS]
    figure, panels = drawing.panels(len(names), title, width=4.0, height=2.9)
    for name, axes in zip(names, panels, strict=False):
        real, synthetic = evaluation.shares[name]
        column = evaluation.grid.wide.columns[name]
        if isinstance(column, RANGED):
            _draw_range(axes, column, real, synthetic)
        else:
            _draw_categories(axes, evaluation.grid.names(name), real, synthetic)
        drawing.title(axes, f"{drawing.short(name, 26)}  (TV {distances[name]:.3f})")
    drawing.legend(figure, ("real rows", REAL), ("synthetic rows", SYNTHETIC))
    return figure


def pairs(evaluation: Evaluation) -> Figure:
    """Draw the total variation of every pair of columns; single columns are on the diagonal."""
    found = evaluation.closeness.fidelity
    names = [name for (name,) in found.one]
    place = {name: i for i, name in enumerate(names)}
    matrix = np.diag(list(found.one.values()))
    for (a, b), tv in found.two.items():
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = tv
    title = f"{evaluation.name}: total variation of pairs of columns"
    if len(names) > _MATRIX:
        kept = np.sort(np.argsort(-matrix.mean(axis=0))[:_MATRIX])
        title += f"\n({_MATRIX} of {len(names)}, those that differ most)"
        matrix, names = matrix[np.ix_(kept, kept)], [names[i] for i in kept]
    written = len(names) <= _WRITTEN
    side = max(4.5, 1.8 + (0.5 if written else 0.25) * len(names))
    figure = drawing.figure_of(side + 1.5, side, layout="compressed")
    axes = figure.add_subplot()
    image = axes.imshow(matrix, cmap="cividis", vmin=0.0, vmax=max(float(matrix.max()), 1e-9))
    labels = [drawing.short(name, 22) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), labels)
    axes.tick_params(labelsize=9 if written else 7)
    axes.set_title(drawing.plain(title), loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02, label="total variation, 0 is equal")
    if written:
        _write_numbers(axes, matrix)
    return figure


def roc_curves(evaluation: Evaluation) -> Figure:
    """Draw the ROC curves of models trained on synthetic rows, and on real rows if there are."""
    utility, baseline = evaluation.utility, evaluation.baseline
    if utility is None or utility.positive is None:
        msg = "ROC curves need a target with two classes, and test rows"
        raise EvaluationError(msg)
    title = f"{evaluation.name}: detecting {utility.target} = {utility.positive} in real test rows"
    # "compressed" is the layout for panels of a fixed shape.
    figure, panels = drawing.panels(
        len(utility.scores), title, width=3.2, height=3.0, layout="compressed"
    )
    reals = [None] * len(utility.scores) if baseline is None else baseline.scores
    for axes, synthetic, real in zip(panels, utility.scores, reals, strict=False):
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
        rows = ((0.16, real, REAL, "--", "real"), (0.06, synthetic, SYNTHETIC, "-", "synthetic"))
        for height, score, colour, line, name in rows:
            if score is None or score.roc is None:
                continue
            axes.plot(*score.roc, color=colour, linewidth=1.6, linestyle=line)
            text = f"{name} {score.metrics['roc_auc']:.3f}"
            axes.text(0.96, height, text, color=colour, ha="right", fontsize=9)
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        drawing.title(axes, RECIPES[synthetic.classifier].title)
    across = drawing.across(len(panels))
    for axes in panels[-across:]:
        axes.set_xlabel("false positive rate", fontsize=8)
    for axes in panels[::across]:
        axes.set_ylabel("true positive rate", fontsize=8)
    legend = [("trained on synthetic rows", SYNTHETIC), ("chance", GREY)]
    if baseline is not None:
        legend.insert(0, ("trained on real rows", REAL))
    drawing.legend(figure, *legend)
    return figure


def _draw_range(axes: Axes, column: Any, real: np.ndarray, synthetic: np.ndarray) -> None:
    left, width, _ = widths_and_edges(column)
    edges, bins = np.append(left, left[-1] + width[-1]), len(left)
    widths = np.diff(edges) / (edges[-1] - edges[0])
    heights = [real[:bins], synthetic[:bins]]
    even = widths.max() < _UNEVEN * widths.min()
    if even:  # the area, not the height, is the share
        heights = [shares / (widths * bins) for shares in heights]
    places = edges if even else np.arange(bins + 1)
    axes.stairs(heights[0], places, fill=True, color=REAL, alpha=0.35)
    axes.stairs(heights[0], places, color=REAL, linewidth=0.8)
    axes.stairs(heights[1], places, color=SYNTHETIC, linewidth=1.5)
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(bottom=0)
    if even:
        _label_ends(axes, column)
    else:
        _label_slots(axes, column, edges)
    _percent(axes.yaxis)
    if real[bins] or synthetic[bins]:
        ours, theirs = (f"{100 * shares[bins]:.1f} %" for shares in (real, synthetic))
        text = f"missing: real {ours}, synthetic {theirs}"
        axes.set_xlabel(text, fontsize=8)


def _label_ends(axes: Axes, column: Any) -> None:
    """Write dates as dates, and short numbers."""
    if isinstance(column, (Date, Datetime)):
        low, high = column.limits
        places = [low, (low + high) / 2, high]
        axes.set_xticks(places, [_value(column, place) for place in places])
        first, _, last = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
    else:
        ticker = need("matplotlib.ticker")
        axes.xaxis.set_major_locator(ticker.MaxNLocator(4))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: _brief(x)))


def _label_slots(axes: Axes, column: Any, edges: np.ndarray) -> None:
    """Write some of the edges between bins drawn alike; a bin for a point has it in its middle."""
    point = np.diff(edges) <= POINT * (edges[-1] - edges[0]) * 1.001
    marks = [(float(i) + 0.5, edges[i]) for i in np.flatnonzero(point)]
    beside = np.append(point, False) | np.insert(point, 0, False)
    marks = sorted(marks + [(float(i), edges[i]) for i in np.flatnonzero(~beside)])
    dated = isinstance(column, (Date, Datetime))
    marks = marks[:: max(1, ceil(len(marks) / (2 if dated else 6)))]
    axes.set_xticks([place for place, _ in marks], [_value(column, x) for _, x in marks])
    if dated:
        axes.get_xticklabels()[0].set_horizontalalignment("left")


def _value(column: Any, number: float) -> str:
    if not isinstance(column, (Date, Datetime)):
        return _brief(round(number, 3))
    per_day = 1 if isinstance(column, Date) else 86_400
    return (dt.date(1970, 1, 1) + dt.timedelta(days=floor(number / per_day))).isoformat()


def _draw_categories(
    axes: Axes, names: Sequence[str], real: np.ndarray, synthetic: np.ndarray
) -> None:
    used = np.flatnonzero(real + synthetic)
    used = used[np.argsort(-real[used], kind="stable")]
    shown, rest = used[:_BARS], used[_BARS:]
    if len(rest) == 1:  # a bar for one other category is that category
        shown, rest = used, used[:0]
    labels = [drawing.short(names[i], 18) for i in shown]
    ours, theirs = list(real[shown]), list(synthetic[shown])
    if len(rest):
        labels.append(f"{len(rest)} others")
        ours.append(real[rest].sum())
        theirs.append(synthetic[rest].sum())
    places = np.arange(len(labels))
    axes.barh(places - 0.2, ours, height=0.4, color=REAL)
    axes.barh(places + 0.2, theirs, height=0.4, color=SYNTHETIC, hatch="////", edgecolor="white")
    axes.set_yticks(places, labels, fontsize=8)
    axes.set_ylim(max(len(labels), 4) - 0.4, -0.6)
    axes.set_xlim(left=0)
    _percent(axes.xaxis)


def _write_numbers(axes: Axes, matrix: np.ndarray) -> None:
    top = max(float(matrix.max()), 1e-9)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "black" if value > 0.5 * top else "white"
        text = f"{value:.3f}".removeprefix("0")
        axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour)


def _percent(axis: Any) -> None:
    ticker = need("matplotlib.ticker")
    axis.set_major_locator(ticker.MaxNLocator(4))
    axis.set_major_formatter(ticker.FuncFormatter(lambda share, _: f"{100 * share:g} %"))


def _brief(number: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:g}{sign}"
    return f"{number:g}"
