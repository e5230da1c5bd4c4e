"""Comparing equal distributions says "they differ" about as often as it may, and no more.

The noise is real. At nominal level 0.05, more than `MOST` of `RUNS` rejections would come by chance
less than once in a million runs if the level were 0.05. The data have fixed seeds.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.analyst.compare.sides import Sides
from aquatint.curator.finishing import finish
from aquatint.curator.sketch import accumulate
from aquatint.planning import noise_of

RUNS, LEVEL = 60, 0.05
MOST = int(binom.isf(1e-6, RUNS, LEVEL)) + 1


def schema_of(protects, bounds, columns):
    return aq.Schema.from_dict(
        {
            "name": "numbers",
            "privacy": {"protects": protects},
            "columns": {f"x{i}": {"kind": "numeric", "bounds": bounds} for i in range(columns)},
        }
    )


def gaussian(rng, count):
    return rng.normal(size=(count, 10))


def blobs(rng, count):
    return 5.0 * rng.integers(0, 5, (count, 2)) + rng.normal(size=(count, 2))


CASES = {
    "means, Gaussian": (gaussian, aq.me_test, "replace one row", 1e-5),
    "means, noisy counts": (gaussian, aq.me_test, "add or remove one row", 1e-5),
    "smoothed, blobs": (blobs, aq.scf_test, "replace one row", 1e-5),
    "frequencies, blobs": (blobs, aq.mixed_fourier, "add or remove one row", 1e-5),
    "frequencies of all columns": (gaussian, aq.mixed_fourier, "add or remove one row", 1e-5),
    "frequencies, Laplace noise": (blobs, aq.mixed_fourier, "replace one row", 0),
    "tables, blobs": (blobs, aq.plan, "replace one row", 1e-5),
    "cosines, blobs": (blobs, aq.m2m, "replace one row", 1e-5),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_distributions_are_rarely_said_to_differ(name):
    draw, recipe, protects, delta = CASES[name]
    bounds, columns = ([-5, 25], 2) if draw is blobs else ([-5, 5], 10)
    schema = schema_of(protects, bounds, columns)
    plan, budget = recipe(schema), Budget(1.0, delta)
    noise = noise_of(plan, budget)
    rejected = 0
    for run in range(RUNS // 10):
        rng = np.random.default_rng([5, run])
        sums = [
            accumulate(pd.DataFrame(draw(rng, count), columns=list(schema.columns)), plan)
            for count in (2000, 1000)
        ]
        for _ in range(10):
            one, two = (finish(each, budget, noise=noise) for each in sums)
            rejected += aq.compare(one, two, alpha=LEVEL).reject
    assert rejected <= MOST


def test_a_level_of_a_third_would_be_noticed():
    assert binom.sf(MOST, RUNS, 0.35) > 0.9


def test_a_test_that_forgets_the_noise_would_be_noticed(monkeypatch):
    """As the asymptotic null of the paper does, which rejects nearly always (§5)."""
    told = Sides.noise  # next to none, and not none: what is divided by it has to stay a number
    monkeypatch.setattr(Sides, "noise", lambda *given: 1e-9 * told(*given))
    schema = schema_of("replace one row", [-5, 25], 2)
    plan, rng = aq.mixed_fourier(schema), np.random.default_rng(1)
    frames = [pd.DataFrame(blobs(rng, 2000), columns=list(schema.columns)) for _ in range(2)]
    one, two = (aq.sketch(f, schema, epsilon=1, delta=1e-5, plan=plan) for f in frames)
    assert aq.compare(one, two).pvalue < 1e-6
