"""What a two-sample test is to the benchmark, and the two samples of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compare_problems import PROBLEMS, draw
from compare_real import REAL, Samples, fifth, halves

ALPHA = 0.01
RELEASES, CURATOR = "two releases", "trusted curator"
PUBLISHED, PLAIN = "published, not private", "without privacy"


@dataclass(frozen=True)
class Case:
    """Two samples of a problem, or two halves of a real table, by the number of rows and a seed."""

    problem: str
    rows: int
    seed: int


@dataclass(frozen=True)
class Method:
    """A two-sample test.

    It first does what ε has no say in, and then decides at an ε, so that a curve over ε costs
    little more than a point of it.

    Attributes
    ----------
    title
        What plots and tables call it.
    group
        Ours from two releases, ours by a curator, published, or without privacy.
    prepare
        Does what ε has no say in.
    rejects
        Decides at an ε, with noise by a seed; ε is None without privacy.
    problems
        Where it can be run.
    """

    title: str
    group: str
    prepare: Callable[[Case], Any]
    rejects: Callable[[Any, float | None, int], bool]
    problems: tuple[str, ...] = tuple(PROBLEMS)


def samples(case: Case, *, without_public: bool = False) -> Samples:
    """Give the two tables of a run; of a real one perhaps without the fifth that is public."""
    if case.problem in REAL:
        start = fifth(case.problem) if without_public else 0
        return halves(case.problem, case.seed, slice(start, None))
    pair = draw(case.problem, case.rows, case.seed)
    return Samples(*pair.tables, pair.schema)
