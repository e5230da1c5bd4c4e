"""One protocol that every feature map keeps to."""

import json
from math import inf

import pytest
import torch

from aquatint import features
from aquatint.errors import PlanError
from aquatint.features import FeatureMap, Rows, from_spec, leaves
from aquatint.features.algebra import ByLabel, Concat, Product, Scaled
from aquatint.features.grid import grid_of, is_counting
from aquatint.features.moments import SecondMoment
from aquatint.features.perceptual import Perceptual
from aquatint.features.projected import ProjectedMoments
from aquatint.features.tones import Tones

DIGESTED = ("fourier", "race")
LOOSE = ("label", "classes")
OPTIONAL = ("groups",)  # a spec without them is another map, and a whole one


def everything_inside(feature_map):
    yield feature_map
    inner = {
        Scaled: lambda m: [m.inner],
        ByLabel: lambda m: [m.inner],
        SecondMoment: lambda m: [m.inner],
        Product: lambda m: [m.left, m.right],
        Concat: lambda m: m.parts,
    }
    for part in inner.get(type(feature_map), lambda _: [])(feature_map):
        yield from everything_inside(part)


def subclasses(base):
    for child in base.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_feature_map_of_the_library_has_an_example(kit):
    assert features  # importing the package has defined them all
    ours = {c for c in subclasses(FeatureMap) if c.__module__.startswith("aquatint.")}
    ours -= {Perceptual, ProjectedMoments, Tones}  # of images: test_image_maps.py
    shown = {type(m) for example in kit.examples.values() for m in everything_inside(example)}
    assert ours
    assert {c.__name__ for c in ours - shown} == set()


def test_the_shape_and_type_are_as_declared(example, kit):
    for count in (0, 1, 50):
        found = example(kit.random_rows(count))
        assert found.shape == (count, example.dim)
        assert found.dtype == torch.float32


def test_a_map_is_a_function_of_each_row_alone(example, kit):
    rows = kit.random_rows(40)
    together = example(rows).clone()
    alone = torch.cat([example(rows.slice(i, i + 1)).clone() for i in range(40)])
    assert torch.equal(together, alone)


def test_a_result_is_not_overwritten_by_the_next_call(example, kit):
    for count in (1, 30):
        first = example(kit.random_rows(count, seed=1))
        kept = first.clone()
        example(kit.random_rows(count, seed=2))
        assert torch.equal(first, kept)


def test_the_spec_is_json_and_rebuilds_the_map(example, kit):
    again = from_spec(json.loads(json.dumps(example.spec(), allow_nan=False)))
    assert again == example
    rows = kit.random_rows(20)
    assert torch.equal(again(rows), example(rows))
    assert again.bound == example.bound


def test_an_altered_spec_is_refused(example):
    spec = example.spec()
    altered = [
        {**spec, "more": 1},
        {**spec, "kind": "unheard-of"},
        {**spec, "kind": ["count"]},
        *({k: v for k, v in spec.items() if k != gone} for gone in spec if gone not in OPTIONAL),
        *({**spec, key: None} for key in spec if key not in LOOSE),
    ]
    if spec["kind"] in DIGESTED:
        altered += [{**spec, "seed": spec["seed"] + 1}, {**spec, "digest": "0" * 16}]
    for wrong in altered:
        with pytest.raises(PlanError):
            from_spec(wrong)


def test_a_spec_larger_than_allowed_is_refused(example):
    with pytest.raises(PlanError, match="more than"):
        from_spec(example.spec(), limit=example.dim - 1)


def test_random_rows_keep_the_bound(example, kit):
    found = example(kit.random_rows(2000)).double()
    bound = example.bound
    slack = 1 + 1e-6
    assert bound.dim == example.dim
    assert bound.low <= 0 <= bound.high
    assert found.norm(dim=1).max() <= float(bound.l2_squared) ** 0.5 * slack
    assert found.abs().sum(dim=1).max() <= float(bound.l1) * slack
    assert found.min() >= float(bound.low) * slack
    assert found.max() <= float(bound.high) * slack
    apart = found[:1000] - found[1000:]
    assert apart.norm(dim=1).max() <= float(bound.replace_l2_squared) ** 0.5 * slack
    assert apart.abs().sum(dim=1).max() <= float(bound.replace_l1) * slack


