"""The closed form of maps of numbers: what a fine enumeration of the mixture's rows gives.

Every combination of values is written down, with all whole numbers of a bin or a fine grid of the
real ones, and put through the feature map itself; the closed form never sees a joint row.
"""

from itertools import pairwise, product
from math import sqrt

import numpy as np
import pytest
import torch

from aquatint.analyst.synthesize import expect
from aquatint.analyst.synthesize.atoms import Atoms, atoms_of
from aquatint.analyst.synthesize.expect import Cells, Means, embedding_term, has_closed_form
from aquatint.analyst.synthesize.mixture import _terms
from aquatint.columns import RANGED, bin_edges
from aquatint.features import (
    Count,
    Rows,
    by_label,
    concat,
    cosines,
    fourier,
    hermite,
    hermite_product,
    marginals,
    onehot,
    pairs,
    race,
    scale,
    triples,
)
from aquatint.features.algebra import ByLabel, Product
from aquatint.features.grid import grid_of
from aquatint.release.model import Block, Release, Statement
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "replace one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [17, 46], "bins": 3, "missing": True},
            "height": {"kind": "numeric", "bounds": [0.5, 2.5], "bins": 4, "missing": True},
            "born": {
                "kind": "date",
                "bounds": ["2000-01-01", "2000-01-12"],
                "bins": [10957, 10960.5, 10968],
            },
            "grade": {"kind": "ordered", "categories": ["low", "middle", "high"]},
            "ill": {"kind": "boolean", "missing": True},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
        },
    }
)

pytestmark = pytest.mark.usefixtures("one_thread")
CELLS = SCHEMA.cells()
K = 3
FINE = 840
"""Points of a cell: a multiple of the whole numbers in every bin, so that none counts more."""


def some(*names):
    return {name: CELLS[name] for name in names}


def dirichlet(shape, seed):
    drawn = np.random.default_rng(seed).gamma(1.0, size=shape) + 0.01
    return drawn / drawn.sum(-1, keepdims=True)


def values_of(name, fine=60):
    """The values of each cell of a column: its place in the unit interval, or NaN."""
    column = SCHEMA.columns[name]
    if not isinstance(column, RANGED):
        top = max(1, column.present_cells - 1)
        found = [np.array([place / top]) for place in range(column.present_cells)]
    else:
        edges = np.array(bin_edges(column))
        low, high = column.limits
        if column.kind == "numeric":
            share = (np.arange(fine) + 0.5) / fine
            cells = [a + (b - a) * share for a, b in pairwise(edges)]
        else:
            edges[-1] = high + 1
            whole = np.arange(low, high + 1)
            cells = [whole[(a <= whole) & (whole < b)] for a, b in pairwise(edges)]
        found = [(cell - low) / (high - low) for cell in cells]
    return found + [np.array([np.nan])] * column.missing


