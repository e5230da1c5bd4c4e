"""How much error the drawing of rows adds, for a made-up table: columns, and pairs of columns."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import aquatint as aq
from aquatint.analyst.synthesize import draw
from aquatint.analyst.synthesize.balance import balance
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import Mixture, fit_mixture

ROWS, CELLS = 10_000, 8
DRAWN = [100, 300, 1_000, 3_000, 10_000, 30_000]
NAMES = [f"c{i}" for i in range(7)]


def table() -> pd.DataFrame:
    """Seven columns of eight categories that hang together by a few hidden classes."""
    rng = np.random.default_rng(0)
    hidden = rng.choice(6, ROWS, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    shares = rng.dirichlet(np.full(CELLS, 0.4), (len(NAMES), 6))
    points = rng.random((len(NAMES), ROWS))
    codes = (points[..., None] > np.cumsum(shares[:, hidden], axis=2)).sum(2).clip(0, CELLS - 1)
    return pd.DataFrame(dict(zip(NAMES, codes, strict=True)))


WAYS = {"independent": ("s-", "#9a3b26"), "systematic": ("o-", "#0b6e4f")}
BALANCED = {**WAYS, "systematic, balanced": ("^-", "#20558a")}


def drawn(model: Mixture, count: int, seed: int, way: str) -> tuple[float, float]:
    """How far the columns and the pairs of drawn rows are from the model's own."""
    rng = np.random.default_rng(seed)
    if way == "independent":
        weights = model.weights.astype(float)
        component = np.sort(rng.choice(len(weights), count, p=weights / weights.sum()))
    else:
        component = draw.components(model.weights, count, rng)
    cells = {name: model.cells(name).astype(float) for name in NAMES}
    codes = {}
    for name in NAMES:
        if way == "independent":
            line = np.cumsum(cells[name], axis=1)[component]
            codes[name] = (rng.random(count)[:, None] * line[:, -1:] > line).sum(1)
        else:
            codes[name] = draw.choose(cells[name], component, rng)
    if way not in WAYS:
        codes = balance(codes, cells, model.weights, component, None, rng)
    one = [
        np.abs(np.bincount(codes[n], minlength=CELLS) / count - model.histogram(n)).sum() / 2
        for n in NAMES
    ]
    two = []
    for a, b in combinations(NAMES, 2):
        found = np.bincount(codes[a] * CELLS + codes[b], minlength=CELLS**2) / count
        wanted = (cells[a] * model.weights[:, None]).T @ cells[b]
        two.append(np.abs(found - wanted.ravel()).sum() / 2)
    return float(np.mean(one)), float(np.mean(two))


def main(path: Path) -> None:
    rows = table()
    columns = {n: {"kind": "categorical", "categories": list(range(CELLS))} for n in NAMES}
    privacy = {"protects": "add or remove one row"}
    schema = aq.Schema.from_dict({"name": "made up", "privacy": privacy, "columns": columns})
    release = aq.sketch(rows, schema, epsilon=1, delta=1e-5, simulate=1, progress=False)
    model = fit_mixture(release, effort=Effort(steps=300, fits=1), progress=False)
    errors = {
        way: np.array([np.mean([drawn(model, n, s, way) for s in range(5)], axis=0) for n in DRAWN])
        for way in BALANCED
    }

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(7.6, 2.9), layout="constrained", sharey=True)
    for place, (axes, title) in enumerate(zip(both, ("columns", "pairs"), strict=True)):
        for way, (style, color) in (BALANCED if place else WAYS).items():
            axes.loglog(DRAWN, errors[way][:, place], style, color=color, markersize=4, label=way)
        axes.set(xlabel="rows drawn", title=title)
        axes.legend(frameon=False)
        axes.grid(alpha=0.25)
    both[0].set(ylabel="error that drawing adds")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("systematic.svg"))
