"""The command that judges synthetic rows and images beside real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from aquatint.errors import AquatintError


def evaluate(
    real: Annotated[Path, typer.Option(help="the real rows or images that were sketched")],
    synthetic: Annotated[Path, typer.Option(help="the synthetic rows or images")],
    schema: Annotated[
        Path | None, typer.Option("--schema", help="the public schema, a TOML file; for tables")
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="these are images: folders, .npz, idx or Parquet")
    ] = False,
    test: Annotated[Path | None, typer.Option(help="real rows kept apart, for classifiers")] = None,
    target: Annotated[str | None, typer.Option(help="column to predict; default: label")] = None,
    positive: Annotated[
        str | None, typer.Option(help="its positive class; default: rarest")
    ] = None,
    classifiers: Annotated[
        str | None,
        typer.Option(
            help="papers (12) or names with commas between; tables: quick (3), default papers; "
            "images: logreg, mlp, cnn (these three by default), resnet9, logreg_torch, mlp_torch"
        ),
    ] = None,
    baseline: Annotated[bool, typer.Option(help="also train on the real rows")] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="also the papers' own metrics, faults and all")
    ] = False,
    undersampling: Annotated[
        float, typer.Option(help="with --as-published: share of the large class kept")
    ] = 1.0,
    second_opinion: Annotated[
        bool, typer.Option("--second-opinion", help="also sdmetrics' quality scores")
    ] = False,
    plots: Annotated[Path | None, typer.Option(help="write plots into this folder")] = None,
    inception: Annotated[
        Path | None, typer.Option(help="images: the Inception weights of FID, a TorchScript file")
    ] = None,
    fid_images: Annotated[
        int, typer.Option(min=2, help="images: how many of each side FID compares")
    ] = 5000,
    device: Annotated[str, typer.Option(help="images: where torch works, cpu or cuda")] = "cpu",
    jobs: Annotated[
        int, typer.Option(min=1, help="images: classifiers of scikit-learn side by side")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="of everything random")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Compare synthetic rows or images with real ones: the scores are not private."""
    from aquatint.evaluate.errors import EvaluationError

    if images:
        tabular = {
            "--target": target,
            "--positive": positive,
            "--as-published": as_published,
            "--second-opinion": second_opinion,
            "--plots": plots,
        }
        wrong = [name for name, value in tabular.items() if value]
        if wrong:
            msg = f"{wrong[0]} is for tables: leave it out with --images"
            raise EvaluationError(msg)
        _images(
            real,
            synthetic,
            as_json=as_json,
            test=test,
            classifiers=classifiers if classifiers is not None else "logreg,mlp,cnn",
            baseline=baseline,
            inception=inception,
            fid_images=fid_images,
            device=device,
            jobs=jobs,
            seed=seed,
            progress=not quiet,
        )
        return
    if schema is None:
        msg = "a table is compared by its schema: give --schema, or say --images"
        raise EvaluationError(msg)
    names = "papers" if classifiers is None else classifiers
    _table(
        real,
        test,
        synthetic,
        schema,
        plots=plots,
        as_json=as_json,
        target=target,
        positive=positive,
        classifiers=names if names in {"papers", "quick"} else names.split(","),
        baseline=baseline,
        as_published=as_published,
        undersampling=undersampling,
        second_opinion=second_opinion,
        seed=seed,
        progress=not quiet,
    )


def _images(real: Path, synthetic: Path, *, as_json: bool, **settings: Any) -> None:
    from aquatint.evaluate.images import evaluate_images, image_evaluation_text

    found = evaluate_images(real, synthetic, **settings)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        image_evaluation_text(found)


def _table(
    real: Path,
    test: Path | None,
    synthetic: Path,
    schema: Path,
    *,
    plots: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    from aquatint.evaluate import evaluate as score
    from aquatint.evaluate import evaluation_text
    from aquatint.schema import Schema

    found = score(real, test, synthetic, Schema.from_toml(schema), **settings)
    if plots is not None:
        from aquatint.evaluate.plots import draw

        try:
            plots.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"cannot write plots into {plots}: {error.strerror}"
            raise AquatintError(msg) from None
        draw(found, plots)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        evaluation_text(found)
