"""The papers' plans: their structure, their bounds, and the rules that choose their settings."""

from math import gamma, pi, sqrt

import numpy as np
import pytest

from aquatint.accounting import Budget, gaussian_mu
from aquatint.errors import PlanError
from aquatint.features import Count, leaves, onehot
from aquatint.features.algebra import ByLabel, Product, Scaled
from aquatint.features.fourier import Fourier
from aquatint.features.grid import grid_of, sensitivity
from aquatint.features.hermite import Hermite, rho_of
from aquatint.features.marginals import Marginals
from aquatint.planning import Plan, noise_of
from aquatint.recipes import dp_hp, dp_merf, feature_count, resolved, usual_length_scale
from aquatint.schema import Privacy, Schema

COLUMNS = {
    "age": {"kind": "integer", "bounds": [17, 90]},
    "pay": {"kind": "numeric", "bounds": [0, 1000], "missing": True},
    "born": {"kind": "date", "bounds": ["1930-01-01", "2020-01-01"]},
    "job": {"kind": "categorical", "categories": ["a", "b", "c"], "other": True},
    "grade": {"kind": "ordered", "categories": ["low", "high"]},
    "ill": {"kind": "boolean"},
}


def schema_of(protects="add or remove one row", label="ill", columns=COLUMNS):
    data = {"name": "people", "privacy": {"protects": protects}, "columns": columns}
    return Schema.from_dict(data | ({"label": label} if label else {}))


def squared(leaf, privacy):
    """The squared sensitivity of a leaf in units of the feature."""
    return sensitivity(leaf, privacy)[0] / grid_of(leaf).steps ** 2


def block(plan, name):
    return next(b for b in plan.blocks if b.name == name)


def names(plan):
    return [b.name for b in plan.blocks]


@pytest.mark.parametrize("recipe", [dp_merf, dp_hp])
@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("label", ["ill", "job", None])
def test_plans_are_whole(recipe, protects, label):
    plan = recipe(schema_of(protects, label), rows=10_000, epsilon=1.0)
    counted = any(isinstance(b.map, Count) for b in plan.blocks)
    assert counted is (protects == "add or remove one row")
    assert ("classes" in names(plan)) is (label is not None)
    assert sum(b.share for b in plan.blocks) == pytest.approx(1)
    read = [b.map.reads for b in plan.blocks]
    assert set(COLUMNS) == {name for reads in read for part in reads for name in part}
    again = Plan.from_dict(plan.to_dict())
    assert again == plan
    assert noise_of(again, Budget(1.0, 1e-6)) == noise_of(plan, Budget(1.0, 1e-6))


def test_dp_merf_is_equation_19_by_class():
    plan = dp_merf(schema_of(), features=60)
    numbers, others = leaves(block(plan, "embedding").map)
    assert isinstance(numbers, ByLabel)
    assert isinstance(numbers.inner, Fourier)
    assert numbers.inner.columns == ("age", "pay", "born")
    assert numbers.dim == 2 * 60
    assert isinstance(others, ByLabel)
    assert isinstance(others.inner, Scaled)
    assert others.inner.weight == pytest.approx(1 / sqrt(3))
    assert [s for (s,) in others.inner.inner.sets] == ["job", "grade", "pay"]
    assert others.inner.inner.counted["pay"] == 2
    assert block(plan, "classes").map == onehot({"ill": 2})


def test_bounds_of_dp_merf():
    """A row has norm √2 (supplement G); replacing one moves the parts by 2 and by √2."""
    for protects, wanted in [("add or remove one row", (1, 1)), ("replace one row", (4, 2))]:
        schema = schema_of(protects)
        plan = dp_merf(schema, features=60)
        parts = leaves(block(plan, "embedding").map)
        assert [squared(p, schema.privacy) for p in parts] == pytest.approx(wanted, rel=1e-5)
        classes = squared(block(plan, "classes").map, schema.privacy)
        assert classes == pytest.approx(2 if schema.privacy.replaces else 1)


