"""``aquatint studio``: the curator's page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aquatint.cli_serve import Browser, Port
from aquatint.extras import need


def studio(
    folder: Annotated[
        Path, typer.Option(help="only files below this folder can be chosen")
    ] = Path(),
    port: Port = 0,
    browser: Browser = True,
) -> None:
    """Open the curator's page: from a file to a release and its report, without writing code."""
    for module in ("starlette", "uvicorn", "jinja2", "tomli_w"):
        need(module, extra="web")
    from aquatint.web.server import run
    from aquatint.web.studio import studio_app

    run(studio_app(folder), port=port, browser=browser, say=typer.echo)
