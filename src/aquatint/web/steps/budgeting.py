"""Step three: what to spend. The error to expect comes from the plan alone; no row is read."""

from __future__ import annotations

from math import nan
from time import monotonic
from typing import Any

from starlette.responses import Response

from aquatint.accounting import Budget
from aquatint.curator.ledger import Ledger
from aquatint.errors import AquatintError, DataError
from aquatint.planning import Plan
from aquatint.previewing import preview
from aquatint.reporting import charts
from aquatint.web.forms import Form
from aquatint.web.pages import Visit
from aquatint.web.steps.session import Session, Spending

MOST_ROWS = 10**12
LEDGERS = (".db", ".sqlite", ".ledger")
NEW = "ledger.db"
MOST_SECONDS = 0.4
"""What drawing a preview may take."""


def page(visit: Visit, session: Session, problem: str = "", status: int = 200) -> Response:
    """Show the form, and the preview as far as it is filled in."""
    if session.locked:
        return visit.go("/done")
    if session.schema is None:
        return visit.go("/schema")
    return visit.show(
        "budget.html",
        status,
        typed=session.typed,
        schema=session.schema,
        ledgers=session.folder.files(*LEDGERS),
        new=NEW,
        output=_output(session),
        problem=problem,
        preview=_preview(session, Form({k: [v] for k, v in session.typed.items()})),
    )


def _output(session: Session) -> str:
    name = session.schema.name if session.schema else "release"
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in name).strip("-") or "release"
    place, found = 1, f"{plain}.aqt"
    while (session.folder.root / found).exists():
        place += 1
        found = f"{plain}-{place}.aqt"
    return found


def expected(visit: Visit, session: Session) -> Response:
    """Give the preview again, while numbers are typed."""
    return visit.show("_preview.html", preview=_preview(session, visit.form))


def _preview(session: Session, form: Form) -> dict[str, Any]:
    """Say what to expect, or what is still missing."""
    if session.plan is None or not (form.text("epsilon") and form.text("rows")):
        return {"waits": True}
    try:
        spending = _spending(session, form, strict=False)
        budget = spending.budget
        seen = preview(session.plan, rows=spending.rows, epsilon=budget.epsilon, delta=budget.delta)
    except AquatintError as error:
        return {"waits": False, "problem": str(error)}
    return {
        "waits": False,
        "problem": "",
        "seen": seen,
        "warnings": warnings(spending),
        "account": account(session, spending, form.text("ceiling")),
        "curve": _curve(session.plan, spending),
    }


def _curve(plan: Plan, spending: Spending) -> str:
    """Draw how the error of one share falls with ε, around what was chosen."""
    epsilon, delta = spending.budget.epsilon, spending.budget.delta
    around = [epsilon * 2.0**power for power in (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)]
    begun, errors = monotonic(), []
    for one in around:
        seen = preview(plan, rows=spending.rows, epsilon=one, delta=delta)
        errors.append(next((e.error for e in seen.expected if "one cell" in e.question), nan))
        if monotonic() - begun > MOST_SECONDS:
            return ""  # a very wide table: the table of errors has to do
    title = "The error of a share of rows, in percent of all rows, by ε"
    curves = {"± percent": errors}
    return charts.line(around, curves, title=title, x_label="ε", height=170.0)


def warnings(spending: Spending) -> list[str]:
    """Say where the promise would mean little, as the sketch itself would."""
    budget, found = spending.budget, []
    if budget.delta * spending.rows >= 1:
        found.append(
            f"δ = {budget.delta:g} is not below one over the number of rows: publishing one "
            "random row would satisfy it. Choose a far smaller δ."
        )
    if budget.epsilon > 10:
        found.append(f"ε = {budget.epsilon:g} promises very little: most releases use 0.1 to 5.")
    return found


def account(session: Session, spending: Spending, ceiling: str = "") -> dict[str, Any] | None:
    """Give the ledger's state, and what it would be afterwards; None without a ledger."""
    if not spending.ledger:
        return None
    path = session.folder.inside(spending.ledger)
    if not path.exists():
        return {"new": True, "ceiling": ceiling}
    book = Ledger(path)
    known = {one.dataset: one for one in book.accounts()}
    if spending.dataset not in known:
        return {"new": True, "ceiling": ceiling}
    after = book.after(spending.dataset, session.loss(spending.budget))
    now = known[spending.dataset]
    return {"new": False, "now": now, "after": after, "fits": after <= now.epsilon * (1 + 1e-9)}


def _spending(session: Session, form: Form, *, strict: bool) -> Spending:
    epsilon = form.number("epsilon", "a number above 0, such as 1")
    delta = form.number("delta", "a small number such as 1e-6, or 0 for pure ε")
    output = form.text("output") or _output(session)
    ledger, dataset = form.text("ledger"), form.text("dataset")
    if strict:
        check_output(session, output)
    if ledger and strict and not dataset:
        msg = "give the dataset's name in the ledger"
        raise DataError(msg)
    if ledger:
        session.folder.inside(ledger)
    rows = form.whole("rows", 1, MOST_ROWS)
    return Spending(rows, Budget(epsilon, delta), output, ledger, dataset if ledger else "")


def check_output(session: Session, output: str) -> None:
    """Refuse a name outside the folder, or of a file that is there."""
    path = session.folder.inside(output)
    if path.suffix != ".aqt" or path.parent != session.folder.root:
        msg = "name the release file in the studio's folder, ending in .aqt"
        raise DataError(msg)
    if path.exists():
        msg = (
            f"{output} exists already, and a release is never overwritten here: choose another name"
        )
        raise DataError(msg)


def choose(visit: Visit, session: Session) -> Response:
    """Keep what is to be spent, declare a ceiling if asked, and go on."""
    session.open()
    if session.schema is None:
        return visit.go("/schema")
    form = visit.form
    session.typed = {name: values[-1] for name, values in form.fields.items()}
    try:
        session.spending = _spending(session, form, strict=True)
        _open_account(session, form)
        state = account(session, session.spending)
    except AquatintError as error:
        return page(visit, session, str(error), 422)
    if state is not None and not state["fits"]:
        why = f"that is more than the ledger has left: {state['now'].left:.4g}. Ask for less."
        return page(visit, session, why, 422)
    return visit.go("/confirm")


def _open_account(session: Session, form: Form) -> None:
    """Declare the ceiling of a dataset that the ledger does not know yet."""
    spending, schema = session.spending, session.schema
    book = session.book()
    if book is None or spending is None or schema is None:
        return
    state = account(session, spending)
    if state is not None and state["new"]:
        if not form.text("ceiling"):
            msg = f"the ledger has no ceiling for {spending.dataset!r} yet: set one"
            raise DataError(msg)
        ceiling = Budget(
            form.number("ceiling", "the ceiling's ε, such as 3"), spending.budget.delta
        )
        book.open_account(spending.dataset, ceiling, schema.privacy.protects)
