"""Drawing with as little chance as possible: shares up to one row, and columns still independent.

Statistical tests use fixed seeds; with another seed an honest run fails with probability below 1e-6
each. The planted faults at the end show that they would notice.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from aquatint.analyst.synthesize import draw

ALARM = 1e-6
SIGMAS = stats.norm.isf(ALARM / 2)
share = st.floats(0, 1).map(lambda v: 0.0 if v < 1e-6 else v)
seeds = st.integers(0, 2**32)
quick = settings(max_examples=200, deadline=None)


def table_of(rows, columns):
    """Rows of shares, some of them zero, none of the rows empty."""
    return arrays.arrays(np.float64, (rows, columns), elements=share).map(
        lambda p: p + (p.sum(1, keepdims=True) == 0)
    )


def within_one(counts, expected):
    return (np.abs(counts - expected) <= 1 + 1e-6).all()


# --- shares -------------------------------------------------------------------------------------


@quick
@given(table_of(1, 9), st.integers(0, 500), seeds)
def test_components_get_their_share_up_to_one_row(weights, count, seed):
    weights = weights[0]
    found = draw.components(weights, count, np.random.default_rng(seed))
    assert len(found) == count
    assert (np.diff(found) >= 0).all()
    counts = np.bincount(found, minlength=9)
    assert within_one(counts, count * weights / weights.sum())
    assert not counts[weights == 0].any()


@quick
@given(table_of(4, 6), st.lists(st.integers(0, 60), min_size=4, max_size=4), seeds)
def test_atoms_get_their_share_of_every_component_up_to_one_row(probabilities, sizes, seed):
    component = np.repeat(np.arange(4), sizes)
    found = draw.choose(probabilities, component, np.random.default_rng(seed))
    for place, size in enumerate(sizes):
        counts = np.bincount(found[component == place], minlength=6)
        wanted = probabilities[place] / probabilities[place].sum()
        assert counts.sum() == size
        assert within_one(counts, size * wanted)
        assert not counts[wanted == 0].any()


@quick
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=9),
    arrays.arrays(np.float64, 9, elements=share),
    st.integers(0, 200),
    seeds,
)
def test_cells_get_their_share_of_every_atom_up_to_one_row(groups, weights, count, seed):
    of_cell = np.unique(groups, return_inverse=True)[1]  # numbered without gaps
    weights = weights[: len(of_cell)]
    atoms = int(of_cell.max()) + 1
    sums = np.bincount(of_cell, weights=weights, minlength=atoms)
    within = np.where(sums[of_cell] > 0, weights / np.maximum(sums, 1e-300)[of_cell], 0.0)
    full = np.nonzero(sums > 0)[0]
    if not len(full):
        return
    rng = np.random.default_rng(seed)
    atom = rng.choice(full, count)
    found = draw.divide(atom, of_cell, within, rng)
    assert (of_cell[found] == atom).all()
    wanted = np.bincount(atom, minlength=atoms)[of_cell] * within
    counts = np.bincount(found, minlength=len(of_cell))
    if atoms < len(of_cell):  # where every cell is an atom there is nothing to choose
        assert not counts[within == 0].any()
        assert within_one(counts, wanted)


def test_many_components_do_not_blur_the_thresholds():
    component = np.repeat(np.arange(3000), 50)
    probabilities = np.tile([0.02, 0.0, 0.5, 0.48, 0.0], (3000, 1))
    found = draw.choose(probabilities, component, np.random.default_rng(0))
    counts = np.zeros((3000, 5), dtype=int)
    np.add.at(counts, (component, found), 1)
    assert within_one(counts, 50 * probabilities)
    assert not counts[:, [1, 4]].any()


def test_rows_of_a_component_need_not_stand_together():
    component = np.random.default_rng(1).permutation(np.repeat([0, 1], 500))
    probabilities = np.array([[0.1, 0.9], [0.7, 0.3]])
    found = draw.choose(probabilities, component, np.random.default_rng(2))
    assert within_one(np.bincount(found[component == 0]), 500 * probabilities[0])
    assert within_one(np.bincount(found[component == 1]), 500 * probabilities[1])


def test_points_are_evenly_spaced_in_each_component():
    component = np.repeat([0, 2], [5, 8])
    points = draw.shuffled_points(component, 3, np.random.default_rng(3))
    for place, size in ((0, 5), (2, 8)):
        gaps = np.diff(np.sort(points[component == place]))
        assert gaps == pytest.approx(np.full(size - 1, 1 / size))
    assert ((points >= 0) & (points < 1)).all()


# --- expectations stay --------------------------------------------------------------------------


def test_the_expected_number_of_rows_is_exact_whatever_the_rounding():
    weights, count, runs = np.array([0.05, 0.6, 0.23, 0.12]), 3, 4000
    rng = np.random.default_rng(4)
    total = sum(np.bincount(draw.components(weights, count, rng), minlength=4) for _ in range(runs))
    # A share that falls between two whole numbers is one of them: variance f·(1 − f) ≤ 1/4.
    assert (np.abs(total - runs * count * weights) < SIGMAS * np.sqrt(runs / 4)).all()


def test_every_row_of_a_component_has_the_same_chances():
    probabilities, runs = np.array([[0.05, 0.6, 0.35]]), 4000
    rng = np.random.default_rng(5)
    component = np.zeros(4, dtype=int)
    seen = np.array([draw.choose(probabilities, component, rng) for _ in range(runs)])
    for row in range(4):
        counts = np.bincount(seen[:, row], minlength=3)
        assert stats.chisquare(counts, runs * probabilities[0]).pvalue > ALARM


def test_every_row_of_an_atom_has_the_same_chances():
    of_cell, within, runs = np.array([0, 0, 0, 1]), np.array([0.1, 0.55, 0.35, 1]), 4000
    rng = np.random.default_rng(6)
    atom = np.array([0, 1, 0, 0])
    seen = np.array([draw.divide(atom, of_cell, within, rng) for _ in range(runs)])
    assert (seen[:, 1] == 3).all()
    for row in (0, 2, 3):
        counts = np.bincount(seen[:, row], minlength=3)
        assert stats.chisquare(counts, runs * within[:3]).pvalue > ALARM


# --- independence -------------------------------------------------------------------------------


def dependence(rng, rows=6000):
    """Give the smallest p-value of independence over components, for two columns drawn in turn."""
    component = np.repeat([0, 1, 2], rows // 3)
    first = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    second = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.1, 0.4, 0.4, 0.1]])
    one, two = (draw.choose(p, component, rng) for p in (first, second))
    cell = draw.divide(two % 2, np.array([0, 0, 1, 1]), np.array([0.3, 0.7, 0.5, 0.5]), rng)
    found = [1.0]
    for place in range(3):
        here = component == place
        for other in (two, cell):
            joint = np.zeros((3, 4))
            np.add.at(joint, (one[here], other[here]), 1)
            found.append(stats.chi2_contingency(joint[:, joint.sum(0) > 0]).pvalue)
    return min(found)


def test_columns_are_independent_within_a_component():
    # 20 seeds, six tables each: a false alarm in 120·1e-8 of honest runs
    assert min(dependence(np.random.default_rng(seed)) for seed in range(20)) > 1e-8


def test_cells_are_independent_of_other_columns_given_the_atom():
    rng = np.random.default_rng(7)
    atom = np.repeat([0, 1], 3000)
    other = np.tile([0, 1, 2], 2000)
    cell = draw.divide(atom, np.array([0, 0, 1, 1]), np.array([0.4, 0.6, 0.1, 0.9]), rng)
    for place in (0, 1):
        joint = np.zeros((4, 3))
        np.add.at(joint, (cell[atom == place], other[atom == place]), 1)
        assert stats.chi2_contingency(joint[joint.sum(1) > 0]).pvalue > ALARM


# --- repeatable ---------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_draw_and_another_does_not():
    def drawn(seed):
        rng = np.random.default_rng(seed)
        component = draw.components(np.array([0.3, 0.7]), 100, rng)
        atom = draw.choose(np.array([[0.5, 0.5], [0.2, 0.8]]), component, rng)
        return draw.divide(atom, np.array([0, 1, 1]), np.array([1, 0.5, 0.5]), rng).tolist()

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_no_rows_are_no_trouble():
    rng = np.random.default_rng(0)
    component = draw.components(np.array([1.0]), 0, rng)
    atom = draw.choose(np.array([[0.5, 0.5]]), component, rng)
    assert len(draw.divide(atom, np.array([0, 0, 1]), np.array([0.5, 0.5, 1]), rng)) == 0


# --- planted faults -----------------------------------------------------------------------------


def test_without_shuffling_the_columns_would_be_found_dependent(monkeypatch):
    def in_order(component, size, rng):
        count = np.bincount(component, minlength=size)
        rank = np.arange(len(component)) - (np.cumsum(count) - count)[component]
        return (rank + rng.random(size)[component]) / np.maximum(count, 1)[component]

    monkeypatch.setattr(draw, "shuffled_points", in_order)
    assert dependence(np.random.default_rng(0)) < 1e-8


def test_independent_draws_would_be_found_too_noisy(monkeypatch):
    monkeypatch.setattr(
        draw, "shuffled_points", lambda component, size, rng: rng.random(len(component))
    )
    component = np.zeros(1000, dtype=int)
    found = draw.choose(np.array([[0.5, 0.3, 0.2]]), component, np.random.default_rng(0))
    assert not within_one(np.bincount(found), 1000 * np.array([0.5, 0.3, 0.2]))