class Small:
    """A mixture over the columns given; the atoms of some columns are coarser than their cells."""

    def __init__(self, coarse=None, seed=0):
        of_cell = {n: np.arange(c) for n, c in CELLS.items()} | (coarse or {})
        within = {}
        for place, (name, atom) in enumerate(of_cell.items()):
            drawn = dirichlet(len(atom), 100 + place)
            within[name] = drawn / np.bincount(atom, weights=drawn)[atom]
        self.atoms = Atoms(of_cell, within)
        self.weights = dirichlet(K, seed)
        self.probabilities = np.concatenate(
            [dirichlet((K, s.stop - s.start), seed + s.start) for s in self.atoms.slices.values()],
            1,
        )

    def cells(self, name):
        return self.atoms.spread(name, self.probabilities[:, self.atoms.slices[name]])

    def tensors(self):
        return torch.from_numpy(self.weights).float(), torch.from_numpy(self.probabilities).float()

    def by_component(self, feature_map):
        """Give the mean of a map in every component, by enumeration: shape (K, dim)."""
        names = sorted(feature_map.reads[0] | feature_map.reads[1])
        columns = []
        for name in names:
            cells = self.cells(name)
            line = [
                (code, value, cells[:, code] / len(inside))
                for code, inside in enumerate(values_of(name))
                for value in inside
            ]
            columns.append(line)
        every = list(product(*(range(len(line)) for line in columns)))
        place = np.array(every).reshape(len(every), len(names))
        chance = np.ones((K, len(every)))
        codes, values = {}, {}
        for i, (name, line) in enumerate(zip(names, columns, strict=True)):
            code, value, share = (np.array(part) for part in zip(*line, strict=True))
            codes[name] = torch.from_numpy(code[place[:, i]])
            values[name] = torch.from_numpy(value[place[:, i]].astype(np.float32))
            chance *= share[place[:, i]].T
        assert chance.sum(1) == pytest.approx(1)
        return chance @ feature_map(Rows(codes, values, len(every))).double().numpy()

    def mean(self, feature_map):
        return self.weights @ self.by_component(feature_map)

    def closed(self, part):
        cells = Cells(SCHEMA, self.atoms, self.tensors()[1])
        return Means(SCHEMA)(part, cells).double().numpy()


NUMBERS = ("age", "height")
INNER = {
    "count": Count(),
    "histograms": onehot(some("age", "sex", "ill")),
    "pairs": pairs(some("age", "sex", "grade")),
    "triples": triples(CELLS, [("sex", "age", "ill")]),
    "merged": marginals(CELLS, [("age", "sex"), ("age",)]).merge({"age": (0, 1, 1, 0)}),
    "fourier": fourier(NUMBERS, 10, length_scale=(0.3, 0.5), seed=1),
    "fourier laplace": fourier(["age", "grade"], 6, kernel="laplace", seed=2),
    "fourier of one": fourier(["height"], 4, length_scale=0.2, seed=3),
    "fourier of days": fourier(["born", "ill"], 6, length_scale=0.4, seed=4),
    "cosines": cosines(NUMBERS, 12, pair_order=3),
    "cosines of columns": cosines(["height", "born"], 5, pair_order=0),
    "cosines of pairs": cosines(["born", "grade"], 0, pair_order=2),
    "cosines of ranks": cosines(["ill", "grade", "born"], 2, pairs=[("grade", "ill")]),
    "hermite": hermite(NUMBERS, 4, length_scale=0.3),
    "hermite of order 0": hermite(["age"], 0),
    "hermite of ranks": hermite(["grade", "ill", "born"], 3),
    "hermite product": hermite_product(["age", "height"], 3),
    "scaled": scale(fourier(["height"], 4, length_scale=0.3), 3.5),
    "counting times counting": Product(onehot(some("sex")), pairs(some("age", "ill"))),
    "counting times dense": onehot(some("sex", "ill")) * fourier(NUMBERS, 4, length_scale=0.4),
    "counting times cosines": onehot(some("sex")) * cosines(NUMBERS, 2, pair_order=1),
    "dense times counting": hermite(["age"], 2) * onehot(some("height")),
    "dense times dense": fourier(["age"], 4) * hermite(["height"], 2),
    "three in a row": hermite(["age"], 1) * hermite(["height"], 1) * onehot(some("sex")),
    "scaled product": scale(hermite(["age"], 2) * onehot(some("sex")), 0.4),
}
LEAVES = INNER | {
    "by label, fourier": by_label(INNER["fourier"], "sex", 2),
    "by label, cosines": by_label(INNER["cosines"], "sex", 2),
    "by label, hermite": by_label(INNER["hermite"], "sex", 2),
    "by label, count": by_label(Count(), "grade", 3),
    "by label, histograms": by_label(onehot(some("age", "height")), "sex", 2),
    "by label, merged": by_label(INNER["merged"], "grade", 3),
    "by label, scaled": by_label(INNER["scaled"], "sex", 2),
    "by label, product": by_label(INNER["dense times counting"], "sex", 2),
    "by a label with missing": by_label(INNER["fourier of one"], "ill", 3),
    "by numbers": by_label(hermite(["height"], 2), "age", 4),
}
COARSE = {
    "age": np.array([0, 1, 1, 0]),
    "height": np.array([0, 0, 1, 1, 1]),
    "grade": np.zeros(3, int),
}


