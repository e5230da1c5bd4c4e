"""Merged cells: the same noise on fuller cells, for one pair of columns of a made-up table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import aquatint as aq
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import fit_mixture

ROWS = 10_000
OTHERS = 8


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ill = rng.random(ROWS) < 0.3
    age = np.clip(np.where(ill, rng.normal(70, 9, ROWS), rng.normal(38, 14, ROWS)), 0, 100)
    stay = np.minimum(rng.gamma(2, 0.5 + age / 25, ROWS), 30)
    others = {f"other {i}": rng.random(ROWS) < 0.5 for i in range(OTHERS)}
    return pd.DataFrame({"age": age, "stay": stay, "ill": ill, **others})


def schema() -> aq.Schema:
    columns = {"age": {"kind": "numeric", "bounds": [0, 100]}}
    columns["stay"] = {"kind": "numeric", "bounds": [0, 30]}
    columns |= {name: {"kind": "boolean"} for name in table().columns[2:]}
    privacy = {"protects": "add or remove one row"}
    return aq.Schema.from_dict(
        {"name": "made up", "label": "ill", "privacy": privacy, "columns": columns}
    )


def pair(release: aq.Release) -> tuple[np.ndarray, list[np.ndarray]]:
    """Give the noisy counts of age and stay, per fine cell, and the groups' first cells."""
    block = release.block("pairs by label")
    part = block.map
    shape = [part.counted[name] for name in ("age", "stay", "ill")]
    counts = block.sum[part.set_slice(("age", "stay", "ill"))].reshape(shape).sum(2)
    cells = release.schema.cells()
    groups = [np.array(part.merged.get(n, range(cells[n]))) for n in ("age", "stay")]
    sizes = [np.bincount(group) for group in groups]
    fine = (counts / np.outer(*sizes))[np.ix_(*groups)]
    return fine, [np.flatnonzero(np.diff(group)) + 0.5 for group in groups]


def main(path: Path) -> None:
    rows, public = table(), schema()
    plan = aq.plan(public)
    plain = replace(
        plan, rebalance=False, blocks=tuple(replace(b, merge=None) for b in plan.blocks)
    )
    given = {"epsilon": 1, "delta": 1e-5, "progress": False}
    fine, _ = pair(aq.sketch(rows, public, plan=plain, simulate=1, **given))
    release = aq.sketch(rows, public, plan=plan, simulate=1, **given)
    merged, lines = pair(release)
    model = fit_mixture(release, effort=Effort(fits=1), progress=False)
    fitted = ROWS * (model.cells("age") * model.weights[:, None]).T @ model.cells("stay")
    bins = [np.linspace(0, high, len(fine) + 1) for high in (100, 30)]
    exact, _, _ = np.histogram2d(rows["age"], rows["stay"], bins=bins)

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 4, figsize=(8.4, 2.5), sharey=True, layout="constrained")
    tables = {
        "the rows\n": exact,
        "noise on fine cells": fine,
        "noise on merged cells": merged,
        "the model": fitted,
    }
    for axes, (title, counts) in zip(panels, tables.items(), strict=True):
        off = np.abs(counts - exact).sum() / 2 / ROWS
        image = axes.imshow(counts.T, origin="lower", cmap="cividis", vmin=0, vmax=exact.max())
        axes.set_title(title if not off else f"{title}\n{100 * off:.0f} % off", fontsize=9)
        axes.set(xlabel="age, 32 bins", xticks=[], yticks=[])
    panels[0].set_ylabel("stay, 32 bins")
    for x in lines[0]:
        panels[2].axvline(x, color="white", linewidth=0.3)
    for y in lines[1]:
        panels[2].axhline(y, color="white", linewidth=0.3)
    figure.colorbar(image, ax=panels, fraction=0.03, label="rows in a cell")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("merging.svg"))
