"""Which cells are merged: read off published noisy histograms, and off nothing else."""

from dataclasses import replace
from math import isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.errors import PlanError
from aquatint.features import Count, by_label, fourier, marginals, onehot, scale
from aquatint.features.grid import COUNT_STEPS
from aquatint.grouping import ENOUGH, FEWEST, SMALLER, WORTH, _neighbours, merged
from aquatint.release.histograms import counting_parts, histograms, on_simplex
from aquatint.release.model import Block
from aquatint.schema import Schema
from aquatint.table_plan import plan

GAUSSIAN = "discrete gaussian"
KINDS = {
    "numeric": {"kind": "numeric", "bounds": [0, 1], "bins": 6},
    "integer": {"kind": "integer", "bounds": [1, 6], "bins": 6},
    "date": {"kind": "date", "bounds": ["2020-01-01", "2020-01-06"], "bins": 6},
    "datetime": {
        "kind": "datetime",
        "bounds": ["2020-01-01T00:00:00", "2020-01-02T00:00:00"],
        "bins": 6,
    },
    "ordered": {"kind": "ordered", "categories": list("abcdef")},
    "categorical": {"kind": "categorical", "categories": list("abcdef")},
    "text": {"kind": "text", "categories": list("abcde")},  # with "other" six cells
}
LONGER = {
    "numeric": {"bins": 12},
    "integer": {"bounds": [1, 12], "bins": 12},
    "date": {"bounds": ["2020-01-01", "2020-01-12"], "bins": 12},
    "datetime": {"bins": 12},
    "ordered": {"categories": list("abcdefghijkl")},
}
ALIKE = [*KINDS]
WITH_ORDER = ["numeric", "integer", "date", "datetime", "ordered"]
WITHOUT = ["categorical", "text"]


def schema_of(**columns):
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    )


def published(feature_map, counts, deviation=1.0, name="columns"):
    """A block with these very numbers, as if noise had made them so."""
    integers = np.rint(np.asarray(counts, float) * COUNT_STEPS).astype(np.int64)
    return Block(name, feature_map, integers, (deviation * COUNT_STEPS,), GAUSSIAN)


def groups_of(kind, counts, least, *, missing=False):
    """Merge one column of six or twelve cells beside a boolean; give the group of every cell."""
    longer = LONGER[kind] if len(counts) >= 12 else {}
    column = {**KINDS[kind], **longer, "missing": missing}
    schema = schema_of(a=column, b={"kind": "boolean"})
    cells = schema.cells()
    total = max(float(np.sum(counts)), 1.0)
    block = published(onehot(cells), [*counts, total / 2, total / 2])
    coarse = merged(marginals(cells, [("a", "b")]), [block], schema, least)
    return coarse.merged.get("a", tuple(range(cells["a"])))


def weights(group, counts):
    shares = on_simplex(np.asarray(counts, float) / max(float(np.sum(counts)), 1.0))
    return np.bincount(group, weights=shares)


