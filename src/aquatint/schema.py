"""The schema: what is public about the data, declared by a person and never read off private rows.

A schema is a TOML file. It names the columns, their kinds, bounds and categories, and what the
release protects. Everything in it is published with the release.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from aquatint.errors import SchemaError

MAX_COLUMNS = 10_000
MAX_CATEGORIES = 1_000_000
OTHER = "(other)"
MISSING = "(missing)"

Protects = Literal["add or remove one row", "replace one row", "all rows of one person"]
PROTECTS: tuple[str, ...] = get_args(Protects)


def is_printable(text: str) -> bool:
    """Whether a text is free of control characters, which could trick a terminal or a reader."""
    joiners = "\u200c\u200d"  # they belong to the spelling of several languages
    return all(c.isprintable() or c in joiners for c in text)


def _check_printable(text: str | int) -> str | int:
    if not is_printable(str(text)):
        msg = "names and categories must not hold control characters"
        raise ValueError(msg)
    return text


Category = Annotated[str | int, AfterValidator(_check_printable)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class _Column(_Strict):
    missing: bool = False

    @property
    def present_cells(self) -> int:
        """How many one-hot cells the values that are present take."""
        raise NotImplementedError

    @property
    def cells(self) -> int:
        """How many one-hot cells a row can fall in; missing, where allowed, is the last."""
        return self.present_cells + self.missing


class _Ranged(_Column):
    """A column with public bounds, cut into bins of equal width or at declared edges."""

    bins: Annotated[int, Field(ge=1, le=100_000)] | list[float] | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""
        raise NotImplementedError

    @property
    def present_cells(self) -> int:
        if self.bins is None:
            msg = "the number of bins is not settled yet: a plan does that"
            raise SchemaError(msg)
        return self.bins if isinstance(self.bins, int) else len(self.bins) - 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self.limits
        if not low < high:
            msg = f"bounds must be [low, high] with low < high, got [{low}, {high}]"
            raise ValueError(msg)
        if not 1e-100 < high - low < 1e100:
            msg = "bounds must be less than 1e100 and more than 1e-100 apart"
            raise ValueError(msg)
        if isinstance(self.bins, list):
            edges = self.bins
            rising = all(a < b for a, b in pairwise(edges))
            if len(edges) < 2 or not rising or edges[0] != low or edges[-1] != high:
                msg = "bin edges must rise strictly from the lower bound to the upper bound"
                raise ValueError(msg)
        return self


class Numeric(_Ranged):
    """Real numbers within public bounds."""

    kind: Literal["numeric"]
    bounds: tuple[float, float]

    @property
    def limits(self) -> tuple[float, float]:
        return self.bounds


class _Whole(_Ranged):
    """A range of whole steps, both ends included: no bin may be empty by construction."""

    @property
    def steps(self) -> int:
        """How many different values there are."""
        low, high = self.limits
        return int(high - low) + 1

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if isinstance(self.bins, int) and self.bins > self.steps:
            msg = f"bins = {self.bins} is more than the {self.steps} values within the bounds"
            raise ValueError(msg)
        return self


class Integer(_Whole):
    """Whole numbers within public bounds, both included."""

    kind: Literal["integer"]
    bounds: tuple[
        Annotated[int, Field(ge=-(2**53), le=2**53)], Annotated[int, Field(ge=-(2**53), le=2**53)]
    ]

    @property
    def limits(self) -> tuple[float, float]:
        return float(self.bounds[0]), float(self.bounds[1])


class Date(_Whole):
    """Calendar days within public bounds, both included; bin edges count days since 1970-01-01."""

    kind: Literal["date"]
    bounds: tuple[dt.date, dt.date]

    @property
    def limits(self) -> tuple[float, float]:
        epoch = dt.date(1970, 1, 1)
        return float((self.bounds[0] - epoch).days), float((self.bounds[1] - epoch).days)


class Datetime(_Ranged):
    """Moments within public bounds; without a zone they are taken as UTC. Edges count seconds."""

    kind: Literal["datetime"]
    bounds: tuple[dt.datetime, dt.datetime]

    @property
    def limits(self) -> tuple[float, float]:
        low, high = (b if b.tzinfo else b.replace(tzinfo=dt.UTC) for b in self.bounds)
        return low.timestamp(), high.timestamp()


class _Listed(_Column):
    """A column whose categories are declared."""

    categories: list[Category] = Field(min_length=1, max_length=MAX_CATEGORIES)

    @property
    def present_cells(self) -> int:
        return len(self.categories) + self.takes_other

    @property
    def takes_other(self) -> bool:
        """Whether values outside the categories have a cell of their own."""
        return False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({type(c) for c in self.categories}) > 1:
            msg = "categories must be all text or all whole numbers"
            raise ValueError(msg)
        if len(set(self.categories)) < len(self.categories):
            msg = "categories must not repeat"
            raise ValueError(msg)
        if {OTHER, MISSING} & set(map(str, self.categories)):
            msg = f"{OTHER!r} and {MISSING!r} are reserved: use other = true or missing = true"
            raise ValueError(msg)
        return self


class Categorical(_Listed):
    """Unordered categories; with ``other`` unknown values share one more cell."""

    kind: Literal["categorical"]
    other: bool = False

    @property
    def takes_other(self) -> bool:
        return self.other


class Ordered(_Listed):
    """Categories with an order, lowest first; maps of numbers see the rank."""

    kind: Literal["ordered"]


class Text(_Listed):
    """Text as category: the declared phrases are kept, any other text is "other"."""

    kind: Literal["text"]

    @property
    def takes_other(self) -> bool:
        return True


class Boolean(_Column):
    """True or false."""

    kind: Literal["boolean"]

    @property
    def present_cells(self) -> int:
        return 2


Column = Annotated[
    Numeric | Integer | Date | Datetime | Categorical | Ordered | Text | Boolean,
    Field(discriminator="kind"),
]
RANGED = (Numeric, Integer, Date, Datetime)


class Privacy(_Strict):
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


class Schema(_Strict):
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

    def with_bins(self, bins: Mapping[str, int]) -> Schema:
        """Settle the bins of the ranged columns that declare none."""
        columns = {
            name: column.model_copy(update={"bins": bins.get(name)})
            if isinstance(column, RANGED) and column.bins is None
            else column
            for name, column in self.columns.items()
        }
        return self.model_copy(update={"columns": columns})

    def cells(self) -> dict[str, int]:
        """Give the number of one-hot cells of every column."""
        return {name: column.cells for name, column in self.columns.items()}

    def cell_names(self, column: str) -> list[str]:
        """Name the cells of a column in order, for tables and plots."""
        spec = self.columns[column]
        if isinstance(spec, RANGED):
            edges = bin_edges(spec)
            names = [f"[{a:g}, {b:g})" for a, b in pairwise(edges)]
        elif isinstance(spec, Boolean):
            names = ["false", "true"]
        else:
            names = [str(c) for c in spec.categories] + [OTHER] * spec.takes_other
        return names + [MISSING] * spec.missing


def bin_edges(column: Numeric | Integer | Date | Datetime) -> list[float]:
    """Give the edges of a ranged column's bins, lower bound to upper bound."""
    if isinstance(column.bins, list):
        return list(column.bins)
    low, high = column.limits
    count = column.present_cells
    if isinstance(column, _Whole):
        return [low + -(-i * column.steps // count) for i in range(count + 1)]
    return [low + (high - low) * i / count for i in range(count + 1)]


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
    "kind": "declare the kind: numeric, integer, ordered, categorical, text, boolean, date "
    "or datetime",
}
