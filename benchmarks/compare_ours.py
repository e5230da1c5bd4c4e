"""Our tests as methods of the benchmark, through the public interface.

Sums of a table are made once for every ε (`accumulate`, `finish`), as `aq.sketch` makes them, and
so are the exact numbers of a curator's test, to which `aq.compare_private` adds noise; a test holds
it to the same decisions. The curator's tests take the features that they take by default. The
locations and frequencies of plans that two owners share are drawn anew for each run, so that no
figure rests on a lucky draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from compare_cases import ALPHA, CURATOR, RELEASES, Case, Method, samples
from compare_problems import PROBLEMS, TRAINING, draw, names
from compare_real import REAL, fifth, halves, whole
from runs import DELTA

import aquatint as aq
from aquatint.curator.compare.front import features_of
from aquatint.curator.compare.permutation import Permutation
from aquatint.curator.compare.ranks import how_many
from aquatint.curator.compare.samples import Samples, open_samples
from aquatint.curator.compare.signflip import SignFlip
from aquatint.curator.compare.tcmc import MeanAndCovariance
from aquatint.curator.compare.tcs import PerturbedStatistic
from aquatint.curator.compare.trial import Trial
from aquatint.curator.finishing import finish
from aquatint.curator.noise import coins, simulator
from aquatint.curator.sketch import accumulate
from aquatint.curator.sums import PrivateSum
from aquatint.schema import Schema

EVERYWHERE = (*PROBLEMS, *REAL)
SPREADS = {problem.title: 0.2 if problem.smooth else 0.1 for problem in PROBLEMS.values()}
"""A public guess at the standard deviation of a column, as a part of its declared range."""
UNITS = {p.title: 1 / (p.bounds[1] - p.bounds[0]) for p in PROBLEMS.values()}
"""One unit of the rows as a part of the range: a public guess at how fine a difference is."""

TRAINED_ROWS = 10_000
"""A quarter of these, for each sample, are there to train on."""

Maker = Callable[[Schema, int], aq.Plan]


def me(schema: Schema, seed: int) -> aq.Plan:
    """Plan kernel values at five locations, drawn by the seed."""
    return aq.me_test(schema, spread=SPREADS.get(schema.name, 0.2), seed=seed)


def scf(schema: Schema, seed: int) -> aq.Plan:
    """Plan a smoothed characteristic function at five frequencies, drawn by the seed."""
    return aq.scf_test(schema, spread=SPREADS.get(schema.name, 0.2), seed=seed)


def mixed(schema: Schema, seed: int) -> aq.Plan:
    """Plan a sketch for everything, its frequencies drawn by the seed."""
    return aq.mixed_fourier(schema, length_scale=UNITS.get(schema.name, 0.1), seed=seed)


def mixed_alone(schema: Schema, seed: int) -> aq.Plan:
    """Plan the same without a block for differences that are spread over all columns."""
    scale = UNITS.get(schema.name, 0.1)
    return aq.mixed_fourier(schema, length_scale=scale, spread_share=0, seed=seed)


def mixed_as_it_comes(schema: Schema, seed: int) -> aq.Plan:
    """Plan the same without a guess at how fine a difference is."""
    return aq.mixed_fourier(schema, seed=seed)


def default(schema: Schema, seed: int) -> aq.Plan:
    """Plan what `aq.sketch` would by itself, for synthetic rows and questions."""
    del seed
    return aq.plan(schema)


def trained(schema: Schema, seed: int) -> aq.Plan:
    """Plan the paper's features, fitted to rows that are declared public."""
    for name, problem in PROBLEMS.items():
        if problem.title == schema.name:
            return _trained(name, seed)
    return _trained_on_real(next(name for name in REAL if whole(name)[1] == schema), seed)