# --- columns with an order ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_neighbours_are_merged_until_each_group_is_heavy_enough(kind):
    counts = [41, 61, 100, 30, 30, 41, 150, 150, 150, 99, 98, 98]
    assert groups_of(kind, counts, 99) == (0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 7)


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_a_thin_tail_is_not_merged_with_the_cell_that_holds_most_rows(kind):
    """Groups of 80 rows would leave the heavy cell and one of all others."""
    counts = [1800, *[20] * 8, 10, 10, 20]
    group = groups_of(kind, counts, 80)
    assert group[0] == 0
    assert group.count(0) == 1
    assert max(group) + 1 >= FEWEST
    assert weights(group, counts).min() * sum(counts) >= WORTH * 80


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_no_group_is_smaller_than_is_worth_its_noise(kind):
    """Groups of 300 rows among 360: a quarter will do, but not a tail of 60."""
    assert groups_of(kind, [30] * 12, 300) == (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
    assert max(groups_of(kind, [300, 20, 20, *[0] * 8, 20], 300)) == 0


@pytest.mark.parametrize("kind", WITHOUT)
def test_without_an_order_the_rare_cells_share_one_group(kind):
    assert groups_of(kind, [40, 300, 30, 400, 30, 200], 100) == (3, 1, 3, 0, 3, 2)


@pytest.mark.parametrize("kind", ALIKE)
def test_cells_that_are_heavy_enough_stay_as_they_are(kind):
    """A column whose cells all stay is not named as merged at all."""
    schema = schema_of(a={**KINDS[kind], **LONGER.get(kind, {})}, b={"kind": "boolean"})
    cells = schema.cells()
    fine = marginals(cells, [("a", "b")])
    block = published(onehot(cells), [*[100] * cells["a"], 300, 300])
    assert merged(fine, [block], schema, 99.999) == fine
    assert merged(fine, [block], schema, 100.001) != fine


def test_one_rare_cell_alone_is_left_alone():
    """A group of one is the cell itself: nothing would be merged, and nothing is renumbered."""
    assert groups_of("categorical", [100, 300, 30, 400, 150, 200], 100) == tuple(range(6))


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_what_is_left_at_the_end_joins_the_last_group(kind):
    counts = [*[100] * 10, 20, 20]
    assert groups_of(kind, counts, 99) == (*range(10), 9, 9)


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_missing_is_nobodys_neighbour(kind):
    """However few are missing, they do not count as the largest value."""
    for missing in (0, 3, 500):
        counts = [*[100] * 10, 50, 50, missing]
        *present, last = groups_of(kind, counts, 99, missing=True)
        assert last == max(present) + 1
        assert present == [*range(10), 10, 10]


@pytest.mark.parametrize("kind", WITH_ORDER)
def test_missing_stays_apart_even_where_everything_else_is_one_group(kind):
    assert groups_of(kind, [0, 0, 1, 0, 0, 0, 999], 400, missing=True) == (0, 0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("kind", WITHOUT)
def test_without_an_order_missing_is_a_cell_like_the_others(kind):
    counts = [10, 300, 10, 400, 10, 200, 5]
    assert groups_of(kind, counts, 100, missing=True) == (3, 1, 3, 0, 3, 2, 3)
    counts[-1] = 150
    assert groups_of(kind, counts, 100, missing=True) == (4, 1, 4, 0, 4, 2, 3)


def test_a_boolean_has_no_neighbours():
    """Falsehood and missing are both rare: if anything they share a group, across truth."""
    schema = schema_of(a={"kind": "boolean", "missing": True}, b={"kind": "boolean"})
    cells = schema.cells()
    block = published(onehot(cells), [10, 980, 10, 500, 500])
    coarse = merged(marginals(cells, [("a", "b")]), [block], schema, 100)
    assert coarse.merged in ({"a": (1, 0, 1)}, {})


# --- rules that hold for any histogram ------------------------------------------------------------

noisy_counts = st.lists(
    st.integers(-300, 3000) | st.integers(-30, 30), min_size=6, max_size=6
).filter(lambda counts: sum(counts) > 0)
quick = settings(max_examples=150, deadline=None)


@quick
@given(st.sampled_from(ALIKE), noisy_counts, st.integers(1, 2000))
def test_groups_are_numbered_from_0_without_gaps(kind, counts, least):
    group = groups_of(kind, counts, least)
    assert set(group) == set(range(max(group) + 1))


@quick
@given(st.sampled_from(WITH_ORDER), noisy_counts, st.integers(-50, 500), st.integers(1, 2000))
def test_only_neighbours_are_merged_where_there_is_an_order(kind, counts, missing, least):
    group = groups_of(kind, [*counts, max(missing, 0)], least, missing=True)
    steps = np.diff(group)
    assert group[0] == 0
    assert set(steps) <= {0, 1}
    assert steps[-1] == 1


@quick
@given(st.sampled_from(WITH_ORDER), noisy_counts, st.integers(1, 2000))
def test_every_group_of_neighbours_is_heavy_enough(kind, counts, least):
    """Smaller than asked for only where there would be few, and never below the last part."""
    wanted = min(least / sum(counts), 1 / FEWEST)
    found = weights(groups_of(kind, counts, least), counts)
    assert found.sum() == pytest.approx(1)
    assert (found >= SMALLER[-1] * wanted - 1e-9).all()
    few = max(_neighbours(on_simplex(np.array(counts) / sum(counts)), wanted, 6)) + 1 < ENOUGH
    assert few or (found >= wanted - 1e-9).all()


@quick
@given(st.sampled_from(WITHOUT), noisy_counts, st.integers(1, 2000))
def test_every_group_but_that_of_the_rare_is_one_frequent_cell(kind, counts, least):
    wanted = min(least / sum(counts), 1 / FEWEST)
    group = groups_of(kind, counts, least)
    shares = on_simplex(np.array(counts) / sum(counts))
    rare = [cell for cell in range(6) if shares[cell] < wanted - 1e-12]
    frequent = [cell for cell in range(6) if shares[cell] > wanted + 1e-12]
    assert len({group[cell] for cell in frequent}) == len(frequent)
    assert not {group[cell] for cell in frequent} & {group[cell] for cell in rare}
    shared = [number for number in set(group) if group.count(number) > 1]
    assert len(shared) <= 1
    if len(frequent) >= FEWEST:
        assert len({group[cell] for cell in rare}) == min(len(rare), 1)


@quick
@given(st.sampled_from(WITHOUT), noisy_counts, st.integers(1, 300).map(lambda n: n + 0.37))
def test_a_higher_demand_never_gives_more_groups(kind, counts, least):
    fewer, more = groups_of(kind, counts, 2 * least), groups_of(kind, counts, least)
    assert max(fewer) <= max(more)


@pytest.mark.parametrize("kind", WITH_ORDER)
@pytest.mark.parametrize("cells", [4, 8, 12, 64])
def test_however_strong_the_noise_a_few_groups_of_equal_weight_are_kept(kind, cells):
    """A demand beyond all rows is cut to one in FEWEST: even cells give exactly so many groups."""
    column = {**KINDS[kind]}
    if kind == "ordered":
        column["categories"] = [f"v{i}" for i in range(cells)]
    elif kind in {"integer", "date"}:
        bounds = {"integer": [1, 100], "date": ["2020-01-01", "2020-12-30"]}[kind]
        column |= {"bounds": bounds, "bins": cells}
    else:
        column["bins"] = cells
    schema = schema_of(a=column)
    block = published(onehot({"a": cells}), [10.0] * cells)
    coarse = merged(marginals({"a": cells}, [("a",)]), [block], schema, 1e9)
    assert coarse.counted["a"] == FEWEST
    assert (np.bincount(coarse.merged.get("a", range(cells))) == cells / FEWEST).all()


@pytest.mark.parametrize("kind", ALIKE)
def test_a_histogram_of_noise_alone_is_merged_without_a_fault(kind):
    """Fewer than no rows, in all or cell by cell."""
    for counts in ([-50] * 6, [-500, 3, -2, 1, 0, -9], [0] * 6, [1e-9, 0, 0, 0, 0, 0]):
        group = groups_of(kind, counts, 100)
        assert set(group) == set(range(max(group) + 1))
        assert max(group) < ENOUGH


# --- bins that the default plan cut finer ---------------------------------------------------------


def finer_groups(values, least, column=None):
    """Merge the default plan's bins of one column by its exact histogram; give edges and groups."""
    column = column or {"kind": "numeric", "bounds": [0, 100]}
    schema = plan(schema_of(a=column, b={"kind": "boolean"})).schema
    edges = np.array(schema.columns["a"].bins)
    counts = np.histogram(values, edges)[0]
    block = published(onehot(schema.cells()), [*counts, len(values), 0])
    coarse = merged(marginals(schema.cells(), [("a", "b")]), [block], schema, least)
    group = np.array(coarse.merged.get("a", tuple(range(len(counts)))))
    return edges[:-1][np.append(True, np.diff(group) > 0)], np.bincount(group, weights=counts)


def test_a_column_that_fills_its_bounds_is_merged_as_if_no_bin_had_been_cut():
    values = np.linspace(0, 100, 32_000, endpoint=False)
    begins, held = finer_groups(values, 900)
    assert begins == pytest.approx(np.arange(32) * 100 / 32)
    assert (held == 1000).all()


@pytest.mark.parametrize("wide", [10, 100, 1000])
@pytest.mark.parametrize("kind", ["numeric", "integer"])
def test_a_column_with_generous_bounds_keeps_enough_groups(kind, wide):
    values = np.linspace(0, 1000, 10_000, endpoint=False)
    column = {"kind": kind, "bounds": [0, 1000 * wide]}
    begins, held = finer_groups(values, 200, column)
    assert len(begins) >= ENOUGH
    assert (held >= 200).all()
    assert (begins < 1000).sum() >= ENOUGH
    assert held.max() <= 0.5 * len(values)


@pytest.mark.parametrize("shift", [-50, 0])
def test_groups_inside_even_bins_are_no_more_than_are_needed(shift):
    values = np.linspace(0, 3, 10_000, endpoint=False)
    column = {"kind": "numeric", "bounds": [shift, 100 + shift]}
    begins, _ = finer_groups(values, 10, column)
    assert ENOUGH <= len(begins) <= 2 * ENOUGH


def test_bins_that_a_schema_declares_are_all_told_apart():
    edges = [0, 0.1, 0.2, 0.3, 0.5, 1, 2, 100]
    column = {"kind": "numeric", "bounds": [0, 100], "bins": edges}
    begins, _ = finer_groups(np.repeat(np.array(edges[:-1]) + 0.01, 100), 50, column)
    assert list(begins) == edges[:-1]


# --- what they are read off -----------------------------------------------------------------------


def test_a_column_without_a_histogram_is_refused_with_a_sentence():
    schema = schema_of(a=KINDS["numeric"], b=KINDS["categorical"])
    fine = marginals(schema.cells(), [("a", "b")])
    block = published(onehot({"a": 6}), [100] * 6)
    with pytest.raises(PlanError, match="column 'b' cannot be merged: no earlier block"):
        merged(fine, [block], schema, 50)
    with pytest.raises(PlanError, match="no earlier block"):
        merged(fine, [], schema, 50)


def test_a_histogram_that_is_merged_itself_does_not_serve():
    schema = schema_of(a=KINDS["numeric"])
    coarse = onehot({"a": 6}).merge({"a": (0, 0, 0, 1, 1, 1)})
    with pytest.raises(PlanError, match="no earlier block"):
        merged(marginals({"a": 6}, [("a",)]), [published(coarse, [300, 300])], schema, 50)


def test_the_choice_is_a_function_of_what_is_published():
    """The same blocks give the same groups, and nothing else is handed over to choose by."""
    schema = schema_of(a=KINDS["numeric"], b=KINDS["categorical"])
    fine = marginals(schema.cells(), [("a", "b")])
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = rng.normal(60, 60, 12)
        first = merged(fine, [published(onehot(schema.cells()), counts)], schema, 100)
        again = merged(fine, [published(onehot(schema.cells()), counts)], schema, 100)
        assert first == again


@quick
@given(st.sampled_from(ALIKE), noisy_counts, st.integers(1, 500))
def test_the_size_of_the_numbers_does_not_matter_but_their_shares(kind, counts, least):
    """A hundred times the rows, with a hundred times the demand, is the same choice."""
    assert groups_of(kind, counts, least) == groups_of(kind, [128 * c for c in counts], 128 * least)


def test_the_columns_and_sets_stay_as_they_are():
    longer = {**KINDS["numeric"], "bins": 12}
    schema = schema_of(a=longer, b=KINDS["categorical"], c={"kind": "boolean"})
    cells = schema.cells()
    fine = marginals(cells, [("a", "b"), ("b",), ("a", "b", "c")])
    counts = [*[10] * 12, *[40, 1, 28, 7, 40, 4], 60, 60]
    coarse = merged(fine, [published(onehot(cells), counts)], schema, 12)
    assert (coarse.columns, coarse.sets, coarse.ones) == (fine.columns, fine.sets, fine.ones)
    assert coarse.groups == (
        ("a", (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)),
        ("b", (0, 3, 2, 3, 1, 3)),
    )


# --- the histograms of a release ------------------------------------------------------------------


def test_histograms_of_several_blocks_are_pooled_by_their_variance():
    one = published(onehot({"a": 2}), [10, 20], deviation=1.0, name="one")
    two = published(marginals({"a": 2, "b": 2}, [("a", "b"), ("a",)]), [0] * 4 + [16, 26], 2.0)
    (counts, deviation) = histograms([one, two])["a"]
    assert counts == pytest.approx([11.2, 21.2])
    assert isclose(deviation, (1 + 1 / 4) ** -0.5)
    assert set(histograms([one, two])) == {"a"}


def test_the_weight_of_a_scaled_histogram_is_taken_off():
    half = scale(onehot({"a": 2}), 0.5)
    plain = published(onehot({"a": 2}), [10, 20])
    block = replace(plain, map=half, integers=plain.integers)
    ((found, counts, deviation),) = counting_parts(block)
    assert found == onehot({"a": 2})
    assert counts == pytest.approx(block.sum / 0.5)
    assert deviation == pytest.approx(block.stderr[0] / 0.5)


def test_maps_that_are_no_plain_counts_have_no_histogram():
    blocks = [
        published(Count(), [7.0]),
        published(by_label(onehot({"a": 2}), "b", 2), [1, 2, 3, 4]),
        published(fourier(["a"], 4), [1, 2, 3, 4]),
        published(marginals({"a": 2, "b": 2}, [("a", "b")]), [1, 2, 3, 4]),
    ]
    assert histograms(blocks) == {}


def test_the_parts_of_a_concatenation_are_told_apart():
    both = onehot({"a": 2}) + Count() + onehot({"b": 3})
    block = Block(
        "x", both, np.arange(1, 7) * COUNT_STEPS, tuple(COUNT_STEPS * s for s in (1.0, 2.0, 4.0)),
        GAUSSIAN,
    )  # fmt: skip
    found = histograms([block])
    assert found["a"][0] == pytest.approx([1, 2])
    assert found["b"][0] == pytest.approx([4, 5, 6])
    assert (found["a"][1], found["b"][1]) == (pytest.approx(1), pytest.approx(4))


@quick
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12))
def test_the_projection_is_on_the_simplex_and_nearest(values):
    found = on_simplex(np.array(values))
    scale_of = 1e-9 * max(1.0, np.abs(values).max())
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=scale_of)
    # Nearest: values less found is constant where found is positive, and smaller elsewhere.
    gap = np.array(values) - found
    level = gap[found > 0]
    assert np.ptp(level) <= scale_of
    assert (gap[found == 0] <= level.max() + scale_of).all()


def test_shares_that_are_on_the_simplex_stay():
    shares = np.array([0.5, 0.25, 0.0, 0.25])
    assert on_simplex(shares) == pytest.approx(shares)
