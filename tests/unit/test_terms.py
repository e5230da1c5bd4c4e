"""The closed form of counts: a mixture's tables are what enumerating every cell gives.

A small mixture is written down, the exact mean of every feature is summed over all of its cells
with the feature map itself, and the terms have to agree: no misfit against these means, and the
misfit of the formula against any others.
"""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
import torch
from scipy.special import rel_entr

from aquatint.analyst.synthesize import terms as module
from aquatint.analyst.synthesize.atoms import Atoms, atoms_of
from aquatint.analyst.synthesize.dependence import Dependence, dependence
from aquatint.analyst.synthesize.excess import TablesAboveFloor, above_floor
from aquatint.analyst.synthesize.mixture import _terms
from aquatint.analyst.synthesize.terms import Joint, Pairs, Singles, terms_of, view_of
from aquatint.features import Count, Rows, concat, marginals, onehot, pairs, scale, triples
from aquatint.features.grid import grid_of
from aquatint.release.histograms import counting_parts, histograms, on_simplex
from aquatint.release.model import Block, Release, Statement
from aquatint.schema import Schema

pytestmark = pytest.mark.usefixtures("one_thread")

SIZES = {"a": 4, "b": 3, "c": 2, "d": 5}
DEVIATION = 0.01
K = 3


def schema_of(sizes):
    """Categorical columns; the last cell of the first one is missing."""
    columns = {
        name: {"kind": "categorical", "categories": [f"{name}{i}" for i in range(size)]}
        for name, size in sizes.items()
    }
    first = next(iter(columns.values()))
    first["categories"].pop()
    first["missing"] = True
    return Schema.from_dict(
        {"name": "x", "privacy": {"protects": "replace one row"}, "columns": columns}
    )


def dirichlet(shape, seed):
    drawn = np.random.default_rng(seed).gamma(1.0, size=shape) + 0.01
    return drawn / drawn.sum(-1, keepdims=True)


class Small:
    """A mixture over atoms, with the probabilities of all of its rows."""

    def __init__(self, of_cell=None, sizes=SIZES, seed=0):
        self.sizes = sizes
        cells = {n: np.arange(s) for n, s in sizes.items()} | (of_cell or {})
        within = {}
        for place, (name, atom) in enumerate(cells.items()):
            drawn = dirichlet(len(atom), 100 + place)
            within[name] = drawn / np.bincount(atom, weights=drawn)[atom]
        self.atoms = Atoms(cells, within)
        self.weights = dirichlet(K, seed)
        self.probabilities = np.concatenate(
            [dirichlet((K, s.stop - s.start), seed + s.start) for s in self.atoms.slices.values()],
            1,
        )

    def tensors(self):
        return torch.from_numpy(self.weights).float(), torch.from_numpy(self.probabilities).float()

    def rows(self):
        """Every combination of cells, and its probability."""
        every = np.array(list(product(*(range(s) for s in self.sizes.values()))))
        codes = {n: torch.from_numpy(every[:, i]) for i, n in enumerate(self.sizes)}
        chance = np.tile(self.weights[:, None], len(every))
        for name, code in codes.items():
            seen = self.probabilities[:, self.atoms.slices[name]]
            chance = chance * self.atoms.spread(name, seen)[:, code.numpy()]
        return Rows(codes, {}, len(every)), chance.sum(0)

    def mean(self, feature_map):
        rows, chance = self.rows()
        assert chance.sum() == pytest.approx(1)
        return chance @ feature_map(rows).double().numpy()


def misfit(terms, weights, probabilities):
    generator = torch.Generator().manual_seed(0)
    return sum(float(term(weights, probabilities, generator)) for term in terms)


