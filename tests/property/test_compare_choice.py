"""Searches for a violation of what a private choice of features rests on: the score's sensitivity,
and the split. At the end the whole law of choice and decision is computed for tiny datasets."""

from itertools import combinations, product
from math import comb

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, laplace

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.curator.compare import choice, permutation, splitting
from aquatint.curator.compare.choice import UNIT, Choice, all_columns
from aquatint.curator.compare.samples import open_samples
from aquatint.curator.noise import coins
from aquatint.features import concat, fourier, locations, onehot, scale

SWAP, ROW = "replace one row", "add or remove one row"
CIRCLE = fourier(["x"], 2, length_scale=0.03, seed=3)
MAPS = (
    CIRCLE,
    concat(scale(CIRCLE, 0.7), scale(onehot({"c": 3}), 0.4)),
    locations(["x"], [(0.0,), (1.0,)], cells={}, length_scale=0.05),
)
TWO = (CIRCLE, fourier(["x"], 2, length_scale=0.1, seed=1))
PLACES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1)
ONE = st.tuples(PLACES, st.sampled_from("abd"))
SIDE = st.lists(ONE, min_size=1, max_size=8)
TIMES = st.sampled_from([1, 1, 1, 5, 40])


def schema_of(protects):
    columns = {
        "x": {"kind": "numeric", "bounds": [0, 1]},
        "c": {"kind": "categorical", "categories": ["a", "b", "d"]},
    }
    return aq.Schema.from_dict(
        {"name": "points", "privacy": {"protects": protects}, "columns": columns}
    )


def samples_of(first, second, protects, maps=MAPS):
    tables = [
        pa.table({"x": pa.array([x for x, _ in rows]), "c": pa.array([c for _, c in rows])})
        for rows in (first, second)
    ]
    return open_samples(tuple(tables), schema_of(protects), all_columns(maps))


def scores(first, second, protects, maps=MAPS):
    """With a seed for the labels: where sizes are the same, the labellings are."""
    chooser = Choice(samples_of(first, second, protects, maps), maps, 1.0, coins(7))
    return chooser.exact(progress=False)[0]


# --- the score ----------------------------------------------------------------------------------


@given(first=SIDE, second=SIDE, new=ONE, place=st.integers(0, 15), times=TIMES, more=TIMES)
def test_a_replaced_row_moves_no_score_by_more_than_a_unit(first, second, new, place, times, more):
    first, second = first * times, second * more
    changed = [*first, *second]
    changed[place % len(changed)] = new
    before = scores(first, second, SWAP)
    after = scores(changed[: len(first)], changed[len(first) :], SWAP)
    assert np.abs(before - after).max() <= UNIT


def values_of(rows, labellings):
    """The statistics of integer rows for the true labels, which are the first, and others."""
    everyone = rows.sum(axis=0).tolist()
    found = []
    for taken in labellings:
        sizes = (len(taken), len(rows) - len(taken))
        found.append(permutation.distance(rows[list(taken)].sum(axis=0).tolist(), everyone, sizes))
    return np.array(found)


@pytest.mark.parametrize("place", range(len(MAPS)))
@given(
    first=SIDE,
    second=SIDE,
    new=ONE,
    times=TIMES,
    more=TIMES,
    seed=st.integers(0, 2**32),
)
def test_an_added_row_moves_no_score_by_more_under_the_coupling_of_the_proof(
    place, first, second, new, times, more, seed
):
    """The new row goes to the first sample; U is the same with both samples swapped."""
    first, second = first * times, second * more
    samples = samples_of([*first, new], second, ROW).seen_by(MAPS[place])
    sides = [np.vstack([samples.coarse.integers(r) for r in samples.rows(i)]) for i in (0, 1)]
    rows = np.vstack([sides[0][:-1], sides[1], sides[0][-1:]]).astype(np.int64)
    count, size, rng = len(rows) - 1, len(first), np.random.default_rng(seed)
    before, after = [tuple(range(size))], [(*range(size), count)]
    for _ in range(choice.LABELLINGS):
        taken = rng.permutation(count)
        before.append(tuple(taken[:size]))
        extra = count if rng.random() < (size + 1) / (count + 1) else int(rng.choice(taken[size:]))
        after.append((*taken[:size], extra))
    moved = choice.above(values_of(rows[:-1], before)) - choice.above(values_of(rows, after))
    assert abs(moved) <= 2 * permutation.sensitivity(samples)


