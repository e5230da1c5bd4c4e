"""The pictures of the page on questions."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure
from query_tables import PLANS
from query_tasks import KINDS, TABLES
from results_coverage import BAND, cases
from results_plots import COLOURS
from results_tasks import BARS, PUBLISHED, TABLE_NAMES, TITLES
from runs import Log

from aquatint.drawing import save

LINES = {
    "default": ("default plan", COLOURS[2], "^"),
    "m2m": ("m2m", COLOURS[0], "o"),
    "hist": ("m2m_hist", COLOURS[1], "s"),
    "rff": ("m2m_rff", COLOURS[3], "D"),
    "race": ("m2m_race", COLOURS[4], "v"),
}


def tasks_plot(log: Log, plots: Path) -> None:
    """Draw every error against ε, with the bars and the paper's points."""
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    panels = figure.subplots(len(TABLES), len(KINDS), sharex=True)
    for row, name in zip(panels, TABLES, strict=True):
        for axes, kind, title in zip(row, KINDS, TITLES, strict=True):
            for plan in PLANS:
                label, colour, marker = LINES[plan]
                points = _means(log, name, plan, kind)
                axes.plot(list(points), list(points.values()), color=colour, marker=marker,
                          markersize=4, label=label)  # fmt: skip
            if kind == "mean":
                for place, plan in enumerate(("rff", "hist")):
                    axes.plot(1, PUBLISHED[name, 1.0][place], "*", color=LINES[plan][1],
                              markersize=11, markeredgecolor="black")  # fmt: skip
            if name == "lifesci" and kind in BARS:
                axes.plot([0.7, 1.4], [BARS[kind]] * 2, color="black", linewidth=2)
            axes.set(xscale="log", yscale="log", title=f"{TABLE_NAMES[name]}: {title}")
    for axes in panels[-1]:
        axes.set_xlabel("ε")
    panels[0][0].legend(frameon=False, fontsize=7)
    save(figure, plots / "queries-tasks.svg")


def _means(log: Log, name: str, plan: str, kind: str) -> dict[float, float]:
    found: dict[float, list[float]] = {}
    for line in log.where(table=name, method=plan):
        found.setdefault(line["settings"]["epsilon"], []).append(line["found"][kind])
    return {epsilon: fmean(values) for epsilon, values in sorted(found.items())}


def coverage_plot(log: Log, plots: Path) -> None:
    """Draw coverage by kind, one panel for each plan and ε, beside the band."""
    found = list(cases(log))
    kinds = list(dict.fromkeys(kind for case in found for kind in case[3]))
    names = list(dict.fromkeys(case[0] for case in found))
    panels = list(dict.fromkeys((case[1], case[2]) for case in found))
    figure = Figure(figsize=(3.6 * len(panels) + 1.5, 4.2), layout="constrained")
    for axes, (plan, epsilon) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True
    ):
        axes.axvspan(100 * BAND[0], 100 * BAND[1], color="#dddddd", linewidth=0)
        for name, p, e, tallies in found:
            if (p, e) == (plan, epsilon):
                places = [kinds.index(kind) for kind in tallies]
                shares = [100 * tally.share for tally in tallies.values()]
                axes.plot(shares, places, "o", color=COLOURS[names.index(name) % len(COLOURS)],
                          label=name, markersize=5, alpha=0.8)  # fmt: skip
        words = "default plan" if plan == "default" else plan
        axes.set(title=f"{words}, ε = {epsilon:g}", xlabel="% of intervals hold the truth")
        axes.set_yticks(range(len(kinds)), kinds)
        axes.legend(frameon=False, fontsize=7)
    save(figure, plots / "queries-coverage.svg")
