"""The release file: its three members, how large they are, and what a reader compares."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import matplotlib as mpl
import numpy as np
import pandas as pd

import aquatint as aq

COLOURS = {
    "manifest.json": (
        "#1d4f91",
        "schema, feature maps, noise scales, promise,\nand checksums",
    ),
    "arrays.safetensors": ("#0b6e4f", "the noisy sums, one array of integers for each block"),
    "README.md": ("#9a3b26", "a card for people: what it is, what it promises"),
}
WIDE = 1.42


def members() -> dict[str, int]:
    """Make a release of a small made-up table, and give the sizes of what is in its file."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.random(1_000) for name in "abcdefgh"})
    columns = {name: {"kind": "numeric", "bounds": [0, 1]} for name in rows.columns}
    privacy = {"protects": "add or remove one row"}
    schema = aq.Schema.from_dict({"name": "made up", "privacy": privacy, "columns": columns})
    release = aq.sketch(rows, schema, epsilon=1, delta=1e-6, simulate=0, progress=False)
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "x.aqt")
        with ZipFile(Path(folder) / "x.aqt") as archive:
            return {entry.filename: entry.file_size for entry in archive.infolist()}


def box(axes: Any, top: float, tall: float, colour: str, texts: tuple[str, str]) -> None:
    import matplotlib.patches as shapes

    shape = shapes.FancyBboxPatch(
        (0.04, top - tall), WIDE, tall, "round,pad=0,rounding_size=0.02", facecolor="white"
    )
    shape.set(edgecolor=colour, linewidth=1.4)
    axes.add_patch(shape)
    axes.text(0.08, top - 0.07, texts[0], color=colour, fontweight="bold", va="center")
    axes.text(0.08, top - 0.125, texts[1], color="0.25", va="top")


def main(path: Path) -> None:
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "aquatint", "font.size": 9, "svg.fonttype": "path"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.4, 2.6), layout="constrained")
    sizes = members()
    tops = {}
    top = 0.94
    for name, (colour, said) in COLOURS.items():
        tall = 0.31 if "\n" in said else 0.24
        box(axes, top, tall, colour, (f"{name}  {sizes[name] / 1000:.0f} kB", said))
        tops[name] = top - tall / 2
        top -= tall + 0.05
    edge = 0.04 + WIDE
    bow = {"arrowstyle": "<->", "color": "0.35", "connectionstyle": "arc3,rad=-0.5"}
    for name in ("arrays.safetensors", "README.md"):
        ends = [(edge, tops[name]), (edge, tops["manifest.json"])]
        axes.annotate("", *ends, arrowprops=bow)
    axes.text(edge + 0.26, 0.62, "sizes and checksums\nhave to agree", color="0.25", va="center")
    axes.text(
        edge + 0.26,
        0.24,
        "sensitivities, ρ and ε are\ncomputed again from maps and\nnoise, and have to agree",
        color="0.25",
        va="center",
    )
    axes.set(xlim=(0, 2.55), ylim=(0, 1), xticks=[], yticks=[])
    axes.set_title("people.aqt, a plain zip", fontsize=10, loc="left")
    for side in axes.spines.values():
        side.set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path("release_file.svg"))
