"""``aquatint query``: questions to a release, in SQL or ready-made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aquatint.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from aquatint.analyst.query.front import Query


def query(
    release: Annotated[Path, typer.Argument(help="a release file, .aqt")],
    question: Annotated[
        str | None, typer.Argument(help='SQL: "select sex, avg(age) from data group by sex"')
    ] = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="every column: mean, spread, quartiles, histogram")
    ] = False,
    corr: Annotated[bool, typer.Option("--corr", help="all correlations")] = False,
    plot: Annotated[Path | None, typer.Option(help="also draw the answer, as .png or .svg")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="also write it as .csv or .parquet")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="a fitted model: read if it is there, else written for next time"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Ask a release anything: statistics with intervals, at no privacy cost."""
    if sum((question is not None, describe, corr)) != 1:
        msg = "give one question in SQL, or --describe, or --corr"
        raise typer.BadParameter(msg)
    asked = _open(release, model, progress=not quiet)
    if question is not None:
        found, shown, drawn = _ask(asked, question)
    elif describe:
        found, shown, drawn = _describe(asked, progress=not quiet)
    else:
        found, shown, drawn = _correlate(asked)
    if model is not None and not model.exists():
        asked.model.save(model)
    if output is not None:
        from aquatint.analyst.synthesize.front import write_table

        write_table(found, output)
    if plot is not None:
        from aquatint import drawing

        drawing.save(drawn(), plot)
    if as_json:
        text = found.to_json(orient="records", double_precision=15)
        typer.echo(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
        return
    from aquatint.analyst.query.text import LEGEND
    from aquatint.show import terminal

    terminal().print(shown())
    typer.echo(LEGEND, err=True)


Shown = tuple["pd.DataFrame", Any, Any]


def _open(path: Path, model: Path | None, *, progress: bool) -> Query:
    from aquatint.analyst.query.front import Query
    from aquatint.analyst.synthesize.front import load_model
    from aquatint.analyst.synthesize.mixture import Mixture
    from aquatint.release import load

    release = load(path)
    if model is None or not model.exists():
        return Query(release, progress=progress)
    fitted = load_model(model)
    if not isinstance(fitted, Mixture):
        msg = f"{model} holds no mixture: leave --model out, or name a new file"
        raise DataError(msg)
    return Query(release, model=fitted, progress=progress)


def _ask(asked: Query, question: str) -> Shown:
    from aquatint.analyst.query.text import answers_table

    found = asked.sql(question)

    def drawn() -> Figure:
        from aquatint.analyst.query.plots import answers

        return answers(found, question)

    return found, lambda: answers_table(found), drawn


def _describe(asked: Query, *, progress: bool) -> Shown:
    from aquatint.analyst.query.describe import describe, described_frame
    from aquatint.analyst.query.text import described_table

    described = describe(asked, progress=progress)

    def drawn() -> Figure:
        from aquatint.analyst.query.plots import columns

        return columns(described, asked.release.schema.name)

    return described_frame(described), lambda: described_table(described), drawn


def _correlate(asked: Query) -> Shown:
    from aquatint.analyst.query.text import pairs_table

    found = asked.correlation()

    def drawn() -> Figure:
        from aquatint.analyst.query.plots import correlations

        return correlations(found, f"{asked.release.schema.name}: correlations")

    return found, lambda: pairs_table(found), drawn
