"""Sample: synthetic rows to look at and to keep."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from starlette.responses import Response

from aquatint.errors import DataError
from aquatint.web.cards import equivalents, filters
from aquatint.web.cards.opened import Opened
from aquatint.web.forms import Form
from aquatint.web.pages import Visit

MOST = 1_000_000
PREVIEW = 12
KINDS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def page(visit: Visit, opened: Opened) -> Response:
    """Show the form."""
    return visit.show("sample.html", **_form(opened), drawn=None)


def _form(opened: Opened) -> dict[str, Any]:
    return {
        "opened": opened,
        "columns": list(opened.release.schema.columns),
        "places": filters.PLACES,
        "ways": {**filters.RANGES, **filters.CHOICES},
        "most": MOST,
    }


def _wanted(opened: Opened, form: Form) -> tuple[int, str | None, int]:
    where = form.text("where") or filters.condition(opened.release.schema, form)
    return form.whole("count", 1, MOST), where, form.whole("seed", 0, 2**32 - 1, 0)


def rows_of(opened: Opened, count: int, where: str | None, seed: int) -> pd.DataFrame:
    """Draw rows from the fitted model."""
    if opened.drawing.problem:
        raise DataError(opened.drawing.problem)
    return opened.drawing.result.sample(count, where=where, seed=seed)


def draw(visit: Visit, opened: Opened) -> Response:
    """Draw, and show the first rows."""
    count, where, seed = _wanted(opened, visit.form)
    asked = {"count": count, "where": where or "", "seed": seed}
    shown: dict[str, Any] = {"job": opened.drawing, "again": asked}
    if opened.drawing.over:
        rows = rows_of(opened, count, where, seed)
        head = rows.head(PREVIEW).astype(object).where(rows.head(PREVIEW).notna(), "(missing)")
        shown = {
            "job": None,
            "again": asked,
            "columns": list(rows.columns),
            "rows": [[_cell(v) for v in line] for line in head.to_numpy()],
            "count": len(rows),
            "where": where,
            "same": equivalents.drawn(opened.path, count, where, seed),
        }
    if visit.partial:
        return visit.show("_drawn.html", opened=opened, **shown)
    return visit.show("sample.html", **_form(opened), drawn=shown)


def _cell(value: Any) -> str:
    """Write a value as people do: a day without its midnight."""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value).removesuffix(" 00:00:00")


def download(visit: Visit, opened: Opened) -> Response:
    """Give all rows as a file, as ``aquatint sample`` writes it."""
    suffix = visit.form.choice("suffix", KINDS, "csv")
    if not opened.drawing.over:
        msg = "the model is being fitted: try again in a moment"
        raise DataError(msg)
    rows = rows_of(opened, *_wanted(opened, visit.form))
    held = io.BytesIO()
    if suffix == "csv":
        rows.to_csv(held, index=False)
    else:
        rows.to_parquet(held, index=False)
    return visit.download(held.getvalue(), f"{opened.name}-rows.{suffix}", KINDS[suffix])
