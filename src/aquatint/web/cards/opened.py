"""The releases that a page is about, and the models that are fitted to them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from aquatint.analyst.query.describe import Described, describe
from aquatint.analyst.query.front import Query
from aquatint.analyst.synthesize.front import Synthesizer, synthesize
from aquatint.errors import DataError
from aquatint.release import load
from aquatint.release.histograms import histograms
from aquatint.release.model import Release
from aquatint.reporting.contents import WIDE
from aquatint.web.jobs import Job

KEPT = 8
"""How many pieces of finished work are remembered."""
PATIENCE = 0.3
"""Seconds to wait for a piece of work before its progress is shown."""
Key = tuple[object, ...]


class Opened:
    """One release with what has been worked out from it.

    Attributes
    ----------
    asking
        The model that answers questions, fitted, and every column described with it.
    drawing
        The model that rows are drawn from, and estimators trained on.
    """

    def __init__(self, place: int, path: Path, name: str, release: Release) -> None:
        self.place, self.path, self.name, self.release = place, path, name, release
        self.table = not release.schema.images
        self.lock = Lock()
        self.asking: Job[list[Described]] = Job("fitting a model for questions", self._ask)
        self.drawing: Job[Synthesizer] = Job("fitting a model to draw rows from", self._draw)
        self._query: Query | None = None
        self.drawn: dict[bool, dict[str, Any]] = {}  # the overview's charts, by a model or without

    @cached_property
    def wide(self) -> bool:
        """Whether there are so many columns that each is shown as it was counted, as in a report.

        To ask a model about every one of hundreds takes minutes, and hardly tells more.
        """
        columns = self.release.schema.columns
        return len(columns) > WIDE and set(histograms(self.release.blocks)) == set(columns)

    @property
    def query(self) -> Query:
        """Questions to the release; hold the lock while one is answered."""
        if self._query is None:
            self._query = Query(self.release, progress=False)
        return self._query

    def _ask(self) -> list[Described]:
        with self.lock:
            _ = self.query.model  # by itself, so that its own progress is heard
            return [] if self.wide else describe(self.query)

    def _draw(self) -> Synthesizer:
        self.release.schema.require_table("drawing rows on this page")
        return synthesize(self.release)


class Shelf:
    """All releases of a page, in the order they were given, and the work in hand."""

    def __init__(self, paths: Sequence[Path]) -> None:
        stems = [path.stem for path in paths]
        names = [str(p) if stems.count(p.stem) > 1 else p.stem for p in paths]
        if len(set(names)) < len(names):
            msg = "the same file is given twice: give each release once"
            raise DataError(msg)
        named = zip(paths, names, strict=True)
        self.opened = [Opened(i, p, n, load(p)) for i, (p, n) in enumerate(named)]
        self._jobs: dict[Key, Job[Any]] = {}
        self._lock = Lock()
        self._fits = Thread(target=self._fit, name="aquatint fits")
        self._closed = False

    def start(self) -> None:
        """Begin to fit, one model after the other: all that pages wait for."""
        self._fits.start()

    def stop(self) -> None:
        """End all work that is going on."""
        self._closed = True
        going = [job for job in [*self._models(), *self._jobs.values()] if job.going]
        for job in going:
            job.stop()
        for job in going:
            job.wait()

    def _models(self) -> list[Job[Any]]:
        tables = [opened for opened in self.opened if opened.table]
        return [job for one in tables for job in (one.asking, one.drawing)]

    def _fit(self) -> None:
        for job in self._models():
            if self._closed:
                return
            job.start().wait()
        for module in ("sklearn.ensemble", "sklearn.linear_model", "skops.io"):
            with suppress(ImportError):  # they take seconds, and a model is asked for later
                import_module(module)

    def find(self, place: int) -> Opened:
        """Give a release by its place."""
        if not 0 <= place < len(self.opened):
            msg = f"there are {len(self.opened)} releases on this page: choose one above"
            raise DataError(msg)
        return self.opened[place]

    def work(self, key: Key, what: str, work: Callable[[], Any]) -> Job[Any]:
        """Give the job of a key, started if it is new; its problem, if it has one, is raised.

        Whoever asks again for the same gets the same job, further on or done.
        """
        with self._lock:
            if key not in self._jobs:
                self._jobs[key] = Job(what, work).start()
            job = self._jobs[key]
            for old in list(self._jobs)[:-KEPT]:
                if self._jobs[old].over:
                    del self._jobs[old]
        job.wait(PATIENCE)
        if job.problem:
            with self._lock:
                self._jobs.pop(key, None)
            raise DataError(job.problem)
        return job
