"""A schema skeleton from a file's header and types; everything that must be public stays blank."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from aquatint.curator.read import header

_HEAD = """\
# A public schema for {file}. Fill in every blank from public knowledge: a codebook, a law, common
# sense. Never read bounds or categories off the private rows, because the schema is published.
name = {name}
# label = "the column that models should predict"

[privacy]
protects = ""   # fill in: "add or remove one row", "replace one row" or "all rows of one person"
# person = ""   # with the last: the column that names the person; take it out of the columns below
"""
_MISSING = "# missing = true   # uncomment: missing values get a category of their own\n"
_BOUNDS = "bounds = []   # fill in: [lowest, highest] that is possible; values outside are clipped"
_DATES = "bounds = []   # fill in: [first, last] that is possible, such as [2020-01-01, 2024-12-31]"
_IMAGE = (
    "size = []   # fill in: [height, width] in pixels\nchannels = 1   # or 3, for images in colour"
)
_CATEGORIES = (
    'categories = []   # fill in: every value that may be told apart, such as ["a", "b"]\n'
    "# other = true   # uncomment: values that are not listed share one more category"
)


_WRITTEN = {
    "boolean": ('"boolean"', ""),
    "integer": ('"integer"   # or "categorical" with whole numbers, if they are codes', _BOUNDS),
    "numeric": ('"numeric"', _BOUNDS),
    "date": ('"date"', _DATES),
    "datetime": ('"datetime"', _DATES),
    "image": ('"image"', _IMAGE),
    "categorical": ('"categorical"   # or "ordered", lowest first; or "text"', _CATEGORIES),
}


def draft(path: str | Path) -> str:
    """Write the skeleton of a schema; no row is looked at beyond telling the types."""
    path = Path(path)
    parts = [_HEAD.format(file=path.name, name=json.dumps(path.name.split(".")[0]))]
    for name, kind in kinds(path):
        written, blank = _WRITTEN[kind]
        parts.append(f"\n[columns.{json.dumps(name, ensure_ascii=False)}]\nkind = {written}\n")
        parts.append(f"{blank}\n" if blank else "")
        if kind != "image":
            parts.append(_MISSING)
    return "".join(parts)


def kinds(path: str | Path) -> list[tuple[str, str]]:
    """Name a file's columns and the kinds that their types suggest; no row goes into it."""
    return [(field.name, _kind(field.type)) for field in header(Path(path))]


def _kind(arrow: pa.DataType) -> str:
    if pa.types.is_boolean(arrow):
        return "boolean"
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "numeric"
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return "date" if pa.types.is_date(arrow) else "datetime"
    return "image" if _holds_images(arrow) else "categorical"


def _holds_images(arrow: pa.DataType) -> bool:
    struct = pa.types.is_struct(arrow) and arrow.get_field_index("bytes") >= 0
    raw = pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow)
    return bool(struct or raw or pa.types.is_fixed_size_binary(arrow))
