"""Searches for a violation of every sensitivity that a private comparison uses, and the published
bounds that are violated by explicit data (Raj et al. 2019)."""

from itertools import combinations
from math import isqrt, sqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.curator.compare import permutation, roots, tcmc
from aquatint.curator.compare.samples import CoarseMap, open_samples
from aquatint.curator.noise import coins
from aquatint.curator.sketch import accumulate
from aquatint.features import concat, fourier, locations, onehot, scale, smooth
from aquatint.features.grid import sensitivity

SWAP, ROW = "replace one row", "add or remove one row"
PLACES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1)
CIRCLE = fourier(["x"], 2, length_scale=0.03, seed=3)


def schema_of(protects):
    columns = {
        "x": {"kind": "numeric", "bounds": [0, 1]},
        "c": {"kind": "categorical", "categories": ["a", "b", "d"]},
    }
    return aq.Schema.from_dict(
        {"name": "points", "privacy": {"protects": protects}, "columns": columns}
    )


MAPS = {
    "a circle": CIRCLE,
    "several leaves": concat(scale(CIRCLE, 0.7), scale(onehot({"c": 3}), 0.4)),
    "locations": locations(["x"], [(0.0,), (1.0,)], cells={}, length_scale=0.05),
}


def table(rows):
    return pa.table({"x": pa.array([x for x, _ in rows]), "c": pa.array([c for _, c in rows])})


def samples_of(first, second, feature_map, protects=SWAP):
    return open_samples((table(first), table(second)), schema_of(protects), feature_map)


ROWS = st.lists(st.tuples(PLACES, st.sampled_from("abd")), min_size=1, max_size=6)
ONE = st.tuples(PLACES, st.sampled_from("abd"))


# --- the permutation test -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MAPS)
@given(first=ROWS, second=ROWS, new=ONE, place=st.integers(0, 11))
def test_a_replaced_row_moves_no_statistic_by_more_than_declared(name, first, second, new, place):
    everyone = [*first, *second]
    place %= len(everyone)
    changed = [*everyone[:place], new, *everyone[place + 1 :]]
    before = samples_of(first, second, MAPS[name])
    after = samples_of(changed[: len(first)], changed[len(first) :], MAPS[name])
    # The same seed deals the same labels: the bound holds for every fixed labelling.
    found = [permutation.statistics(each, 20, coins(7)) for each in (before, after)]
    assert np.abs(found[0] - found[1]).max() <= permutation.sensitivity(before)


def exact_statistic(rows, labelled):
    """The statistic by its definition, in the units of `permutation.statistics`, unrounded."""
    whole = np.asarray(rows, dtype=np.float64)
    mean = whole.sum(axis=0) * len(labelled) / len(whole)
    return np.linalg.norm(whole[list(labelled)].sum(axis=0) - mean) * 2**permutation.SHIFT


@pytest.mark.parametrize("name", MAPS)
@given(first=ROWS.map(lambda r: r[:3]), second=ROWS.map(lambda r: r[:3]), new=ONE)
def test_an_added_row_moves_no_statistic_of_a_coupled_labelling_by_more(name, first, second, new):
    """All labellings are enumerated, and dealt as the proof in `permutation` says."""
    coarse = CoarseMap(MAPS[name])
    both = samples_of([*first, *second, new], [new], MAPS[name], ROW)
    rows = coarse.integers(next(both.rows(0)))
    limit = permutation.sensitivity(both)
    count, size = len(rows) - 1, len(first)
    dealt = dict.fromkeys(combinations(range(count + 1), size + 1), 0.0)
    total = 0.0
    for before in combinations(range(count), size):
        was = exact_statistic(rows[:count], before)
        others = [j for j in range(count) if j not in before]
        chance = (size + 1) / (count + 1)
        coupled = [((*before, count), chance)]
        coupled += [(tuple(sorted((*before, j))), (1 - chance) / len(others)) for j in others]
        for after, probability in coupled:
            assert abs(exact_statistic(rows, after) - was) <= limit
            dealt[after] += probability
            total += probability
    uniform = total / len(dealt)
    assert all(abs(found - uniform) < 1e-9 * total for found in dealt.values())


