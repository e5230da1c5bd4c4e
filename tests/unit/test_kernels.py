"""Feature maps against the kernels they stand for."""

from decimal import Decimal, getcontext
from importlib import import_module
from itertools import pairwise
from math import exp, log, pi, sqrt

import numpy as np
import pytest
import torch

from aquatint.features import Rows, fourier, hermite, marginals, race, scale
from aquatint.features.fourier import cos_sin
from aquatint.features.hermite import Hermite, rho_of
from aquatint.features.race import collision_rate

TINY = 2.0**-20
FALSE_ALARM = 1e-6


def at(*columns):
    names = "abcdefgh"
    values = {
        n: torch.tensor(np.asarray(c), dtype=torch.float32)
        for n, c in zip(names, columns, strict=False)
    }
    return Rows({}, values, len(columns[0]))


def places(count, columns, seed=0):
    steps = np.random.default_rng(seed).integers(0, 2**20 + 1, (columns, count))
    return steps * TINY


def gram(feature_map, rows):
    features = feature_map(rows).double()
    return (features @ features.T).numpy()


def gaussian(x, scales):
    apart = (x[:, :, None] - x[:, None, :]) / np.asarray(scales)[:, None, None]
    return np.exp(-(apart**2).sum(axis=0) / 2)


def laplace(x, scales):
    apart = np.abs(x[:, :, None] - x[:, None, :]) / np.asarray(scales)[:, None, None]
    return np.exp(-apart.sum(axis=0))


def monte_carlo(kernel, twice, frequencies, tests):
    """So far cos(ω·δ), of variance (1 + k(2δ))/2 − k(δ)², may err on average by Bernstein."""
    variance = np.maximum((1 + twice) / 2 - kernel**2, 0)
    nats = log(2 * tests / FALSE_ALARM)
    return np.sqrt(2 * variance * nats / frequencies) + 4 * nats / (3 * frequencies)


