"""Figures as objects of their own, without a display or global state, in plain good looks."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from aquatint.errors import DataError
from aquatint.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#767676"
"""Okabe and Ito's colours, which colour-blind people can tell apart."""
FORMATS = {".png", ".svg"}


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG or SVG, as the suffix says; equal figures give equal files."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        msg = f"cannot draw {path.name}: give a name that ends in .png or .svg"
        raise DataError(msg)
    dated = {"Date": None} if path.suffix.lower() == ".svg" else {}
    try:
        with need("matplotlib").rc_context({"svg.hashsalt": "aquatint"}):
            figure.savefig(path, dpi=150, metadata=dated)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise DataError(msg) from None


def figure_of(width: float, height: float, layout: str = "constrained") -> Figure:
    """Start an empty figure, its size in inches."""
    made: Figure = need("matplotlib.figure").Figure(figsize=(width, height), layout=layout)
    return made


def panels(
    count: int, title: str, *, width: float, height: float, layout: str = "constrained"
) -> tuple[Figure, list[Axes]]:
    """Start a figure of several panels under one title."""
    wide = across(count)
    down = ceil(count / wide)
    figure = figure_of(max(width * wide, 6.5), height * down + 0.9, layout)
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize=12)
    panels = list(figure.subplots(down, wide, squeeze=False).flat)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]


def across(count: int) -> int:
    """Give the panels in a row: four or three, whichever leaves fewer gaps."""
    return min(count, min((4, 3), key=lambda width: -count % width)) if count > 4 else count


def title(axes: Axes, text: str) -> None:
    """Write a panel's title."""
    axes.set_title(plain(text), loc="left", fontsize=9.5)


def legend(figure: Figure, *entries: tuple[str, str]) -> None:
    """Say below a figure what its colours mean."""
    patch = need("matplotlib.patches").Patch
    handles = [patch(color=colour, label=name) for name, colour in entries]
    look = {"ncols": len(handles), "frameon": False, "borderaxespad": 0.0}
    figure.legend(handles=handles, loc="outside lower center", **look)


def short(text: str, most: int) -> str:
    """Leave out the middle of a long name, and keep matplotlib from reading it as a formula."""
    return plain(shortened(text, most))


def shortened(text: str, most: int) -> str:
    """Leave out the middle of a long name: names often begin, or end, alike."""
    if len(text) <= most:
        return text
    tail = most // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def plain(text: str) -> str:
    """Keep dollar signs from starting a formula."""
    return text.replace("\\$", "$").replace("$", r"\$")
