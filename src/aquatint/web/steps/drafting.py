"""A schema in the making: what a form holds for each column, checked as the schema itself is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aquatint.columns import RANGED, Image
from aquatint.errors import SchemaError
from aquatint.schema import Schema
from aquatint.web.forms import Form

KINDS = {
    "integer": "whole number",
    "numeric": "number",
    "categorical": "categories",
    "ordered": "categories in order",
    "boolean": "true or false",
    "date": "date",
    "datetime": "date and time",
    "text": "text, a few phrases kept",
}
WITH_BOUNDS = {"integer", "numeric", "date", "datetime"}
WITH_CATEGORIES = {"categorical", "ordered", "text"}
_ANY = {"protects": "add or remove one row"}
"""What a single column is checked with: what is protected makes no difference to it."""


@dataclass(frozen=True)
class ColumnDraft:
    """One column as far as it has been declared. All fields are text, as typed.

    Attributes
    ----------
    codes
        Whether the file holds whole numbers: categories are then numbers too.
    """

    name: str
    kind: str
    codes: bool = False
    keep: bool = True
    low: str = ""
    high: str = ""
    categories: str = ""
    other: bool = False
    missing: bool = False
    bins: str = ""

    @property
    def listed(self) -> list[str]:
        """The categories, one in each line."""
        return [line.strip() for line in self.categories.splitlines() if line.strip()]

    def to_dict(self) -> dict[str, Any]:
        """Give what a schema file would say; blanks are left out, and found missing there."""
        said: dict[str, Any] = {"kind": self.kind}
        if self.kind in WITH_BOUNDS and (self.low or self.high):
            said["bounds"] = [self.low, self.high]
        if self.kind in WITH_BOUNDS and self.bins:
            said["bins"] = int(self.bins) if self.bins.isdecimal() else self.bins
        if self.kind in WITH_CATEGORIES and self.listed:
            said["categories"] = [self._category(one) for one in self.listed]
        if self.kind == "categorical" and self.other:
            said["other"] = True
        return said | ({"missing": True} if self.missing else {})

    def _category(self, text: str) -> str | int:
        whole = self.codes and self.kind != "text" and text.removeprefix("-").isdecimal()
        return int(text) if whole else text

    def problem(self) -> str:
        """Say what is wrong with the column, if anything is."""
        if not self.keep:
            return ""
        try:
            Schema.from_dict({"name": "x", "privacy": _ANY, "columns": {self.name: self.to_dict()}})
        except SchemaError as error:
            return str(error).removeprefix(f"columns.{self.name}").removeprefix(".")
        return ""


def blank(kinds: list[tuple[str, str]]) -> list[ColumnDraft]:
    """Start from a file's header: names and kinds, all else blank."""
    return [
        ColumnDraft(name, kind if kind in KINDS else "text", kind == "integer", kind in KINDS)
        for name, kind in kinds
    ]


def from_form(column: ColumnDraft, form: Form, place: int) -> ColumnDraft:
    """Take over what a form says of a column."""
    kind = form.text(f"kind.{place}", column.kind)
    return ColumnDraft(
        name=column.name,
        kind=kind if kind in KINDS else column.kind,
        codes=column.codes,
        keep=form.has(f"keep.{place}"),
        low=form.text(f"low.{place}", column.low),
        high=form.text(f"high.{place}", column.high),
        categories=form.text(f"categories.{place}", column.categories),
        other=form.has(f"other.{place}"),
        missing=form.has(f"missing.{place}"),
        bins=form.text(f"bins.{place}", column.bins),
    )


def from_schema(columns: list[ColumnDraft], schema: Schema) -> list[ColumnDraft]:
    """Fill in what a schema file declares; columns that it does not name are left out."""
    return [_declared(column, schema.columns.get(column.name)) for column in columns]


def _declared(column: ColumnDraft, spec: Any) -> ColumnDraft:
    if spec is None or isinstance(spec, Image):
        return ColumnDraft(column.name, column.kind, column.codes, keep=False)
    bounds = [str(b) for b in spec.bounds] if isinstance(spec, RANGED) else ["", ""]
    bins = getattr(spec, "bins", None)
    return ColumnDraft(
        name=column.name,
        kind=spec.kind,
        codes=column.codes,
        low=bounds[0],
        high=bounds[1],
        categories="\n".join(str(c) for c in getattr(spec, "categories", [])),
        other=bool(getattr(spec, "other", False)),
        missing=spec.missing,
        bins=str(bins) if isinstance(bins, int) else "",
    )


def whole(columns: list[ColumnDraft], said: Mapping[str, Any]) -> Schema:
    """Put the schema together; what is wrong is said with its place."""
    kept = {c.name: c.to_dict() for c in columns if c.keep}
    person = said["privacy"].get("person")
    return Schema.from_dict({**said, "columns": {n: c for n, c in kept.items() if n != person}})
