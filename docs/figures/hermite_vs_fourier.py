"""Figure 1 of DP-HP: how fast Hermite and random Fourier features approach the Gaussian kernel."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch

from aquatint.features import FeatureMap, Rows, fourier, hermite

SPAN = 6.0  # the unit interval stands for [-6, 6], so that both samples lie inside
ORDERS = range(13)
NUMBERS = [2, 4, 8, 16, 32, 64, 128, 256, 500]
DRAWS = 100


def rows(x: np.ndarray) -> Rows:
    return Rows({}, {"x": torch.from_numpy((x / SPAN + 1) / 2)}, len(x))


def error(feature_map: FeatureMap, x: Rows, y: Rows, kernel: np.ndarray) -> float:
    found = feature_map(x).double() @ feature_map(y).double().T
    return float(np.abs(found.numpy() - kernel).mean())


def main(path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 100), rng.normal(1, 1, 100)
    distance = np.abs(x[:, None] - y[None, :])
    length = float(np.median(distance))
    kernel = np.exp(-(distance**2) / (2 * length**2))
    a, b = rows(x), rows(y)
    scale = length / (2 * SPAN)

    def by_fourier(features: int, seed: int) -> float:
        return error(fourier(["x"], features, length_scale=scale, seed=seed), a, b, kernel)

    def by_hermite(order: int) -> float:
        return error(hermite(["x"], order, length_scale=scale, span=SPAN), a, b, kernel)

    by_order = [by_hermite(order) for order in ORDERS]
    by_number = [np.mean([by_fourier(n, seed) for seed in range(DRAWS)]) for n in NUMBERS]

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3), sharey=True, layout="constrained")
    left.semilogy(list(ORDERS), by_order, "o-", color="#0b6e4f", markersize=4)
    left.set(xlabel="order C of the Hermite features", ylabel="mean error of the kernel")
    right.loglog(NUMBERS, by_number, "s-", color="#9a3b26", markersize=4)
    right.set(xlabel="number of random Fourier features")
    for axes in (left, right):
        axes.axhline(by_number[-1], color="#52606d", linestyle=":", linewidth=1)
        axes.grid(alpha=0.25)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("hermite_vs_fourier.svg"))