def by_hand(part, shares, mean):
    """The misfit as the module states it, from tables alone.

    Joint tables count above their noise floor, plain histograms and those by the classes of one
    common column in full; so do the histograms that averaging the joint tables gives, by inverse
    variance.
    """
    tables = {
        s: (shares[part.set_slice(s)] - mean[part.set_slice(s)]).reshape(
            [part.counted[n] for n in s]
        )
        / DEVIATION
        for s in part.sets
    }
    total = 0.0
    two = [set(s) for s in part.sets if len(s) == 2]
    star = len(two) > 1 and bool(set.intersection(*two))
    for columns, residual in tables.items():
        squares = (residual**2).sum()
        plain = len(columns) == 1 or (star and len(columns) == 2)
        total += squares if plain else max(0.0, squares - residual.size)
    three = [set(s) for s in part.sets if len(s) == 3]
    shared = set.intersection(*three) if three else set()
    common = next((n for s in part.sets if len(s) == 3 for n in reversed(s) if n in shared), None)
    for size, kept in ((2, ()), (3, (common,))):
        sets = [s for s in part.sets if len(s) == size]
        if (size == 3 and common is None) or (size == 2 and star):
            continue
        for name in {n for s in sets for n in s} - set(kept):
            wanted, weight = 0.0, 0.0
            for s in (s for s in sets if name in s):
                left = [*kept, name]
                dropped = tuple(i for i, n in enumerate(s) if n not in left)
                summed = tables[s].sum(dropped)
                order = [n for n in s if n in left]
                summed = summed if order == left else summed.T
                cells = prod(part.counted[s[i]] for i in dropped)
                wanted, weight = wanted + summed / cells, weight + 1 / cells
            total += ((wanted / weight) ** 2).sum() * weight
    return total


FULL = {name: tuple(range(size)) for name, size in SIZES.items()}
PARTS = {
    "histograms": onehot(SIZES),
    "some histograms": marginals(SIZES, [("c",), ("a",)]),
    "all pairs": pairs(SIZES),
    "chosen pairs": pairs(SIZES, [("d", "a"), ("a", "b"), ("c", "d")]),
    "pairs with a label": pairs(SIZES, [("d", "a"), ("a", "b"), ("c", "a")]),
    "one triple": triples(SIZES, [("b", "a", "c")]),
    "triples with a label": triples(SIZES, [("a", "b", "d"), ("c", "a", "d"), ("b", "d", "c")]),
    "triples with the label first": triples(SIZES, [("c", "a", "b"), ("c", "d", "a")]),
    "triples that share nothing": triples(
        SIZES, [("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d"), ("a", "b", "d")]
    ),
    "all four": marginals(SIZES, [("d", "a", "c", "b")]),
    "everything": marginals(
        SIZES, [("a",), ("c",), ("a", "b"), ("d", "b"), ("a", "c", "d"), ("a", "b", "c", "d")]
    ),
}
MERGED = {
    "merged pairs": pairs(SIZES).merge({"a": (0, 1, 1, 2), "d": (2, 0, 1, 1, 0)}),
    "merged pairs with a label": pairs(SIZES, [("d", "a"), ("a", "b")]).merge(
        {"a": (1, 0, 0, 1), "d": (2, 0, 1, 1, 0)}
    ),
    "merged triples": triples(SIZES, [("a", "d", "b"), ("c", "d", "b")]).merge(
        {"a": (1, 0, 0, 1), "b": (0, 1, 0), "d": (0, 0, 0, 1, 2)}
    ),
    "merged to nothing": pairs(SIZES).merge({"c": (0, 0), "b": (0, 0, 0)}),
    "merged, all four": marginals(SIZES, [("a", "b", "c", "d")]).merge({"d": (0, 1, 0, 1, 0)}),
}
both = pytest.mark.parametrize("part", (PARTS | MERGED).values(), ids=(PARTS | MERGED).keys())


@both
def test_the_mixture_itself_has_no_misfit(part):
    small = Small()
    terms = terms_of(part, small.mean(part), DEVIATION, small.atoms)
    assert misfit(terms, *small.tensors()) < 1e-6
    for term in terms:
        if not isinstance(term, Singles):  # above the floor means nothing below it, exactly
            assert float(term(*small.tensors(), torch.Generator())) == 0.0


@both
@pytest.mark.parametrize("size", [0.5, 2, 30])
def test_the_misfit_is_the_stated_one(part, size):
    small = Small()
    mean = small.mean(part)
    noise = np.random.default_rng(5).normal(size=len(mean))
    shares = mean + size * DEVIATION * noise
    found = misfit(terms_of(part, shares, DEVIATION, small.atoms), *small.tensors())
    assert found == pytest.approx(by_hand(part, shares, mean), rel=1e-4, abs=1e-5)


