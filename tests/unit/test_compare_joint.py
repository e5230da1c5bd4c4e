"""Means whitened by a noisy covariance: the level holds, and less noise never loses power."""

import numpy as np
import pytest

from aquatint.analyst.compare.tails import joint, positive


def rejected(covariance, deviation, draws, rng, shift=0.0):
    """Count rejections at 1 % of d ~ N(shift, C + I), where C is known up to noise."""
    size, count = len(covariance), 0
    root = np.sqrt(np.diag(covariance) + 1)
    for _ in range(draws):
        noise = np.triu(rng.standard_normal((size, size))) * deviation
        noisy = positive(covariance + noise + np.triu(noise, 1).T) + np.eye(size)
        difference = root * rng.standard_normal(size) + shift
        count += joint(difference, noisy, deviation, 20_000) <= 0.01
    return count


@pytest.mark.parametrize("deviation", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("times", [0.5, 3.0])
def test_the_level_holds_however_noisy_the_covariance_is(deviation, times):
    """At 1 %, more than 28 of 1,000 come up in fewer than one of a million runs."""
    spectrum = np.diag([1.0, 1.0, 1.0, 0.3, 0.0]) * times * deviation * np.sqrt(5)
    assert rejected(spectrum, deviation, 1000, np.random.default_rng()) <= 28


def test_a_covariance_that_noise_drowns_does_not_hide_what_is_plain():
    """It did: with F on a single degree of freedom none of these were found."""
    found = rejected(np.eye(5), 2.0, 200, np.random.default_rng(0), shift=10.0)
    assert found >= 190