def test_tables_of_one_kind():
    numbers = {name: COLUMNS[name] for name in ("age", "born")}
    others = {name: COLUMNS[name] for name in ("job", "grade")}
    assert isinstance(dp_merf(schema_of(label=None, columns=numbers)).blocks[-1].map, Fourier)
    assert isinstance(dp_merf(schema_of(label=None, columns=others)).blocks[-1].map, Marginals)
    plan = dp_hp(schema_of(label=None, columns=others))
    assert isinstance(block(plan, "sum").map, Marginals)
    assert leaves(block(plan, "products").map)[0].dim == 4 * 2


def test_label_with_a_range_is_an_ordinary_column():
    schema = schema_of(label="age")
    assert "age" in leaves(block(dp_merf(schema), "embedding").map)[0].columns
    plan = dp_merf(schema, labelled=True)
    assert block(plan, "classes").map == onehot({"age": 32})
    assert "classes" not in names(dp_merf(schema_of(), labelled=False))


def test_dp_hp_sum_and_products():
    plan = dp_hp(schema_of(), order=12, product_order=3, draws=4)
    numbers, _ = leaves(block(plan, "sum").map)
    assert isinstance(numbers.inner, Hermite)
    assert numbers.dim == 2 * 3 * 13
    products = leaves(block(plan, "products").map)
    assert len(products) == len({p.reads for p in products}) == 4
    for leaf in products:
        assert isinstance(leaf, ByLabel)
        assert isinstance(leaf.inner, Product)
        assert squared(leaf, plan.schema.privacy) <= 1 + 1e-5


def test_products_of_numbers_and_categories():
    columns = {name: COLUMNS[name] for name in ("age", "job", "ill")}
    (leaf,) = leaves(block(dp_hp(schema_of(columns=columns), product_order=5), "products").map)
    assert isinstance(leaf.inner.left, Hermite)
    assert leaf.inner.right == onehot({"job": 4})


def test_draws_are_public_and_by_seed():
    wide = {f"x{i}": {"kind": "numeric", "bounds": [0, 1]} for i in range(60)}
    schema = schema_of(label=None, columns=wide)
    sets = [
        {p.reads for p in leaves(block(dp_hp(schema, draws=7, seed=s), "products").map)}
        for s in (0, 0, 1)
    ]
    assert sets[0] == sets[1] != sets[2]
    assert all(len(s) == 7 for s in sets)
    three = dp_hp(schema, product_columns=3, draws=2)
    assert all(len(p.reads[1]) == 3 for p in leaves(block(three, "products").map))
    assert "products" not in names(dp_hp(schema, draws=0))


def test_products_that_were_asked_for_are_not_dropped_in_silence():
    many = {f"x{i}": {"kind": "categorical", "categories": [*map(str, range(50))]} for i in "abc"}
    schema = schema_of(label=None, columns=many)
    assert "products" in names(dp_hp(schema))
    with pytest.raises(PlanError, match="no product of 3 columns"):
        dp_hp(schema, product_columns=3)


