"""The command line for views of pixels: cosines, and views that a release centres."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aquatint.errors import PlanError


def view(
    output: Annotated[Path, typer.Option("-o", "--output", help="the .safetensors to write")],
    release: Annotated[
        Path | None, typer.Argument(help="a first release by pixel_gaussian, to centre its view by")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=2, help="without a release: the side of the images")
    ] = None,
    components: Annotated[int, typer.Option(min=1, help="without a release: cosines")] = 100,
    features: Annotated[
        Path | None, typer.Option(help="the view of the release, if it does not lie beside it")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="say nothing")] = False,
) -> None:
    """Make a view of grey pixels: cosines, or the view of a release, centred on its images."""
    from aquatint.networks import save, smooth_projection

    if (release is None) is (size is None):
        msg = "give a release to centre its view by, or --size for a view of cosines"
        raise PlanError(msg)
    if release is not None:
        from aquatint.analyst.images.centring import centred_view
        from aquatint.analyst.images.front import with_networks
        from aquatint.release import load

        folders = (release.resolve().parent, Path.cwd())
        network = centred_view(with_networks(load(release), features, folders))
    else:
        side = size or 0
        network = smooth_projection((side, side), components)
    save(network, output)
    if not quiet:
        typer.echo(f"written: {output}: {network.note}, SHA-256 {network.sha256[:16]}…", err=True)
