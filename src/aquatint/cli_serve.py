"""``aquatint serve``: the analyst's page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aquatint.extras import need

Port = Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one")]
Browser = Annotated[bool, typer.Option(help="open the address in a browser")]


def serve(
    releases: Annotated[list[Path], typer.Argument(help="a release file, .aqt, or several")],
    port: Port = 0,
    browser: Browser = True,
) -> None:
    """Open the analyst's page: see a release, ask, sample, learn and compare in a browser."""
    for module in ("starlette", "uvicorn", "jinja2"):
        need(module, extra="web")
    from aquatint.web.serve import analyst_app
    from aquatint.web.server import run

    run(analyst_app(releases), port=port, browser=browser, say=typer.echo)
