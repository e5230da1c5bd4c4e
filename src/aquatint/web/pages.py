"""From templates to answers: a whole page, or the part of it that a script asked for."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from aquatint.errors import AquatintError
from aquatint.web.forms import Form

Handler = Callable[["Visit"], Response]
LOG = logging.getLogger("aquatint.web")
UNFORESEEN = "This failed in a way that we did not foresee ({}): please report it."


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("aquatint.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["svg"] = Markup  # charts escape what stands in them
    return made


class Visit:
    """One request, with its form, and the ways to answer it."""

    templates = _environment()

    def __init__(self, request: Request, shared: dict[str, Any]) -> None:
        self.request, self._shared = request, shared
        self.form = Form(request.scope.get("form", {}))
        self.partial = request.headers.get("hx-request") == "true"

    @property
    def where(self) -> str:
        """The path that was asked for."""
        return self.request.url.path

    def asked(self, name: str) -> str:
        """Give what the address says of a name."""
        return self.request.query_params.get(name, "")

    def show(self, template: str, status: int = 200, **context: Any) -> Response:
        """Fill in a template."""
        known = {"secret": self.request.scope.get("secret", ""), "here": self.where}
        page = self.templates.get_template(template)
        return HTMLResponse(page.render({**self._shared, **known, **context}), status)

    def problem(self, why: str, status: int = 422) -> Response:
        """Say what is wrong, in a part of a page or on a page of its own."""
        name = "_problem.html" if self.partial else "problem.html"
        return self.show(name, status, why=why)

    @staticmethod
    def go(path: str) -> Response:
        """Send the browser on, with a GET."""
        return RedirectResponse(path, 303)

    @staticmethod
    def download(content: bytes, name: str, kind: str) -> Response:
        """Give a file to keep."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "file"
        headers = {"content-disposition": f'attachment; filename="{plain[:100]}"'}
        return Response(content, media_type=kind, headers=headers)


def route(path: str, handler: Handler, shared: dict[str, Any], method: str = "GET") -> Route:
    """Answer a path by a plain function, in a thread, so that the server stays awake."""

    async def answered(request: Request) -> Response:
        visit = Visit(request, shared)
        return await run_in_threadpool(_answer, handler, visit)

    return Route(path, answered, methods=[method])


def _answer(handler: Handler, visit: Visit) -> Response:
    try:
        return handler(visit)
    except AquatintError as error:
        return visit.problem(str(error))
    except Exception as error:  # the server stays alive, whatever happens
        place = traceback.extract_tb(error.__traceback__)[-1]
        # Not the text: it may hold values.
        LOG.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
        return visit.problem(UNFORESEEN.format(type(error).__name__), 500)


def static() -> list[BaseRoute]:
    """Give the style sheets and the scripts, all of them in this package."""
    homes = {"/static": "aquatint.web", "/charts": "aquatint.reporting"}
    return [
        Mount(path, StaticFiles(directory=str(files(home) / "static")))
        for path, home in homes.items()
    ]


def nowhere(shared: dict[str, Any]) -> dict[Any, Any]:
    """Say of paths that do not exist that it is so."""

    async def missing(request: Request, _: Exception) -> Response:
        return Visit(request, shared).problem("There is no such page: see the links above.", 404)

    return {404: missing, 405: missing}
