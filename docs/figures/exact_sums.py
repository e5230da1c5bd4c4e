"""Exact sums: the same rows in another order, and a row on the grid that is never too long."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

COLOURS = ("#1d4f91", "#0b6e4f", "#9a3b26")
COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
GRID = 8


def apart(numbers: np.ndarray, kind: type) -> float:
    """Give how far apart the sums of the same numbers are, first to last and last to first."""
    given = (numbers * 2**20 if kind is np.int64 else numbers).astype(kind)
    one, other = (np.add.accumulate(order)[-1] for order in (given, given[::-1]))
    return abs(float(one) - float(other))


def main(path: Path) -> None:
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
    rng = np.random.default_rng(0)
    numbers = rng.random(COUNTS[-1])
    floor = 1e-13  # nothing has no logarithm: it is drawn here
    kinds = ((np.float32, COLOURS[2], "o-"), (np.float64, COLOURS[0], "s-"))
    for kind, colour, sign in (*kinds, (np.int64, COLOURS[1], "^-")):
        found = [
            np.mean([apart(rng.permutation(numbers[:n]), kind) for _ in "abc"]) for n in COUNTS
        ]
        shown = np.maximum(found, floor)
        left.loglog(COUNTS, shown, sign, color=colour, markersize=3.5, label=kind.__name__)
    left.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
    left.text(1_100, 1.5, "what one row may add", color="0.3")
    left.set(xlabel="rows", ylabel="how far apart two orders are", ylim=(floor / 3, 300))
    left.set_yticks([floor, 1e-9, 1e-6, 1e-3, 1], ["0", "10⁻⁹", "10⁻⁶", "10⁻³", "1"])
    left.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.62))

    turn = np.linspace(0, np.pi / 2, 100)
    right.plot(GRID * np.cos(turn), GRID * np.sin(turn), color="0.4", linewidth=0.8)
    dots = np.stack(np.meshgrid(np.arange(GRID + 1), np.arange(GRID + 1)), -1).reshape(-1, 2)
    right.plot(*dots.T, ".", color="0.8", markersize=2.5)
    for angle in (0.22, 0.6, 1.02, 1.36):
        row = GRID * np.array([np.cos(angle), np.sin(angle)])
        kept = np.trunc(row)
        right.annotate("", kept, row, arrowprops={"arrowstyle": "->", "color": COLOURS[1]})
        right.plot(*row, "o", color=COLOURS[2], markersize=4)
        right.plot(*kept, "s", color=COLOURS[1], markersize=4)
    right.plot([], [], "o", color=COLOURS[2], markersize=4, label="a row, at its longest")
    right.plot([], [], "s", color=COLOURS[1], markersize=4, label="the integers that are summed")
    right.set(aspect="equal", xlabel="steps of the grid", xticks=[0, GRID], yticks=[0, GRID])
    right.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.02, 0.05))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("exact_sums.svg"))
