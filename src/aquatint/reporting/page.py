"""A report as one file of HTML: no script, nothing from elsewhere, and every name escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from math import exp
from typing import TYPE_CHECKING

import pandas as pd

from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.release.card import NOT_COVERED, promise, technical
from aquatint.release.manifest import assumed_public
from aquatint.reporting.contents import Contents
from aquatint.reporting.svg import clean

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_BYTES = 2_000_000


def page(contents: Contents, real: object = None) -> str:
    """Write the page.

    Parameters
    ----------
    contents
        What there is to say.
    real
        What the curator's own comparison with the real rows adds, which is not private.
    """
    release = contents.release
    style = stylesheet()
    text = (
        environment()
        .get_template("report.html")
        .render(
            contents=contents,
            release=release,
            promise=promise(release),
            times=_times(release.statement.epsilon),
            facts=technical(release),
            public=assumed_public(release),
            not_covered=NOT_COVERED,
            real=real,
            style=_safe(style),
            style_hash=digest(style),
        )
    )
    if len(text.encode()) > MOST_BYTES:
        msg = f"the report has {len(text.encode()) / 1e6:.1f} MB, more than 2: too many columns"
        raise DataError(msg)
    return text


def _times(epsilon: float) -> str:
    """Write e to the power of epsilon; of a promise that means nothing, no long number."""
    return f"{exp(epsilon):.3g}" if epsilon <= 20 else "more than a hundred million"


@cache
def environment() -> Environment:
    """Give the templates, in which whatever is printed is escaped, and hidden characters shown."""
    jinja = need("jinja2", extra="report")
    made: Environment = jinja.Environment(
        loader=jinja.PackageLoader("aquatint.reporting"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["chart"] = _safe
    made.filters["brief"] = _entry
    return made


def _entry(value: object) -> str:
    """Write an entry of a table: a missing one as nothing, a number without a tail of digits."""
    if pd.isna(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00")


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _safe(text: str) -> object:
    """Mark what this package wrote itself, and escaped itself, as HTML."""
    return need("markupsafe", extra="report").Markup(text)


@cache
def stylesheet() -> str:
    """Give the style of a report, charts included."""
    folder = files("aquatint.reporting") / "static"
    parts = [(folder / name).read_text(encoding="utf-8") for name in ("charts.css", "report.css")]
    return "\n".join(parts)


def digest(text: str) -> str:
    """Give the hash by which a content security policy admits an inline style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
