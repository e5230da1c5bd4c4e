"""The pictures of the results book."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from book_cells import lines
from matplotlib.figure import Figure
from results_plots import COLOURS

from aquatint.drawing import save

GREY = "#52606d"
GREYS = {"mnist": "MNIST", "fashion": "FashionMNIST"}
DRAWN_BY = {"dp_hp": "DP-HP", "gaussian_alone": "ours"}


def draw_all(folder: Path) -> None:
    """Draw the figures of the papers that are made anew here."""
    if lines("book-step"):
        step(folder / "book-step.svg")
    if lines("book-approximation"):
        approximation(folder / "book-approximation.svg")
    if lines("book-reduced_set"):
        reduced_set(folder / "book-reduced_set.svg")
    if lines("book-sizes"):
        sizes(folder / "book-sizes.svg")


def against(points: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Draw ours against published, one colour a table."""
    figure = Figure(figsize=(5, 4.4), layout="constrained")
    axes = figure.subplots()
    for place, (item, pairs) in enumerate(points.items()):
        x, y = zip(*pairs, strict=True)
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(x, y, "o", markersize=4, alpha=0.8, color=colour, label=item)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
    axes.set(xlabel="published", ylabel="ours", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def step(path: Path) -> None:
    """Draw M2M's figure 2: a step, and what three sketches make of it."""
    figure = Figure(figsize=(7.5, 2.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, method in zip(panels, ("rff", "race", "hist"), strict=True):
        (line, *_) = lines("book-step", method=method)
        shown = line["found"]["shown"]
        x = [(i + 0.25) / len(shown) for i in range(len(shown))]
        axes.plot(x, [float(v >= 0.5) for v in x], color=GREY, linestyle=":")
        axes.plot(x, shown, color=COLOURS[0])
        axes.set(title=method.upper(), xlabel="x")
    save(figure, path)


def approximation(path: Path) -> None:
    """Draw DP-HP's figure 1: the error of the kernel by either kind of feature."""
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    told = (("hermite", "order of the Hermite features"), ("fourier", "random Fourier features"))
    for axes, (method, label), colour in zip(panels, told, COLOURS, strict=False):
        found = _means("book-approximation", "size", method=method)
        axes.plot(list(found), list(found.values()), "o-", color=colour, markersize=4)
        axes.set(yscale="log", xlabel=label)
    panels[0].set_ylabel("mean error of the kernel")
    panels[1].set_xscale("log")
    save(figure, path)


def reduced_set(path: Path) -> None:
    """Draw DP-MERF's figure 3: the distance of embeddings by the number of points."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    names = {"reduced_set": "reduced set", "dp_merf": "DP-MERF", "auto": "ours"}
    for (method, title), colour in zip(names.items(), COLOURS, strict=False):
        found = [line["found"] for line in lines("book-reduced_set", method=method)]
        if found:
            sizes = sorted(map(int, found[0]))
            values = [fmean(f[str(size)] for f in found) for size in sizes]
            axes.plot(sizes, values, "o-", markersize=4, color=colour, label=title)
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="distance of embeddings")
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def sizes(path: Path) -> None:
    """Draw DP-HP's figure 3: accuracy by the number of images drawn."""
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (name, title) in zip(panels, GREYS.items(), strict=True):
        for (method, said), colour in zip(DRAWN_BY.items(), COLOURS, strict=False):
            found = [
                line["found"]["sizes"] for line in lines("book-sizes", images=name, method=method)
            ]
            if found:
                values = [100 * fmean(f[size]["mean"] for f in found) for size in found[0]]
                axes.plot(
                    [int(s) for s in found[0]], values, "o-", color=colour, markersize=4, label=said
                )
        axes.set(xscale="log", xlabel="images drawn", title=title)
    panels[0].set_ylabel("accuracy, mean of 6, %")
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, path)


def _means(name: str, setting: str, **wanted: str) -> dict[float, float]:
    found: dict[float, list[float]] = {}
    for line in lines(name, **wanted):
        found.setdefault(line["settings"][setting], []).append(line["found"]["error"])
    return {size: fmean(values) for size, values in sorted(found.items())}