def test_the_unit_is_attained():
    """One more row of the first sample goes to the far side of the circle, where the others of it
    are: T₀ rises by Δ, and the others fall by it. A sensitivity a tenth smaller would be caught."""
    far = (0.5 / abs(float(CIRCLE.frequencies[0, 0])), "a")
    here = (0.0, "a")
    moved = [
        scores([*[here] * (19 - a), *[far] * (a + 1)], [here] * 20, SWAP, TWO)[0]
        - scores([*[here] * (20 - a), *[far] * a], [here] * 20, SWAP, TWO)[0]
        for a in range(20)
    ]
    assert 0.9 * UNIT < max(moved) <= UNIT


def test_a_score_is_the_distance_to_the_fifth_largest_of_the_others():
    assert choice.above(np.array([50, *range(99)])) == 50 - 94


# --- the split ----------------------------------------------------------------------------------


@pytest.mark.parametrize("protects", [SWAP, ROW])
def test_every_row_is_in_one_part_and_public_sizes_give_public_parts(protects):
    samples = samples_of([(0.1, "a")] * 100, [(0.6, "b")] * 31, protects)
    to_choose, to_test = splitting.split(samples, coins())
    for first, second in zip(to_choose.kept, to_test.kept, strict=True):
        assert (first != second).all()
    assert sum(to_choose.sizes) + sum(to_test.sizes) == 131
    if protects == SWAP:
        assert to_choose.sizes == (33, 10)
        assert to_test.sizes == (67, 21)
    for part in (to_choose, to_test):
        assert [sum(map(len, part.rows(side))) for side in (0, 1)] == list(part.sizes)


def test_the_split_has_the_law_of_the_proof():
    """Two χ² statistics, with 14 and 15 degrees of freedom; 70 has a chance below 1e-8."""
    draws = 20_000
    fixed = [splitting._so_many(6, coins()) for _ in range(draws)]
    _, counts = np.unique(fixed, axis=0, return_counts=True)
    assert len(counts) == comb(6, 2)
    even = draws / comb(6, 2)
    assert ((counts - even) ** 2 / even).sum() < 70
    marks = splitting._each_by_itself(4 * draws, coins()).reshape(draws, 4)
    codes = np.bincount(marks @ (1 << np.arange(4)), minlength=16)
    rate = 85 / 256
    heads = np.array([bin(code).count("1") for code in range(16)])
    expected = draws * rate**heads * (1 - rate) ** (4 - heads)
    assert ((codes - expected) ** 2 / expected).sum() < 70


# --- the law of the whole answer ----------------------------------------------------------------

EPSILON = 1.0
GRID = laplace.ppf((np.arange(2000) + 0.5) / 2000)


