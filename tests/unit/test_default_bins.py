"""The bins that the default plan cuts a range into."""

from itertools import pairwise

import pytest

from aquatint.columns import POINT, bin_edges
from aquatint.schema import Schema
from aquatint.table_plan import FINER, FINEST, HALVES, plan

MOST_CUTS = max(len(FINER), 2 * len(HALVES)) + 2 * len(FINEST)


def table(columns):
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    )


def numbers(count, **column):
    made = {"kind": "numeric", "bounds": [0, 1], **column}
    return {f"c{i}": made for i in range(count)}


@pytest.mark.parametrize(
    ("column", "points"),
    [
        ({"kind": "numeric", "bounds": [0, 1]}, {0.0}),
        ({"kind": "numeric", "bounds": [-0.3, 0.3]}, {-0.3, 0.0}),
        ({"kind": "numeric", "bounds": [-1e-7, 3]}, {-1e-7}),  # zero is all but the lower bound
        ({"kind": "numeric", "bounds": [-3, 1e-7]}, {-3.0}),
        ({"kind": "integer", "bounds": [-1000, 5000]}, {-1000.0, 0.0}),
        ({"kind": "integer", "bounds": [17, 90]}, {17.0}),
        ({"kind": "date", "bounds": ["2000-01-01", "2020-01-01"]}, {10957.0}),
        (
            {"kind": "datetime", "bounds": ["2000-01-01T00:00:00", "2020-01-01T00:00:00"]},
            {946684800.0},
        ),
    ],
)
def test_the_lower_bound_and_zero_have_a_bin_of_their_own(column, points):
    found = plan(table({"a": column})).schema.columns["a"]
    edges = bin_edges(found)
    one = 1.0 if column["kind"] in ("integer", "date") else POINT * (edges[-1] - edges[0])
    narrow = {a for a, b in pairwise(edges) if b - a <= 1.001 * one}
    assert points <= narrow <= {point + i for point in points for i in (-1, 0, 1)}  # if cut so fine
    assert 32 <= found.present_cells <= 32 + 2 * len(points) + MOST_CUTS
    assert min(b - a for a, b in pairwise(edges)) >= 0.9 * one


@pytest.mark.parametrize("kind", ["numeric", "integer"])
@pytest.mark.parametrize("low", [0, 3_200_000])
def test_bins_above_the_lower_bound_are_cut_finer_and_finer(kind, low):
    column = {"kind": kind, "bounds": [low, low + 32_000_000]}
    edges = bin_edges(plan(table({"a": column})).schema.columns["a"])
    width = 1_000_000
    inside = [edge - low for edge in edges[2:] if edge < low + 4 * width]
    cuts = {1.0, 2.0, 3.0, *FINER, *FINEST}
    assert inside == pytest.approx(sorted(part * width for part in cuts), abs=1)
    assert edges[2:][len(inside) :] == [low + i * width for i in range(4, 33)]
    ratios = [b / a for a, b in pairwise(inside)]
    assert max(ratios) <= 4.01


@pytest.mark.parametrize("kind", ["numeric", "integer"])
def test_bins_are_cut_on_both_sides_of_an_inner_zero(kind):
    column = {"kind": kind, "bounds": [-16_000_000, 16_000_000]}
    edges = bin_edges(plan(table({"a": column})).schema.columns["a"])
    cuts = sorted(part * 1_000_000 for part in (*HALVES, *FINEST))
    assert [edge for edge in edges if 100 < edge < 1_000_000] == pytest.approx(cuts, abs=1)
    below = [-edge for edge in edges if -1_000_000 < edge < -100]
    assert below[::-1] == pytest.approx(cuts, abs=1)


@pytest.mark.parametrize("bounds", [[0, 1], [-1, 1], [-3, 1000], [-1000, 3], [17, 90], [-9, -2]])
def test_the_even_edges_stay_and_no_cut_is_close_to_another(bounds):
    column = plan(table({"a": {"kind": "numeric", "bounds": bounds}})).schema.columns["a"]
    edges, one = bin_edges(column), POINT * (bounds[1] - bounds[0])
    even = [bounds[0] + (bounds[1] - bounds[0]) * i / 32 for i in range(33)]
    assert all(min(abs(edge - found) for found in edges) <= one for edge in even)
    cuts = [b - a for a, b in pairwise(edges) if b - a > 1.001 * one]
    assert min(cuts) > 5 * one


def test_a_column_within_a_hundredth_of_its_bounds_still_has_cells_to_tell():
    made = plan(table({"a": {"kind": "numeric", "bounds": [0, 100]}}))
    edges = bin_edges(made.schema.columns["a"])
    assert sum(edge <= 1 for edge in edges) >= 12


@pytest.mark.parametrize("high", [64, 97, 128, 200, 1000, 2000, 5000])
def test_whole_numbers_are_cut_at_whole_numbers_only(high):
    column = {"kind": "integer", "bounds": [0, high]}
    edges = bin_edges(plan(table({"a": column})).schema.columns["a"])
    assert all(edge.is_integer() for edge in edges)
    assert min(b - a for a, b in pairwise(edges)) >= 1


def test_bins_never_outnumber_the_values_and_declared_ones_stay():
    schema = table(
        {"few": {"kind": "integer", "bounds": [0, 3]}, **numbers(1, bins=50)},
    )
    made = plan(schema)
    assert made.schema.columns["few"].bins == 4
    assert made.schema.columns["c0"].bins == 50


@pytest.mark.parametrize("high", [1, 30, 31, 32, 33, 34, 63, 64, 65, 66, 97, 128, 1000, 2**40 + 1])
def test_whole_numbers_get_bins_that_hold_at_least_one_of_them(high):
    made = plan(table({"a": {"kind": "integer", "bounds": [-7, high]}, **numbers(1)}))
    column = made.schema.columns["a"]
    edges = bin_edges(column)
    inside = [int(b) - int(a) for a, b in pairwise(edges)]
    if isinstance(column.bins, list):
        inside[-1] += 1  # the upper bound is in the last bin
        assert all(edge.is_integer() for edge in edges)
        assert max(inside) <= (high + 7) / 32 + 2
        assert inside[0] == inside[edges.index(0)] == 1
    assert min(inside) >= 1
    assert sum(inside) == column.steps
    assert column.present_cells <= 32 + 4 + MOST_CUTS