def test_missing_values_give_finite_features(example, kit):
    rows = kit.random_rows(10, missing=1.0)
    assert all(column.isnan().all() for column in rows.values.values())
    assert example(rows).isfinite().all()


def test_only_the_columns_it_says_it_reads_are_needed(example, kit):
    rows = kit.random_rows(30)
    assert torch.equal(example(kit.restricted(rows, example)), example(rows))


def test_every_column_it_says_it_reads_is_needed(example, kit):
    rows = kit.restricted(kit.random_rows(5), example)
    for name in rows.codes:
        fewer = {n: c for n, c in rows.codes.items() if n != name}
        with pytest.raises(KeyError, match=name):
            example(Rows(fewer, rows.values, 5))
    for name in rows.values:
        fewer = {n: c for n, c in rows.values.items() if n != name}
        with pytest.raises(KeyError, match=name):
            example(Rows(rows.codes, fewer, 5))


def reads_values_smoothly(feature_map):
    kinds = {type(m).__name__ for m in everything_inside(feature_map)}
    return bool(kinds & {"Fourier", "Cosines", "Hermite", "Locations", "Smooth"})


def test_gradients_reach_the_values_and_are_finite(example, kit):
    if not reads_values_smoothly(example):
        pytest.skip("reads no values smoothly")
    rows = kit.restricted(kit.random_rows(20, missing=0.0), example)
    values = {n: v.clone().requires_grad_() for n, v in rows.values.items()}
    weights = torch.linspace(0.5, 1.5, example.dim)
    (example(Rows(rows.codes, values, 20)) @ weights).sum().backward()
    for name, value in values.items():
        assert value.grad.isfinite().all(), name
        assert value.grad.abs().max() > 0, name


def test_the_gradient_path_gives_the_same_features(example, kit):
    if not reads_values_smoothly(example):
        pytest.skip("reads no values smoothly")
    rows = kit.random_rows(50)
    values = {n: v.clone().requires_grad_() for n, v in rows.values.items()}
    found = example(Rows(rows.codes, values, 50)).detach()
    tolerance = 1e-5 * max(1.0, float(example.bound.high))
    assert (found - example(rows)).abs().max() < tolerance


def test_gradients_reach_soft_codes_and_are_finite(example, kit):
    codes, _ = example.reads
    if not codes:
        pytest.skip("reads no codes")
    rows = kit.random_rows(20)
    soft = {n: torch.softmax(torch.randn(20, kit.cells[n]), dim=1).requires_grad_() for n in codes}
    weights = torch.linspace(0.5, 1.5, example.dim)
    (example(Rows(soft, rows.values, 20)) @ weights).sum().backward()
    for name, weight in soft.items():
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().max() > 0, name


def test_hard_codes_are_soft_codes_at_the_corners(example, kit):
    codes, _ = example.reads
    rows = kit.random_rows(20)
    hard = {
        n: torch.nn.functional.one_hot(rows.codes[n].long(), kit.cells[n]).float() for n in codes
    }
    assert torch.equal(example(Rows(hard, rows.values, 20)), example(rows))


def test_the_total_is_the_sum_of_the_rows(example, kit):
    rows = kit.random_rows(300)
    found, wanted = example.total(rows), example(rows).double().sum(dim=0)
    assert found.shape == (example.dim,)
    assert torch.allclose(found.double(), wanted, atol=1e-3 * float(example.bound.high), rtol=1e-5)


def test_counting_maps_name_the_cells_that_are_not_zero(example, kit):
    rows = kit.random_rows(60)
    for leaf in leaves(example):
        if not is_counting(leaf):
            assert grid_of(leaf).bound.high > 0
            continue
        cells = leaf.cells(rows).long()
        assert cells.shape == (60, leaf.ones)
        from_cells = torch.zeros(60, leaf.dim).scatter_add_(
            1, cells, torch.full(cells.shape, leaf.unit, dtype=torch.float32)
        )
        assert torch.allclose(from_cells, leaf(rows))


def test_the_leaves_make_up_the_vector(example, kit):
    rows = kit.random_rows(10)
    parts = torch.cat([leaf(rows).clone() for leaf in leaves(example)], dim=1)
    assert torch.equal(parts, example(rows))
    assert all(leaf.tile >= 1 for leaf in leaves(example))


def test_a_map_that_does_not_count_says_so(kit):
    with pytest.raises(TypeError, match="not a counting map"):
        kit.examples["hermite"].cells(kit.random_rows(3))


