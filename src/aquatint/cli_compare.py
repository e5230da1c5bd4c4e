"""``aquatint compare``: whether releases tell of different data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from aquatint.comparison import Comparison
    from aquatint.release.model import Release

SHOWN = 20
"""How many differences are printed."""


def compare(
    releases: Annotated[list[Path], typer.Argument(help="two release files, .aqt, or more")],
    alpha: Annotated[
        float, typer.Option(help="how often at most equal data may be said to differ")
    ] = 0.01,
    conservative: Annotated[
        bool, typer.Option("--conservative", help="take estimated variances as large as may be")
    ] = False,
    method: Annotated[str, typer.Option(help="auto, whitened or parts")] = "auto",
    where: Annotated[bool, typer.Option("--where", help="also say what differs most")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="also draw what differs most, as .png or .svg")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Test whether two datasets differ, from their releases alone, at no privacy cost."""
    if len(releases) < 2:
        msg = "give at least two releases to compare"
        raise typer.BadParameter(msg)
    if len(releases) > 2 and (where or plot is not None):
        msg = "--where and --plot are for two releases: compare those two alone"
        raise typer.BadParameter(msg)
    opened = _open(releases)
    options: dict[str, Any] = {"alpha": alpha, "conservative": conservative, "method": method}
    if len(releases) > 2:
        _print_all(opened, options, as_json=as_json)
        return
    from aquatint.analyst.compare.front import compare as test

    found = test(*opened.values(), **options)
    if plot is not None:
        found.where(plot)
    print_comparison(found, list(opened), where=where, as_json=as_json)


def _open(paths: list[Path]) -> dict[str, Release]:
    """Open the files; each is named by its stem, or by its path where two have the same."""
    from aquatint.comparison import CompareError
    from aquatint.release import load

    stems = [path.stem for path in paths]
    names = [str(p) if stems.count(p.stem) > 1 else p.stem for p in paths]
    if len(set(names)) < len(names):
        msg = "the same file is given twice: give each release once"
        raise CompareError(msg)
    return {name: load(path) for name, path in zip(names, paths, strict=True)}


def print_comparison(
    found: Comparison, names: list[str], *, where: bool = False, as_json: bool = False
) -> None:
    """Print what a test of two datasets found, for people or as JSON."""
    if as_json:
        data = found.to_dict()
        if not where:
            data.pop("differences")
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    verdict = "they differ" if found.reject else "no difference was found"
    paid = "" if found.pvalue is None else f", p = {found.pvalue:.3g}"
    typer.echo(f"{names[0]} and {names[1]}: {verdict} (level {found.alpha:g}{paid})")
    rows = "private" if found.n is None else " and ".join(f"{count:,.0f}" for count in found.n)
    exact = found.n is None or found.neighbours == "replace one row"
    for name, value in (
        ("method", found.method),
        ("null", found.null),
        ("rows", rows if exact else f"about {rows}"),
        ("promise", f"epsilon {found.epsilon:g}, delta {found.delta:g}, {found.neighbours}"),
    ):
        typer.echo(f"  {name + ':':9} {value}")
    if where:
        _print_where(found.where())


def _print_where(table: pd.DataFrame) -> None:
    from rich.text import Text

    from aquatint.show import plain_table, terminal

    shown = plain_table("what differs most", "part", "deviations", "adjusted p", "differs")
    for row in table.head(SHOWN).itertuples():
        differs = "yes" if row.differs else ""
        numbers = f"{row.statistic:.1f}", f"{row.adjusted:.3g}"
        shown.add_row(Text(str(row.part)), *numbers, differs)
    terminal().print(shown)


def _print_all(opened: dict[str, Release], options: dict[str, Any], *, as_json: bool) -> None:
    from rich.text import Text

    from aquatint.analyst.compare.front import compare_all
    from aquatint.show import plain_table, terminal

    table = compare_all(opened, **options)
    if as_json:
        text = table.to_json(orient="records", double_precision=15)
        typer.echo(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
        return
    title = f"level {options['alpha']:g}, Holm's adjustment for {len(table)} pairs"
    shown = plain_table(title, "releases", "deviations", "p", "adjusted p", "differ")
    for row in table.itertuples():
        names = Text(f"{row.first} and {row.second}")
        numbers = f"{row.statistic:.1f}", f"{row.pvalue:.3g}", f"{row.adjusted:.3g}"
        shown.add_row(names, *numbers, "yes" if row.reject else "")
    terminal().print(shown)
