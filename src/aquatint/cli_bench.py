"""``aquatint bench``: figures of the papers, made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from aquatint.errors import AquatintError


def bench(
    paper: Annotated[
        str | None, typer.Option(help="dp-merf, dp-hp, dp-mepf, two-sample, m2m or peers")
    ] = None,
    table: Annotated[str | None, typer.Option(help="only this table, for example 2")] = None,
    figure: Annotated[str | None, typer.Option(help="only this figure, for example 1")] = None,
    dataset: Annotated[str | None, typer.Option(help="only this one, for example adult")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="runs of each figure")] = None,
    only_show: Annotated[
        bool, typer.Option("--show", help="print what was measured, run nothing")
    ] = False,
) -> None:
    """Make figures of the papers again and print them beside what was published.

    Runs that are there are not made again. It needs the repository: the benchmarks are not part of
    the installed package.
    """
    script = _script()
    words = ["show" if only_show else "run"]
    item = f"table {table}" if table else f"figure {figure}" if figure else None
    for name, value in (("paper", paper), ("item", item), ("dataset", dataset), ("runs", runs)):
        if value is not None:
            words += [f"--{name}", str(value)]
    done = subprocess.run([sys.executable, str(script), *words], check=False)  # noqa: S603
    raise typer.Exit(done.returncode)


def _script() -> Path:
    """Find the book in the checkout that this code runs from, or in the current folder."""
    for folder in (Path(__file__).resolve().parents[2], Path.cwd()):
        if (found := folder / "benchmarks" / "book.py").is_file():
            return found
    msg = "bench needs the repository: clone it and run this from its folder"
    raise AquatintError(msg)