@pytest.mark.parametrize("features", [200, 2000, 20_000])
@pytest.mark.parametrize("kernel", [gaussian, laplace])
def test_fourier_features_approach_their_kernel_at_the_monte_carlo_rate(kernel, features):
    scales = (0.2, 0.5)
    x = places(40, 2)
    found = gram(
        fourier(["a", "b"], features, length_scale=scales, kernel=kernel.__name__, seed=7), at(*x)
    )
    exact, twice = kernel(x, scales), kernel(2 * x, scales)
    clipped = 4 / (pi * 2 * pi * min(scales) * 512) if kernel is laplace else 0
    allowed = monte_carlo(exact, twice, features // 2, 40 * 40) + 1e-5 + clipped
    assert (np.abs(found - exact) <= allowed).all()


def test_more_fourier_features_come_closer_as_the_root():
    x = places(40, 2)
    exact = gaussian(x, (0.2, 0.2))

    def error(features):
        tries = [gram(fourier(["a", "b"], features, seed=s), at(*x)) - exact for s in range(5)]
        return sqrt(np.mean(np.square(tries)))

    assert 5 < error(200) / error(20_000) < 20


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_fourier_features_have_unit_norm(kernel):
    x = places(500, 3)
    for features in (2, 500):
        found = fourier(["a", "b", "c"], features, length_scale=0.01, kernel=kernel)(at(*x))
        assert (found.double().norm(dim=1) - 1).abs().max() < 1e-6


def test_fourier_features_are_the_cosines_and_sines_of_the_phases():
    made = fourier(["a", "b"], 100, length_scale=0.01)
    x = places(300, 2)
    phase = 2 * pi * (torch.from_numpy(x.T) @ made.frequencies)
    wanted = torch.cat([phase.cos(), phase.sin()], dim=1) * sqrt(2 / 100)
    assert phase.min() < -10
    assert phase.max() > 10
    assert (made(at(*x)) - wanted).abs().max() < 1e-6


def test_the_polynomial_agrees_with_cosine_and_sine():
    turns = torch.from_numpy(np.random.default_rng(0).random((2000, 3))) * 1e4
    turns[:9, 0] = torch.tensor([0, 0.25, 0.5, 0.75, 1, 9999, 9999.5, 1e4, 1 / 3])
    angle = 2 * pi * turns.frac()
    wanted = torch.cat([angle.cos(), angle.sin()], dim=1)
    assert (cos_sin(turns.clone(), 1.0) - wanted).abs().max() < 1e-6
    assert (cos_sin(turns.clone(), 0.1) - 0.1 * wanted).abs().max() < 1e-7


def test_the_path_with_gradients_agrees_with_the_one_without():
    turns = torch.from_numpy(np.random.default_rng(0).random((2000, 3)))
    smooth = cos_sin(turns.clone().requires_grad_(), 1.0)
    assert (cos_sin(turns.clone(), 1.0) - smooth).abs().max() < 1e-6


def test_gradients_of_fourier_features_are_right():
    made = fourier(["a"], 20, length_scale=0.3)
    value = torch.tensor([0.3, 0.7]).requires_grad_()
    weights = torch.linspace(-1, 1, 20)
    (made(Rows({}, {"a": value}, 2)) @ weights).sum().backward()
    step = 2.0**-10
    up, down = (made(at([0.3 + s, 0.7 + s])).double() @ weights.double() for s in (step, -step))
    assert torch.allclose(value.grad.double(), (up - down) / (2 * step), rtol=1e-3, atol=1e-3)


NORMAL_SPAN = 8.0


def normal_grid(points=801):
    unit = np.rint(np.linspace(0, 1, points) * 2**20) * TINY
    x = NORMAL_SPAN * (2 * unit - 1)
    weight = np.exp(-(x**2) / 2)
    return unit, x, weight / weight.sum()


def mean_error(feature_map, rho=1 / 3):
    """E|k(x, y) − ⟨φ(x), φ(y)⟩| for independent standard normal x and y, by the trapezoid rule."""
    unit, x, weight = normal_grid()
    kernel = np.exp(-rho / (1 - rho**2) * (x[:, None] - x[None]) ** 2)
    return weight @ np.abs(kernel - gram(feature_map, at(unit))) @ weight


@pytest.mark.parametrize("order", range(1, 11))
def test_the_hermite_error_on_normal_data_is_below_the_bound_of_the_paper(order):
    made = Hermite(("a",), order, 1 / 3, NORMAL_SPAN)
    assert mean_error(made) <= (1 / 3) ** order / (3 * sqrt(2)) + 5e-7


def test_two_hermite_orders_do_as_well_as_500_fourier_features():
    scale_of_x = sqrt(2 / 3) * sqrt(2)  # 1/(2l²) = ρ/(1−ρ²) = 3/8
    tries = [
        mean_error(fourier(["a"], 500, length_scale=scale_of_x / (2 * NORMAL_SPAN), seed=s))
        for s in range(3)
    ]
    assert mean_error(Hermite(("a",), 2, 1 / 3, NORMAL_SPAN)) <= np.mean(tries)


@pytest.mark.parametrize("rho", [0.1, 1 / 3, 0.7])
def test_mehlers_formula_holds_at_a_high_order(rho):
    unit = places(60, 1)
    x = 2.0 * (2 * unit - 1)
    exact = np.exp(-rho / (1 - rho**2) * (x[0][:, None] - x[0][None]) ** 2)
    assert np.abs(gram(Hermite(("a",), 100, rho), at(*unit)) - exact).max() < 2e-6


def test_the_length_scale_of_hermite_features_is_a_fraction_of_the_range():
    unit = places(60, 1)
    for length_scale, span in ((0.3, 2.0), (0.5, 1.0), (0.2, 3.0)):
        made = hermite(["a"], 100, length_scale=length_scale, span=span)
        assert np.abs(gram(made, at(*unit)) - gaussian(unit, (length_scale,))).max() < 1e-5


def test_the_sum_kernel_averages_over_the_columns():
    unit = places(30, 3)
    one = [gaussian(unit[[i]], (0.3,)) for i in range(3)]
    made = hermite(["a", "b", "c"], 80, length_scale=0.3)
    assert np.abs(gram(made, at(*unit)) - sum(one) / 3).max() < 1e-5


def test_the_hermite_norm_only_grows_with_the_order():
    unit = places(100, 1)
    norms = [
        Hermite(("a",), order, 0.6)(at(*unit)).double().norm(dim=1) for order in (0, 1, 5, 20, 200)
    ]
    for lower, higher in pairwise(norms):
        assert (higher >= lower - 1e-7).all()
    assert norms[-1].max() < 1 + 1e-6


@pytest.mark.parametrize("length_scale", [1e4, 1.0, 1e-2])
def test_rho_keeps_its_digits_at_any_length_scale(length_scale):
    getcontext().prec = 60
    a = 1 / (2 * Decimal(length_scale) ** 2)
    exact = ((1 + 4 * a * a).sqrt() - 1) / (2 * a)
    assert abs(Decimal(rho_of(length_scale)) / exact - 1) < Decimal("1e-14")
    assert 0 < rho_of(length_scale) < 1


@pytest.mark.parametrize("buckets", [2, 5, 64])
def test_race_collisions_match_the_rate(buckets):
    repetitions, widths = 20_000, (0.1, 0.25)
    made = race(["a", "b"], repetitions, buckets, width=widths, seed=5)
    x = places(12, 2)
    x[:, 1] = x[:, 0]
    x[:, 2] = x[:, 0] + np.array([0.01, -0.02]) * np.where(x[:, 0] < 0.5, 1, -1)
    x = np.rint(x * 2**20) * TINY
    cells = made.cells(at(*x)).numpy()
    apart = (x[:, 1:] - x[:, :1]) / np.asarray(widths)[:, None]
    rate = collision_rate(np.sqrt((apart**2).sum(axis=0)), buckets)
    found = (cells[1:] == cells[:1]).mean(axis=1)
    spread = np.sqrt(rate * (1 - rate) / repetitions)
    assert found[0] == 1
    assert (np.abs(found - rate) <= 6 * spread + 1e-4).all()


def test_the_collision_rate_is_a_probability_that_falls_to_one_in_buckets():
    apart = np.linspace(0, 40, 200)
    rate = collision_rate(apart, 6)
    assert rate[0] == pytest.approx(1, abs=1e-9)
    assert (np.diff(rate) <= 1e-9).all()
    assert rate[-1] == pytest.approx(1 / 6, abs=1e-6)


def test_the_race_kernel_is_its_collisions():
    made = race(["a"], 300, 8)
    rows = at(*places(20, 1))
    cells = made.cells(rows)
    assert np.array_equal(
        gram(made, rows), (cells[:, None] == cells[None]).sum(dim=2).double().numpy()
    )


def test_algebra_of_maps_is_algebra_of_kernels():
    rows = at(*places(25, 3))
    a = fourier(["a", "b"], 30)
    b = hermite(["c"], 6)
    c = hermite(["a"], 4)
    d = race(["b"], 5, 4)
    for one in (a, b, c, d):
        for two in (a, b, c, d):
            k, j = gram(one, rows), gram(two, rows)
            assert np.abs(gram(one + two, rows) - (k + j)).max() < 1e-5
            assert np.abs(gram(one * two, rows) - k * j).max() < 1e-5
    for weight in (0.3, 1.0, 2.0):
        assert np.abs(gram(scale(a, weight), rows) - weight**2 * gram(a, rows)).max() < 1e-5
        assert np.abs(gram(weight * (a + b), rows) - weight**2 * gram(a + b, rows)).max() < 1e-5


def test_the_seed_draws_the_same_features_for_ever():
    first, same, other = (fourier(["a"], 4, seed=s).frequencies for s in (0, 0, 1))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert fourier(["a"], 4).spec()["digest"] == "2c37bf2c24528c0d"


def test_a_gaussian_frequency_is_normal():
    turns = fourier(["a"], 20_000, length_scale=0.2).frequencies[0].numpy() * 2 * pi * 0.2
    assert abs(turns.mean()) < 5 / 100
    assert abs(turns.var() - 1) < 5 * sqrt(2) / 100
    assert abs((np.abs(turns) < 1).mean() - 0.682689) < 5 * 0.4655 / 100
    assert exp(-0.5) == pytest.approx(np.cos(turns).mean(), abs=0.04)


def test_cells_found_all_at_once_are_those_found_set_by_set(monkeypatch):
    sizes = {"a": 4, "b": 3, "c": 2, "d": 5, "e": 1}
    sets = [
        ("d",),
        ("a", "b"),
        ("c", "a"),
        ("e", "d"),
        ("a", "d", "c"),
        ("b",),
        ("d", "c", "b", "a"),
    ]
    rng = np.random.default_rng(2)
    codes = {
        name: torch.from_numpy(rng.integers(0, size, 50).astype(np.int32))
        for name, size in sizes.items()
    }
    rows = Rows(codes, {}, 50)
    for part in (marginals(sizes, sets), marginals(sizes, sets).merge({"a": (0, 1, 1, 0)})):
        one_by_one = part.cells(rows)
        monkeypatch.setattr(import_module("aquatint.features.marginals"), "MANY", 0)
        assert torch.equal(part.cells(rows), one_by_one)
        monkeypatch.undo()
        hot = torch.zeros(50, part.dim).scatter_(1, one_by_one.long(), 1.0)
        assert torch.equal(hot, part(rows))
