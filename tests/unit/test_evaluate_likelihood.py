"""Samples under the papers' mixture: against scipy's densities and counts by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from aquatint.errors import DataError
from aquatint.evaluate.likelihood import (
    GaussianMixture,
    five_by_five,
    modes_covered,
    negative_log_likelihood,
)


@pytest.fixture(scope="module")
def grid():
    return five_by_five()


def test_the_grid_has_each_class_once_in_every_row_and_column(grid):
    layout = np.empty((5, 5), int)
    for (down, along), label in zip(grid.centres.astype(int), grid.labels, strict=True):
        layout[down, along] = label
    assert layout[0].tolist() == [0, 1, 2, 3, 4]
    assert layout[1].tolist() == [2, 3, 4, 0, 1]
    assert all(sorted(line) == [0, 1, 2, 3, 4] for line in [*layout, *layout.T])


def test_likelihood_agrees_with_scipy(grid):
    rng = np.random.default_rng(0)
    points, labels = rng.uniform(-1, 5, (40, 2)), rng.integers(0, 5, 40)
    total = 0.0
    for point, label in zip(points, labels, strict=True):
        centres = grid.centres[grid.labels == label]
        density = sum(multivariate_normal(c, 0.04 * np.eye(2)).pdf(point) for c in centres) / 25
        total -= np.log(density)
    assert negative_log_likelihood(points, labels, grid) == pytest.approx(total / 40)


def test_the_published_normaliser_is_that_of_one_dimension(grid):
    points, labels = grid.sample(200, seed=0)
    right = negative_log_likelihood(points, labels, grid)
    published = negative_log_likelihood(points, labels, grid, as_published=True)
    assert published - right == pytest.approx(np.log(1 / (np.sqrt(2 * np.pi) * 0.2)))
    # Real samples: log 25 + log(2π s²) + 1 with the right one; the papers' code says 3.531.
    assert right == pytest.approx(np.log(25) + np.log(2 * np.pi * 0.04) + 1, abs=0.03)
    assert published == pytest.approx(3.531, abs=0.03)


def test_a_wrong_label_costs_and_a_far_point_is_finite(grid):
    point = np.array([[0.0, 0.0]])
    assert negative_log_likelihood(point, [1], grid) > negative_log_likelihood(point, [0], grid) + 5
    assert np.isfinite(negative_log_likelihood(point + 1000, [0], grid))


def test_dropped_modes_are_noticed_where_the_likelihood_is_blind(grid):
    points, labels = grid.sample(200, seed=1)
    assert modes_covered(points, grid, labels) == 25
    kept = ~((points.round() == [0, 0]).all(axis=1) | (points.round() == [3, 2]).all(axis=1))
    assert modes_covered(points[kept], grid, labels[kept]) == 23
    difference = negative_log_likelihood(points[kept], labels[kept], grid) - (
        negative_log_likelihood(points, labels, grid)
    )
    assert abs(difference) < 0.02


def test_modes_count_samples_of_their_own_class_when_labels_are_given(grid):
    points, labels = grid.sample(40, seed=2)
    assert modes_covered(points, grid, (labels + 1) % 5) == 0
    assert modes_covered(points, grid) == 25


def test_share_and_distance_decide_what_is_covered():
    one = GaussianMixture(np.zeros((1, 2)), np.array([0]), 1.0)
    points = np.array([[0.0, 0.0], [2.9, 0.0], [3.1, 0.0], [9.0, 0.0]])
    assert modes_covered(points, one, share=0.5) == 1
    assert modes_covered(points, one, share=0.6) == 0
    assert modes_covered(points, one, share=0.6, within=3.2) == 1


@pytest.mark.parametrize(
    ("points", "labels"),
    [(np.zeros(3), np.zeros(3)), (np.zeros((0, 2)), np.zeros(0)), (np.zeros((2, 2)), [0])],
)
def test_misshapen_samples_are_refused(grid, points, labels):
    with pytest.raises(DataError, match="shape"):
        negative_log_likelihood(points, labels, grid)


def test_labels_that_the_mixture_does_not_have_are_refused(grid):
    with pytest.raises(DataError, match="not among the mixture's classes"):
        negative_log_likelihood(np.zeros((1, 2)), [7], grid)