@pytest.fixture
def fine(monkeypatch):
    monkeypatch.setattr(expect, "POINTS", FINE)


@pytest.mark.usefixtures("fine")
@pytest.mark.parametrize("coarse", [None, COARSE], ids=["cells", "atoms"])
@pytest.mark.parametrize("part", INNER.values(), ids=INNER.keys())
def test_the_mean_in_every_component_is_that_of_enumeration(part, coarse):
    small = Small(coarse)
    found, wanted = small.closed(part), small.by_component(part)
    assert found.shape == wanted.shape == (K, part.dim)
    assert found == pytest.approx(wanted, abs=2e-4)


@pytest.mark.usefixtures("fine")
@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES.keys())
def test_the_term_has_no_misfit_at_its_own_mixture_and_the_stated_one_elsewhere(leaf):
    small = Small()
    assert has_closed_form(leaf)
    mean, deviation = small.mean(leaf), 0.01
    term = embedding_term(leaf, mean, deviation, SCHEMA, small.atoms)
    assert float(term(*small.tensors(), torch.Generator())) == 0.0

    moved = mean + 5 * deviation * np.random.default_rng(1).normal(size=len(mean))
    term = embedding_term(leaf, moved, deviation, SCHEMA, small.atoms)
    tables = ((moved - mean) / deviation).reshape(
        leaf.classes if isinstance(leaf, ByLabel) else 1, -1
    )
    wanted = np.maximum((tables**2).sum(1) - tables.shape[1], 0).sum()
    assert float(term(*small.tensors(), torch.Generator())) == pytest.approx(
        wanted, rel=0.02, abs=0.1
    )


@pytest.mark.usefixtures("fine")
def test_a_release_of_maps_side_by_side_is_fitted_by_its_own_mixture():
    small, rows = Small(), 10_000
    parts = [
        LEAVES["fourier"],
        LEAVES["histograms"],
        LEAVES["by label, scaled"],
        race(["age"], 2, 3),  # has no closed form, and is passed over
        LEAVES["scaled product"],
        LEAVES["hermite of ranks"],
    ]
    steps = np.concatenate([np.full(part.dim, grid_of(part).steps) for part in parts])
    mean = np.concatenate([small.mean(part) for part in parts])
    sums = np.rint(mean * rows * steps).astype(np.int64)
    scales = tuple(20.0 * grid_of(part).steps for part in parts)
    block = Block("all", concat(*parts), sums, scales, "discrete gaussian")
    statement = Statement(1e6, 1e-6, simulated=True)
    release = Release(SCHEMA, (block,), statement, rows, "2024-01-01", {})
    atoms, _ = atoms_of(release)
    assert {n: a.tolist() for n, a in atoms.of_cell.items()} == {
        n: list(range(c)) for n, c in CELLS.items()
    }
    terms = _terms(release, atoms)
    assert len(terms) == len(parts) - 1
    found = [float(term(*small.tensors(), torch.Generator())) for term in terms]
    assert found == pytest.approx([0] * len(terms), abs=1e-4)


@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES.keys())
def test_every_coordinate_is_looked_at(leaf):
    small = Small()
    mean = small.mean(leaf)
    for place in range(leaf.dim):
        moved = mean.copy()
        moved[place] += 1.0
        term = embedding_term(leaf, moved, 0.01, SCHEMA, small.atoms)
        assert float(term(*small.tensors(), torch.Generator())) > 1000


