"""Our tests as methods of the benchmark, through the public interface.

Sums of a table are made once for every ε (`accumulate`, `finish`), as `aq.sketch` would make them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from compare_cases import ALPHA, CURATOR, RELEASES, Case, Method, samples
from compare_problems import PROBLEMS
from compare_real import REAL, Samples
from runs import DELTA

import aquatint as aq
from aquatint.curator.accumulate import PrivateSum
from aquatint.curator.sketch import accumulate, finish
from aquatint.schema import Schema

EVERYWHERE = (*PROBLEMS, *REAL)
SMOOTH = tuple(name for name, problem in PROBLEMS.items() if problem.smooth)
SPREAD = 0.1
"""What the declared range of −5 to 5 lets one guess of a column: a standard deviation of 1."""

Maker = Callable[[Schema, int], aq.Plan]


def spread(schema: Schema) -> float:
    """Guess, from public facts, the standard deviation of a column as a part of its range."""
    titles = {problem.schema.name for problem in PROBLEMS.values() if not problem.smooth}
    return SPREAD if schema.name in titles else 0.2


def released(case: Case, *, maker: Maker) -> tuple[PrivateSum, PrivateSum]:
    """Sum both tables by a plan that their owners share."""
    first, second, schema = samples(case)
    plan = maker(schema, case.seed)
    return accumulate(first, plan), accumulate(second, plan)


def from_releases(
    sums: tuple[PrivateSum, PrivateSum], epsilon: float | None, seed: int
) -> bool:
    """Compare two releases, each with noise of its own."""
    assert epsilon is not None
    budget = aq.Budget(epsilon, DELTA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (finish(s, budget, simulate=2 * seed + i) for i, s in enumerate(sums))
        return aq.compare(a, b, alpha=ALPHA).reject


def _releases(title: str, maker: Maker, problems: tuple[str, ...] = EVERYWHERE) -> Method:
    return Method(title, RELEASES, partial(released, maker=maker), from_releases, problems)
