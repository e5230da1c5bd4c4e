"""Accounting: noise against epsilon, exact and by zCDP, and all promises of one release."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.optimize import brentq

from aquatint.accounting import gaussian_delta, gaussian_mu, zcdp_epsilon

DELTA = 1e-5
COLOURS = ("#1d4f91", "#0b6e4f", "#9a3b26")


def noise_by_zcdp(epsilon: float) -> float:
    rho = brentq(lambda r: zcdp_epsilon(r, DELTA) - epsilon, 1e-8, 100, xtol=1e-14)
    return float(1 / np.sqrt(2 * rho))


def main(path: Path) -> None:
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    epsilons = np.logspace(-1, 1, 25)
    exact = [1 / gaussian_mu(float(e), DELTA) for e in epsilons]
    left.loglog(epsilons, exact, color=COLOURS[0], label="exact, as here")
    left.loglog(
        epsilons,
        [noise_by_zcdp(float(e)) for e in epsilons],
        ":",
        color=COLOURS[2],
        label="by zCDP",
    )
    left.set(xlabel="ε", ylabel="standard deviation of the noise")
    for sigma, colour in zip((1.5, 4.0, 10.0), COLOURS, strict=True):
        deltas = [gaussian_delta(float(e), 1 / sigma) for e in np.linspace(0, 5, 60)]
        right.semilogy(np.linspace(0, 5, 60), deltas, color=colour, label=f"noise {sigma:g}")
    right.set(xlabel="ε", ylabel="δ", ylim=(1e-12, 1))
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("accounting.svg"))
