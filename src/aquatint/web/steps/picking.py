"""Step one: which file. Its path is chosen on this machine; nothing is uploaded."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.responses import Response

from aquatint.curator.draft import kinds
from aquatint.errors import DataError
from aquatint.web.pages import Visit
from aquatint.web.steps import drafting
from aquatint.web.steps.folder import is_data
from aquatint.web.steps.session import Session

MOST_COLUMNS = 1_000


def page(visit: Visit, session: Session) -> Response:
    """List what can be chosen."""
    if session.locked:
        return visit.go("/done")
    here = visit.asked("in")
    up = str(PurePosixPath(here).parent) if here else None
    return visit.show(
        "pick.html",
        entries=session.folder.listing(here),
        root=session.folder.name,
        inside=here,
        up="" if up == "." else up,
        chosen=session.data,
    )


def pick(visit: Visit, session: Session) -> Response:
    """Choose a file, and read its header: names and types, the only look before the end."""
    session.open()
    path = session.folder.inside(visit.form.text("path"))
    if not path.is_file() or not is_data(path):
        msg = "choose a CSV, Parquet or Arrow file from the list"
        raise DataError(msg)
    found = kinds(path)
    if len(found) > MOST_COLUMNS:
        msg = (
            f"{path.name} has {len(found):,} columns, more than a form has room for: "
            "write a schema with aquatint draft, and sketch on the command line"
        )
        raise DataError(msg)
    session.data, session.columns = path, drafting.blank(found)
    session.said = {"name": path.name.split(".")[0], "privacy": {}}
    session.schema = session.plan = session.spending = None
    session.typed = {}
    return visit.go("/schema")
