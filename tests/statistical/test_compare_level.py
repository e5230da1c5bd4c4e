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
from aquatint.curator.sketch import accumulate, finish
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


def test_the_test_would_notice_a_level_of_a_quarter():
    """A planted fault: forgetting the noise of one side makes about so many false alarms."""
    assert binom.sf(MOST, RUNS, 0.35) > 0.9


def test_variances_without_the_noise_would_be_noticed():
    """The asymptotic null of the paper, which forgets the noise, rejects nearly always (§5)."""
    rng = np.random.default_rng(1)
    schema = schema_of("replace one row", [-5, 5], 10)
    plan, budget = aq.me_test(schema), Budget(1.0, 1e-5)
    frames = [pd.DataFrame(gaussian(rng, 2000), columns=list(schema.columns)) for _ in range(2)]
    sums = [accumulate(frame, plan) for frame in frames]
    rejected = 0
    for _ in range(20):
        one, two = (finish(each, budget) for each in sums)
        apart = one.mean("mean") - two.mean("mean")
        spread = 2 * 0.25 / 2000  # more than any covariance of features in [−1/2, 1/2]
        rejected += float(apart @ apart) / spread > 15.09  # the χ²_5 quantile of 0.99
    assert rejected >= 15
