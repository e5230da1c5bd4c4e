"""The accounting against independent libraries, direct sums and exact fractions."""

import warnings
from fractions import Fraction
from math import erfc, exp, inf, isinf, log, nan, nextafter, sqrt

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.accounting import (
    SMALLEST_SCALE,
    Budget,
    Loss,
    Noised,
    calibrate,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_loss,
    gaussian_mu,
    laplace_loss,
    left,
    round_up,
    zcdp_epsilon,
)
from aquatint.errors import BudgetError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

BUDGETS = [(0.001, 1e-15), (0.1, 1e-6), (1.0, 1e-5), (1.0, 1e-15), (10.0, 1e-5), (50.0, 1e-15)]
ONE = 2**20


# --- the Gaussian mechanism ---------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_mu_is_that_of_dp_accounting_and_never_above(epsilon, delta):
    theirs = 1 / dp_accounting.get_sigma_gaussian(epsilon, delta)
    ours = gaussian_mu(epsilon, delta)
    assert ours == pytest.approx(theirs, rel=1e-7)
    assert ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("mu", [0.01, 0.268, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-5, 1e-2])
def test_epsilon_is_that_of_dp_accounting_and_never_below(mu, delta):
    theirs = dp_accounting.get_epsilon_gaussian(1 / mu, delta)
    ours = gaussian_epsilon(delta, mu)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)
    assert ours >= theirs * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_epsilon_and_mu_are_inverse_within_their_safe_rounding(epsilon, delta):
    there_and_back = gaussian_epsilon(delta, gaussian_mu(epsilon, delta))
    assert there_and_back == pytest.approx(epsilon, rel=1e-7)


def test_delta_is_the_formula_of_balle_and_wang():
    def phi(x):
        return erfc(-x / sqrt(2)) / 2

    for mu, epsilon in [(0.5, 0.3), (1.0, 1.0), (2.0, 0.0), (3.0, 4.0)]:
        plain = phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        assert gaussian_delta(epsilon, mu) == pytest.approx(plain, rel=1e-10)


@pytest.mark.parametrize("sigmas", [(3.73,), (6.0, 7.0, 9.0, 12.0), (5.0,) * 11])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_composed_gaussians_agree_with_the_pld_accountant(sigmas, delta):
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for sigma in sigmas:
        accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    parts = [gaussian_loss([Noised(1, sigma * ONE, ONE**2, ONE)]) for sigma in sigmas]
    ours = sum(parts, Loss()).epsilon(delta)
    assert ours == pytest.approx(accountant.get_epsilon(delta), rel=6e-4)
    assert ours > gaussian_epsilon(delta, sqrt(sum(s**-2 for s in sigmas)))


def test_the_pld_accountant_tells_a_wrong_composition():
    # The comparison above would notice one of eleven parts left out.
    short = sum([gaussian_loss([Noised(1, 5.0 * ONE, ONE**2, ONE)])] * 10, Loss())
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(5.0), 11)
    assert short.epsilon(1e-5) < accountant.get_epsilon(1e-5) * (1 - 0.03)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.73, 40.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-5, 1e-2])
def test_zcdp_epsilon_is_opendps(sigma, delta):
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=1), dp.l2_distance(T=float)
    mechanism = dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(scale=sigma))
    theirs = mechanism.map(1.0).epsilon(delta)
    assert zcdp_epsilon(1 / (2 * sigma**2), delta) == pytest.approx(theirs, rel=1e-6)


@settings(deadline=None)
@given(st.floats(1e-4, 5.0), st.floats(-15.0, -2.0))
def test_the_exact_promise_is_never_weaker_than_that_of_zcdp_alone(mu, exponent):
    delta = 10.0**exponent
    assert gaussian_epsilon(delta, mu) <= zcdp_epsilon(mu * mu / 2, delta) * (1 + 1e-6) + 1e-9


