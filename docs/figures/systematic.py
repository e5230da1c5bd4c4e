"""How much error the drawing of rows adds, systematic or independent, for a made-up table."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import aquatint as aq
from aquatint.analyst.synthesize import draw
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


def drawn(model: Mixture, count: int, seed: int, *, systematic: bool) -> float:
    """How far the columns of drawn rows are from the model's own."""
    rng = np.random.default_rng(seed)
    if systematic:
        component = draw.components(model.weights, count, rng)
    else:
        weights = model.weights.astype(float)
        component = np.sort(rng.choice(len(weights), count, p=weights / weights.sum()))
    errors = []
    for name in NAMES:
        cells = model.cells(name).astype(float)
        if systematic:
            code = draw.choose(cells, component, rng)
        else:
            line = np.cumsum(cells, axis=1)[component]
            code = (rng.random(count)[:, None] * line[:, -1:] > line).sum(1)
        found = np.bincount(code, minlength=CELLS) / count
        errors.append(np.abs(found - model.histogram(name)).sum() / 2)
    return float(np.mean(errors))


def main(path: Path) -> None:
    rows = table()
    columns = {n: {"kind": "categorical", "categories": list(range(CELLS))} for n in NAMES}
    privacy = {"protects": "add or remove one row"}
    schema = aq.Schema.from_dict({"name": "made up", "privacy": privacy, "columns": columns})
    release = aq.sketch(rows, schema, epsilon=1, delta=1e-5, simulate=1, progress=False)
    model = fit_mixture(release, effort=Effort(steps=300, fits=1), progress=False)
    ways = {
        way: [np.mean([drawn(model, n, s, systematic=way) for s in range(5)]) for n in DRAWN]
        for way in (False, True)
    }

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 2.9), layout="constrained")
    axes.loglog(DRAWN, ways[False], "s-", color="#9a3b26", markersize=4, label="independent")
    axes.loglog(DRAWN, ways[True], "o-", color="#0b6e4f", markersize=4, label="systematic")
    axes.set(xlabel="rows drawn", ylabel="error that drawing adds")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("systematic.svg"))
