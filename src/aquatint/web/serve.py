"""The analyst's page: one release or several, and never a private row.

This module and all it imports stand on the public side of the wall; an import contract holds that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute

from aquatint.web.cards import ask, compare, learn, overview, sample
from aquatint.web.cards.opened import Opened, Shelf
from aquatint.web.pages import Handler, Visit, nowhere, route, static

OfOne = Callable[[Visit, Opened], Response]


def analyst_app(paths: Sequence[str | Path], *, fit: bool = True) -> Starlette:
    """Make the pages about some releases; a file that is not a release is refused here.

    Parameters
    ----------
    paths
        Release files.
    fit
        Whether to fit models as soon as the server starts.
    """
    shelf = Shelf([Path(path) for path in paths])
    for opened in shelf.opened:
        overview.prepare(opened)
    shared: dict[str, Any] = {
        "app": "serve",
        "releases": shelf.opened,
        "title": shelf.opened[0].name,
    }

    @asynccontextmanager
    async def begun(_: Starlette) -> AsyncIterator[None]:
        if fit:
            shelf.start()
        yield
        shelf.stop()

    made = Starlette(
        routes=_routes(shelf, shared), lifespan=begun, exception_handlers=nowhere(shared)
    )
    made.state.shelf = shelf
    return made


def _routes(shelf: Shelf, shared: dict[str, Any]) -> list[BaseRoute]:
    def of_one(handler: OfOne) -> Handler:
        return lambda visit: handler(visit, shelf.find(int(visit.request.path_params["place"])))

    def with_work(handler: Callable[[Visit, Opened, Shelf], Response]) -> Handler:
        return of_one(lambda visit, one: handler(visit, one, shelf))

    pages: list[tuple[str, Handler, str]] = [
        ("/", lambda visit: visit.go("/0/"), "GET"),
        ("/{place:int}/", of_one(overview.page), "GET"),
        ("/{place:int}/fitting", of_one(overview.fitting), "GET"),
        ("/{place:int}/columns", of_one(overview.columns), "GET"),
        ("/{place:int}/ask", of_one(ask.page), "GET"),
        ("/{place:int}/ask", of_one(ask.answer), "POST"),
        ("/{place:int}/ask.csv", of_one(ask.download), "POST"),
        ("/{place:int}/value", of_one(ask.value), "GET"),
        ("/{place:int}/sample", of_one(sample.page), "GET"),
        ("/{place:int}/sample", with_work(sample.draw), "POST"),
        ("/{place:int}/rows", with_work(sample.download), "POST"),
        ("/{place:int}/learn", of_one(learn.page), "GET"),
        ("/{place:int}/learn", with_work(learn.start), "POST"),
        ("/{place:int}/learn.skops", with_work(learn.download), "POST"),
        ("/compare", lambda visit: compare.page(visit, shelf), "GET"),
        ("/compare", lambda visit: compare.test(visit, shelf), "POST"),
    ]
    return [*(route(path, handler, shared, method) for path, handler, method in pages), *static()]
