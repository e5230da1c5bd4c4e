"""Intervals hold the truth as often as they say, under real noise.

Ninety-five percent intervals of one count, over independent releases: more than 14 misses in 40
would come by chance once in more than a million runs if each missed with probability 0.05. The
other way, noise that is larger than the release states is noticed: see the planted fault.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import aquatint as aq
from aquatint.schema import Schema

RELEASES, MOST = 40, 14
SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 9]},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
        },
    }
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(11)
    age = np.minimum(rng.poisson(3, 3000), 9)
    return pd.DataFrame({"age": age, "sex": np.where(rng.random(3000) < 0.4, "F", "M")})


@pytest.fixture(scope="module")
def releases(frame):
    return [
        aq.sketch(frame, SCHEMA, epsilon=0.5, delta=1e-6, progress=False) for _ in range(RELEASES)
    ]


@pytest.fixture(scope="module")
def model(releases):
    """A prior that saw one release only: what is tested is the noise of all the others."""
    return aq.Query(releases[0], progress=False).model


def misses(releases, model, where, truth):
    found = [aq.Query(release, model=model).count(where) for release in releases]
    return sum(not answer.low <= truth <= answer.high for answer in found)


def test_the_stated_error_rate():
    assert binom.sf(MOST, RELEASES, 0.05) < 1e-6


def test_intervals_cover(releases, model, frame):
    assert misses(releases, model, "sex = 'F'", (frame["sex"] == "F").sum()) <= MOST
    assert misses(releases, model, "age > 3", (frame["age"] > 3).sum()) <= MOST


def test_noise_that_is_larger_than_stated_is_noticed(releases, model, frame):
    """A planted fault: noise six times as large as stated makes them miss far more often."""

    def spoiled(release, rng):
        blocks = tuple(
            replace(
                block,
                integers=block.integers
                + np.rint(
                    rng.normal(0, 6 * block.stderr * block.steps, block.integers.shape)
                ).astype(np.int64),
            )
            for block in release.blocks
        )
        return replace(release, blocks=blocks)

    rng = np.random.default_rng(0)
    wrong = [spoiled(release, rng) for release in releases]
    assert misses(wrong, model, "sex = 'F'", (frame["sex"] == "F").sum()) > MOST
