"""The pictures of the page on two-sample tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compare_cases import CURATOR, PLAIN, PUBLISHED, RELEASES
from compare_methods import METHODS
from compare_power import DIFFERENT, ROWS, SIZES_EPSILON
from compare_problems import PROBLEMS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results_compare_tables import rate_at
from results_plots import COLOURS
from runs import Log

from aquatint.drawing import save

ROWS_OF_PANELS = {"ours": (RELEASES, CURATOR), "published, or without privacy": (PUBLISHED, PLAIN)}
STYLES = {RELEASES: "-", CURATOR: "--", PUBLISHED: ":", PLAIN: "-"}
SHADES, MARKERS = (*COLOURS, "#56B4E9", "#000000"), "os^Dv<>p"


def power_plots(log: Log, plots: Path) -> None:
    """Draw power against ε and against rows, as in the paper's figure 4."""
    settings = [line["settings"] for line in log.lines().values()]
    epsilons = sorted({s["epsilon"] for s in settings if s["rows"] == ROWS} - {None})
    sizes = sorted({s["rows"] for s in settings if s["epsilon"] == SIZES_EPSILON})
    _plot(log, epsilons, lambda e: {"rows": ROWS, "epsilon": e}, "ε", plots / "compare-epsilon.svg")
    if len(sizes) > 1:
        _plot(log, sizes, lambda n: {"rows": n, "epsilon": SIZES_EPSILON}, "rows of each sample",
              plots / "compare-rows.svg")  # fmt: skip


def _plot(
    log: Log, values: list[Any], point: Callable[[Any], dict[str, Any]], what: str, path: Path
) -> None:
    figure = Figure(figsize=(13, 6.4), layout="constrained")
    panels = figure.subplots(len(ROWS_OF_PANELS), len(DIFFERENT), sharex=True, sharey=True)
    for row, (title, groups) in zip(panels, ROWS_OF_PANELS.items(), strict=True):
        row[0].set_ylabel(f"power, {title}")
        for axes, problem in zip(row, DIFFERENT, strict=True):
            axes.set(title=PROBLEMS[problem].title, xscale="log", ylim=(-0.04, 1.04))
            _lines(axes, log, problem, groups, {value: point(value) for value in values})
        handles, labels = row[0].get_legend_handles_labels()
        if handles:
            row[-1].legend(handles, labels, frameon=False, fontsize=6.5, loc="center left",
                           bbox_to_anchor=(1.02, 0.5))  # fmt: skip
    for axes in panels[-1]:
        axes.set_xlabel(what)
        axes.set_xticks(values, [f"{value:g}" for value in values], fontsize=7)
        axes.minorticks_off()
    save(figure, path)


def _lines(
    axes: Axes, log: Log, problem: str, groups: tuple[str, ...], points: dict[Any, dict[str, Any]]
) -> None:
    drawn = [
        (name, place)
        for group in groups
        for place, name in enumerate(n for n, method in METHODS.items() if method.group == group)
    ]
    for name, place in drawn:
        found = {value: rate_at(log, problem, name, **at) for value, at in points.items()}
        shares = {value: rate.share for value, rate in found.items() if rate is not None}
        axes.plot(list(shares), list(shares.values()), STYLES[METHODS[name].group],
                  color=SHADES[place % len(SHADES)], marker=MARKERS[place % len(MARKERS)],
                  markersize=4, label=METHODS[name].title)  # fmt: skip
