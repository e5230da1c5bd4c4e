"""The command line of `sample`: rows of a table, or images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aquatint.errors import ReleaseError


def sample(
    release: Annotated[Path, typer.Argument(help="a release, .aqt, or a model that --save wrote")],
    count: Annotated[int, typer.Option("-n", min=1, help="how many rows or images to draw")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="a .csv or .parquet; images: a new folder, or .npz"),
    ],
    where: Annotated[
        str | None, typer.Option(help="only such rows: \"sex = 'Female' and age >= 30\"")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, mixture or network; images: network or gaussian")
    ] = "auto",
    seed: Annotated[
        int | None, typer.Option(min=0, help="the same seed gives the same rows")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="also save the fitted model, to draw again at once")
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(help="images: the public network; default: looked for beside the release"),
    ] = None,
    device: Annotated[str | None, typer.Option(help="images: cpu or cuda")] = None,
    grid: Annotated[
        Path | None, typer.Option(help="images: also draw some of each class on one PNG")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="images: steps of training")] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="images: how many generators draw in turn")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="images: keep progress there, and go on from it")
    ] = None,
    begin: Annotated[
        Path | None, typer.Option(help="images: a saved model to begin with, of public images")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Draw synthetic rows or images from a release, at no privacy cost."""
    from aquatint.analyst.synthesize.front import check_table_path, open_model, opened_schema
    from aquatint.image_files.writing import check_output

    images = bool(opened_schema(release).images)
    given: dict[str, Any] = {"network": features, "device": device, "grid": grid}
    given |= {"steps": steps, "members": members, "checkpoint": checkpoint, "begin": begin}
    chosen = {name: value for name, value in given.items() if value is not None}
    if chosen and not images:
        option = {"network": "features"}.get(next(iter(chosen)), next(iter(chosen)))
        msg = f"--{option} is for images, and {release.name} is of a table: leave it out"
        raise ReleaseError(msg)
    check_output(output) if images else check_table_path(output)
    chosen.pop("grid", None)
    model = open_model(release, method, where=where, seed=seed or 0, progress=not quiet, **chosen)
    if save is not None:
        model.save(save)
    _write(model.sample(count, where=where, seed=seed), output, grid, images=images)
    if not quiet:
        what = "images" if images else "rows"
        typer.echo(f"written: {output}, {count:,} synthetic {what}", err=True)


def _write(drawn: Any, output: Path, grid: Path | None, *, images: bool) -> None:
    if not images:
        from aquatint.analyst.synthesize.front import write_table

        write_table(drawn, output)
        return
    from aquatint.image_files import contact_sheet, write_images

    write_images(output, drawn.pixels, drawn.labels)
    if grid is not None:
        contact_sheet(drawn.pixels, drawn.labels, grid)