def splits(samples):
    """All splits of both sides with their probabilities, as `splitting` says."""
    sides = []
    for size in samples.sizes:
        if samples.schema.privacy.replaces:
            taken = list(combinations(range(size), size // splitting.PARTS))
            sides.append([(np.isin(range(size), some), 1 / len(taken)) for some in taken])
        else:
            coin = 85 / 256
            marks = [np.array(bits, dtype=bool) for bits in product((0, 1), repeat=size)]
            sides.append([(m, coin ** m.sum() * (1 - coin) ** (~m).sum()) for m in marks])
    return [((a, b), p * q) for (a, p), (b, q) in product(*sides)]


def distances(samples):
    """The statistic of every labelling, that of the data first."""
    tiles = [samples.coarse.integers(r) for side in (0, 1) for r in samples.rows(side)]
    rows = np.vstack([np.zeros((0, samples.coarse.map.dim)), *tiles]).astype(np.int64)
    return values_of(rows, combinations(range(len(rows)), samples.sizes[0]))


def score_law(samples):
    """The scores that labels dealt out anew may give, with their probabilities."""
    found = distances(samples)
    levels = np.unique(found)
    above = (found[None] > levels[:, None]).mean(axis=1)
    below = binom.cdf(choice.LARGEST - 1, choice.LABELLINGS, above)  # P[k-th largest ≤ level]
    unit = 2 * permutation.sensitivity(samples)
    return (found[0] - levels) * UNIT // unit, np.diff(below, prepend=0.0)


def rejection(samples, epsilon):
    """The chance that T₀ + Z₀ exceeds two others, over all labellings: its square is for two."""
    trial = permutation.Permutation(samples, Budget(epsilon, 0), 0.34, 2, coins())
    found = distances(samples)
    above = (found[0] - found) / trial.noised[0].scale
    return float((laplace.cdf(GRID[:, None] + above).mean(axis=1) ** 2).mean())


def law(first, second, protects, noise_for=EPSILON):
    """Give P[candidate, decision], shape (2, 2), from the statistics and noise of the code."""
    samples = samples_of([(x, "a") for x in first], [(x, "a") for x in second], protects, TWO)
    total = np.zeros((2, 2))
    for marks, probability in splits(samples):
        to_choose = samples.only(marks)
        scale = Choice(to_choose, TWO, noise_for, coins()).noised.scale
        (one, p), (other, q) = (score_law(to_choose.seen_by(each)) for each in TWO)
        ahead = float(p @ laplace.cdf((one[:, None] - other) / scale) @ q)
        to_test = samples.only(tuple(~each for each in marks))
        for place, chance in ((0, ahead), (1, 1 - ahead)):
            rejects = rejection(to_test.seen_by(TWO[place]), noise_for)
            total[place] += probability * chance * np.array([1 - rejects, rejects])
    return total


def apart(before, after):
    return float(np.abs(np.log(before / after)).max())


FEW = st.lists(PLACES, min_size=1, max_size=2)


@settings(max_examples=8, deadline=None)
@given(first=FEW, second=FEW, new=PLACES)
def test_an_added_row_changes_no_outcome_by_more_than_epsilon(first, second, new):
    before, after = law(first, second, ROW), law([*first, new], second, ROW)
    assert before.sum() == pytest.approx(1)
    assert apart(before, after) <= EPSILON


@settings(max_examples=8, deadline=None)
@given(rows=st.lists(PLACES, min_size=6, max_size=6), new=PLACES, place=st.integers(0, 5))
def test_a_replaced_row_changes_no_outcome_by_more_than_epsilon(rows, new, place):
    changed = [*rows[:place], new, *rows[place + 1 :]]
    before, after = law(rows[:3], rows[3:], SWAP), law(changed[:3], changed[3:], SWAP)
    assert apart(before, after) <= EPSILON


def test_noise_that_is_far_too_small_is_noticed():
    """The audit is not idle: a planted fault, noise for ε = 6, breaks the promise of ε = 1."""
    far = 0.5 / abs(float(CIRCLE.frequencies[0, 0]))
    pairs = ([far] * 5, [0.0] * 5), ([0.0, *[far] * 4], [0.0] * 5)
    honest, faulty = (
        apart(*(law(*rows, SWAP, noise_for=each) for rows in pairs)) for each in (1.0, 6.0)
    )
    assert 0.2 < honest <= EPSILON < faulty


def test_the_code_has_the_law_that_was_computed():
    """χ² with 3 degrees of freedom exceeds 40 with a chance of 1e-8; real noise, real coins."""
    first, second = [0.0, 0.0, 0.0], [0.4, 0.1, 0.2]
    tables = [pa.table({"x": side, "c": ["a"] * 3}) for side in (first, second)]
    expected = 500 * law(first, second, SWAP, noise_for=8.0)
    counts = np.zeros((2, 2))
    options = {"alpha": 0.34, "permutations": 2, "choose_from": TWO, "progress": False}
    for _ in range(500):
        found = aq.compare_private(*tables, schema_of(SWAP), epsilon=8, delta=0, **options)
        counts[int("candidate 2 of 2" in found.method), int(found.reject)] += 1
    assert ((counts - expected) ** 2 / expected).sum() < 40
    assert expected.min() > 5
