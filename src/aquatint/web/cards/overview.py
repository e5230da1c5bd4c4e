"""Overview: what the release promises, every column at a glance, and what it answers well."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from aquatint.release.card import NOT_COVERED, promise, technical
from aquatint.release.manifest import assumed_public
from aquatint.reporting.counted import describe_counted
from aquatint.reporting.pictures import column_chart, statistics_of
from aquatint.reporting.verdicts import verdicts
from aquatint.web.cards import equivalents
from aquatint.web.cards.opened import Opened
from aquatint.web.pages import Visit

MANY_COLUMNS = 60
"""From so many columns on, charts go without the words that a pointer shows."""


def page(visit: Visit, opened: Opened) -> Response:
    """Show the card, what to expect, and the columns as far as they are known."""
    release = opened.release
    return visit.show(
        "overview.html",
        opened=opened,
        promise=promise(release),
        facts=technical(release),
        public=assumed_public(release),
        not_covered=NOT_COVERED,
        same=equivalents.shown(opened.path),
        fresh=False,
        **_columns(opened),
    )


def fitting(visit: Visit, opened: Opened) -> Response:
    """Say how far the model is; once it is there, have the columns shown again."""
    fresh = opened.asking.ready and not opened.wide
    return visit.show("_fitting.html", opened=opened, job=opened.asking, fresh=fresh)


def columns(visit: Visit, opened: Opened) -> Response:
    """Show the columns again, better known once the model is fitted."""
    return visit.show("_columns.html", opened=opened, **_columns(opened))


def prepare(opened: Opened) -> None:
    """Draw the columns as they were counted, before anybody waits for them."""
    _columns(opened)


def _columns(opened: Opened) -> dict[str, Any]:
    """Describe columns by their own counts at once, and by the model when it is there."""
    fitted = opened.table and opened.asking.ready and not opened.wide
    if fitted not in opened.drawn:
        opened.drawn[fitted] = _drawn(opened, fitted=fitted)
    return opened.drawn[fitted]


def _drawn(opened: Opened, *, fitted: bool) -> dict[str, Any]:
    release = opened.release
    described = opened.asking.result if fitted else describe_counted(release)
    known = {one.name: one for one in described}
    tips = len(release.schema.columns) < MANY_COLUMNS
    shown = [
        {
            "name": name,
            "kind": column.kind,
            "chart": column_chart(known[name], tips=tips) if name in known else None,
            "told": statistics_of(known[name]) if name in known else [],
        }
        for name, column in release.schema.columns.items()
    ]
    graded = verdicts(release, described, None)
    return {"columns": shown, "job": opened.asking, "verdicts": graded}
