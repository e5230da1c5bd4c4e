"""The kinds of columns that a schema can declare, and how each is cut into cells."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from itertools import pairwise
from math import ceil
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from aquatint.errors import SchemaError

MAX_CATEGORIES = 1_000_000
POINT = 1e-6
"""A bin of real numbers narrower than this share of the range stands for its lower edge: schemas
use such bins for values that pile up on a bound, like the zeros of an amount."""
OTHER = "(other)"
MISSING = "(missing)"


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


class Strict(BaseModel):
    """Plain data without surprises: no unknown fields, no change after it was checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class _Column(Strict):
    missing: bool = False

    @property
    @abstractmethod
    def present_cells(self) -> int:
        """How many one-hot cells the values that are present take."""

    @property
    def cells(self) -> int:
        """How many one-hot cells a row can fall in; missing, where allowed, is the last."""
        return self.present_cells + self.missing


class _Ranged(_Column):
    """A column with public bounds, cut into bins of equal width or at declared edges."""

    bins: Annotated[int, Field(ge=1, le=100_000)] | list[float] | None = None

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""

    @property
    def point(self) -> float:
        """The width of a bin that stands for a single value."""
        low, high = self.limits
        return POINT * (high - low)

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

    @property
    def point(self) -> float:
        """The width of a bin that stands for a single value: one step."""
        return 1.0

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if isinstance(self.bins, int) and self.bins > self.steps:
            msg = f"bins = {self.bins} is more than the {self.steps} values within the bounds"
            raise ValueError(msg)
        if isinstance(self.bins, list):
            first = [ceil(edge) for edge in self.bins[:-1]]
            if len(set(first)) < len(first):
                msg = "each bin must hold a whole number: move the edges apart"
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


Side = Annotated[int, Field(ge=1, le=1024)]


class Image(Strict):
    """Images of one public size, whose pixels are whole numbers from 0 to 255.

    An image has no cells and is never missing: what tables do with cells is refused in one
    sentence, and a recipe for images does the rest.
    """

    kind: Literal["image"]
    size: tuple[Side, Side]
    channels: Literal[1, 3]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.channels, *self.size

    @property
    def pixels(self) -> int:
        """How many numbers an image holds."""
        return self.channels * self.size[0] * self.size[1]

    @property
    def missing(self) -> bool:
        return False

    @property
    def present_cells(self) -> int:
        raise SchemaError(NO_CELLS)

    @property
    def cells(self) -> int:
        raise SchemaError(NO_CELLS)


NO_CELLS = (
    "images have no cells to count: sketch them with a recipe, dp_mepf, dp_merf or dp_hp, "
    "and leave images out of what is asked of tables"
)
Column = Annotated[
    Numeric | Integer | Date | Datetime | Categorical | Ordered | Text | Boolean | Image,
    Field(discriminator="kind"),
]
RANGED = (Numeric, Integer, Date, Datetime)


def bin_edges(column: Numeric | Integer | Date | Datetime) -> list[float]:
    """Give the edges of a ranged column's bins, lower bound to upper bound."""
    if isinstance(column.bins, list):
        return list(column.bins)
    low, high = column.limits
    count = column.present_cells
    if isinstance(column, _Whole):
        return [low + -(-i * column.steps // count) for i in range(count + 1)]
    return [low + (high - low) * i / count for i in range(count + 1)]


def even_bins(column: Numeric | Integer | Date | Datetime, bins: int) -> int | list[float]:
    """Cut a range evenly; bins of whole numbers begin at one, and few of them get a bin each."""
    low, high = column.limits
    if isinstance(column, _Whole) and high - low <= bins:
        return column.steps
    even = [low + (high - low) * i / bins for i in range(bins)]
    if isinstance(column, _Whole):
        even = sorted({float(ceil(edge)) for edge in even})
    return [*even, high]
