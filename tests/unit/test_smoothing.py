"""Dividing a noisy total among cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aquatint.analyst.synthesize.atoms import HIDDEN, _within
from aquatint.analyst.synthesize.smoothing import believed, even, falling, smooth
from aquatint.schema import Schema

RULES = pytest.mark.parametrize("rule", [even, smooth])
cells = st.lists(st.tuples(st.floats(-50, 500), st.floats(0.1, 9)), min_size=1, max_size=40)


@RULES
@given(cells=cells, deviation=st.floats(0, 100))
def test_the_total_stays(rule, cells, deviation):
    counts, widths = np.array(cells).T
    found = rule(counts, deviation, widths)
    assert found.shape == counts.shape
    assert found.sum() == pytest.approx(counts.sum(), abs=1e-6 * (1 + np.abs(counts).sum()))


@RULES
@given(cells=cells)
def test_without_noise_nothing_changes(rule, cells):
    counts, widths = np.abs(np.array(cells)).T
    assert rule(counts, 0.0, widths) == pytest.approx(counts, abs=1e-6)


@RULES
@given(cells=cells)
def test_in_noise_beyond_measure_nothing_but_the_widths_is_left(rule, cells):
    counts, widths = np.array(cells).T
    flat = counts.sum() * widths / widths.sum()
    assert rule(counts, 1e12, widths) == pytest.approx(flat, abs=1e-6)


def test_the_rule_of_james_and_stein():
    assert believed(np.array([3.0, 4.0, 0.0, 0.0]), np.ones(4)) == 1 - 2 / 25
    assert believed(np.array([1.0, 0.5]), np.ones(2)) == pytest.approx(0.2)
    assert believed(np.array([0.1]), np.ones(1)) == 0.0
    assert believed(np.array([]), np.array([])) == 0.0


def test_a_slope_survives_where_single_cells_do_not():
    # Over 200 draws the mean errors differ by some ten of their standard errors.
    truth = np.linspace(40, 0, 32)
    rng = np.random.default_rng(1)
    errors = {rule: [] for rule in (even, smooth)}
    for _ in range(200):
        noisy = truth + 15 * rng.normal(size=32)
        for rule, seen in errors.items():
            seen.append(np.abs(rule(noisy, 15.0, np.ones(32)) - truth).sum())
    assert np.mean(errors[smooth]) < 0.85 * np.mean(errors[even])


def test_noise_is_taken_out_of_a_thin_tail_while_a_spike_is_left():
    """One factor for a whole scale would leave the noise of the tail, for the spike's sake.

    Over 200 draws the mean error of the tail's cells together is some 11, that of the noisy counts
    77; the spike's own is 5. The bounds are many standard errors away.
    """
    truth = np.concatenate([[5000.0], 400 * 0.6 ** np.arange(15), np.full(16, 0.2)])
    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        noisy = truth + 6 * rng.normal(size=32)
        found.append(np.abs(smooth(noisy, 6.0, np.ones(32)) - truth))
    spike, tail = np.mean(found, 0)[0], np.mean(found, 0)[16:].sum()
    assert spike < 6
    assert tail < 0.4 * 6 * 0.8 * 16


@given(cells=cells, deviation=st.floats(0, 100))
def test_smoothing_leaves_no_cell_below_zero(cells, deviation):
    counts, widths = np.array(cells).T
    if counts.sum() > 0:
        assert (smooth(counts, deviation, widths) >= 0).all()


def test_a_tail_that_noise_hides_is_not_empty():
    schema = Schema.from_dict(
        {
            "name": "ages",
            "privacy": {"protects": "replace one row"},
            "columns": {"age": {"kind": "integer", "bounds": [0, 9], "bins": 10}},
        }
    )
    counts = np.array([500.0, 400.0, 300.0, 200.0, 100.0, -30.0, 20.0, -40.0, 10.0, -25.0])
    within = _within(schema, "age", counts, 30.0, np.zeros(10, dtype=np.int64))
    assert within.sum() == pytest.approx(1)
    assert (within * 1435 >= HIDDEN * 30 * 0.9).all()
    assert within[5:].sum() < 0.03
    exact = _within(schema, "age", np.maximum(counts, 0), 0.0, np.zeros(10, dtype=np.int64))
    assert exact[5] < 1e-6


def test_no_histogram_and_no_rows_divide_an_atom_evenly():
    schema = Schema.from_dict(
        {
            "name": "ages",
            "privacy": {"protects": "replace one row"},
            "columns": {"age": {"kind": "integer", "bounds": [0, 3], "bins": 4}},
        }
    )
    within = _within(schema, "age", np.full(4, -2.0), 0.0, np.zeros(4, dtype=np.int64))
    assert within == pytest.approx(np.full(4, 0.25))


@given(
    scale=st.floats(0.3, 30),
    before=st.floats(0.1, 5),
    widths=st.lists(st.floats(0.1, 5), min_size=1),
)
def test_a_tail_falls_as_an_exponential_law_does(scale, before, widths):
    ends = np.concatenate([[0.0], np.cumsum(widths)])
    truth = np.exp(-ends[:-1] / scale) - np.exp(-ends[1:] / scale)
    ratio = np.expm1(before / scale)  # of the stretch before to the whole tail
    found = falling(np.array(widths), before, ratio)
    assert found.sum() == pytest.approx(1)
    assert found == pytest.approx(truth / truth.sum(), abs=1e-6)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_the_outermost_cells_are_taken_to_lie_close_to_the_rest(missing, upper):
    columns = {"x": {"kind": "numeric", "bounds": [0, 8], "bins": 8, "missing": missing}}
    privacy = {"protects": "replace one row"}
    schema = Schema.from_dict({"name": "tail", "privacy": privacy, "columns": columns})
    counts, atom = np.array([900.0, 400, 40, 35, -20, 30, -25, 20]), [0, 1, 2, 2, 2, 2, 2, 2]
    if not upper:
        counts, atom = counts[::-1], [2 - a for a in atom[::-1]]
    if missing:
        counts, atom = np.append(counts, 70.0), [*atom, 3]
    within = _within(schema, "x", counts, 60.0, np.array(atom))
    tail = within[np.array(atom) == (2 if upper else 0)][:: 1 if upper else -1]
    assert (np.diff(tail.reshape(3, 2).sum(1)) < 0).all()
    assert tail[0] > 0.5
    assert tail.sum() == pytest.approx(1)
