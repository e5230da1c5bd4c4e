"""``aquatint report``: one page about a release; with the real rows, for the curator's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from aquatint.release import Release

HINT = ".curator-only.html"


def report(
    release: Annotated[Path, typer.Argument(help="a release file, .aqt")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="the page to write; default: FILE.html")
    ] = None,
    real: Annotated[
        Path | None, typer.Option(help="also compare with the real rows: the page is NOT PRIVATE")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="with --real: real rows that were not sketched")
    ] = None,
    classifiers: Annotated[
        str, typer.Option(help="with --real: quick (3), papers (12), or names with commas between")
    ] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="of the synthetic rows")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Write a page about a release: promise, columns, pairs, noise, and what it answers well."""
    from aquatint.release import load
    from aquatint.reporting.front import check_path
    from aquatint.reporting.front import report as write_report

    if real is None and test is not None:
        msg = "--test goes with --real: give both, or neither"
        raise typer.BadParameter(msg)
    path = output or release.with_suffix(".html" if real is None else HINT)
    check_path(path)
    opened = load(release)
    if real is None:
        write_report(opened, path, seed=seed, progress=not quiet)
        told = "it is as public as the release"
    else:
        opened.schema.require_table("a report with real rows")
        names = classifiers if classifiers in {"papers", "quick"} else classifiers.split(",")
        _with_real_rows(opened, path, real, test, seed=seed, classifiers=names, progress=not quiet)
        told = "NOT PRIVATE, for the curator's eyes only"
        if "curator" not in path.name:
            hint = (
                f"call it {path.with_suffix(HINT).name}, or someone will take it for the public one"
            )
            typer.echo(f"aquatint: warning: {hint}", err=True)
    if not quiet:
        typer.echo(f"written: {path}, {told}")


def _with_real_rows(
    release: Release,
    path: Path,
    real: Path,
    test: Path | None,
    *,
    seed: int,
    progress: bool,
    classifiers: str | list[str],
) -> None:
    from aquatint.analyst.synthesize.front import synthesize
    from aquatint.analyst.synthesize.mixture import Mixture
    from aquatint.evaluate.beside import beside
    from aquatint.reporting.contents import contents
    from aquatint.reporting.front import write
    from aquatint.reporting.page import page

    model = synthesize(release, seed=seed, progress=progress)
    found = beside(model, real, test, classifiers=classifiers, seed=seed, progress=progress)
    fitted = model if isinstance(model, Mixture) else None
    write(page(contents(release, model=fitted, seed=seed, progress=progress), real=found), path)
