"""The pictures of the page on synthetic tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from runs import Log

from aquatint.drawing import save

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Okabe and Ito's, which colour-blind people can tell apart."""
PANELS = {"real": "real rows", "dp_merf": "DP-MERF", "dp_hp": "DP-HP", "auto": "mixture (auto)"}
POINTS = 4000
LINES = {
    "auto": ("Aquatint", COLOURS[0], "o", "-"),
    "aim": ("AIM", COLOURS[1], "s", "--"),
    "mst": ("MST", COLOURS[2], "^", ":"),
}
MEASURES = {
    "tv2": "total variation of pairs",
    "tv3": "total variation of triples",
    "auc": "mean ROC-AUC",
    "ap": "mean average precision",
}


def mixture_plot(real: pd.DataFrame, folder: Path, plots: Path) -> None:
    """Draw real rows and the first run of each method side by side, as far as its rows are here."""
    files = {m: folder / f"{m}_1_0.csv" for m in PANELS if m != "real"}
    absent = [method for method, file in files.items() if not file.exists()]
    if absent:
        print(f"no plot: the rows of {', '.join(absent)} are not in the folder of work; --again")
        return
    rows = {"real": real} | {method: pd.read_csv(file) for method, file in files.items()}
    figure = Figure(figsize=(12, 3.3), layout="constrained")
    for axes, (method, title) in zip(figure.subplots(1, 4), PANELS.items(), strict=True):
        some = rows[method].head(POINTS)
        colours = [COLOURS[int(label)] for label in some["label"]]
        axes.scatter(some["x1"], some["x2"], s=1.0, c=colours, linewidths=0)
        axes.set(xlim=(-1, 5), ylim=(-1, 5), title=title, aspect="equal", xticks=[], yticks=[])
    save(figure, plots / "tables-mixture.png")


def adult_plot(log: Log, plots: Path) -> None:
    """Draw every measure on Adult against ε."""
    figure = Figure(figsize=(12, 3.0), layout="constrained")
    panels = figure.subplots(1, len(MEASURES))
    for axes, (measure, title) in zip(panels, MEASURES.items(), strict=True):
        for method, (name, colour, marker, style) in LINES.items():
            runs: dict[float, list[float]] = {}
            for line in log.where(method=method):
                runs.setdefault(line["settings"]["epsilon"], []).append(line["found"][measure])
            means = {epsilon: sum(found) / len(found) for epsilon, found in sorted(runs.items())}
            axes.plot(*zip(*means.items(), strict=True) if means else ([], []), style, label=name,
                      color=colour, marker=marker)  # fmt: skip
        for line in log.where(method="real"):
            if measure in {"auc", "ap"}:
                axes.axhline(line["found"][measure], color="#767676", linewidth=0.8)
        axes.set(title=title, xlabel="ε", xscale="log", xticks=(0.1, 0.3, 1, 3, 10))
        axes.set_xticklabels(["0.1", "0.3", "1", "3", "10"])
        axes.minorticks_off()
    panels[0].legend(frameon=False)
    save(figure, plots / "tables-adult.svg")
