"""The noise floor: how long the noise of a mean embedding is, against its number of features."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from aquatint.accounting import gaussian_mu

ROWS = (10**3, 10**4, 10**5, 10**6)
COLOURS = ("#9a3b26", "#8d6b00", "#0b6e4f", "#1d4f91")


def main(path: Path) -> None:
    sigma = 1 / gaussian_mu(1.0, 1e-5)  # for features of norm at most 1, add or remove one row
    features = np.logspace(0.5, 5, 50)

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for rows, colour in zip(ROWS, COLOURS, strict=True):
        length = sigma * np.sqrt(features) / rows
        axes.loglog(features, length, color=colour, label=f"{rows:,} rows")
    axes.axhline(1, color="#52606d", linestyle=":", linewidth=1)
    axes.text(4, 1.15, "no mean embedding is longer than this", fontsize=8, color="#52606d")
    axes.set(xlabel="number of features", ylabel="length of the noise")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("noise_floor.svg"))
