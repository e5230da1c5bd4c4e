"""How values lie inside a bin: exponential densities, tails, and a question's points over them.

Moments and shares are compared with sums over a fine grid; what is drawn, with what the formulas
say. Seeds are fixed; a statistical comparison would fail an honest run with another seed with
probability below 1e-6.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from aquatint.analyst.query.points import points_of
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.inside import (
    STEEPEST,
    moments_between,
    place_of,
    rates,
    share_below,
)
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.schema import Schema

ALARM = 1e-6
MOST = np.log((1 + STEEPEST) / (1 - STEEPEST))
RATES = st.floats(-1e6, 1e6)
SHARES = st.floats(0, 1)


def column_of(**spec):
    data = {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": {"a": spec}}
    return Schema.from_dict(data).columns["a"]


def drawn(column, mass, cell, count=20_000):
    schema = Schema.from_dict(
        {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": {"a": column}}
    )
    codes = {"a": np.full(count, cell)}
    return decode(schema, codes, np.random.default_rng(7), heights={"a": np.array(mass)})["a"]


def on_a_grid(rate, first, last, count=200_001):
    place = np.linspace(first, last, count)
    density = np.exp(rate * (place - (last if rate > 0 else first)))
    density[[0, -1]] /= 2  # the trapezium rule
    mean = (density * place).sum() / density.sum()
    return mean, (density * (place - mean) ** 2).sum() / density.sum()


# --- formulas -----------------------------------------------------------------------------------


@given(RATES, SHARES)
@settings(max_examples=500, deadline=None)
def test_places_and_shares_are_inverse(rate, share):
    rate, share = np.array([rate]), np.array([share])
    place = place_of(rate, share)
    assert 0 <= place[0] <= 1
    assert share_below(rate, place)[0] == pytest.approx(share[0], abs=1e-9)


@given(RATES, SHARES, SHARES)
@settings(max_examples=300, deadline=None)
def test_shares_rise_with_the_place(rate, one, other):
    both = np.sort([one, other])
    low, high = share_below(np.full(2, rate), both)
    assert -1e-12 <= low <= high + 1e-12 <= 1 + 2e-12


@pytest.mark.parametrize(
    "rate", [-5000.0, -200.0, -9.0, -1.0, -0.011, -0.009, 0.0, 0.02, 3.0, 60.0]
)
@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.25, 0.5), (0.9, 1.0)])
def test_moments_are_those_of_a_fine_grid(rate, ends):
    first, last = ends
    mean, variance = moments_between(*(np.array([x]) for x in (rate, first, last)))
    expected, spread = on_a_grid(rate, first, last)
    assert mean[0] == pytest.approx(expected, abs=1e-6)
    assert variance[0] == pytest.approx(spread, rel=1e-3, abs=1e-9)


@given(RATES, SHARES, SHARES)
@settings(max_examples=300, deadline=None)
def test_means_stay_between_their_places(rate, one, other):
    first, last = np.sort([one, other])
    mean, variance = moments_between(np.array([rate]), np.array([first]), np.array([last]))
    assert first - 1e-12 <= mean[0] <= last + 1e-12
    assert 0 <= variance[0] <= (last - first) ** 2 / 4 + 1e-12


# --- which rates --------------------------------------------------------------------------------


def test_even_densities_and_lone_bins_have_no_slope():
    left, right = np.array([0.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])
    assert rates(left, right, np.array([2.0, 1.0, 1.0])).tolist() == [0, 0, 0]
    assert rates(left, right, None).tolist() == [0, 0, 0]
    assert rates(left[:1], right[:1], np.array([5.0])).tolist() == [0]


def test_an_inner_bin_never_slopes_by_more_than_its_limit():
    left = np.arange(5.0)
    found = rates(left, left + 1, np.array([0.0, 1e-9, 1.0, 0.0, 5.0]))
    assert np.abs(found[1:-1]).max() == pytest.approx(MOST)


def test_a_tail_falls_as_from_the_bin_before_it():
    # Of an exponential distribution the first two bins tell the rest, however wide the last is.
    scale, edges = 3.0, np.array([0.0, 5.0, 10.0, 10_000.0])
    mass = -np.diff(np.exp(-edges / scale))
    found = rates(edges[:-1], edges[1:], mass)
    assert found[-1] == pytest.approx(-(10_000 - 10) / scale)
    mirrored = rates(-edges[:0:-1], -edges[-2::-1], mass[::-1])
    assert mirrored[0] == pytest.approx(-found[-1])


def test_a_last_bin_that_is_denser_than_its_neighbour_is_no_tail():
    left = np.arange(3.0)
    assert 0 < rates(left, left + 1, np.array([5.0, 0.0, 1.0]))[-1] <= MOST


# --- values and questions -----------------------------------------------------------------------

SKEWED = {"kind": "numeric", "bounds": [0, 10**6], "bins": [0, 5, 10, 10**6]}
COUNTED = {"kind": "integer", "bounds": [0, 10**6], "bins": [0, 5, 10, 10**6]}
MASS = [5.0, 3.0, 2.0]


def test_values_of_a_far_too_wide_last_bin_stay_near():
    found = drawn(SKEWED, MASS, 2)
    assert found.between(10, 10**6).all()
    assert stats.kstest(found - 10, "expon", (0, 5 / np.log1p(3 / 2))).pvalue > ALARM


@pytest.mark.parametrize("column", [SKEWED, COUNTED])
@pytest.mark.parametrize("cell", [0, 1, 2])
def test_a_question_has_the_moments_of_what_is_drawn(column, cell):
    points = points_of(column_of(**column), mass=np.array(MASS))
    own = points.cell == cell
    mean = (points.share * points.values)[own].sum()
    second = (points.share * points.values**2)[own].sum()
    found = drawn(column, MASS, cell, 100_000).to_numpy().astype(float)
    for power, expected in ((1, mean), (2, second)):
        error = (found**power).std() / len(found) ** 0.5
        assert abs((found**power).mean() - expected) < 5 * error


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.lists(st.integers(0, 100), max_size=4),
    st.sampled_from(["integer", "numeric"]),
)
@settings(max_examples=300, deadline=None)
def test_points_lie_where_their_pieces_are(mass, cuts, kind):
    """A point that rounding carried over a cut would answer for the wrong side of it."""
    column = column_of(kind=kind, bounds=[0, 100], bins=[0, 5, 10, 100])
    points = points_of(column, cuts=map(float, cuts), mass=np.array(mass))
    edges, whole = [0, 5, 10, 100 + (kind == "integer")], kind == "integer"
    for cell in range(3):
        own = points.values[points.cell == cell]
        assert own.min() >= edges[cell]
        assert own.max() <= edges[cell + 1] - whole
    if not whole:
        assert not np.isin(points.values, [*cuts, 5, 10]).any()
    assert np.bincount(points.cell, points.share) == pytest.approx(np.ones(3))
    if whole:
        assert not ((points.values % 1 != 0) & np.isin(np.floor(points.values), cuts)).any()


def test_a_question_for_a_single_number_counts_it():
    column = column_of(kind="integer", bounds=[1, 99], bins=[1, 38, 41, 99])
    points = points_of(column, cuts=[40.0], mass=np.array([0.1, 0.5, 0.4]))
    own = (points.cell == 1) & (points.values >= 40) & (points.values <= 40)
    assert points.share[own].sum() == pytest.approx(1 / 3, abs=0.05)


def test_a_question_cuts_a_tail_where_it_asks():
    points = points_of(column_of(**COUNTED), cuts=[12.0, 30.0], mass=np.array(MASS))
    found = drawn(COUNTED, MASS, 2, 100_000)
    own = points.cell == 2
    for cut in (12, 30):
        share = points.share[own & (points.values < cut)].sum()
        error = (share * (1 - share) / len(found)) ** 0.5
        assert abs((found < cut).mean() - share) < 5 * error
    assert points.share[own].sum() == pytest.approx(1)


def test_a_condition_deep_in_a_tail_still_draws_there():
    schema = Schema.from_dict(
        {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": {"a": SKEWED}}
    )
    made = decode(
        schema,
        {"a": np.full(500, 2)},
        np.random.default_rng(1),
        heights={"a": np.array(MASS)},
        limits={"a": (9e5, 9.5e5)},
    )
    assert isinstance(made, pd.DataFrame)
    assert made["a"].between(9e5, 9.5e5).all()
    assert made["a"].nunique() > 400


@pytest.mark.parametrize("column", [SKEWED, COUNTED])
@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("a > 14", lambda a: a > 14),
        ("a between 3 and 12", lambda a: (a >= 3) & (a <= 12)),
        ("a <= 2", lambda a: a <= 2),
    ],
)
def test_conditional_rows_are_those_of_all_rows_that_meet_the_condition(column, where, met):
    columns = {"a": column, "g": {"kind": "categorical", "categories": ["x", "y"]}}
    data = {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    cells = {"a": np.arange(3), "g": np.arange(2)}
    atoms = Atoms(cells, {name: np.ones(len(cell)) for name, cell in cells.items()})
    chances = np.array([[0.6, 0.3, 0.1, 1.0, 0.0], [0.2, 0.2, 0.6, 0.0, 1.0]])
    model = Mixture(Schema.from_dict(data), atoms, np.array([0.7, 0.3]), chances)
    every = model.sample(200_000, seed=1)
    every = every[met(every["a"])]
    some = model.sample(50_000, where=where, seed=2)
    assert met(some["a"]).all()
    assert stats.ks_2samp(every["a"], some["a"]).pvalue > ALARM
    shares = [(part["g"] == "x").mean() for part in (every, some)]
    error = (shares[0] * (1 - shares[0]) * (1 / len(every) + 1 / len(some))) ** 0.5
    assert abs(shares[0] - shares[1]) < 5 * error
