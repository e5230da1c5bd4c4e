"""What the results book is made of: scores, cells, entries; read from results, checked, written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from statistics import fmean, stdev
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from runs import RESULTS, Log

Line = dict[str, Any]
Pick = Callable[[dict[str, Any]], float | None]
BOOK = RESULTS / "book.json"
NOT_RUN = "not run yet: see the command"
LEVEL = "type I error"
"""A measure that is to be as declared: less of it is not better."""
RELATIONS = ("add or remove one row", "replace one row", "no privacy is claimed")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Score(_Frozen):
    """A figure that was measured here: mean and spread over runs, and what it took."""

    mean: float
    sd: float | None = None
    runs: int = Field(ge=1)
    seeds: tuple[int, ...] = ()
    cpu_s: float | None = None
    peak_mb: float | None = None
    code: tuple[str, ...] = ()


class Peer(_Frozen):
    """The best of other methods: measured here, or published."""

    name: str
    value: float
    measured: bool


class Cell(_Frozen):
    """One figure of a paper, and ours beside it.

    Attributes
    ----------
    row, measure
        Which figure it is.
    epsilon
        None where there is no noise.
    higher
        Whether more is better.
    published
        As typed in from the paper; None where it has a picture only, or another metric.
    faithful, ours
        Our reading of the paper's method, and our best.
    note
        In one line: why it differs, or why ours is behind.
    missing
        What has to be had or run before there is a figure.
    """

    row: str
    measure: str
    epsilon: float | None = None
    higher: bool = True
    published: float | None = None
    faithful: Score | None = None
    ours: Score | None = None
    peer: Peer | None = None
    note: str = ""
    missing: str = ""

    @property
    def ahead(self) -> bool | None:
        """Whether ours is at least as good as published; None where there is nothing to compare."""
        if self.published is None or self.ours is None:
            return None
        better = self.ours.mean - self.published
        return bool(better >= 0 if self.higher else better <= 0)

    @property
    def paper_ahead(self) -> bool:
        """Whether our reading of the paper is better than ours, by more than runs differ."""
        if self.faithful is None or self.ours is None or self.measure == LEVEL:
            return False
        better = self.ours.mean - self.faithful.mean
        spread = max(self.ours.sd or 0.0, self.faithful.sd or 0.0)
        return bool((better if self.higher else -better) < -spread)

    @property
    def key(self) -> str:
        """Name the cell within its entry."""
        told = [self.row, self.measure] + ([f"{self.epsilon:g}"] if self.epsilon else [])
        return " · ".join(told)


class Entry(_Frozen):
    """A table or figure of a paper.

    Attributes
    ----------
    paper, item, title
        Where it stands.
    relation, delta, public, metric
        The frame of its figures.
    command, also
        Make the figures.
    differences
        From the paper, one line each.
    paper_ahead
        In one line: why our reading of the paper is ahead of ours in some figures.
    pictures
        Files beside the page, with what they show.
    """

    paper: str
    item: str
    title: str
    relation: str = Field(pattern="|".join(RELATIONS))
    delta: float | None
    public: str
    metric: str
    command: str
    also: tuple[str, ...] = ()
    minutes: float
    differences: tuple[str, ...] = ()
    paper_ahead: str = ""
    pictures: tuple[tuple[str, str], ...] = ()
    cells: tuple[Cell, ...]


class Book(_Frozen):
    """Everything, as it is committed."""

    versions: dict[str, str]
    entries: tuple[Entry, ...]


def lines(name: str, **wanted: Any) -> list[Line]:
    """Give the runs of a file of results with these settings."""
    made = _runs(name)
    return [line for line in made if wanted.items() <= line["settings"].items()]


@cache
def _runs(name: str) -> tuple[Line, ...]:
    """Read a file of results once: an entry asks hundreds of times."""
    found = Log(RESULTS / f"{name}.jsonl").lines().values()
    return tuple({**line, "settings": _plain(line["settings"])} for line in found)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what cannot be asked for: lists and the like."""
    return {k: v for k, v in settings.items() if isinstance(v, str | float | int | None)}


def score(made: Iterable[Line], pick: Pick) -> Score | None:
    """Average a measure over runs; None where there are none."""
    kept = [(line, value) for line in made if (value := pick(line["found"])) is not None]
    if not kept:
        return None
    values = [float(value) for _, value in kept]
    found = [line["found"] for line, _ in kept]
    told = [line["settings"] for line, _ in kept]
    stamps = {line.get("made_with", {}).get("commit", "unknown") for line, _ in kept}
    return Score(
        mean=fmean(values),
        sd=stdev(values) if len(values) > 1 else None,
        runs=len(values),
        seeds=tuple(sorted(s["seed"] for s in told if "seed" in s)),
        cpu_s=_mean(f.get("cpu_s") for f in found),
        peak_mb=_mean(f.get("peak_mb") for f in found),
        code=tuple(sorted(stamps)),
    )


def rate(made: Iterable[Line]) -> Score | None:
    """Give how often a test rejected, over blocks of runs."""
    blocks = [line["found"] for line in made]
    runs = sum(found["runs"] for found in blocks)
    if not runs:
        return None
    share = sum(found["rejected"] for found in blocks) / runs
    spread = (share * (1 - share) / runs) ** 0.5
    return Score(
        mean=share, sd=spread, runs=runs, cpu_s=sum(f.get("cpu_s", 0.0) for f in blocks) / runs
    )


def _mean(values: Iterable[float | None]) -> float | None:
    there = [float(v) for v in values if v is not None]
    return fmean(there) if there else None


def of(*names: str) -> Pick:
    """Pick a measure by its path."""

    def pick(found: dict[str, Any]) -> float | None:
        value: Any = found
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return pick
