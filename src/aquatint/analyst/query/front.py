"""The front door of questions: SQL or plain methods in, numbers with intervals out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Literal, Protocol, get_args

import numpy as np
import pandas as pd

from aquatint.analyst.literals import column_of
from aquatint.analyst.query.answers import Answer, answer
from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.moments import Knowledge, Moments
from aquatint.analyst.query.points import Points
from aquatint.analyst.query.priors import broadened, flat
from aquatint.analyst.query.question import Group, Question, ask
from aquatint.analyst.query.sketched import Sketched, counts_alone
from aquatint.analyst.query.statistics import first, mean_of
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import (
    Mixture,
    can_mix,
    check_same_table,
    fit_mixture,
)
from aquatint.analyst.synthesize.threads import one_thread
from aquatint.columns import RANGED
from aquatint.errors import DataError, ReleaseError
from aquatint.features import Count
from aquatint.progress import track
from aquatint.release.model import Release

Prior = Literal["synthesizer", "marginals", "uniform"]
QUICK = Effort(fits=4, steps=300)
"""A prior for questions needs less work than a model to draw rows from: counts correct it."""
TAU: dict[str, float] = {"synthesizer": 0.15, "marginals": 1.0, "uniform": 1.0}
"""Where a release has features other than counts: how far each prior may be off, in standard
deviations of what is asked. One is what Theorem 1 of M2M takes."""
Line = tuple[Group, Sequence[Answer | None]]
COLUMNS = ("value", "low", "high", "stderr", "how", "mostly")


class Engine(Protocol):
    """Whatever gives averages over the rows with their errors."""

    def moments(self, functions: Sequence[Function], points: Mapping[str, Points]) -> Moments:
        """Give the averages of functions over the rows, and their errors."""

    def apart(self, functions: Sequence[Function], points: Mapping[str, Points]) -> bool:
        """Whether the functions can be asked about at once, without loss."""


class Query:
    """Questions about the data behind a release, answered from the release alone.

    Nothing here costs privacy: ask as often as you like. The first question fits a model of the
    table, in a few seconds; later ones take milliseconds.

    Parameters
    ----------
    release
        What the curator published.
    prior
        What is believed before the noisy counts or features speak: the ``"synthesizer"`` fitted to
        them (default), the product of the columns' own ``"marginals"``, or ``"uniform"``.
    model
        A mixture to use as prior, such as one that was fitted and saved before.
    tau
        If given, answer by regression on the features with λ = σ²/(τ·n)²: 1 is Theorem 1 of M2M and
        1/√n its eq. 5, for comparison.
    level
        How often intervals should hold the truth.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    """

    def __init__(
        self,
        release: Release,
        *,
        prior: Prior = "synthesizer",
        model: Mixture | None = None,
        tau: float | None = None,
        level: float = 0.95,
        progress: bool = True,
    ) -> None:
        if prior not in get_args(Prior):
            msg = f"unknown prior {prior!r}: choose one of {', '.join(get_args(Prior))}"
            raise DataError(msg)
        if not 0 < level < 1:
            msg = f"a level of {level:g} makes no interval: give a number between 0 and 1, like .95"
            raise DataError(msg)
        if tau is not None and not 0 < tau < np.inf:
            msg = f"tau = {tau:g} says nothing of the prior: give a positive number, like 1"
            raise DataError(msg)
        release.schema.require_table("a query")
        self.release, self.prior, self.tau, self.level = release, prior, tau, level
        self._progress = progress
        if model is not None:
            check_same_table(model, release)
            self.__dict__["model"] = model

    @cached_property
    def model(self) -> Mixture:
        """The prior, fitted when the first question is asked."""
        if all(isinstance(block.map, Count) for block in self.release.blocks):
            msg = "the release holds only the number of rows: no other question can be answered"
            raise ReleaseError(msg)
        if self.prior == "uniform" or not can_mix(self.release):
            return flat(self.release)
        effort = QUICK if self.prior == "synthesizer" else replace(QUICK, components=1, fits=1)
        return fit_mixture(self.release, effort=effort, progress=self._progress)

    @cached_property
    def _engine(self) -> Engine:
        plain = self.prior == "synthesizer" and self.tau is None
        if not counts_alone(self.release) or not plain:
            return self._sketched
        return Knowledge(self.release, self.model)

    @cached_property
    def _sketched(self) -> Sketched:
        if self.prior == "uniform" or not can_mix(self.release):
            return Sketched(self.release, self.model, self.tau or TAU["uniform"])
        return Sketched(self.release, broadened(self.model), self.tau or TAU[self.prior])

    @cached_property
    def _masses(self) -> dict[str, np.ndarray]:
        columns = self.release.schema.columns.items()
        return {name: self.model.histogram(name) for name, c in columns if isinstance(c, RANGED)}

    def sql(self, text: str) -> pd.DataFrame:
        """Answer a question in SQL.

        Parameters
        ----------
        text
            One ``select`` of statistics over the table, such as ``select avg(age) from data where
            sex = 'Female'``, with ``group by``, ``having``, ``order by`` and ``limit``.

        Returns
        -------
        pandas.DataFrame
            One line for each group and statistic: the columns grouped by, ``statistic``, and
            ``value``, ``low``, ``high``, ``stderr``, ``how`` and ``mostly`` (see `Answer`).
        """
        schema = self.release.schema
        if "model" not in self.__dict__:
            ask(schema, text)  # what is wrong with a question is said before anything is fitted
        question = ask(schema, text, self._masses)
        found = []
        with (
            one_thread(),
            track("asking", len(question.names), show=self._progress) as advance,
        ):
            for item in range(len(question.names)):
                found.append(self._answers(question, item))
                advance(1)
        answers = zip(*found, strict=True)
        lines = zip(question.groups, answers, self._kept(question), strict=True)
        kept: list[Line] = [(group, line) for group, line, keep in lines if keep]
        for name, falls in reversed(question.order):
            place = question.names.index(name)
            kept.sort(key=lambda line: _sorted_by(question, line, place), reverse=falls)
        return _frame(question, kept[: question.limit])

    def _answers(self, question: Question, item: int) -> list[Answer | None]:
        """Answer one statistic for every group."""
        asked = [group.statistics[item] for group in question.groups]
        statistics = [statistic for statistic in asked if statistic is not None]
        if not statistics:
            return [None] * len(asked)
        moments = self._moments([s.functions for s in statistics], question.points)
        return [
            answer(statistic, part, self.level)
            for statistic, part in zip(statistics, moments, strict=True)
        ]

    def _moments(
        self, asked: Sequence[Sequence[Function]], points: Mapping[str, Points]
    ) -> list[Moments]:
        """Give the averages of several groups of functions, as many at once as loses nothing."""
        together = [function for functions in asked for function in functions]
        if len(asked) == 1 or self._engine.apart(together, points):
            whole = self._engine.moments(together, points)
            ends = np.cumsum([0, *(len(functions) for functions in asked)])
            return [whole.part(a, b) for a, b in pairwise(ends)]
        half = len(asked) // 2
        return self._moments(asked[:half], points) + self._moments(asked[half:], points)

    def _kept(self, question: Question) -> list[bool]:
        """Say of every group whether ``having`` keeps it, by the estimates alone."""
        asked = [group.kept for group in question.groups if group.kept is not None]
        if not asked:
            return [True] * len(question.groups)
        found = zip(
            asked, self._moments([s.functions for s in asked], question.points), strict=True
        )
        return [bool(s.value(m.mean[None, :-1], m.mean[-1:])[0] > 0.5) for s, m in found]

    def _one(self, what: str, where: str | None = None) -> Answer:
        found = self.sql(_select(what, where))
        return Answer(**found[list(COLUMNS)].to_dict("records")[0])

    def count(self, where: str | None = None) -> Answer:
        """Count the rows that satisfy a condition, or all."""
        return self._one("count(*)", where)

    def mean(self, column: str, where: str | None = None) -> Answer:
        """Give a column's average."""
        return self._one(f"avg({self._named(column)})", where)

    def deviation(self, column: str, where: str | None = None) -> Answer:
        """Give a column's standard deviation."""
        return self._one(f"stddev({self._named(column)})", where)

    def moment(self, column: str, power: int, where: str | None = None) -> Answer:
        """Give the average of a power of a column."""
        if not 1 <= power <= 8:
            msg = f"the {power}th moment is too much to ask: give a power from 1 to 8"
            raise DataError(msg)
        return self._one(f"avg({' * '.join([self._named(column)] * power)})", where)

    def cdf(self, column: str, at: Any, where: str | None = None) -> Answer:
        """Give the share of rows at or below a value, of those where it is not missing."""
        return self._one(f"avg({self._named(column)} <= {_literal(at)})", where)

    def quantile(self, column: str, level: float, where: str | None = None) -> Answer:
        """Give the value that a share of the rows lies below."""
        return self._one(f"quantile({self._named(column)}, {float(level)!r})", where)

    def histogram(self, column: str, where: str | None = None) -> pd.DataFrame:
        """Give the share of rows in each cell of a column, missing values included."""
        schema = self.release.schema
        size = column_of(schema, column).cells
        question = ask(schema, _select("count(*)", where), self._masses)
        cells = question.conditions
        parts = [mean_of(cells.in_cell(column, c).true, question.where) for c in range(size)]
        with one_thread():
            moments = self._moments([part.functions for part in parts], cells.known)
            found = zip(parts, moments, strict=True)
            lines = [asdict(answer(part, here, self.level)) for part, here in found]
        return pd.DataFrame(lines, index=pd.Index(schema.cell_names(column), name=column))

    def covariance(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Give the covariances of columns, one line for each two of them."""
        return self._pairs("covar_samp", columns, alone=True)

    def correlation(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Give the correlations of columns, one line for each two of them."""
        return self._pairs("corr", columns, alone=False)

    def _pairs(self, what: str, columns: Iterable[str] | None, *, alone: bool) -> pd.DataFrame:
        names = self.numeric if columns is None else list(columns)
        pairs = list(combinations(names, 2)) + [(n, n) for n in names if alone]
        lines = []
        with track("asking", len(pairs), show=self._progress) as advance:
            for a, b in pairs:
                found = self._one(f"{what}({self._named(a)}, {self._named(b)})")
                lines.append({"first": a, "second": b, **asdict(found)})
                advance(1)
        return pd.DataFrame(lines, columns=["first", "second", *COLUMNS])

    @property
    def numeric(self) -> list[str]:
        """The columns that have numbers."""
        from aquatint.analyst.query.points import points_of

        columns = self.release.schema.columns.items()
        return [n for n, c in columns if np.isfinite(points_of(c).values).any()]

    def expect(self, function: Callable[[pd.DataFrame], Any]) -> Answer:
        """Give the average over the rows of any function of a row.

        Parameters
        ----------
        function
            Gets a table in the schema's own types and gives one finite number for each row. It is
            called on rows drawn from the model, never on real ones.
        """
        sketched = self._sketched
        table = sketched.draws.frame()
        values = np.asarray(function(table), dtype=float)
        if values.shape != (len(table),) or not np.isfinite(values).all():
            msg = "the function should give one finite number for each row of the table"
            raise DataError(msg)
        moments = sketched.regress(values[:, None], values[:, None].mean(0))
        return answer(first(), moments, self.level)

    def _named(self, column: str) -> str:
        column_of(self.release.schema, column)
        return '"' + column.replace('"', '""') + '"'


def query(release: Release, text: str, *, level: float = 0.95) -> pd.DataFrame:
    """Answer a question in SQL from a release alone.

    To ask several, make a `Query` once: it keeps what the first question computed.

    Parameters
    ----------
    release
        What the curator published.
    text
        One ``select`` of statistics, like ``select income, avg(age) from data group by income``.
    level
        How often intervals should hold the truth.

    Returns
    -------
    pandas.DataFrame
        One line for each group and statistic, with ``value``, ``low``, ``high``, ``stderr``,
        ``how`` and ``mostly``.
    """
    return Query(release, level=level).sql(text)


def _sorted_by(question: Question, line: Line, place: int) -> tuple[bool, Any]:
    group, answers = line
    found, key = answers[place], question.keys[place]
    if found is None:
        return (False, group.key[key] if key is not None else "")
    return (bool(np.isnan(found.value)), found.value)


def _frame(question: Question, lines: Sequence[Line]) -> pd.DataFrame:
    out = []
    keys = [(n, k) for n, k in zip(question.names, question.keys, strict=True) if k is not None]
    for group, answers in lines:
        shown = {name: group.key[key] for name, key in keys}
        for name, found in zip(question.names, answers, strict=True):
            if found is not None:
                out.append({**shown, "statistic": name, **asdict(found)})
    return pd.DataFrame(out, columns=[*(n for n, _ in keys), "statistic", *COLUMNS])


def _select(what: str, where: str | None) -> str:
    # Nothing executes this text: it is parsed, and answered from the release alone.
    return f"select {what} from data" + (f" where {where}" if where is not None else "")  # noqa: S608


def _literal(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.number)):
        return repr(float(value)) if not float(value).is_integer() else str(int(value))
    return "'" + str(value).replace("'", "''") + "'"