@both
def test_every_count_is_looked_at(part):
    small = Small()
    mean = small.mean(part)
    for place in range(len(mean)):
        shares = mean.copy()
        shares[place] += 40 * DEVIATION
        assert misfit(terms_of(part, shares, DEVIATION, small.atoms), *small.tensors()) > 100


@both
def test_gradients_are_finite_and_vanish_only_where_they_should(part):
    small = Small()
    mean = small.mean(part)
    far = mean + DEVIATION * 30 * np.random.default_rng(6).normal(size=len(mean))
    for shares in (mean, far):
        terms = terms_of(part, shares, DEVIATION, small.atoms)
        for scale_of_logits in (1.0, 200.0):  # at 200 most probabilities are zero
            logits = torch.randn(K, small.atoms.total, generator=torch.Generator().manual_seed(1))
            logits = (scale_of_logits * logits).requires_grad_()
            sizes = torch.zeros(K, requires_grad=True)
            parts = [logits[:, place].softmax(-1) for place in small.atoms.slices.values()]
            mixture = torch.softmax(sizes, 0), torch.cat(parts, -1)
            found = sum(term(*mixture, torch.Generator()) for term in terms)
            found.backward()
            assert found.isfinite()
            assert logits.grad.isfinite().all()
            assert sizes.grad.isfinite().all()
            if scale_of_logits == 1.0:
                assert logits.grad.abs().max() > 0


@both
def test_fits_side_by_side_are_fits_one_by_one(part):
    small = Small()
    noise = np.random.default_rng(5).normal(size=part.dim)
    terms = terms_of(part, small.mean(part) + 3 * DEVIATION * noise, DEVIATION, small.atoms)
    weights, probabilities = small.tensors()
    other = probabilities.flip(0)
    one_by_one = misfit(terms, weights, probabilities) + misfit(terms, weights, other)
    both_at_once = misfit(
        terms, torch.stack([weights, weights]), torch.stack([probabilities, other])
    )
    assert both_at_once == pytest.approx(one_by_one, rel=1e-5)


@pytest.mark.parametrize("fits", [(), (2,)])
def test_the_gradient_written_out_is_the_gradient(fits):
    dice = torch.Generator().manual_seed(3)

    def drawn(*shape):
        return torch.rand(shape, generator=dice, dtype=torch.float64)

    of_column = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 1, 1, 2])).double()
    measured = of_column @ (1 - torch.eye(3)).double() @ of_column.T
    seen, mixed = drawn(*fits, K, 6).requires_grad_(), drawn(*fits, 2, K).requires_grad_()
    target = torch.stack([seen.detach().reshape(-1, 6)[:K].T @ drawn(K, 6)] * 2)
    target[:, :2, 2:5] = 5.0  # one table is far off, others are within their noise
    target = torch.triu(target) + torch.triu(target, 1).mT
    cells = of_column.T @ measured @ of_column * 2
    fixed = (target, cells, 2.0, of_column)
    assert torch.autograd.gradcheck(
        lambda s, m: TablesAboveFloor.apply(s, m, *fixed), (seen, mixed), fast_mode=False
    )
    joint = (seen[..., None, :, :] * mixed[..., None]).mT @ seen[..., None, :, :]
    squares = (((joint - target) * measured / 2) ** 2).sum(-3)
    plain = above_floor(of_column.T @ squares @ of_column, cells) / 2  # each table is there twice
    assert torch.isclose(TablesAboveFloor.apply(seen, mixed, *fixed), plain)
    assert 0 < int((of_column.T @ squares @ of_column > cells).sum()) < 6 * max(1, *fits, 1)


def test_kinds_of_terms():
    small = Small()

    def kinds(part):
        return [type(t) for t in terms_of(part, small.mean(part), DEVIATION, small.atoms)]

    assert kinds(PARTS["histograms"]) == [Singles]
    assert kinds(PARTS["all pairs"]) == [Pairs, Singles]
    assert kinds(PARTS["chosen pairs"]) == [Pairs, Singles]
    assert kinds(pairs(SIZES, [("d", "a")])) == [Pairs, Singles]
    assert kinds(PARTS["pairs with a label"]) == [Singles]
    assert kinds(PARTS["triples with a label"]) == [Pairs, Singles]
    assert kinds(PARTS["triples that share nothing"]) == [Joint] * 4


