"""Step two: the schema, column by column, from public knowledge. No row is read."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from aquatint.errors import AquatintError, DataError
from aquatint.schema import PROTECTS, Schema
from aquatint.web.forms import Form
from aquatint.web.pages import Visit
from aquatint.web.steps import drafting
from aquatint.web.steps.session import Session

MEANING = {
    "add or remove one row": "Nobody can tell whether any one row is in the data. "
    "The number of rows is released with noise.",
    "replace one row": "Nobody can tell what any one row says. The number of rows becomes public.",
    "all rows of one person": "Nobody can tell whether any one person is in the data, "
    "with all of their rows.",
}


def page(visit: Visit, session: Session, problem: str = "", status: int = 200) -> Response:
    """Show every column with what is declared so far."""
    if session.locked:
        return visit.go("/done")
    if session.data is None:
        return visit.go("/")
    return visit.show(
        "schema.html",
        status,
        data=session.data.name,
        said=session.said,
        columns=session.columns,
        person=session.said["privacy"].get("person"),
        checked=bool(problem),
        schemas=session.folder.files(".toml"),
        meaning=MEANING,
        problem=problem,
        **_lists(),
    )


def _lists() -> dict[str, Any]:
    return {
        "kinds": drafting.KINDS,
        "with_bounds": drafting.WITH_BOUNDS,
        "with_categories": drafting.WITH_CATEGORIES,
    }


def _column(visit: Visit, session: Session) -> tuple[int, drafting.ColumnDraft]:
    place = int(visit.request.path_params["place"])
    if place >= len(session.columns):
        msg = "there is no such column: choose a file first"
        raise DataError(msg)
    return place, drafting.from_form(session.columns[place], visit.form, place)


def column(visit: Visit, session: Session) -> Response:
    """Show the inputs that suit another kind."""
    session.open()
    place, changed = _column(visit, session)
    session.columns[place] = changed
    person = _privacy(visit.form).get("person")
    shown: dict[str, Any] = {"column": changed, "place": place, "checked": False, "person": person}
    return visit.show("_column.html", **shown, **_lists())


def check(visit: Visit, session: Session) -> Response:
    """Say at once what is wrong with one column; the schema's own checks do the looking."""
    _, changed = _column(visit, session)
    person = _privacy(visit.form).get("person")
    return visit.show("_checked.html", column=changed, person=person)


def take_file(visit: Visit, session: Session) -> Response:
    """Fill the form in from a schema file in the folder."""
    session.open()
    path = session.folder.inside(visit.form.text("file"))
    if path.suffix != ".toml":
        msg = "choose a schema file, .toml, from the list"
        raise DataError(msg)
    schema = Schema.from_toml(path)
    session.columns = drafting.from_schema(session.columns, schema)
    session.said = {
        "name": schema.name,
        "label": schema.label,
        "privacy": schema.privacy.model_dump(exclude_none=True),
    }
    return visit.go("/schema")


def declare(visit: Visit, session: Session) -> Response:
    """Keep what the form says, check the whole, and go on."""
    session.open()
    if session.data is None:
        return visit.go("/")
    places = enumerate(session.columns)
    session.columns = [drafting.from_form(one, visit.form, place) for place, one in places]
    session.said = _said(visit.form)
    try:
        session.declare(drafting.whole(session.columns, session.said))
    except AquatintError as error:
        session.schema = None
        return page(visit, session, str(error), 422)
    return visit.go("/budget")


def _said(form: Form) -> dict[str, Any]:
    label = form.text("label")
    return {"name": form.text("name"), "label": label or None, "privacy": _privacy(form)}


def _privacy(form: Form) -> dict[str, Any]:
    """Give what is protected; the fields about persons count only where persons are."""
    protects, person = form.text("protects"), form.text("person")
    privacy: dict[str, Any] = {"protects": protects} if protects in PROTECTS else {}
    if protects == "all rows of one person":
        privacy |= {"person": person} if person else {}
        privacy |= {"max_rows": form.text("max_rows")} if form.text("max_rows") else {}
    return privacy
