"""The noise has the law that the accounting assumes: OpenDP's samplers against exact formulas.

Each test compares one p-value, or one normal deviate, with LEVEL = 1e-8, and there are 17 such
comparisons, so an honest run fails less than once in a million (17 × 1e-8 < 2e-7).
"""

from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from aquatint.accounting import Noised
from aquatint.curator.noise import add_noise
from aquatint.features.grid import COUNT_STEPS

LEVEL = 1e-8
DEVIATE = float(stats.norm.isf(LEVEL / 2))
GAUSSIAN, LAPLACE = "discrete gaussian", "discrete laplace"


def draw(noise, scale, size):
    """Draw the noise alone: on sums that are all zero."""
    noised = Noised(size, scale, COUNT_STEPS**2, COUNT_STEPS)
    return add_noise(np.zeros(size, np.int64), noised, noise)


def weight(noise, scale, k):
    return exp(-k * k / (2 * scale**2)) if noise == GAUSSIAN else exp(-abs(k) / scale)


def exact_law(noise, scale, size):
    """Give (cells, expected counts): single integers with at least 50 expected, and both tails."""
    reach = int(60 * scale) + 60
    support = np.arange(-reach, reach + 1)
    mass = np.array([weight(noise, scale, int(k)) for k in support])
    mass /= mass.sum()
    kept = np.flatnonzero(size * mass >= 50)
    first, last = kept[0], kept[-1]
    expected = [mass[:first].sum(), *mass[first : last + 1], mass[last + 1 :].sum()]
    return support[first : last + 1], size * np.array(expected)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("scale", [0.7, 3.73, 10.0])
def test_small_noise_follows_the_exact_probabilities(noise, scale):
    size = 60_000
    drawn = draw(noise, scale, size)
    cells, expected = exact_law(noise, scale, size)
    observed = [
        (drawn < cells[0]).sum(),
        *((drawn == k).sum() for k in cells),
        (drawn > cells[-1]).sum(),
    ]
    assert stats.chisquare(observed, expected).pvalue > LEVEL


@pytest.mark.parametrize(
    ("noise", "law"), [(GAUSSIAN, stats.norm), (LAPLACE, stats.laplace)], ids=["gauss", "laplace"]
)
def test_noise_of_millions_of_steps_looks_continuous(noise, law):
    scale = 3.73 * COUNT_STEPS
    drawn = draw(noise, scale, 50_000)
    assert stats.kstest(drawn / scale, law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_noise_has_no_preferred_sign(noise):
    drawn = draw(noise, 3.73 * COUNT_STEPS, 40_000)
    positive, negative = int((drawn > 0).sum()), int((drawn < 0).sum())
    assert stats.binomtest(positive, positive + negative).pvalue > LEVEL


def correlation_deviate(a, b):
    """Give the correlation of two samples as a standard normal deviate."""
    return float(np.corrcoef(a, b)[0, 1] * sqrt(len(a)))


@pytest.mark.parametrize("lag", [1, 2, 16_384])
def test_coordinates_are_independent_within_and_across_chunks(lag):
    drawn = draw(GAUSSIAN, 3.73 * COUNT_STEPS, 40_000).astype(float)
    assert abs(correlation_deviate(drawn[:-lag], drawn[lag:])) < DEVIATE


def test_sizes_of_neighbouring_coordinates_are_independent():
    drawn = np.abs(draw(LAPLACE, 3.73 * COUNT_STEPS, 40_000)).astype(float)
    assert abs(correlation_deviate(drawn[:-1], drawn[1:])) < DEVIATE


def test_two_calls_are_independent():
    first, second = (draw(GAUSSIAN, 3.73 * COUNT_STEPS, 40_000).astype(float) for _ in range(2))
    assert abs(correlation_deviate(first, second)) < DEVIATE


def test_two_calls_never_repeat():
    # Two draws of 64 coordinates millions of steps wide agree with probability below 1e-400.
    first, second = (draw(GAUSSIAN, 3.73 * COUNT_STEPS, 64) for _ in range(2))
    assert (first != second).any()


def test_noise_does_not_depend_on_the_sums():
    # Fault 9 of the notes: noise that anyone can subtract. Noise on large sums, less the sums,
    # has the same law, and no correlation with them.
    size, scale = 20_000, 3.73 * COUNT_STEPS
    sums = np.random.default_rng(3).integers(-(2**40), 2**40, size)
    noisy = add_noise(sums, Noised(size, scale, COUNT_STEPS**2, COUNT_STEPS), GAUSSIAN)
    noise = (noisy - sums).astype(float)
    assert abs(correlation_deviate(noise, sums.astype(float))) < DEVIATE
    assert stats.kstest(noise / scale, stats.norm.cdf).pvalue > LEVEL
