"""Parts that the pages of results share."""

from __future__ import annotations

from runs import ROOT

FOLDER = ROOT / "docs" / "results"


def command(words: str) -> str:
    """Name the command that made what follows."""
    return f"```text\npython benchmarks/{words}\n```\n"


def filled(lines: list[str]) -> str:
    """Give lines as text, or say that there are none yet."""
    return "\n".join(lines) if lines else "*Not run yet.*\n"


def image(name: str, alt: str) -> str:
    """Show a picture, if it is there."""
    return f"```{{image}} {name}\n:alt: {alt}\n```\n" if (FOLDER / name).exists() else ""
