"""Cells with few rows: their tails are those of counts, and no table is rejected for them."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm

from aquatint.analyst.compare.counts import Cells, bounded, two_sided
from aquatint.analyst.compare.parts import singly
from aquatint.analyst.compare.sides import Sides
from aquatint.analyst.compare.tables import Table, spread_out, table_part

SIZES = [(1000, 1000), (500, 20_000), (20_000, 500), (100, 3000)]


def exactly(share, rows, size, tail):
    """P(abs(D) ≥ size) by adding up over both numbers of rows; `tail` is that of the noise."""
    numbers = [
        np.arange(max(0, n * share - 12 * (n * share) ** 0.5 - 40) // 1, n * share + 40 + n**0.5)
        for n in rows
    ]
    first, second = (binom.pmf(a, n, share) for a, n in zip(numbers, rows, strict=True))
    apart = numbers[0][:, None] / rows[0] - numbers[1] / rows[1]
    return float((np.outer(first, second) * (tail(size - apart) + tail(size + apart))).sum())


@pytest.mark.parametrize("rows", SIZES)
def test_the_tail_of_a_count_is_near_and_not_too_light(rows):
    for expected, noise, rare in product((0.05, 0.5, 3, 30), (0.3, 1.0, 5.0), (True, False)):
        share = expected / min(rows) if rare else 1 - expected / min(rows)
        variance = sum((noise / n) ** 2 for n in rows)
        cells = Cells(np.array([share]), np.array([variance]), rows)
        deviation = np.sqrt(share * (1 - share) * sum(1 / n for n in rows) + variance)
        for far in (2.0, 3.5, 5.0):
            size = far * deviation
            right = exactly(share, rows, size, lambda x, v=variance: norm.sf(x / v**0.5))
            assert right <= two_sided(cells, np.array([size]))[0] <= 5 * right


@pytest.mark.parametrize("rows", SIZES)
def test_the_bound_for_laplace_noise_is_one(rows):
    for expected, noise, far in product((0.05, 3, 30), (0.3, 3.0), (1.0, 3.0, 6.0)):
        share, scale = expected / min(rows), noise / rows[0]
        deviation = np.sqrt(share * sum(1 / n for n in rows) + 2 * scale**2)
        cells, size = Cells(np.array([share]), np.zeros(1), rows), np.array([far * deviation])
        right = exactly(share, rows, size[0], lambda x, b=scale: laplace.sf(x / b))
        assert bounded(cells, size, [(np.array([scale]), np.ones(1))])[0] >= right * (1 - 1e-9)


def test_rows_of_one_person_count_together():
    one, five = (
        Cells(np.array([0.01]), np.array([1e-9]), (n, n), k) for n, k in ((400, 1), (2000, 5))
    )
    np.testing.assert_allclose(two_sided(one, np.array([0.03])), two_sided(five, np.array([0.03])))


def sides_of(rows):
    """Two sides with public numbers of rows and Gaussian noise."""
    statement = SimpleNamespace(noise="discrete gaussian")
    release = SimpleNamespace(
        statement=statement,
        rows=1,
        schema=SimpleNamespace(privacy=SimpleNamespace(rows_per_unit=1)),
    )
    made = Sides(release, release)
    vars(made).update(rows=rows, row_noise=(0.0, 0.0))
    return made


@pytest.mark.parametrize("rows", [(500.0, 20_000.0), (2000.0, 2000.0)])
def test_rare_categories_do_not_make_a_difference(rows):
    """With a Gaussian's tails 8 % of the first tables were rejected at 1 %.

    At 1 %, more than 28 of 1,000 come up in fewer than one of a million runs.
    """
    rng, cells, deviation, draws = np.random.default_rng(), 200, 0.6, 1000
    share = 1 / np.arange(1, cells + 1) ** 1.3
    share /= share.sum()
    sides, ones = sides_of(rows), np.ones(cells)
    rejected = 0
    for _ in range(draws):
        counts = [
            rng.multinomial(int(n), share) + deviation * rng.standard_normal(cells) for n in rows
        ]
        table = Table("c", ("c",), tuple(counts), (deviation,) * 2, (ones,) * 2, (cells,), (False,))
        rejected += table_part(sides, table, conservative=False).pvalue <= 0.01
    assert rejected <= 28


def test_a_table_of_nothing_but_rare_cells_says_nothing():
    cells = Cells(np.full(3, 1e-6), np.full(3, 1e-12), (1000.0, 1000.0))
    assert spread_out(np.full(3, 0.01), cells, np.full(3, 3e-9), -0.002) == 1.0


@pytest.mark.parametrize("rows", [(1000, 1000), (1000, 20_000), (1300, 1000)])
def test_a_cell_is_not_called_different_too_often_at_any_level(rows):
    """By the law of D itself; a Gaussian's tails above .05 were off by two thirds."""
    for expected, noise in product((0.1, 0.5, 2, 10), (0.1, 0.3, 1.0)):
        share, variance = expected / min(rows), sum((noise / n) ** 2 for n in rows)
        deviation = np.sqrt(share * (1 - share) * sum(1 / n for n in rows) + variance)
        sizes = np.linspace(0, 6 * deviation, 300)[1:]
        mean = np.full_like(sizes, share)
        found = singly(sides_of(rows), sizes, mean, mean * (1 - mean), (noise, noise), counts=True)
        for far in range(3, 299, 8):
            beyond = exactly(share, rows, sizes[far], lambda x, v=variance: norm.sf(x / v**0.5))
            assert beyond <= 1.13 * found[far]