# --- atoms --------------------------------------------------------------------------------------

# The atoms of "merged pairs", numbered in the order of the cells; its groups of d are not.
ATOMS = {"a": np.array([0, 1, 1, 2]), "d": np.array([0, 1, 2, 2, 1])}


def test_merged_counts_of_atoms():
    part = MERGED["merged pairs"]
    small = Small(ATOMS)
    terms = terms_of(part, small.mean(part), DEVIATION, small.atoms)
    assert misfit(terms, *small.tensors()) < 1e-6
    view = view_of(part, small.atoms, ("a", "b", "d"))
    seen = view(small.tensors()[1])
    assert seen.shape == (K, 3 + 3 + 3)
    assert seen.sum(1).tolist() == pytest.approx([3] * K)


def test_atoms_finer_than_a_blocks_groups_are_added_up():
    small = Small(ATOMS)
    part = pairs({"a": 4, "b": 3}).merge({"a": (1, 0, 0, 1)})  # atoms 0 and 2 are one group here
    terms = terms_of(part, small.mean(part), DEVIATION, small.atoms)
    assert misfit(terms, *small.tensors()) < 1e-6


def test_fine_histograms_are_added_up_to_atoms_with_their_noise():
    small = Small(ATOMS)
    part = onehot(SIZES)
    mean = small.mean(part)
    assert misfit(terms_of(part, mean, DEVIATION, small.atoms), *small.tensors()) < 1e-6
    shares = mean.copy()
    shares[1] += 3 * DEVIATION  # cells 1 and 2 of a are one atom: twice the variance
    found = misfit(terms_of(part, shares, DEVIATION, small.atoms), *small.tensors())
    assert found == pytest.approx(9 / 2, rel=1e-4)


def test_more_runs_of_atoms_than_are_worth_slicing():
    names = [f"c{i}" for i in range(2 * module.MOST_RUNS + 3)]
    atoms = Atoms({n: np.arange(2) for n in names}, {n: np.ones(2) for n in names})
    probabilities = torch.arange(2.0 * len(names))[None]
    for chosen in (names[::2], names[1:4]):
        view = view_of(onehot(dict.fromkeys(names, 2)), atoms, tuple(chosen))
        wanted = [v for n in chosen for v in probabilities[0, atoms.slices[n]].tolist()]
        assert view(probabilities)[0].tolist() == wanted
        assert len(view.runs) == (1 if len(chosen) == 3 else len(chosen))


# --- tables too wide for one step ---------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [{"a": 7, "b": 8}, {"a": 3, "b": 30, "c": 2}, dict.fromkeys("abcdef", 4)]
)
def test_a_random_part_of_the_columns_gives_the_same_on_average(monkeypatch, sizes):
    small = Small(sizes=sizes)
    part = pairs(sizes)
    mean = small.mean(part)
    shares = mean + 5 * DEVIATION * np.random.default_rng(8).normal(size=len(mean))
    (term, _) = terms_of(part, shares, DEVIATION, small.atoms)
    whole = float(term(*small.tensors(), torch.Generator()))
    monkeypatch.setattr(module, "WIDEST", 10)
    generator = torch.Generator().manual_seed(0)
    parts = [float(term(*small.tensors(), generator)) for _ in range(600)]
    error = 5 * np.std(parts) / np.sqrt(len(parts))
    assert np.mean(parts) == pytest.approx(whole, abs=error, rel=1e-4)


# --- a whole release ----------------------------------------------------------------------------


def release_of(mean, maps, schema, rows=10_000, scale_in_rows=20.0):
    """A release without noise, which still says what noise it would have had."""
    blocks = []
    for name, feature_map in maps.items():
        parts = getattr(feature_map, "parts", (feature_map,))
        steps = np.concatenate([np.full(p.dim, grid_of(p).steps) for p in parts])
        whole = np.rint(mean(feature_map) * rows * steps).astype(np.int64)
        scales = tuple(scale_in_rows * grid_of(p).steps for p in parts)
        blocks.append(Block(name, feature_map, whole, scales, "discrete gaussian"))
    statement = Statement(1e6, 1e-6, simulated=True)
    return Release(schema, tuple(blocks), statement, rows, "2024-01-01", {})


