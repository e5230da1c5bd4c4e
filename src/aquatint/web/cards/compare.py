"""Compare: whether two releases tell of different data, and where."""

from __future__ import annotations

from math import isfinite
from typing import Any

from starlette.responses import Response

from aquatint.analyst.compare.front import compare
from aquatint.comparison import Comparison
from aquatint.errors import DataError
from aquatint.reporting import charts
from aquatint.web.cards import equivalents
from aquatint.web.cards.opened import Opened, Shelf
from aquatint.web.pages import Visit

SHOWN = 20


def page(visit: Visit, _: Shelf) -> Response:
    """Show the form."""
    return visit.show("compare.html", found=None)


def test(visit: Visit, shelf: Shelf) -> Response:
    """Compare two releases, and show what differs most."""
    form, last = visit.form, len(shelf.opened) - 1
    if last < 1:
        msg = "this page has one release: start it with two, aquatint serve one.aqt other.aqt"
        raise DataError(msg)
    places = [form.whole("first", 0, last, 0), form.whole("second", 0, last, 1)]
    if len(set(places)) == 1:
        msg = "choose two different releases"
        raise DataError(msg)
    first, second = (shelf.opened[place] for place in places)
    alpha, careful = form.number("alpha", "a level, such as 0.01"), form.has("conservative")
    key = ("compare", *places, alpha, careful)
    job = shelf.work(key, "comparing", lambda: _compared(first, second, alpha, careful))
    again = {"first": places[0], "second": places[1], "alpha": alpha}
    shown: dict[str, Any] = {
        "job": job,
        "again": again | ({"conservative": "on"} if careful else {}),
    }
    if job.ready:
        shown |= {"job": None, **_shown(first, second, job.result, careful=careful)}
    if visit.partial:
        return visit.show("_compared.html", **shown)
    return visit.show("compare.html", found=shown)


def _compared(first: Opened, second: Opened, alpha: float, careful: bool) -> Comparison:
    return compare(first.release, second.release, alpha=alpha, conservative=careful)


def _shown(first: Opened, second: Opened, found: Comparison, *, careful: bool) -> dict[str, Any]:
    worst = [one for one in found.differences[:SHOWN] if isfinite(one.statistic)]
    return {
        "first": first.name,
        "second": second.name,
        "result": found,
        "differences": worst,
        "chart": _chart(worst, found.alpha),
        "same": equivalents.compared(first.path, second.path, found.alpha, conservative=careful),
    }


def _chart(differences: list[Any], alpha: float) -> str:
    sure = [one.adjusted <= alpha for one in differences]
    labels = [f"{one.part} *" if s else one.part for one, s in zip(differences, sure, strict=True)]
    values = [one.statistic for one in differences]
    title = f"what differs most, in standard deviations; * differs at level {alpha:g}"
    return charts.bars(labels, values, title=title, form=lambda number: f"{number:.1f}")