def test_no_noise_parameter_means_no_loss():
    assert Loss().epsilon(0.0) == 0.0
    assert Loss().epsilon(1e-6) == 0.0
    assert zcdp_epsilon(0.0, 1e-6) == 0.0
    assert gaussian_epsilon(1e-6, 0.0) == 0.0


def test_gaussian_noise_promises_nothing_at_delta_zero():
    assert isinf(gaussian_loss([Noised(1, 4.0 * ONE, ONE**2, ONE)]).epsilon(0.0))


# --- the discretisation -------------------------------------------------------------------------


def discrete_gaussian(sigma):
    """Give the exact law on the integers, far enough out for every sum here."""
    support = np.arange(-int(14 * sigma), int(14 * sigma) + 1)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
    return mass / mass.sum()


def exact_delta(sigma, shift, epsilon):
    """Give Σ max(0, P(k) − e^ε·P(k − shift)) of the discrete Gaussian, by a direct sum."""
    law = discrete_gaussian(sigma)
    padded = np.concatenate([np.zeros(shift), law, np.zeros(shift)])
    moved = np.concatenate([np.zeros(2 * shift), law])
    return float(np.maximum(padded - exp(epsilon) * moved, 0).sum())


GRIDS = [50.0, 120.5, 373.0, 1024.0, 2000.0]


