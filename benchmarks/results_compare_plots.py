"""The pictures of the page on two-sample tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compare_cases import CURATOR, PLAIN, PUBLISHED, RELEASES
from compare_methods import METHODS
from compare_power import DIFFERENT, ROWS, SIZES_EPSILON
from compare_problems import PROBLEMS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results_compare_tables import Rates, points_of, rate_at
from results_plots import COLOURS

from aquatint.drawing import save

ROWS_OF_PANELS = {"ours": (RELEASES, CURATOR), "published, or without privacy": (PUBLISHED, PLAIN)}
STYLES = {RELEASES: "-", CURATOR: "--", PUBLISHED: ":", PLAIN: "-"}
Points = dict[Any, dict[str, Any]]
"""What is on the axis, and the cell that it stands for."""
SHADES, MARKERS = (*COLOURS, "#56B4E9", "#000000"), "os^Dv<>p"


def power_plots(found: Rates, plots: Path) -> None:
    """Draw power against ε and against rows, as in the paper's figure 4."""
    epsilons, sizes = points_of(found)
    points = {e: {"rows": ROWS, "epsilon": e} for e in epsilons}
    _plot(found, points, "ε", plots / "compare-epsilon.svg")
    if len(sizes) > 1:
        points = {n: {"rows": n, "epsilon": SIZES_EPSILON} for n in sizes}
        _plot(found, points, "rows of each sample", plots / "compare-rows.svg")


def _plot(found: Rates, points: Points, what: str, path: Path) -> None:
    figure = Figure(figsize=(13, 6.4), layout="constrained")
    panels = figure.subplots(len(ROWS_OF_PANELS), len(DIFFERENT), sharex=True, sharey=True)
    for row, (title, groups) in zip(panels, ROWS_OF_PANELS.items(), strict=True):
        row[0].set_ylabel(f"power, {title}")
        for axes, problem in zip(row, DIFFERENT, strict=True):
            axes.set(title=PROBLEMS[problem].title, xscale="log", ylim=(-0.04, 1.04))
            _lines(axes, found, problem, groups, points)
        handles, labels = row[0].get_legend_handles_labels()
        if handles:
            row[-1].legend(handles, labels, frameon=False, fontsize=6.5, loc="center left",
                           bbox_to_anchor=(1.02, 0.5))  # fmt: skip
    for axes in panels[-1]:
        axes.set_xlabel(what)
        axes.set_xticks(list(points), [f"{value:g}" for value in points], fontsize=7)
        axes.minorticks_off()
    save(figure, path)


def _lines(axes: Axes, found: Rates, problem: str, groups: tuple[str, ...], points: Points) -> None:
    drawn = [
        (name, place)
        for group in groups
        for place, name in enumerate(n for n, method in METHODS.items() if method.group == group)
    ]
    for name, place in drawn:
        along = {value: rate_at(found, problem, name, **at) for value, at in points.items()}
        shares = {value: rate.share for value, rate in along.items() if rate is not None}
        axes.plot(list(shares), list(shares.values()), STYLES[METHODS[name].group],
                  color=SHADES[place % len(SHADES)], marker=MARKERS[place % len(MARKERS)],
                  markersize=4, label=METHODS[name].title)  # fmt: skip