def test_the_bounds_of_the_permutation_test_are_nearly_attained():
    """A bound half as large would be caught: two rows at opposite ends of the circle."""
    apart = 0.5 / abs(float(CIRCLE.frequencies[0, 0]))
    here, there = (0.0, "a"), (apart, "a")
    before = samples_of([here] * 5, [here] * 5, CIRCLE)
    after = samples_of([there, *[here] * 4], [here] * 5, CIRCLE)
    moved = permutation.statistics(after, 0, coins())[0] - permutation.statistics(
        before, 0, coins()
    )
    assert moved[0] > 0.98 * permutation.sensitivity(before)


def test_a_statistic_is_that_of_its_definition():
    rng = np.random.default_rng(5)
    first, second = ([(float(x), "a") for x in rng.random(size)] for size in (30, 17))
    samples = samples_of(first, second, CIRCLE)
    rows = np.vstack([samples.coarse.integers(r) for side in (0, 1) for r in samples.rows(side)])
    expected = exact_statistic(rows, range(30))
    found = permutation.statistics(samples, 3, coins())
    assert abs(found[0] - expected) <= sqrt(2) + 1
    gap = abs(rows[:30].mean(axis=0) - rows[30:].mean(axis=0))
    assert expected == pytest.approx(np.linalg.norm(gap) * 30 * 17 / 47 * 256)


# --- the root of q ------------------------------------------------------------------------------


def root_q(pairs, gamma):
    mean = pairs.mean(axis=0)
    moments = pairs.T @ pairs / len(pairs)
    return sqrt(mean @ np.linalg.solve(moments + gamma * np.eye(len(mean)), mean))


def ball(rng, size, features):
    """Points of the unit ball, many on its rim."""
    points = rng.standard_normal((size, features))
    length = np.where(rng.random(size) < 0.5, 1.0, rng.random(size))
    return points * (length / np.linalg.norm(points, axis=1))[:, None]


@pytest.mark.parametrize("ridge", [0.002, 0.01, 0.06, 0.3, 1.0])
@pytest.mark.parametrize("features", [1, 2, 4])
def test_no_record_moves_the_root_by_more_than_the_theorem_says(ridge, features):
    """Random pairs, then those with the largest moves are changed further to find a larger one."""
    rng = np.random.default_rng([features, int(1000 * ridge)])
    limit, best = roots.root_bound(ridge), 0.0
    for _ in range(300):
        rows = int(rng.integers(1, 12))
        pairs = ball(rng, rows, features)
        if rng.random() < 0.5:
            pairs[1:] = pairs[:1] * rng.choice([1.0, 0.9, -0.2])
        for _ in range(20):
            after = pairs.copy()
            step = ball(rng, 1, features)[0]
            after[0] = pairs[0] + step
            after[0] /= max(1.0, np.linalg.norm(after[0]))
            moved = rows * abs(root_q(after, ridge) - root_q(pairs, ridge))
            assert moved <= limit
            if moved > best:
                best, pairs = moved, after
    assert best > 0.1 * min(limit, 12)  # the search is not idle; no root moves by more than 1


def test_the_bound_on_the_root_is_met_by_the_integers_that_get_noise():
    rng = np.random.default_rng(8)
    places = rng.random((2, 40))
    before = samples_of(*([(float(x), "a") for x in side] for side in places), CIRCLE)
    kept = roots.pairs_of(before, coins(1))
    limit = roots.sensitivity(40, 0.06, 2)
    for other in np.linspace(0, 1, 50):
        places[0, 3] = other
        after = samples_of(*([(float(x), "a") for x in side] for side in places), CIRCLE)
        pairs = roots.pairs_of(after, coins(1))
        signs = rng.choice([-1.0, 1.0], (30, 40))
        signs[0] = 1.0
        found = [roots.roots(z, signs @ z, before, 0.06) for z in (kept, pairs)]
        assert np.abs(found[0] - found[1]).max() <= limit


