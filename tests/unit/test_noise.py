"""The guards around OpenDP: what it does not check itself, and its privacy map."""

from math import inf, nan, sqrt

import numpy as np
import pytest

from aquatint.accounting import Noised
from aquatint.curator import noise as module
from aquatint.curator.noise import _measurement, add_noise, simulator
from aquatint.errors import BudgetError
from aquatint.features.grid import COUNT_STEPS

GAUSSIAN, LAPLACE = "discrete gaussian", "discrete laplace"
BOTH = pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
FINE = Noised(3, 4.0 * COUNT_STEPS, COUNT_STEPS**2, COUNT_STEPS)
SUMS = np.zeros(3, np.int64)


@pytest.mark.parametrize("scale", [1100.0, 3.73 * 2**20, 1e9, 1e12])
@pytest.mark.parametrize("sensitivity", [1, 2**20, 7 * 2**20])
def test_opendp_accounts_the_gaussian_as_the_closed_form(scale, sensitivity):
    theirs = _measurement(5, scale, GAUSSIAN).map(float(sensitivity))
    assert theirs == pytest.approx(sensitivity**2 / (2 * scale**2), rel=1e-12)


@pytest.mark.parametrize("scale", [1100.0, 3.73 * 2**20, 1e9, 1e12])
@pytest.mark.parametrize("sensitivity", [1, 2**20, 7 * 2**20])
def test_opendp_accounts_the_laplace_as_the_closed_form(scale, sensitivity):
    theirs = _measurement(5, scale, LAPLACE).map(sensitivity)
    assert theirs == pytest.approx(sensitivity / scale, rel=1e-12)


@BOTH
def test_the_result_has_the_shape_and_type_of_the_sums(noise):
    noisy = add_noise(SUMS, FINE, noise)
    assert noisy.shape == (3,)
    assert noisy.dtype == np.int64


@BOTH
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3, np.float64),
        np.array([np.nan, 0.0, np.inf]),
        np.zeros(3, np.int32),
        np.zeros(3, np.uint64),
        np.zeros(2, np.int64),
        np.zeros(4, np.int64),
        np.zeros((3, 1), np.int64),
    ],
    ids=["float", "nan", "int32", "uint64", "short", "long", "column"],
)
def test_sums_of_another_type_or_length_are_refused(noise, wrong):
    with pytest.raises(BudgetError, match="noise needs 3 int64 sums"):
        add_noise(wrong, FINE, noise)


@BOTH
@pytest.mark.parametrize("scale", [nan, inf, 0.0, -1.0, -inf, 2.0**50])
def test_scales_that_are_no_scales_are_refused(noise, scale):
    with pytest.raises(BudgetError, match="noise scale"):
        add_noise(SUMS, Noised(3, scale, COUNT_STEPS**2, COUNT_STEPS), noise)


@BOTH
@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1, -(2**63) + 1])
def test_sums_that_leave_no_room_for_noise_are_refused(noise, value):
    with pytest.raises(BudgetError, match="no room for the noise"):
        add_noise(np.array([0, value, 0], np.int64), FINE, noise)


def test_the_most_negative_sum_leaves_no_room_either():
    # np.abs(-2**63) is -2**63: a check by np.abs alone lets it through.
    with pytest.raises(BudgetError, match="no room for the noise"):
        add_noise(np.array([0, -(2**63), 0], np.int64), FINE, GAUSSIAN)


@BOTH
def test_noise_is_refused_when_opendp_disagrees_about_it(noise, monkeypatch):
    honest = module._measurement
    monkeypatch.setattr(
        module, "_measurement", lambda size, scale, kind: honest(size, 1.01 * scale, kind)
    )
    with pytest.raises(BudgetError, match="nothing was released"):
        add_noise(SUMS, FINE, noise)


def test_progress_adds_up_to_the_coordinates_over_several_chunks():
    size = 40_000
    told = []
    noised = Noised(size, FINE.scale, FINE.l2_squared, FINE.l1)
    noisy = add_noise(np.zeros(size, np.int64), noised, LAPLACE, told.append)
    assert sum(told) == size == len(noisy)
    assert len(told) > 1


def test_chunks_come_back_in_their_order():
    # Sums that are 2**40 apart tower over noise of a thousand steps.
    size = 40_000
    sums = np.arange(size, dtype=np.int64) << 40
    noisy = add_noise(sums, Noised(size, 1024.0, 1, 1), GAUSSIAN)
    assert (np.abs(noisy - sums) < 2**30).all()


@BOTH
def test_simulated_noise_follows_its_seed_and_its_scale(noise):
    size = 10_000
    noised = Noised(size, FINE.scale, FINE.l2_squared, FINE.l1)
    zeros = np.zeros(size, np.int64)
    first, again, other = (simulator(seed)(zeros, noised, noise) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    wanted = FINE.scale * (1 if noise == GAUSSIAN else sqrt(2))
    assert first.std() == pytest.approx(wanted, rel=0.1)


def test_nothing_can_seed_the_real_noise():
    state = np.random.get_state()  # noqa: NPY002  # the global state is what must not matter
    first = add_noise(SUMS, FINE, GAUSSIAN)
    np.random.set_state(state)  # noqa: NPY002
    second = add_noise(SUMS, FINE, GAUSSIAN)
    assert (first != second).any()  # equal with probability below 1e-19
