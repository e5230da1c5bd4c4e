"""The last step: say what will be spent, spend it once, and lock."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import tomli_w
from starlette.responses import Response

from aquatint.curator.encode import Notes
from aquatint.curator.sketch import sketch
from aquatint.curator.spending import in_words
from aquatint.errors import DataError
from aquatint.release import load
from aquatint.release.card import promise
from aquatint.reporting.front import report
from aquatint.schema import Schema
from aquatint.web.cards.equivalents import Same, command_line
from aquatint.web.jobs import Job
from aquatint.web.pages import Visit
from aquatint.web.steps import budgeting
from aquatint.web.steps.session import Outcome, Session, Spending

FILES = {
    "release": "application/octet-stream",
    "schema": "application/toml",
    "report": "text/html",
}


def confirm(visit: Visit, session: Session) -> Response:
    """Say in plain words what is about to happen."""
    if session.locked:
        return visit.go("/done")
    if session.spending is None or session.schema is None or session.data is None:
        return visit.go("/budget")
    return visit.show(
        "confirm.html",
        data=session.data.name,
        schema=session.schema,
        spending=session.spending,
        warnings=budgeting.warnings(session.spending),
        account=budgeting.account(session, session.spending),
        problem=session.work.problem if session.work else "",
        same=same(session),
    )


def same(session: Session) -> Same:
    """Give the last step in Python and as a command; the schema is saved beside the release."""
    spending, data = session.spending, session.data
    if spending is None or data is None:
        msg = "choose what to spend first"
        raise DataError(msg)
    file, budget = session.folder.relative(data), spending.budget
    schema = str(Path(spending.output).with_suffix(".toml"))
    booked = {"ledger": spending.ledger, "dataset": spending.dataset} if spending.ledger else {}
    options = {"epsilon": budget.epsilon, "delta": budget.delta, **booked}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    python = "\n".join(
        [
            "import aquatint as aq",
            "",
            f"schema = aq.Schema.from_toml({schema!r})",
            f"release = aq.sketch({file!r}, schema, {given}, output={spending.output!r})",
        ]
    )
    words = [w for name, value in options.items() for w in (f"--{name}", str(value))]
    words += ["-o", spending.output]
    return Same(python, command_line("sketch", file, "--schema", schema, *words))


def spend(visit: Visit, session: Session) -> Response:
    """Start the sketch; from here on nothing can be changed."""
    session.open()
    spending, schema, data = session.spending, session.schema, session.data
    if spending is None or schema is None or data is None:
        return visit.go("/budget")
    if not visit.form.has("sure"):
        msg = "tick the box first: what is spent cannot be taken back"
        raise DataError(msg)
    budgeting.check_output(session, spending.output)
    root = session.folder.root
    work = Job("making the release", lambda: made(root, data, schema, spending), must_end=True)
    session.begin(work)
    work.wait(0.5)
    return visit.go("/done")


def made(root: Path, data: Path, schema: Schema, spending: Spending) -> Outcome:
    """Make the release, and write it, its schema and its report into the folder."""
    private: list[Notes] = []
    output, budget = root / spending.output, spending.budget
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page has said so before
        release = sketch(
            data,
            schema,
            epsilon=budget.epsilon,
            delta=budget.delta,
            ledger=root / spending.ledger if spending.ledger else None,
            dataset=spending.dataset or None,
            output=output,
            notes=private.append,
        )
    files = {"release": output, "schema": output.with_suffix(".toml")}
    plain = schema.to_dict()
    files["schema"].write_text(tomli_w.dumps(plain), encoding="utf-8")
    return Outcome(files, release.loss, in_words(private[0]), promise(release))


def done(visit: Visit, session: Session) -> Response:
    """Show progress, then the release; or what went wrong, with everything open again."""
    if session.work is None:
        return visit.go("/")
    if session.work.problem:
        template = "_failed.html" if visit.partial else "failed.html"
        return visit.show(template, problem=session.work.problem, account=_account(session))
    template = "_done.html" if visit.partial else "done.html"
    return visit.show(template, job=session.work, **_shown(session))


def _report(session: Session, release: Path) -> Job[Path]:
    """Write the report, apart from the release: that is made, whatever becomes of this."""
    if session.report is None:
        written = release.with_suffix(".html")
        session.report = Job("writing the report", lambda: report(load(release), written)).start()
        session.report.wait(0.3)
    return session.report


def _account(session: Session) -> Any:
    book = session.book()
    return book.account(session.spending.dataset) if book and session.spending else None


def _shown(session: Session) -> dict[str, Any]:
    work, spending = session.work, session.spending
    if work is None or spending is None or not work.ready:
        return {"outcome": None}
    found, book = work.result, session.book()
    twice = (
        book.after(spending.dataset, found.loss)
        if book
        else (found.loss + found.loss).epsilon(spending.budget.delta)
    )
    return {
        "outcome": found,
        "report": _report(session, found.files["release"]),
        "spending": spending,
        "account": _account(session),
        "twice": twice,
        "root": session.folder.name,
        "same": same(session),
    }


def file(visit: Visit, session: Session) -> Response:
    """Give one of the files that were written."""
    which = str(visit.request.path_params["which"])
    files = dict(session.work.result.files) if session.work and session.work.ready else {}
    if session.report is not None and session.report.ready:
        files["report"] = session.report.result
    if which not in files:
        msg = "there is no such file yet"
        raise DataError(msg)
    path = files[which]
    return visit.download(path.read_bytes(), path.name, FILES[which])


def again(visit: Visit, session: Session) -> Response:
    """Begin a new release of the same file, which will cost again."""
    if session.work is not None and not session.work.over:
        msg = "the release is still being made"
        raise DataError(msg)
    session.again()
    return visit.go("/budget")