def test_theorem_1_of_the_paper_is_false_and_ours_is_not():
    """J = 1, n = 10⁴, γ = 10⁻³: all z = 1 against one z = −1, and against one z = 0."""
    rows, gamma, kappa = 10_000, 1e-3, 2
    claimed = 4 * kappa**2 / (rows * gamma) * (1 + kappa**2 / (rows - 1))

    def published(pairs):  # s/n of eq. 1, with its centred covariance
        return pairs.mean() ** 2 / (pairs.var(ddof=1) + gamma)

    same = np.ones(rows)
    for new, by_far in ((-1.0, 286), (0.0, 91)):
        other = same.copy()
        other[0] = new
        assert abs(published(same) - published(other)) == pytest.approx(by_far, rel=0.01)
        assert abs(published(same) - published(other)) > 50 * claimed
        moved = abs(root_q(same[:, None], gamma) - root_q(other[:, None], gamma))
        assert moved <= roots.root_bound(gamma) / rows


# --- means and covariances ----------------------------------------------------------------------


@pytest.mark.parametrize("protects", [SWAP, ROW])
@pytest.mark.parametrize("name", ["a circle", "locations"])
@settings(max_examples=40)
@given(first=ROWS, second=ROWS, new=ONE, place=st.integers(0, 11))
def test_one_row_moves_what_tcmc_releases_by_no_more(protects, name, first, second, new, place):
    feature_map, replaces = MAPS[name], protects == SWAP
    trial = tcmc.MeanAndCovariance(
        (None, None), schema_of(protects), feature_map, (1, 1), Budget(1, 1e-6), 0.01
    )
    if replaces:
        everyone = [*first, *second]
        place %= len(everyone)
        everyone[place] = new
        others = everyone[: len(first)], everyone[len(first) :]
    else:
        others = ([*first, new], second) if place % 2 else (first, [*second, new])
    before, after = (
        [accumulate(table(side), trial.plan) for side in pair] for pair in ((first, second), others)
    )
    moved = tcmc.difference(*after) - tcmc.difference(*before)
    sizes = (len(first), len(second))
    limit = tcmc.difference_sensitivity(feature_map, sizes, replaces=replaces)
    assert isqrt(int((moved**2).sum())) <= limit
    for block in (0, 1):
        pooled = [sum(side.totals[block].numpy() for side in pair) for pair in (before, after)]
        l2_squared, _ = sensitivity(trial.plan.blocks[block].map, trial.schema.privacy)
        assert int(((pooled[0] - pooled[1]) ** 2).sum()) <= l2_squared


def test_the_published_covariance_noise_is_too_small_for_smoothed_features():
    """The code of the paper takes J/(n − 1) for J features with g ≤ 1; one record moves 2J/n."""
    features, rows = 4, 1000
    wave = smooth(["x"], [(1.0,), (2.0,)], width=100.0)
    units = sqrt(features / 2)  # from ours, of norm one, to the paper's
    phi = units * wave(next(samples_of([(0.0, "a")], [(0.5, "a")], wave).rows(0))).numpy()[0]
    z = 2 * phi  # x at 0 where φ = φ(x), y where φ is the opposite; then y becomes x: z = 0
    moved = np.linalg.norm(np.outer(z, z)) / rows
    assert moved > 1.9 * features / (rows - 1)
    assert np.linalg.norm(phi) == pytest.approx(units, rel=1e-3)


def test_the_published_mean_noise_is_too_small_for_smoothed_features():
    """One record moves the mean by √(2J)/n, where the code has √J/n."""
    wave = smooth(["x"], [(1.0,)], width=10.0)
    rows = next(samples_of([(0.0, "a"), (0.5, "a")], [(0.0, "a")], wave).rows(0))
    here, there = sqrt(2 / 2) * wave(rows).numpy()
    assert np.linalg.norm(here - there) > 1.4 * sqrt(2)
    assert np.linalg.norm(here - there) <= sqrt(float(wave.bound.replace_l2_squared))


def test_a_coarse_map_keeps_its_rows_within_the_distance_that_is_declared():
    rng = np.random.default_rng(2)
    rows = [(float(x), "abd"[i % 3]) for i, x in enumerate(rng.random(300))]
    for feature_map in MAPS.values():
        samples = samples_of(rows, rows, feature_map)
        whole = samples.coarse.integers(next(samples.rows(0))).astype(np.float64)
        assert np.abs(whole).max() <= 2**11
        assert np.array_equal(whole, np.rint(whole))
        apart = ((whole[:, None] - whole[None]) ** 2).sum(axis=2).max()
        assert apart <= samples.coarse.distance_squared
