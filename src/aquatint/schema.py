"""The schema: what is public about the data, declared by a person and never read off private rows.

A schema is a TOML file. It names the columns, their kinds, bounds and categories, and what the
release protects. Everything in it is published with the release.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from aquatint.columns import (
    MISSING,
    NO_CELLS,
    OTHER,
    RANGED,
    Boolean,
    Column,
    Image,
    Name,
    Strict,
    bin_edges,
)
from aquatint.errors import SchemaError

MAX_COLUMNS = 10_000

Protects = Literal["add or remove one row", "replace one row", "all rows of one person"]
PROTECTS: tuple[str, ...] = get_args(Protects)


class Privacy(Strict):
    """What the release protects: there is no default, a person declares it.

    Attributes
    ----------
    protects
        The change between neighbouring datasets. Under "replace one row" the number of rows is
        public; otherwise it is released with noise.
    person
        The column that names the person, for "all rows of one person".
    max_rows
        How many rows a person counts for at most. Someone with m > max_rows rows has each of them
        weighted by max_rows / m, so nothing is dropped; 1 means one averaged row per person.
    """

    protects: Protects
    person: Name | None = None
    max_rows: Annotated[int, Field(ge=1, le=10_000)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        by_person = self.protects == "all rows of one person"
        if by_person and self.person is None:
            msg = 'name the column that identifies the person: person = "patient_id"'
            raise ValueError(msg)
        if not by_person and (self.person is not None or self.max_rows is not None):
            msg = 'person and max_rows go with protects = "all rows of one person"'
            raise ValueError(msg)
        return self

    @property
    def rows_per_unit(self) -> int:
        """How many rows one protected unit can move in the sum."""
        return self.max_rows or 1

    @property
    def replaces(self) -> bool:
        """Whether neighbours differ by a replacement, so that the row count is public."""
        return self.protects == "replace one row"

    @property
    def unit(self) -> str:
        """The protected unit: a row or a person."""
        return "person" if self.person is not None else "row"


class Schema(Strict):
    """Columns, label and privacy unit of a dataset: everything in here is public.

    Examples
    --------
    >>> schema = Schema.from_dict({
    ...     "name": "people",
    ...     "privacy": {"protects": "add or remove one row"},
    ...     "columns": {"age": {"kind": "integer", "bounds": [17, 90], "bins": 8}},
    ... })
    >>> schema.columns["age"].cells
    8
    """

    name: Name
    label: str | None = None
    privacy: Privacy
    columns: dict[Name, Column] = Field(min_length=1, max_length=MAX_COLUMNS)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.label is not None and self.label not in self.columns:
            msg = f"label {self.label!r} is not among the columns"
            raise ValueError(msg)
        if self.privacy.person in self.columns:
            msg = (
                f"{self.privacy.person!r} names the person and cannot be released as a column: "
                "take it out of [columns]"
            )
            raise ValueError(msg)
        if self.label in self.images:
            msg = f"label {self.label!r} holds images: the label is a column with categories"
            raise ValueError(msg)
        pixels = [f"{name}[" for name in self.images]
        if any(name.startswith(pixel) for name in self.columns for pixel in pixels):
            msg = f"{pixels[0]}…] names the pixels of an image: call the other column differently"
            raise ValueError(msg)
        return self

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema file; what is wrong is said with its place in the file."""
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            msg = f"cannot read the schema {path}: {error.strerror}"
            raise SchemaError(msg) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            msg = f"{path} is not valid TOML: {error}"
            raise SchemaError(msg) from None
        try:
            return cls.from_dict(data)
        except SchemaError as error:
            msg = f"{path}: {error}"
            raise SchemaError(msg) from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Check plain data as a schema."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SchemaError(_first_problem(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data that `from_dict` reads back."""
        return self.model_dump(mode="json", exclude_none=True)

    def with_bins(self, bins: Mapping[str, int | list[float]]) -> Schema:
        """Settle the bins of the ranged columns that declare none."""
        columns = {
            name: column.model_copy(update={"bins": bins.get(name)})
            if isinstance(column, RANGED) and column.bins is None
            else column
            for name, column in self.columns.items()
        }
        return self.model_copy(update={"columns": columns})

    def cells(self) -> dict[str, int]:
        """Give the number of one-hot cells of every column; images have none and are left out."""
        return {n: c.cells for n, c in self.columns.items() if not isinstance(c, Image)}

    @property
    def images(self) -> dict[str, Image]:
        """The columns that hold images."""
        return {n: c for n, c in self.columns.items() if isinstance(c, Image)}

    def require_table(self, what: str) -> None:
        """Refuse images where a table is needed, in one sentence."""
        if self.images:
            msg = f"{what} is for tables, and column {next(iter(self.images))!r} holds images"
            raise SchemaError(msg)

    def cell_names(self, column: str) -> list[str]:
        """Name the cells of a column in order, for tables and plots."""
        spec = self.columns[column]
        if isinstance(spec, Image):
            raise SchemaError(NO_CELLS)
        if isinstance(spec, RANGED):
            edges = bin_edges(spec)
            names = [f"[{a:g}, {b:g})" for a, b in pairwise(edges)]
        elif isinstance(spec, Boolean):
            names = ["false", "true"]
        else:
            names = [str(c) for c in spec.categories] + [OTHER] * spec.takes_other
        return names + [MISSING] * spec.missing


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    place = _place(first["loc"])
    path = ".".join(map(str, place)) or "schema"
    what = first["msg"].removeprefix("Value error, ")
    names = [p for p in place if isinstance(p, str)]
    field = names[-1] if names else ""
    told = first["type"] != "value_error" and not first["type"].startswith("union")
    if told and field in _DECLARE:
        what = _DECLARE[field]
    elif field == "bins" and first["type"].endswith(("_type", "_parsing", "_from_float")):
        what = "must be a number of bins, or a list of edges"
    elif first["type"] == "union_tag_not_found":
        what = _DECLARE["kind"]
    elif first["type"] == "missing":
        what = f"is missing: declare {field}"
    elif first["type"] == "extra_forbidden":
        what = "is not a known setting: check its spelling"
    others = len({_place(p["loc"]) for p in problems}) - 1
    rest = f" (and {others} more)" if others else ""
    return f"{path}: {what}{rest}"


def _place(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Leave out of pydantic's path what a person did not write: the kind, and tried types."""
    if location[:1] != ("columns",) or len(location) < 3:
        return location
    rest = location[3:]
    return (*location[:2], *rest[: 2 if rest[:1] == ("categories",) else 1])


_DECLARE = {
    "bounds": "declare bounds = [low, high] from public knowledge; "
    "they are never read off the data",
    "categories": 'declare categories = ["…", "…"] from public knowledge; '
    "they are never read off the data",
    "privacy": 'declare what is protected: [privacy] protects = "add or remove one row", '
    '"replace one row" or "all rows of one person"',
    "protects": 'declare "add or remove one row", "replace one row" or "all rows of one person"',
    "columns": 'declare at least one column: [columns.age] kind = "integer", bounds = [0, 120]',
    "name": 'give the dataset a public name: name = "people"',
    "kind": "declare the kind: numeric, integer, ordered, categorical, text, boolean, date, "
    "datetime or image",
    "size": "declare size = [height, width] in pixels, from 1 to 1024 each",
    "channels": "declare channels = 1 for grey images or 3 for colour",
}