@lru_cache(maxsize=1000)
def _trained_on_real(name: str, seed: int) -> aq.Plan:
    first, second, schema = halves(name, seed, slice(fifth(name)))
    frames = tuple(rows.slice(0, TRAINED_ROWS // TRAINING).to_pandas() for rows in (first, second))
    return aq.me_test(schema, spread=0.2, public_train=frames, seed=seed)


@lru_cache(maxsize=1000)
def _trained(name: str, seed: int) -> aq.Plan:
    problem, public = PROBLEMS[name], draw(name, TRAINED_ROWS, seed, training=True)
    frames = tuple(pd.DataFrame(rows, columns=names(problem.columns)) for rows in public[:2])
    make = aq.scf_test if problem.smooth else aq.me_test
    spread = SPREADS[problem.title]
    return make(problem.schema, spread=spread, public_train=frames, seed=seed)


def sums_of(case: Case, *, maker: Maker) -> tuple[PrivateSum, PrivateSum]:
    """Sum both tables by a plan that their owners share."""
    first, second, schema = samples(case, without_public=maker is trained)
    plan = maker(schema, case.seed)
    return accumulate(first, plan), accumulate(second, plan)


def by_releases(sums: tuple[PrivateSum, PrivateSum], epsilon: float | None, seed: int) -> bool:
    """Compare two releases, each with noise of its own."""
    budget = aq.Budget(epsilon or 0.0, DELTA)
    a, b = (finish(one, budget, simulate=2 * seed + side) for side, one in enumerate(sums))
    return aq.compare(a, b, alpha=ALPHA).reject


@dataclass(frozen=True)
class Curator:
    """A curator's test of two tables but for ε, and its exact numbers."""

    at: Callable[[aq.Budget], Trial]
    exact: list[np.ndarray]


def numbers_of(case: Case, *, test: str, maker: Maker | None) -> Curator:
    """Read both tables as a curator does who holds them."""
    first, second, schema = samples(case, without_public=maker is trained)
    looked_at = features_of(maker(schema, case.seed) if maker else None, schema, test)
    opened = open_samples((first, second), schema, looked_at)
    told = {"alpha": ALPHA, "coins": coins(case.seed)}
    ranked = {"count": how_many(ALPHA, None)}

    def at(rows: Samples, data: tuple[Any, ...], budget: aq.Budget) -> Trial:
        if test == "tcmc":
            return MeanAndCovariance(data, schema, looked_at, rows.sizes, budget, ALPHA)
        if test == "tcs":
            return PerturbedStatistic(rows, budget, **told)
        made = {"permutation": Permutation, "signflip": SignFlip}[test]
        return made(rows, budget, **ranked, **told)

    exact = at(opened, (first, second), aq.Budget(1.0, DELTA)).exact(progress=False)
    forgotten = replace(opened, sources=())  # so that fifty of them do not hold fifty tables
    return Curator(partial(at, forgotten, ()), exact)


def by_curator(found: Curator, epsilon: float | None, seed: int) -> bool:
    """Compare two tables in the hands of one curator."""
    trial, add = found.at(aq.Budget(epsilon or 0.0, DELTA)), simulator(seed)
    pairs = zip(found.exact, trial.noised, strict=True)
    return trial.conclude([add(numbers, part, trial.noise) for numbers, part in pairs]).reject


def _releases(title: str, maker: Maker, problems: tuple[str, ...] = EVERYWHERE) -> Method:
    return Method(title, RELEASES, partial(sums_of, maker=maker), by_releases, problems)


def _curator(
    title: str, test: str, maker: Maker | None = None, problems: tuple[str, ...] = EVERYWHERE
) -> Method:
    prepare = partial(numbers_of, test=test, maker=maker)
    return Method(title, CURATOR, prepare, by_curator, problems)


OURS = {
    "mixed": _releases("mixed Fourier", mixed),
    "mixed_alone": _releases("mixed Fourier, no block for all columns", mixed_alone),
    "mixed_as_it_comes": _releases("mixed Fourier, no scale given", mixed_as_it_comes),
    "default": _releases("default plan", default),
    "nte_me": _releases("NTE, ME", me),
    "nte_scf": _releases("NTE, SCF", scf),
    "nte_public": _releases("NTE, public training", trained),
    "permutation": _curator("permutation", "permutation"),
    "signflip": _curator("sign-flip", "signflip"),
    "tcmc": _curator("TCMC", "tcmc"),
    "tcs": _curator("TCS", "tcs"),
    "tcmc_public": _curator("TCMC, public training", "tcmc", trained),
}
