"""Our tests as methods of the benchmark, through the public interface.

Sums of a table are made once for every ε (`accumulate`, `finish`), as `aq.sketch` makes them.
Locations and frequencies are drawn anew for each run, so that no figure rests on a lucky draw of
them; the permutation test and the default plan have none to draw.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from compare_cases import ALPHA, CURATOR, RELEASES, Case, Method, samples
from compare_problems import PROBLEMS
from compare_real import REAL
from runs import DELTA

import aquatint as aq
from aquatint.curator.accumulate import PrivateSum
from aquatint.curator.sketch import accumulate, finish
from aquatint.schema import Schema

EVERYWHERE = (*PROBLEMS, *REAL)
SMOOTH = tuple(name for name, problem in PROBLEMS.items() if problem.smooth)
SPREADS = {problem.title: 0.2 if problem.smooth else 0.1 for problem in PROBLEMS.values()}
"""A public guess at the standard deviation of a column, as a part of its declared range."""

Maker = Callable[[Schema, int], aq.Plan]


def me(schema: Schema, seed: int) -> aq.Plan:
    """Plan kernel values at five locations, drawn by the seed."""
    return aq.me_test(schema, spread=SPREADS.get(schema.name, 0.2), seed=seed)


def scf(schema: Schema, seed: int) -> aq.Plan:
    """Plan a smoothed characteristic function at five frequencies, drawn by the seed."""
    return aq.scf_test(schema, spread=SPREADS.get(schema.name, 0.2), seed=seed)


def mixed(schema: Schema, seed: int) -> aq.Plan:
    """Plan a sketch for everything, its frequencies drawn by the seed."""
    return aq.mixed_fourier(schema, seed=seed)


def default(schema: Schema, seed: int) -> aq.Plan:
    """Plan what `aq.sketch` would by itself, for synthetic rows and questions."""
    del seed
    return aq.plan(schema)


def paper(schema: Schema, seed: int) -> aq.Plan:
    """Plan the features that the paper takes: SCF for Blobs, and otherwise ME."""
    titles = {PROBLEMS[name].title for name in SMOOTH}
    return (scf if schema.name in titles else me)(schema, seed)


def sums_of(case: Case, *, maker: Maker) -> tuple[PrivateSum, PrivateSum]:
    """Sum both tables by a plan that their owners share."""
    first, second, schema = samples(case)
    plan = maker(schema, case.seed)
    return accumulate(first, plan), accumulate(second, plan)


def by_releases(sums: tuple[PrivateSum, PrivateSum], epsilon: float | None, seed: int) -> bool:
    """Compare two releases, each with noise of its own."""
    budget = aq.Budget(epsilon or 0.0, DELTA)
    a, b = (finish(one, budget, simulate=2 * seed + side) for side, one in enumerate(sums))
    return aq.compare(a, b, alpha=ALPHA).reject


def by_curator(
    case: Case, epsilon: float | None, seed: int, *, test: str, maker: Maker | None
) -> bool:
    """Compare two tables in the hands of one curator."""
    first, second, schema = samples(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulated noise is meant here
        return aq.compare_private(
            first,
            second,
            schema,
            epsilon=epsilon or 0.0,
            delta=DELTA,
            alpha=ALPHA,
            test=test,
            features=maker(schema, seed) if maker else None,
            simulate=seed,
            progress=False,
        ).reject


def _releases(title: str, maker: Maker) -> Method:
    return Method(title, RELEASES, partial(sums_of, maker=maker), by_releases, EVERYWHERE)


def _curator(title: str, test: str, maker: Maker | None = paper) -> Method:
    rejects = partial(by_curator, test=test, maker=maker)
    return Method(title, CURATOR, lambda case: case, rejects, EVERYWHERE)


OURS = {
    "mixed": _releases("mixed Fourier", mixed),
    "default": _releases("default plan", default),
    "nte_me": _releases("ME (NTE)", me),
    "nte_scf": _releases("SCF (NTE)", scf),
    "permutation": _curator("permutation", "permutation", None),
    "signflip": _curator("sign-flip", "signflip"),
    "tcmc": _curator("TCMC", "tcmc"),
    "tcs": _curator("TCS", "tcs"),
}
