"""Sample: synthetic rows to look at and to keep."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from starlette.responses import Response

from aquatint.analyst.where import conditions
from aquatint.errors import DataError
from aquatint.web.cards import equivalents, filters
from aquatint.web.cards.opened import Opened, Shelf
from aquatint.web.forms import Form
from aquatint.web.jobs import Job
from aquatint.web.pages import Visit

MOST = 1_000_000
PREVIEW = 12
MOST_SECONDS = 60.0
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


def _job(opened: Opened, shelf: Shelf, count: int, where: str | None, seed: int) -> Job[Any]:
    """Draw rows from the fitted model; or give the fit, as long as it is not done."""
    if opened.drawing.problem:
        raise DataError(opened.drawing.problem)
    if not opened.drawing.over:
        return opened.drawing
    key = ("rows", opened.place, count, where, seed)
    model = opened.drawing.result
    return shelf.work(key, "drawing rows", lambda: model.sample(count, where=where, seed=seed))


def draw(visit: Visit, opened: Opened, shelf: Shelf) -> Response:
    """Draw, and show the first rows."""
    count, where, seed = _wanted(opened, visit.form)
    conditions(opened.release.schema, where)
    asked = {"count": count, "where": where or "", "seed": seed}
    job = _job(opened, shelf, count, where, seed)
    shown: dict[str, Any] = {"job": job, "again": asked}
    if job.ready and job is not opened.drawing:
        rows = job.result
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


def download(visit: Visit, opened: Opened, shelf: Shelf) -> Response:
    """Give all rows as a file, as ``aquatint sample`` writes it."""
    suffix = visit.form.choice("suffix", KINDS, "csv")
    job = _job(opened, shelf, *_wanted(opened, visit.form))
    if job is opened.drawing or not job.wait(MOST_SECONDS):
        msg = "the rows are not there yet: try again in a moment"
        raise DataError(msg)
    rows: pd.DataFrame = job.result
    held = io.BytesIO()
    if suffix == "csv":
        rows.to_csv(held, index=False)
    else:
        rows.to_parquet(held, index=False)
    return visit.download(held.getvalue(), f"{opened.name}-rows.{suffix}", KINDS[suffix])
