"""The curator's page: from a file on this machine to a release, without writing code.

The only page that may see private rows, and only in its last step: everything before it is drawn
from the header, the schema and the plan.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import Response

from aquatint.web.pages import Handler, Visit, nowhere, route, static
from aquatint.web.steps import budgeting, declaring, picking, releasing
from aquatint.web.steps.folder import Folder
from aquatint.web.steps.session import Session


def studio_app(folder: str | Path = ".") -> Starlette:
    """Make the pages; only files below the folder can be chosen."""
    session = Session(Folder(Path(folder)))
    shared = {"app": "studio", "title": "Studio", "session": session}

    def of(handler: Callable[[Visit, Session], Response]) -> Handler:
        return lambda visit: handler(visit, session)

    pages: list[tuple[str, Callable[[Visit, Session], Response], str]] = [
        ("/", picking.page, "GET"),
        ("/pick", picking.pick, "POST"),
        ("/schema", declaring.page, "GET"),
        ("/schema", declaring.declare, "POST"),
        ("/schema/file", declaring.take_file, "POST"),
        ("/column/{place:int}", declaring.column, "POST"),
        ("/check/{place:int}", declaring.check, "POST"),
        ("/budget", budgeting.page, "GET"),
        ("/budget", budgeting.choose, "POST"),
        ("/preview", budgeting.expected, "POST"),
        ("/confirm", releasing.confirm, "GET"),
        ("/spend", releasing.spend, "POST"),
        ("/done", releasing.done, "GET"),
        ("/again", releasing.again, "POST"),
        ("/file/{which}", releasing.file, "GET"),
    ]

    @asynccontextmanager
    async def lasting(_: Starlette) -> AsyncIterator[None]:
        yield
        session.close()

    made = Starlette(
        routes=[*(route(p, of(h), shared, method) for p, h, method in pages), *static()],
        lifespan=lasting,
        exception_handlers=nowhere(shared),
    )
    made.state.session = session
    return made