@pytest.mark.parametrize("name", [name for name in LEAVES if name != "count"])
def test_gradients_are_finite_and_point_somewhere(name):
    leaf, small = LEAVES[name], Small()
    moved = small.mean(leaf) + 0.3
    term = embedding_term(leaf, moved, 0.01, SCHEMA, small.atoms)
    for size in (1.0, 200.0):  # at 200 most probabilities are zero
        dice = torch.Generator().manual_seed(1)
        logits = (size * torch.randn(K, small.atoms.total, generator=dice)).requires_grad_()
        sizes = torch.zeros(K, requires_grad=True)
        parts = [logits[:, place].softmax(-1) for place in small.atoms.slices.values()]
        found = term(torch.softmax(sizes, 0), torch.cat(parts, -1), torch.Generator())
        found.backward()
        assert found.isfinite()
        assert logits.grad.isfinite().all()
        assert sizes.grad.isfinite().all()
        if size == 1.0:
            assert logits.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["fourier", "fourier of one", "fourier of days", "hermite"])
def test_the_usual_points_of_a_cell_are_enough(name):
    # Against a coordinate's height, √(2/D) or 1: a hundredth is far below the noise of a release.
    part, small = INNER[name], Small()
    height = sqrt(2 / part.features) if "fourier" in name else 1.0
    assert small.closed(part) == pytest.approx(small.by_component(part), abs=0.01 * height)


def test_waves_shorter_than_a_cell_average_out():
    # A length scale of a hundredth turns a quarter of the range several times over.
    part, small = fourier(["height"], 200, length_scale=0.01, seed=5), Small()
    height = sqrt(2 / part.features)
    assert small.closed(part) == pytest.approx(small.by_component(part), abs=0.02 * height)


def test_the_points_of_a_cell_lie_in_it():
    for name in ("age", "height", "born"):
        column = SCHEMA.columns[name]
        low, high = column.limits
        points = expect._points(column).numpy() * (high - low) + low
        edges = np.array(bin_edges(column))
        assert points.shape[0] == column.present_cells
        for cell, (left, right) in enumerate(pairwise(edges)):
            assert (points[cell] > left - 1e-3).all()
            assert (points[cell] < right + 1e-3).all()
    assert expect._points(SCHEMA.columns["grade"]).flatten().tolist() == [0, 0.5, 1]
    assert expect._points(SCHEMA.columns["ill"]).flatten().tolist() == [0, 1]


# --- where there is none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "leaf",
    [
        race(["age"], 2, 3),
        scale(race(["age"], 2, 3), 2.0),
        by_label(race(["age"], 2, 3), "sex", 2),
        Product(onehot(some("sex")), race(["age"], 2, 3)),
        Product(onehot(some("sex")), onehot(some("sex"))),
        Product(onehot(some("age")), hermite(["age"], 1)),
        Product(hermite(["height"], 1), hermite(["height"], 2)),
        by_label(onehot(some("sex", "age")), "sex", 2),
        by_label(fourier(["ill"], 2), "ill", 3),
        by_label(hermite(["grade"], 1), "grade", 3),
        by_label(cosines(["grade", "age"], 1), "grade", 3),
        Product(onehot(some("age")), cosines(["age"], 1)),
        by_label(hermite(["age"], 1) * onehot(some("sex")), "age", 4),
    ],
)
def test_maps_that_read_a_column_twice_or_hash_have_no_closed_form(leaf):
    assert not has_closed_form(leaf)


def test_multiplying_means_would_be_wrong_where_a_label_is_read_twice():
    # Within a component a column is not independent of itself.
    leaf, small = by_label(hermite(["grade"], 1), "grade", 3), Small()
    apart = np.einsum(
        "k,kc,kd->cd", small.weights, small.cells("grade"), small.by_component(leaf.inner)
    )
    assert np.abs(apart.flatten() - small.mean(leaf)).max() > 0.02