def test_a_release_of_every_kind_of_count_is_fitted_by_its_own_mixture():
    small = Small()
    maps = {
        "count": Count(),
        "both": concat(onehot(SIZES), scale(PARTS["triples with a label"], 0.3), Count()),
        "scaled": scale(pairs(SIZES), 7.5),
        "merged": MERGED["merged pairs"],
    }
    release = release_of(small.mean, maps, schema_of(SIZES))
    atoms, shares = atoms_of(release)
    assert {n: a.tolist() for n, a in atoms.of_cell.items()} == {n: [*g] for n, g in FULL.items()}
    terms = _terms(release, atoms)
    assert misfit(terms, *small.tensors()) < 1e-4
    wanted = np.concatenate([small.mean(onehot({n: s})) for n, s in SIZES.items()])
    assert shares == pytest.approx(wanted, abs=1e-4)


def test_counts_and_their_noise_are_those_without_the_weight():
    small = Small()
    feature_map = concat(Count(), scale(pairs(SIZES), 0.25), onehot(SIZES))
    release = release_of(small.mean, {"all": feature_map}, schema_of(SIZES))
    (first, joint, wide), (second, single, narrow) = counting_parts(release.blocks[0])
    assert (first, second) == (pairs(SIZES), onehot(SIZES))
    assert joint == pytest.approx(10_000 * small.mean(pairs(SIZES)), abs=1e-4)
    assert single == pytest.approx(10_000 * small.mean(onehot(SIZES)), abs=1e-4)
    assert (wide, narrow) == pytest.approx((20 / 0.25, 20))


def test_histograms_are_pooled_by_inverse_variance():
    small = Small()
    maps = {"one": onehot(SIZES), "two": scale(onehot({"a": 4}), 0.5), "joint": pairs(SIZES)}
    release = release_of(small.mean, maps, schema_of(SIZES))
    one, two, joint = release.blocks
    higher = Block("two", two.map, two.integers + two.integers.max(), two.scales, two.noise)
    found = histograms([one, higher, joint])
    assert list(found) == list(SIZES)
    low, high = one.sum[:4], higher.sum / 0.5  # with noise of 20 and of 40 rows
    assert found["a"][0] == pytest.approx((low / 20**2 + high / 40**2) / (20**-2 + 40**-2))
    assert found["a"][1] == pytest.approx((20**-2 + 40**-2) ** -0.5)
    assert found["b"] == (pytest.approx(one.sum[4:7]), pytest.approx(20))


@pytest.mark.parametrize("values", [[0.5, 0.7], [-1, 3, 0.2], [0, 0, 0], [-5, -5], [1], [0.2] * 5])
def test_the_nearest_shares_are_found(values):
    values = np.array(values, dtype=float)
    found = on_simplex(values)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(len(values)), 2000)
    distance = ((values - found) ** 2).sum()
    assert (((values - others) ** 2).sum(1) >= distance - 1e-9).all()


def test_the_atoms_of_a_release_are_what_its_blocks_tell_apart():
    small = Small()
    one = pairs({"a": 4, "d": 5}).merge({"a": (0, 0, 0, 1), "d": (0, 0, 1, 1, 1)})
    two = pairs({"a": 4, "b": 3}).merge({"a": (0, 1, 1, 1), "b": (0, 0, 0)})
    release = release_of(small.mean, {"h": onehot(SIZES), "1": one, "2": two}, schema_of(SIZES))
    atoms, shares = atoms_of(release)
    assert atoms.of_cell["a"].tolist() == [0, 1, 1, 2]
    assert atoms.of_cell["b"].tolist() == [0, 0, 0]
    assert atoms.of_cell["c"].tolist() == [0, 0]  # a histogram alone: one atom
    assert atoms.of_cell["d"].tolist() == [0, 0, 1, 1, 1]
    histogram = small.mean(onehot({"a": 4}))
    assert shares[:3] == pytest.approx([histogram[0], histogram[1:3].sum(), histogram[3]], abs=1e-4)
    for name, within in atoms.within.items():
        assert np.bincount(atoms.of_cell[name], weights=within) == pytest.approx(1)
    assert atoms.within["a"][1:3] == pytest.approx(histogram[1:3] / histogram[1:3].sum(), abs=0.01)