@pytest.mark.parametrize("weight", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
def test_gamma_divides_the_budget_as_equation_16_weighs_the_loss(weight, protects):
    plan = dp_hp(schema_of(protects), gamma=weight, draws=3)
    noise = dict(zip(names(plan), noise_of(plan, Budget(1.0, 1e-6)), strict=True))
    spread = {}
    for name in ("sum", "products"):
        parts = leaves(block(plan, name).map)
        each = [n.scale / grid_of(p).steps for n, p in zip(noise[name], parts, strict=True)]
        assert each == pytest.approx([each[0]] * len(each), rel=1e-4)
        spread[name] = each[0]
    assert (spread["sum"] / spread["products"]) ** 2 == pytest.approx(weight / 3, rel=1e-4)


def test_more_rows_bear_more_products():
    wide = {f"x{i}": {"kind": "numeric", "bounds": [0, 1]} for i in range(30)}
    schema = schema_of(label=None, columns=wide)
    drawn = [
        len(leaves(block(dp_hp(schema, rows=rows, epsilon=1.0), "products").map))
        for rows in (100, 5_000, 10_000, 1_000_000)
    ]
    assert drawn == sorted(drawn)
    assert drawn[0] == 1
    assert drawn[-1] == 200


def bound_of(features, noise, classes):
    """Prop. 3.1 as printed, with t = 2σ/m for 'noise' and the class embeddings side by side."""
    total = classes * features
    ratio = gamma((total + 1) / 2) / gamma(total / 2) if total < 300 else sqrt(total / 2)
    return noise**2 * total + 4 * sqrt(2) * noise * ratio + 8 * sqrt(2 * pi / features)


@pytest.mark.parametrize(("rows", "epsilon", "classes"), [(1000, 0.5, 1), (3000, 0.3, 2)])
def test_feature_count_minimises_the_bound(rows, epsilon, classes):
    privacy = Privacy(protects="replace one row")
    chosen = feature_count(privacy, rows=rows, epsilon=epsilon, classes=classes)
    noise = 2 / gaussian_mu(epsilon, 1e-5) / rows
    tried = np.arange(100, 1001, 2)
    best = tried[np.argmin([bound_of(d, noise, classes) for d in tried])]
    assert abs(chosen - best) <= 0.02 * best + 2


def test_feature_count_follows_the_signal():
    add = Privacy(protects="add or remove one row")
    replace = Privacy(protects="replace one row")
    counts = [feature_count(add, rows=rows, epsilon=1.0) for rows in (50, 500, 1000, 10**6)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (100, 1000)
    assert all(count % 2 == 0 for count in counts)
    assert feature_count(replace, rows=500) < feature_count(add, rows=500)
    assert feature_count(add, rows=500, classes=4) < feature_count(add, rows=500)
    assert dp_merf(schema_of(), rows=500, epsilon=0.5).coordinates < 1000


def test_length_scales_of_wide_tables():
    wide = {f"x{i}": {"kind": "numeric", "bounds": [0, 1]} for i in range(617)}
    schema = schema_of(label=None, columns=wide)
    gaussian = dp_merf(schema, kernel="gaussian", features=100).blocks[-1].map
    assert gaussian.length_scales[0] == pytest.approx(0.1 * sqrt(617))
    # Two rows far apart in every column are neither the same nor unrelated to the kernel.
    distance = 0.1 * sqrt(617)
    similarity = np.exp(-(distance**2) / (2 * gaussian.length_scales[0] ** 2))
    assert 0.1 < similarity < 0.9
    assert usual_length_scale(617, "laplace") == pytest.approx(61.7)
    assert dp_hp(schema).coordinates < 200_000
    given = dp_merf(schema, length_scale=2.5, features=100).blocks[-1].map
    assert set(given.length_scales) == {2.5}


@pytest.mark.parametrize("order", [5, 25, 100])
def test_the_order_resolves_its_length_scale(order):
    assert rho_of(4 * resolved(order)) ** order == pytest.approx(0.02)


def test_errors_say_what_to_do():
    with pytest.raises(PlanError, match="declares no label"):
        dp_merf(schema_of(label=None), labelled=True)
    with pytest.raises(PlanError, match="no column but its label"):
        dp_hp(schema_of(columns={"ill": COLUMNS["ill"]}))
    with pytest.raises(PlanError, match="gamma must be positive"):
        dp_hp(schema_of(), gamma=0.0)
    with pytest.raises(PlanError, match="epsilon must be above 0"):
        dp_merf(schema_of(), epsilon=-1.0)
    with pytest.raises(PlanError, match="even"):
        dp_merf(schema_of(), features=7)