def test_weights_and_labels_that_make_no_sense_are_refused(kit):
    hashed = kit.examples["race"]
    for weight in (0, -1.0, inf, float("nan")):
        with pytest.raises(PlanError, match="positive"):
            features.scale(hashed, weight)
    labelled = features.by_label(hashed, "sex", 3)
    with pytest.raises(PlanError, match="already conditional"):
        features.by_label(labelled, "sex", 3)
    with pytest.raises(PlanError, match="label last"):
        features.product(labelled, hashed)


@pytest.mark.parametrize(
    "build",
    [
        lambda: features.marginals({"a": 2}, []),
        lambda: features.marginals({"a": 2}, [("a", "a")]),
        lambda: features.marginals({"a": 2, "b": 2}, [("a", "b"), ("b", "a")]),
        lambda: features.marginals({"a": 2}, [("b",)]),
        lambda: features.fourier([], 4),
        lambda: features.fourier(["a", "a"], 4),
        lambda: features.fourier(["a"], 3),
        lambda: features.fourier(["a"], 0),
        lambda: features.fourier(["a"], 4, kernel="matern"),
        lambda: features.fourier(["a"], 4, length_scale=0.001),
        lambda: features.fourier(["a"], 4, length_scale=(0.1, 0.2)),
        lambda: features.hermite([], 2),
        lambda: features.hermite(["a", "a"], 2),
        lambda: features.hermite(["a"], -1),
        lambda: features.hermite(["a"], 2, span=1e3),
        lambda: features.hermite_product(["a"] * 9, 20),
        lambda: features.cosines([]),
        lambda: features.cosines(["a", "a"]),
        lambda: features.cosines(["a"], 0),
        lambda: features.cosines(["a"], -1),
        lambda: features.cosines(["a"], 1_001),
        lambda: features.cosines(["a", "b"], pairs=[("a", "c")]),
        lambda: features.cosines(["a", "b"], pairs=[("a", "a")]),
        lambda: features.cosines(["a", "b"], pairs=[("a", "b"), ("b", "a")]),
        lambda: features.cosines(["a", "b"], pair_share=0.0),
        lambda: features.cosines(["a", "b"], pair_share=1.0),
        lambda: features.cosines(["a", "b"], pair_share=float("nan")),
        lambda: features.cosines([f"x{i}" for i in range(200)], pair_order=1_000),
        lambda: features.cosines(["a", "b"], pair_order=-1),
        lambda: features.fourier(["a"], 4, kernel="unheard-of"),
        lambda: features.locations([], []),
        lambda: features.locations(["a"], []),
        lambda: features.locations(["a"], [(0.1, 0.2)]),
        lambda: features.locations(["a"], [(inf,)]),
        lambda: features.locations(["a"], [(0.5,)], kernel="matern"),
        lambda: features.locations(["a"], [(0.5,)], length_scale=0.001),
        lambda: features.locations(["a"], [(0.5, 2)], cells={"b": 2}),
        lambda: features.locations(["a"], [(0.5, 0.5)], cells={"b": 2}),
        lambda: features.smooth(["a"], []),
        lambda: features.smooth(["a"], [(1.0, 2.0)]),
        lambda: features.smooth(["a"], [(1e9,)]),
        lambda: features.smooth(["a"], [(1.0,)], width=0.0),
        lambda: features.second_moment(features.onehot({"a": 2})),
        lambda: features.second_moment(features.fourier(["a"], 4_000)),
        lambda: features.race(["a"], 0, 4),
        lambda: features.race(["a"], 4, 1),
    ],
)
def test_a_malformed_map_is_refused_with_a_sentence(build):
    with pytest.raises(PlanError, match=r".{20,}"):
        build()


def test_algebra_comes_to_one_normal_form(kit):
    a, b = kit.examples["fourier gaussian"], kit.examples["race"]
    assert features.scale(features.scale(a, 2.0), 0.5) == a
    assert 2.0 * (a + b) == (2.0 * a) + (2.0 * b)
    assert (2.0 * a) * (3.0 * b) == 6.0 * (a * b)
    assert (a + b) * a == (a * a) + (b * a)
    inside = features.by_label(a + b, "sex", 3)
    assert inside == features.by_label(a, "sex", 3) + features.by_label(b, "sex", 3)
    assert features.scale(features.by_label(a, "sex", 3), 2.0).spec()["kind"] == "by_label"