def test_within_an_atom_noise_is_not_believed():
    small = Small()
    maps = {"h": onehot(SIZES)}
    release = release_of(small.mean, maps, schema_of(SIZES), scale_in_rows=1e5)
    atoms, _ = atoms_of(release)
    for within in atoms.within.values():
        assert within == pytest.approx(1 / len(within))


def test_a_count_in_the_wrong_place_would_be_found():
    small = Small()
    release = release_of(small.mean, {"two": onehot(SIZES) + pairs(SIZES)}, schema_of(SIZES))
    (block,) = release.blocks
    swapped = np.roll(block.integers, 1)
    wrong = Release(
        release.schema,
        (Block("two", block.map, swapped, block.scales, block.noise),),
        release.statement,
        release.rows,
        release.created,
        {},
    )
    atoms, _ = atoms_of(wrong)
    assert misfit(_terms(wrong, atoms), *small.tensors()) > 1000


@pytest.mark.parametrize(("columns", "price"), [(1, 30), (50, 30), (75, 45), (100, 60), (617, 60)])
def test_dependence_has_a_higher_price_in_wide_tables(columns, price):
    assert dependence(columns).price == pytest.approx(price)


def test_the_price_of_dependence_is_the_information_of_the_components_and_has_its_gradient():
    dice = torch.Generator().manual_seed(4)
    logits = torch.randn(2, K, 5, generator=dice, dtype=torch.float64)
    sizes = torch.randn(2, K, generator=dice, dtype=torch.float64)

    def price(sizes, logits):
        columns = [torch.softmax(part, -1) for part in torch.split(logits, [2, 3], -1)]
        return Dependence(1.0)(torch.softmax(sizes, -1), torch.cat(columns, -1), dice)

    found = price(sizes, logits).item()
    wanted = 0.0
    for size, logit in zip(sizes, logits, strict=True):
        weights = torch.softmax(size, -1).numpy()
        for part in np.split(logit.numpy(), [2], axis=-1):
            shares = np.exp(part) / np.exp(part).sum(-1, keepdims=True)
            wanted += sum(
                w * rel_entr(p, weights @ shares).sum()
                for w, p in zip(weights, shares, strict=True)
            )
    assert found == pytest.approx(wanted, rel=1e-6)
    assert torch.autograd.gradcheck(price, (sizes.requires_grad_(), logits.requires_grad_()))
    alike = logits[:, :1].expand(-1, K, -1)
    assert abs(price(sizes, alike).item()) < 1e-8


def test_components_of_one_class_each_are_looked_at_class_by_class():
    """What is left out is zero: the same misfit and gradients, with less work."""
    generator = torch.Generator().manual_seed(3)
    fits, classes, families, width, columns = 2, 3, 4, 7, 3
    seen = torch.rand(fits, classes * families, width, generator=generator)
    member = torch.eye(classes).repeat_interleave(families, 1)
    mixed = member * torch.rand(fits, 1, classes * families, generator=generator)
    target = torch.rand(classes, width, width, generator=generator)
    target = target + target.mT
    of_column = torch.repeat_interleave(torch.eye(columns), torch.tensor([3, 2, 2]), 0)
    cells = classes * of_column.sum(0)[:, None] * of_column.sum(0)
    found = []
    for alone in (False, True):
        parts = [part.clone().requires_grad_() for part in (seen, mixed)]
        misfit = TablesAboveFloor.apply(*parts, target, cells, 0.1, of_column, alone)
        misfit.backward()
        found.append((misfit.detach(), parts[0].grad, parts[1].grad * member))
    for whole, sliced in zip(*found, strict=True):
        torch.testing.assert_close(sliced, whole)


def test_classes_in_another_order_than_the_atoms_are_not_taken_apart():
    small = Small()
    part = triples(SIZES, [("a", "b", "d"), ("c", "a", "d"), ("b", "d", "c")])
    terms = terms_of(part, np.zeros(part.dim), DEVIATION, small.atoms)
    (told,) = (term for term in terms if isinstance(term, Pairs))
    assert told.by_one_class().alone
    turned = replace(told.classes, atoms=told.classes.atoms.flip(0))
    assert not replace(told, classes=turned).by_one_class().alone
    assert not replace(told, classes=None).by_one_class().alone
