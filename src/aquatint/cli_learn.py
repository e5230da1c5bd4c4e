"""``aquatint learn``: a model trained from a release, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def learn(
    release: Annotated[Path, typer.Argument(help="a release file, .aqt")],
    model: Annotated[
        str, typer.Option(help="logistic, tree, forest, boosting; linear, ridge for numbers")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="a .skops file")],
    target: Annotated[str | None, typer.Option(help="column to predict; default: label")] = None,
    features: Annotated[
        str | None, typer.Option(help="columns to predict it from, with commas between")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="how many rows to train on")] = None,
    how: Annotated[str, typer.Option(help="auto, rows or weights")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="the same seed gives the same model")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Train a model from a release alone, at no privacy cost."""
    from aquatint.analyst.learn.files import check_learned_path, save_learned
    from aquatint.analyst.learn.front import chosen_columns
    from aquatint.analyst.learn.front import learn as train
    from aquatint.analyst.learn.models import named_model
    from aquatint.extras import need
    from aquatint.release import load

    check_learned_path(output)
    need("skops.io", extra="learn")
    opened = load(release)
    names = None if features is None else [name.strip() for name in features.split(",")]
    wanted, names = chosen_columns(opened.schema, target, names)
    estimator = named_model(model, opened.schema, wanted, seed)
    trained = train(
        opened,
        estimator,
        target=wanted,
        features=names,
        rows=rows,
        how=how,  # type: ignore[arg-type]
        seed=seed,
        progress=not quiet,
    )
    save_learned(trained, output)
    if not quiet:
        what = f"{model} model of {wanted!r} from {len(names)} columns"
        typer.echo(f"written: {output}, a {what}", err=True)
        typer.echo(f'open it in Python: aquatint.load_learned("{output}")', err=True)
