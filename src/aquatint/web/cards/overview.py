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
        **_columns(opened),
    )


def columns(visit: Visit, opened: Opened) -> Response:
    """Show the columns again, better known once the model is fitted."""
    return visit.show("_columns.html", opened=opened, **_columns(opened))


def _columns(opened: Opened) -> dict[str, Any]:
    """Describe columns by their own counts at once, and by the model when it is there."""
    if opened.drawn is not None:
        return opened.drawn
    release = opened.release
    fitted = opened.table and opened.asking.ready
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
    found = {"columns": shown, "job": opened.asking, "verdicts": graded}
    if fitted:
        opened.drawn = found
    return found
