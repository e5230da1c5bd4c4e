"""Parts that the pages of results share."""

from __future__ import annotations

from runs import ROOT

FOLDER = ROOT / "docs" / "results"


def command(*every: str) -> str:
    """Name the commands that made what follows."""
    lines = "\n".join(f"python benchmarks/{words}" for words in every)
    return f"```text\n{lines}\n```\n"


def filled(lines: list[str]) -> str:
    """Give lines as text, or say that there are none yet."""
    return "\n".join(lines) if lines else "*Not run yet.*\n"


def image(name: str, alt: str) -> str:
    """Show a picture, if it is there."""
    return f"```{{image}} {name}\n:alt: {alt}\n```\n" if (FOLDER / name).exists() else ""