@pytest.mark.parametrize("sigma", [1024.0, 2000.5, 5000.0])
@pytest.mark.parametrize("ratio", [0.268, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_discrete_gaussian_keeps_the_promise_of_the_formula(sigma, ratio, delta):
    shift = round(ratio * sigma)
    epsilon = gaussian_loss([Noised(1, sigma, shift**2, shift)]).epsilon(delta)
    assert exact_delta(sigma, shift, epsilon) <= delta
    assert exact_delta(sigma, shift, epsilon * (1 - 1e-3)) > delta  # and gives little away


@pytest.mark.parametrize("sigma", GRIDS)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_terms_of_the_derivation_bound_the_exact_delta(sigma, epsilon):
    """δ_discrete(ε + 2η) ≤ e^η·δ + (1 + e^{ε+η})·τ, written out here once more."""
    shift, reach = round(0.268 * sigma), 9.0
    eta = reach**2 / (8 * sigma**2) + 3 * exp(-2 * np.pi**2 * sigma**2)
    tail = 2 * exp(-(reach**2) / 2)
    ideal = gaussian_delta(epsilon, shift / sigma)
    limit = exp(eta) * ideal + (1 + exp(epsilon + eta)) * tail
    assert exact_delta(sigma, shift, epsilon + 2 * eta) <= limit


@pytest.mark.parametrize("sigma", [50.0, 200.0])
def test_two_coordinates_keep_the_promise_too(sigma):
    shifts, reach = (round(0.2 * sigma), round(0.3 * sigma)), 8.0
    law = discrete_gaussian(sigma)[int(14 * sigma) - int(8 * sigma) :][: 2 * int(8 * sigma) + 1]
    support = np.arange(-int(8 * sigma), int(8 * sigma) + 1)
    # The loss at (i, j) is Σ (2·s·k + s²)/2σ² for a move by −s: exact, coordinate by coordinate.
    losses = [(2 * s * support + s * s) / (2 * sigma**2) for s in shifts]
    total = losses[0][:, None] + losses[1][None, :]
    mass = law[:, None] * law[None, :]
    eta = 2 * reach**2 / (8 * sigma**2)
    tail = 2 * 2 * exp(-(reach**2) / 2)
    for epsilon in (0.3, 1.0):
        ideal = gaussian_delta(epsilon, sqrt(sum(s * s for s in shifts)) / sigma)
        found = float((mass * np.maximum(0, -np.expm1(epsilon + 2 * eta - total))).sum())
        assert found <= exp(eta) * ideal + (1 + exp(epsilon + eta)) * tail


def test_rounding_to_the_grid_is_within_the_factors_of_the_derivation():
    """P[R=k]/P[discrete=k] lies in e^{±η} for |k| ≤ tσ: the heart of the argument."""
    sigma, reach = 60.0, 8.0
    support = np.arange(-int(14 * sigma), int(14 * sigma) + 1)
    upper = np.array([erfc(-(k + 0.5) / (sigma * sqrt(2))) / 2 for k in support])
    lower = np.array([erfc(-(k - 0.5) / (sigma * sqrt(2))) / 2 for k in support])
    inside = (np.abs(support) <= reach * sigma) & (support <= 0)  # the left half: no cancellation
    ratio = np.log((upper - lower)[inside] / discrete_gaussian(sigma)[inside])
    eta = reach**2 / (8 * sigma**2) + 3 * exp(-2 * np.pi**2 * sigma**2)
    assert np.abs(ratio).max() <= eta * (1 + 1e-6)
    assert np.abs(ratio).max() >= eta / 10  # the bound is not idle


def test_without_the_terms_a_coarse_grid_would_break_the_promise():
    # On a grid of 3.73 steps the continuous formula is wrong by per cents; this is why the terms
    # are there and why coarse grids are refused.
    sigma, shift, epsilon = 3.73, 1, 1.0
    assert exact_delta(sigma, shift, epsilon) != pytest.approx(
        gaussian_delta(epsilon, shift / sigma), rel=0.01
    )
    with pytest.raises(BudgetError, match="too fine"):
        gaussian_loss([Noised(1, sigma, 1, 1)])


def test_the_smallest_scale_is_where_the_module_says():
    assert SMALLEST_SCALE == 1024
    gaussian_loss([Noised(1, SMALLEST_SCALE, 1, 1)])
    with pytest.raises(BudgetError):
        gaussian_loss([Noised(1, nextafter(SMALLEST_SCALE, 0), 1, 1)])


def test_the_promise_depends_on_rho_alone_until_the_grid_is_too_coarse():
    """A fixed allowance: so a ceiling on it is a ceiling on Σρ, a privacy filter."""

    def epsilon(coordinates, scale):
        return gaussian_loss([Noised(coordinates, scale, int(scale) ** 2 // 16, 1)]).epsilon(1e-6)

    assert epsilon(1, 2.0**22) == epsilon(10**6, 2.0**22) == epsilon(1, 2.0**12)
    assert isinf(epsilon(10**6, 2.0**12))


def test_the_allowance_covers_the_terms_of_the_largest_release_that_is_accepted():
    """Written out once more: whatever is accepted has 2η within what was added to ε."""
    sigma, delta = 2.0**22, 1e-6
    for coordinates in (1, 10**3, 10**6, 10**8, 10**9):
        loss = gaussian_loss([Noised(coordinates, sigma, int(sigma) ** 2 // 14, 1)])
        epsilon, ideal = loss.epsilon(delta), gaussian_epsilon(delta, sqrt(2 * loss.rho))
        if isinf(epsilon):
            assert coordinates > 10**6
            continue
        tail = 1e-12 * delta / (1 + exp(2 * epsilon))
        eta = 2 * log(2 * coordinates / tail) * coordinates / (8 * sigma**2)
        left_over = (delta - (1 + exp(epsilon + eta)) * tail) * exp(-eta)
        assert gaussian_epsilon(left_over, sqrt(2 * loss.rho)) + 2 * eta <= epsilon
        assert epsilon <= ideal * (1 + 1e-3)


# --- rounding only ever up ----------------------------------------------------------------------

amounts = st.floats(0, 1e6, allow_nan=False)
vectors = st.lists(
    st.builds(
        Noised,
        st.integers(1, 10**6),
        st.floats(SMALLEST_SCALE, 1e12),
        st.integers(1, 2**60),
        st.integers(1, 2**40),
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(st.fractions(min_value=0))
def test_round_up_gives_the_nearest_float_that_is_not_below(value):
    rounded = round_up(value)
    assert Fraction(rounded) >= value
    assert rounded == 0 or Fraction(nextafter(rounded, 0.0)) < value


@settings(deadline=None)
@given(vectors)
def test_rho_is_the_exact_sum_rounded_up(parts):
    exact = sum((Fraction(v.l2_squared) / (2 * Fraction(v.scale) ** 2) for v in parts), Fraction())
    loss = gaussian_loss(parts)
    assert exact <= Fraction(loss.rho) <= exact * (1 + Fraction(1, 2**51))


@settings(deadline=None)
@given(vectors)
def test_roughness_is_the_exact_sum_rounded_up(parts):
    exact = sum((Fraction(v.coordinates) / (8 * Fraction(v.scale) ** 2) for v in parts), Fraction())
    assert Fraction(gaussian_loss(parts).roughness) >= exact


@settings(deadline=None)
@given(vectors)
def test_the_laplace_loss_is_the_exact_sum_rounded_up(parts):
    exact = sum((Fraction(v.l1) / Fraction(v.scale) for v in parts), Fraction())
    assert exact <= Fraction(laplace_loss(parts).pure) <= exact * (1 + Fraction(1, 2**51))


losses = st.builds(Loss, amounts, amounts, amounts, amounts)


@settings(deadline=None)
@given(losses, losses, losses)
def test_addition_is_associative_up_to_rounding_up(a, b, c):
    first, second = (a + b) + c, a + (b + c)
    for name in ("rho", "roughness", "pure", "pure_rho"):
        exact = sum((Fraction(getattr(loss, name)) for loss in (a, b, c)), Fraction())
        for total in (getattr(first, name), getattr(second, name)):
            assert exact <= Fraction(total) <= exact * (1 + Fraction(1, 2**50))


@settings(deadline=None)
@given(losses)
def test_adding_nothing_changes_nothing(loss):
    assert loss + Loss() == loss == Loss() + loss


def test_gaussian_and_laplace_losses_compose_under_zcdp():
    gaussian = gaussian_loss([Noised(1, 5.27 * ONE, ONE**2, ONE)])
    laplace = laplace_loss([Noised(1, 20.0 * ONE, ONE**2, ONE)])
    assert laplace.pure_rho == pytest.approx(0.05**2 / 2)  # pure ε-DP is ε²/2-zCDP
    both = (gaussian + laplace).epsilon(1e-5)
    assert both == pytest.approx(zcdp_epsilon(gaussian.rho + 0.05**2 / 2, 1e-5), rel=1e-9)
    assert both > 0.7074  # what PLD gives: dp_engines.md, section 2


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=6))
def test_laplace_losses_compose_by_adding_epsilon(epsilons):
    parts = [laplace_loss([Noised(1, ONE / e, ONE**2, ONE)]) for e in epsilons]
    assert sum(parts, Loss()).epsilon(0.0) == pytest.approx(sum(epsilons), rel=1e-12)


# --- what is left -------------------------------------------------------------------------------


@pytest.mark.parametrize("spent", [0.0, 0.1, 0.5, 0.9])
def test_what_is_left_fits_exactly(spent):
    ceiling = Budget(1.0, 1e-6)
    loss = Loss(rho=spent * gaussian_mu(1.0, 1e-6) ** 2 / 2)
    rest = left(loss, ceiling)
    (scale,) = calibrate(Budget(rest, 1e-6), [Noised(1, 1.0, ONE**2, ONE)], [1.0])
    more = gaussian_loss([Noised(1, scale, ONE**2, ONE)])
    assert (loss + more).epsilon(1e-6) <= 1.0 + 1e-9
    assert (loss + more + Loss(rho=1e-4)).epsilon(1e-6) > 1.0


def test_nothing_is_left_of_a_ceiling_that_is_reached():
    assert left(Loss(pure=1.0), Budget(1.0, 0.0)) == 0.0
    assert left(Loss(pure=0.25), Budget(1.0, 0.0)) == 0.75
    assert left(Loss(rho=gaussian_mu(1.0, 1e-6) ** 2 / 2), Budget(1.0, 1e-6)) < 0.01


# --- calibration --------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, (1.0, 0.0), (0.001, 0.0), (50.0, 0.0)])
@pytest.mark.parametrize("coordinates", [1, 10**6])
def test_calibration_spends_the_budget_exactly_and_never_over(epsilon, delta, coordinates):
    budget = Budget(epsilon, delta)
    parts = [Noised(1, 1.0, ONE**2, ONE), Noised(coordinates, 1.0, 3 * ONE**2, 3 * ONE)]
    scales = calibrate(budget, parts, [0.01, 0.99])
    noised = [
        Noised(v.coordinates, s, v.l2_squared, v.l1) for v, s in zip(parts, scales, strict=True)
    ]
    loss = laplace_loss(noised) if budget.pure else gaussian_loss(noised)
    assert epsilon * (1 - 1e-6) <= loss.epsilon(delta) <= epsilon


@settings(deadline=None)
@given(
    st.floats(0.01, 20), st.floats(-12, -3), st.lists(st.floats(0.01, 1), min_size=2, max_size=5)
)
def test_shares_split_rho(epsilon, exponent, weights):
    shares = [w / sum(weights) for w in weights]
    parts = [Noised(7, 1.0, (k + 1) * ONE**2, ONE) for k in range(len(shares))]
    scales = calibrate(Budget(epsilon, 10.0**exponent), parts, shares)
    spent = [v.l2_squared / (2 * s * s) for v, s in zip(parts, scales, strict=True)]
    for share, rho in zip(shares, spent, strict=True):
        assert rho / sum(spent) == pytest.approx(share, rel=1e-9)


def test_the_exact_calibration_needs_less_noise_than_zcdp_alone():
    (scale,) = calibrate(Budget(1.0, 1e-5), [Noised(1, 1.0, ONE**2, ONE)], [1.0])
    assert 3.7306 <= scale / ONE < 3.733  # 4.045 by zCDP: dp_engines.md, section 2


def test_too_many_coordinates_for_the_grid_are_refused():
    # Budgets that leave less than a thousand grid steps, or terms that outgrow the promise.
    with pytest.raises(BudgetError):
        calibrate(Budget(100.0, 0.4), [Noised(1, 1.0, 64, 8)], [1.0])


# --- budgets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -0.0, -1.0, nan, inf, -inf, 101.0])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(BudgetError, match="epsilon must be"):
        Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, -1.0, 0.5, 1.0, nan, inf, -inf])
def test_a_delta_out_of_range_is_refused(delta):
    with pytest.raises(BudgetError, match="delta must be"):
        Budget(1.0, delta)


@pytest.mark.parametrize("delta", [5e-324, 1e-320, 1e-310])
def test_a_delta_below_what_floats_can_compute_with_is_refused_in_words(delta):
    # Either the budget or the calibration has to refuse it; neither may crash.
    with pytest.raises(BudgetError):
        calibrate(Budget(1.0, delta), [Noised(1, 1.0, ONE**2, ONE)], [1.0])


@settings(deadline=None)
@given(st.floats(1e-6, 100), st.one_of(st.just(0.0), st.floats(-200, -1).map(lambda e: 10.0**e)))
def test_every_budget_that_is_accepted_can_be_calibrated_or_is_refused_in_words(epsilon, delta):
    budget = Budget(epsilon, delta)
    part = Noised(100, 1.0, ONE**2, ONE)
    try:
        (scale,) = calibrate(budget, [part], [1.0])
    except BudgetError:
        return
    noised = [Noised(100, scale, ONE**2, ONE)]
    loss = laplace_loss(noised) if budget.pure else gaussian_loss(noised)
    assert loss.epsilon(delta) <= epsilon


def test_pure_is_delta_zero():
    assert Budget(1.0, 0.0).pure
    assert not Budget(1.0, 1e-9).pure


def test_zcdp_alone_at_a_small_delta_is_near_its_asymptote():
    # rho + 2·√(rho·log(1/δ)) bounds it from above (Bun & Steinke 2016).
    rho, delta = 0.05, 1e-9
    assert zcdp_epsilon(rho, delta) <= rho + 2 * sqrt(rho * log(1 / delta))
