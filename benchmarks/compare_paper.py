"""The paper's tests as methods of the benchmark: as published, and without privacy."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from compare_cases import ALPHA, PLAIN, PUBLISHED, Case, Method
from compare_plain import Features, places_for, plain_pvalue
from compare_problems import draw
from compare_published import nte, tcmc, tcs
from runs import DELTA

NOISE = 7_000_003
"""Keeps the seeds of noise apart from those of rows."""


@lru_cache(maxsize=512)
def places(case: Case, how: str) -> Features:
    """Give the test places of a run, once for all methods that share them."""
    return places_for(case.problem, case.rows, case.seed, how)


@lru_cache(maxsize=64)
def features(case: Case, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Give the features of both samples, once for all methods that share them."""
    pair, made = draw(case.problem, case.rows, case.seed), places(case, how)
    return made.of(pair.first), made.of(pair.second)


def _plain(how: str, title: str) -> Method:
    def prepare(case: Case) -> float:
        return plain_pvalue(places(case, how), draw(case.problem, case.rows, case.seed))

    def rejects(found: float, epsilon: float | None, seed: int) -> bool:
        del epsilon, seed
        return found <= ALPHA

    return Method(title, PLAIN, prepare, rejects)


def _published(test: Callable[..., float], how: str, title: str, *, apart: bool = False) -> Method:
    def rejects(found: tuple[np.ndarray, np.ndarray], epsilon: float | None, seed: int) -> bool:
        first, second = found
        rng = np.random.default_rng([NOISE, seed])
        given = found if apart else (first - second,)
        return test(*given, epsilon, DELTA, rng) <= ALPHA

    return Method(title, PUBLISHED, partial(features, how=how), rejects)


PAPER = {
    "plain": _plain("prior", "ME or SCF, places from a prior"),
    "plain_optimised": _plain("optimised", "ME or SCF, optimised places"),
    "published_tcmc": _published(tcmc, "optimised", "TCMC, optimised places"),
    "published_tcs": _published(tcs, "optimised", "TCS, optimised places"),
    "published_tcmc_sampled": _published(tcmc, "rows", "TCMC, sampled places"),
    "published_tcs_sampled": _published(tcs, "rows", "TCS, sampled places"),
    "published_nte": _published(nte, "rows", "NTE, sampled places", apart=True),
}
