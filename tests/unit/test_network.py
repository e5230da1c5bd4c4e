"""The generator: its means, its training on a release with little noise, and its rows."""

from dataclasses import replace
from math import sqrt
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch

from aquatint.analyst.synthesize import network as network_module
from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.expect import has_closed_form
from aquatint.analyst.synthesize.front import load_model
from aquatint.analyst.synthesize.network import Network, fit_network
from aquatint.analyst.synthesize.network_heads import (
    Choice,
    Interval,
    SoftRows,
    cell_probabilities,
    heads_of,
    soften,
)
from aquatint.analyst.synthesize.network_means import Means
from aquatint.analyst.synthesize.network_sampling import chance, draw_column, kept_of
from aquatint.analyst.synthesize.network_targets import (
    Target,
    class_shares,
    targets_of,
    weights,
)
from aquatint.analyst.where import conditions
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.curator.sketch import sketch
from aquatint.errors import DataError, ReleaseError
from aquatint.features import (
    Count,
    by_label,
    cosines,
    fourier,
    hermite,
    hermite_product,
    marginals,
    onehot,
    pairs,
    product,
    race,
    scale,
)
from aquatint.planning import Plan, PlannedBlock
from aquatint.recipes import dp_hp, dp_merf
from aquatint.schema import Schema

SMALL = {"hidden": (64, 64), "components": 16, "batch": 300, "progress": False}
MODES = {"a": [(0.2, 0.2), (0.8, 0.8)], "b": [(0.2, 0.8)], "c": [(0.8, 0.2)]}
SHARES = {"a": 0.6, "b": 0.3, "c": 0.1}

TABLE = Schema.from_dict(
    {
        "name": "people",
        "label": "sex",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [17, 90], "bins": 8, "missing": True},
            "pay": {"kind": "numeric", "bounds": [0, 100], "bins": 8, "missing": True},
            "size": {"kind": "integer", "bounds": [0, 5000], "bins": [0, 100, 2000, 5000]},
            "born": {"kind": "date", "bounds": ["1930-01-01", "2020-01-01"], "bins": 6},
            "seen": {
                "kind": "datetime",
                "bounds": ["2020-01-01T00:00:00", "2021-01-01T00:00:00"],
                "bins": 4,
            },
            "job": {"kind": "categorical", "categories": ["x", "y"], "other": True},
            "note": {"kind": "text", "categories": ["fine"], "missing": True},
            "grade": {"kind": "ordered", "categories": ["low", "middle", "high"], "missing": True},
            "ill": {"kind": "boolean", "missing": True},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
        },
    }
)


def people(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    female = rng.random(count) < 0.7
    pay = np.where(female, rng.normal(70, 5, count), rng.normal(30, 5, count)).clip(0, 100)
    days = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, count), "D")
    grade = rng.choice(["low", "middle", "high"], count, p=[0.2, 0.5, 0.3]).astype(object)
    ill = np.where(female, rng.random(count) < 0.9, rng.random(count) < 0.2).astype(object)
    table = pd.DataFrame(
        {
            "age": pd.array(rng.choice([20, 40, 41, 80], count), dtype="Int64"),
            "pay": pay,
            "size": rng.choice([0, 0, 0, 4000], count),
            "born": days.date,
            "seen": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.random(count) * 50, "D"),
            "job": rng.choice(["x", "y", "z"], count, p=[0.5, 0.4, 0.1]),
            "note": rng.choice(["fine", "other words"], count).astype(object),
            "grade": grade,
            "ill": ill,
            "sex": np.where(female, "F", "M"),
        }
    )
    table.loc[rng.random(count) < 0.25, "age"] = pd.NA
    table.loc[rng.random(count) < 0.4, "pay"] = np.nan
    table.loc[rng.random(count) < 0.1, ["note", "grade"]] = None
    return table


def counted_plan():
    """Histograms and joint counts alone: every range is then chosen by its bins."""
    cells = TABLE.cells()
    return Plan(
        TABLE,
        (
            PlannedBlock("count", Count(), 0.1),
            PlannedBlock("columns", onehot(cells), 0.4),
            PlannedBlock("pairs", pairs(cells, [("sex", "pay"), ("sex", "ill")]), 0.3),
            PlannedBlock("triples", marginals(cells, [("sex", "age", "grade")]), 0.2),
        ),
    )


def ordered_plan():
    """Maps of numbers over columns that have an order and no range."""
    numbers = fourier(["age", "pay", "grade", "ill"], 60, length_scale=0.3)
    return Plan(
        TABLE,
        (
            PlannedBlock("count", Count(), 0.1),
            PlannedBlock("columns", onehot(TABLE.cells()), 0.3),
            PlannedBlock("numbers", by_label(numbers, "sex", 2), 0.3),
            PlannedBlock("grades", hermite(["grade", "seen"], 5), 0.2),
            PlannedBlock("jobs", by_label(hermite(["pay"], 4), "job", 3), 0.1),
        ),
    )


PLANS = {
    "merf": lambda: dp_merf(TABLE, features=100),
    "hp": lambda: dp_hp(TABLE, order=10, product_order=3, draws=8),
    "counts": counted_plan,
    "ordered": ordered_plan,
}


@pytest.fixture(scope="module", params=PLANS)
def network(request):
    release = sketch(
        people(), TABLE, epsilon=10, delta=1e-6, plan=PLANS[request.param](), simulate=0
    )
    return fit_network(release, steps=80, **SMALL)


@pytest.fixture(scope="module")
def modes():
    """A mixture of four modes in three classes, sketched with little noise."""
    schema = Schema.from_dict(
        {
            "name": "modes",
            "label": "kind",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "x": {"kind": "numeric", "bounds": [0, 1]},
                "y": {"kind": "numeric", "bounds": [0, 1]},
                "kind": {"kind": "categorical", "categories": list(MODES)},
            },
        }
    )
    rng = np.random.default_rng(0)
    kind = rng.choice(list(SHARES), 20_000, p=list(SHARES.values()))
    centre = np.array([MODES[k][rng.integers(len(MODES[k]))] for k in kind])
    points = centre + 0.04 * rng.standard_normal(centre.shape)
    table = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "kind": kind})
    return sketch(
        table,
        schema,
        epsilon=10,
        delta=1e-6,
        plan=dp_merf(schema, features=120, kernel="gaussian"),
        simulate=0,
    )


@pytest.fixture(scope="module")
def fitted(modes):
    return fit_network(modes, steps=250, **SMALL)


def test_modes_and_classes_come_back(fitted):
    rows = fitted.sample(5000, seed=0)
    shares = rows["kind"].value_counts(normalize=True)
    for kind, centres in MODES.items():
        assert shares[kind] == pytest.approx(SHARES[kind], abs=0.01)
        points = rows.loc[rows["kind"] == kind, ["x", "y"]].to_numpy()
        distance = np.linalg.norm(points[:, None] - np.array(centres), axis=2)
        nearest = distance.argmin(1)
        assert (distance.min(1) < 0.16).mean() > 0.85
        held = np.bincount(nearest, minlength=len(centres)) / len(points)
        assert held == pytest.approx(1 / len(centres), abs=0.1)
        for place, centre in enumerate(centres):
            near = points[(nearest == place) & (distance.min(1) < 0.16)]
            assert near.mean(0) == pytest.approx(centre, abs=0.02)
            assert near.std(0) == pytest.approx(0.04, abs=0.02)


def test_the_same_seed_gives_the_same_network_and_rows(modes, fitted):
    state = torch.get_rng_state()
    again = [fit_network(modes, steps=3, seed=1, **SMALL).sample(50, seed=2) for _ in range(2)]
    assert torch.equal(state, torch.get_rng_state())
    pd.testing.assert_frame_equal(*again)
    pd.testing.assert_frame_equal(fitted.sample(50, seed=3), fitted.sample(50, seed=3))
    assert not fitted.sample(50, seed=3).equals(fitted.sample(50, seed=4))
    assert not fitted.sample(50).equals(fitted.sample(50))


def test_every_value_is_admitted(network):
    rows = network.sample(1000, seed=0)
    assert list(rows.columns) == list(TABLE.columns)
    changed = []
    everything = Plan(
        TABLE,
        (PlannedBlock("count", Count(), 0.5), PlannedBlock("all", onehot(TABLE.cells()), 0.5)),
    )
    sketch(rows, TABLE, epsilon=1, delta=1e-6, plan=everything, simulate=0, notes=changed.append)
    assert not changed[0].clipped
    assert not changed[0].other - changed[0].other.__class__(job=1000, note=1000)


def test_columns_come_back(network):
    rows, real = network.sample(4000, seed=0), people()
    assert (rows["sex"] == "F").mean() == pytest.approx(0.7, abs=0.03)
    assert rows["ill"].mean() == pytest.approx(real["ill"].mean(), abs=0.08)
    assert rows["pay"].isna().mean() == pytest.approx(0.4, abs=0.1)
    assert rows["age"].isna().mean() == pytest.approx(0.25, abs=0.1)
    by_sex = rows.groupby("sex")["pay"].median()
    assert by_sex["F"] > 58
    assert by_sex["M"] < 42


def test_conditions_are_met(network):
    where = "sex = 'M' and age between 30 and 60 and pay > 20.5 and ill = false and grade = 'high'"
    rows = network.sample(40, where=where, seed=0)
    assert len(rows) == 40
    assert (rows["sex"] == "M").all()
    assert rows["age"].between(30, 60).all()
    assert (rows["pay"] >= 20.5).all()
    assert (~rows["ill"].astype(bool)).all()
    assert (rows["grade"] == "high").all()
    pd.testing.assert_frame_equal(rows, network.sample(40, where=where, seed=0))
    missing = network.sample(50, where={"age": None, "grade": None}, seed=0)
    assert missing[["age", "grade"]].isna().all(axis=None)
    born = network.sample(50, where="born >= '1980-01-01' and size <= 100", seed=0)
    assert (born["born"] >= pd.Timestamp("1980-01-01")).all()
    assert (born["size"] <= 100).all()
    assert len(network.sample(0, where={"sex": "F"})) == 0


def test_conditional_rows_are_those_of_the_model(fitted):
    """Drawing given a condition and selecting afterwards give the same distribution."""
    drawn = fitted.sample(4000, where="x < 0.5", seed=0)
    selected = fitted.sample(8000, seed=1).query("x < 0.5")
    for name in ("x", "y"):
        assert drawn[name].mean() == pytest.approx(selected[name].mean(), abs=0.02)
        assert drawn[name].std() == pytest.approx(selected[name].std(), abs=0.02)
    shares = [t["kind"].value_counts(normalize=True)["b"] for t in (drawn, selected)]
    assert shares[0] == pytest.approx(shares[1], abs=0.03)


def test_conditions_that_hardly_any_row_meets_are_refused(fitted):
    with pytest.raises(DataError, match="fewer than one in 10,000"):
        fitted.sample(10, where="x > 0.999 and y < 0.001", seed=0)
    with pytest.raises(DataError, match="give a number from 0 on"):
        fitted.sample(-1)


def test_saved_and_loaded_rows_are_identical(network, tmp_path):
    network.save(tmp_path / "model.safetensors")
    again = Network.load(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(network.sample(200, seed=1), again.sample(200, seed=1))


def test_files_that_do_not_fit_together_are_refused(fitted, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    _, schema, tensors, settings = store.load(path)
    other = {**tensors, "noise.weight": tensors["noise.weight"][:3]}
    fewer = {name: t for name, t in tensors.items() if name != "last.bias"}
    for parts, told in [
        (other, settings),
        (fewer, settings),
        (tensors, {**settings, "label": None}),
        (tensors, {**settings, "label": "nobody"}),
        (tensors, {**settings, "values": ["x"]}),
        (tensors, {}),
    ]:
        with pytest.raises(ReleaseError, match="does not fit together"):
            Network.from_parts(schema, parts, told)
    store.save(path, "mixture", schema, tensors, settings)
    with pytest.raises(ReleaseError, match="not a network"):
        Network.load(path)


def wide(tensors):
    """Claim layers that together need more memory than there is."""
    big = 300_000
    for name in ("norms.0.weight", "norms.0.bias", "norms.1.weight", "norms.1.bias"):
        tensors[name] = torch.ones(big)


HOSTILE = {
    "layers beyond memory": wide,
    "no layers": lambda t: [t.pop(f"norms.{i}.{n}") for i in (0, 1) for n in ("weight", "bias")],
    "one more": lambda t: t.update(more=torch.ones(1)),
    "flat": lambda t: t.update({"noise.weight": torch.tensor(1.0)}),
    "not numbers": lambda t: t["last.bias"].fill_(torch.nan),
    "without end": lambda t: t["last.bias"].fill_(torch.inf),
    "huge": lambda t: t["last.weight"].fill_(1e30),
    "of a brain": lambda t: t.update({"last.bias": t["last.bias"].bfloat16()}),
    "whole": lambda t: t.update({"last.bias": t["last.bias"].long()}),
    "no shares": lambda t: t.pop("shares"),
    "shares below zero": lambda t: t.update(shares=torch.tensor([2.0, -0.5, -0.5]).double()),
    "shares of zero": lambda t: t["shares"].fill_(0),
    "shares in two dimensions": lambda t: t.update(shares=t["shares"][None]),
}


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(fitted, tmp_path, edit):
    path = tmp_path / "model"
    fitted.save(path)
    _, schema, tensors, settings = store.load(path)
    edit(tensors)
    store.save(path, "network", schema, tensors, settings)
    with pytest.raises(ReleaseError, match="does not fit together") as caught:
        load_model(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "told",
    [
        {"codes": None},
        {"codes": 3},
        {"codes": [["kind"]]},
        {"codes": ["kind", "nobody"]},
        {"codes": []},
        {"label": ["kind"]},
        {"label": 1},
        {"label": "x"},
    ],
)
def test_settings_of_another_table_are_refused(fitted, tmp_path, told):
    fitted.save(tmp_path / "model")
    _, schema, tensors, settings = store.load(tmp_path / "model")
    with pytest.raises(ReleaseError, match="does not fit together"):
        Network.from_parts(schema, tensors, settings | told)


def test_a_network_is_shown_in_one_line(fitted):
    assert repr(fitted) == "Network(table 'modes', 16 components, 3 columns)"


def test_torch_keeps_its_threads(modes):
    before = torch.get_num_threads()
    seen = []
    torch.set_num_threads(2)
    try:
        with patch.object(network_module, "train", lambda *_: seen.append(torch.get_num_threads())):
            fit_network(modes, **SMALL)
        assert torch.get_num_threads() == 2
        with (
            pytest.raises(RuntimeError),
            patch.object(network_module, "train", side_effect=RuntimeError),
        ):
            fit_network(modes, **SMALL)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [1]


def test_releases_without_a_gradient_are_refused():
    schema = Schema.from_dict(
        {
            "name": "one",
            "privacy": {"protects": "replace one row"},
            "columns": {"x": {"kind": "numeric", "bounds": [0, 1], "bins": 4}},
        }
    )
    plan = Plan(schema, (PlannedBlock("hashes", race(["x"], 5, 4), 1.0),))
    release = sketch(
        pd.DataFrame({"x": [0.1, 0.2]}), schema, epsilon=1, delta=1e-6, plan=plan, simulate=0
    )
    with pytest.raises(ReleaseError, match="no block that a generator can be trained on"):
        fit_network(release, progress=False)


def hard_rows(table):
    """Encode rows, and say the same as soft rows that leave no doubt."""
    numbers = frozenset({"age", "pay", "grade", "ill", "seen"})
    codes = frozenset(TABLE.columns)
    heads = heads_of(TABLE, codes, numbers, "sex")
    (batch,) = read(table, TABLE, list(TABLE.columns)).open()
    rows = Encoder(TABLE, codes, numbers)(batch, Notes())
    places_of = dict(rows.values)  # encoded rows, not a frame
    cells = {
        name: torch.nn.functional.one_hot(code.long(), TABLE.columns[name].cells).float()
        for name, code in rows.codes.items()
    }
    points, places, present = {}, {}, {}
    for name, head in heads.items():
        if isinstance(head, Interval):
            present[name] = (~places_of[name].isnan()).float()
            places[name] = places_of[name].nan_to_num(0.5)
        elif head.one_by_one:
            points[name] = cells[name]
        else:
            distance = (places_of[name][:, None] - head.place[None]).abs()
            nearest = distance.nan_to_num(9.0).argmin(1)
            nearest[places_of[name].isnan()] = head.width - 1
            points[name] = torch.nn.functional.one_hot(nearest, head.width).float()
            spread = cells[name].new_zeros(len(nearest), head.cells)
            assert torch.equal(spread.index_add(1, head.cell, points[name]), cells[name])
    soft = SoftRows(len(rows), torch.ones(len(rows), 1), points, places, present, cells)
    return heads, rows, soft


MAPS = {
    "count": Count() * hermite(["pay"], 2),
    "fourier": fourier(["age", "pay", "grade", "ill"], 20),
    "laplace": fourier(["pay", "seen"], 20, kernel="laplace"),
    "choices": fourier(["age", "grade"], 20),
    "cosines": cosines(["age", "pay", "grade", "seen"], 6),
    "hermite": hermite(["age", "pay", "grade", "seen"], 6),
    "product": hermite_product(["age", "pay"], 3),
    "triple": hermite_product(["age", "pay", "seen"], 2),
    "mixed": product(hermite(["pay"], 3), onehot({"job": 3})),
    "four": product(hermite_product(["age", "pay", "seen"], 2), onehot({"job": 3})),
    "weighted": scale(fourier(["pay"], 10), 0.3),
    "columns": onehot(TABLE.cells()),
    "pairs": pairs({n: c for n, c in TABLE.cells().items() if n != "sex"}),
    "merged": pairs(TABLE.cells(), [("age", "job"), ("sex", "age")]).merge(
        {"age": (0, 0, 0, 0, 1, 1, 1, 1, 2)}
    ),
    "triples": marginals(TABLE.cells(), [("sex", "age", "job"), ("ill", "note", "grade")]),
}


@pytest.mark.parametrize("name", MAPS)
def test_means_of_certain_rows_are_the_features_themselves(name):
    heads, rows, soft = hard_rows(people(60))
    part = MAPS[name]
    assert has_closed_form(part)
    features = part(rows)
    found = Means(heads).groups(part, soft, 2)
    assert found.shape == (2, part.dim)
    torch.testing.assert_close(found, features.view(2, 30, -1).mean(1), atol=2e-5, rtol=1e-4)


def test_weights_count_rows_as_often():
    heads, rows, soft = hard_rows(people(60))
    weight = torch.rand(60, 1)
    for part in (MAPS["hermite"], MAPS["pairs"], MAPS["product"]):
        found = Means(heads).groups(part, replace(soft, weight=weight, features={}), 1)
        wanted = (weight * part(rows)).mean(0, keepdim=True)
        torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)


def test_misfit_has_no_bias(modes):
    """At the generator's own mean the expected misfit is zero, however small the batch."""
    heads = heads_of(modes.schema, frozenset({"kind"}), frozenset({"x", "y"}), "kind")
    means, dice = Means(heads), torch.Generator().manual_seed(0)
    part = fourier(["x", "y"], 8, length_scale=0.3)

    def batch(size):
        outputs = torch.tensor([0.3, 3.0, -0.4, 3.0]).expand(size, 4)
        noise = torch.randn(size, 2, generator=dice)
        return soften(heads, outputs, noise, torch.ones(size, 1))

    centre = means.groups(part, batch(200_000), 1)
    target = Target(part, centre, torch.ones(1, 1), torch.zeros(8).long(), torch.tensor([8.0]), 1)
    found = torch.stack([target.misfit(means, batch(8)) for _ in range(1000)])
    biased = torch.stack([(centre - means.groups(part, batch(8), 1)).square() for _ in range(300)])
    spread = found.std() / sqrt(1000)
    assert found.mean().abs() < 4 * spread
    assert biased.mean() > 20 * spread


def test_cells_of_an_interval_are_where_its_places_fall():
    head = Interval(torch.tensor([0.1, 0.35, 0.9]), missing=True)
    outputs = torch.tensor([[-0.5, 2.6, 0.4]])
    cells = cell_probabilities(head, outputs)
    assert cells.sum() == pytest.approx(1)
    points = (np.arange(20_000) + 0.5) / 20_000
    everything = kept_of(TABLE.columns["pay"], head, None)
    drawn, place = draw_column(head, outputs.expand(20_000, 3), everything, points)
    held = np.bincount(drawn, minlength=5) / 20_000
    assert held == pytest.approx(cells[0].numpy(), abs=2e-4)
    assert place.min() >= 0
    assert place.max() <= 1


def test_chances_are_what_is_drawn():
    heads = heads_of(TABLE, frozenset(TABLE.columns), frozenset({"age", "pay", "size"}), "sex")
    where = "age between 30 and 50 and pay < 40 and size >= 3 and job = 'y' and born > '2000-01-01'"
    given = conditions(TABLE, where)
    points = (np.arange(5000) + 0.5) / 5000
    for name, condition in given.items():
        head, column = heads[name], TABLE.columns[name]
        outputs = torch.randn(1, head.width, generator=torch.Generator().manual_seed(1))
        if isinstance(head, Interval):
            outputs[:, 1] = 3.5
        kept = kept_of(column, head, condition)
        fits = chance(head, outputs, kept)[0]
        assert 0 < fits < 1
        free, _ = draw_column(head, outputs.expand(5000, -1), kept_of(column, head, None), points)
        bound, _ = draw_column(head, outputs.expand(5000, -1), kept, points)
        if isinstance(head, Choice) and head.one_by_one and condition.weights.max() == 1:
            assert condition.weights[free].mean() == pytest.approx(fits, abs=0.01)
        assert (condition.weights[bound] > 0).all()


def test_class_shares_come_from_any_counts_by_class():
    table = people()
    cells = TABLE.cells()
    others = {n: c for n, c in cells.items() if n != "sex"}
    for part, known in [
        (by_label(scale(onehot(others), 0.3), "sex", 2), True),
        (pairs(cells, [("ill", "sex")]), True),
        (by_label(fourier(["pay"], 10), "sex", 2), False),
    ]:
        plan = Plan(TABLE, (PlannedBlock("count", Count(), 0.5), PlannedBlock("b", part, 0.5)))
        release = sketch(table, TABLE, epsilon=5, delta=1e-6, plan=plan, simulate=0)
        wanted = (table["sex"] == "F").mean() if known else 0.5
        assert class_shares(release, "sex")[0] == pytest.approx(wanted, abs=0.01)


def test_leaves_that_read_a_column_twice_are_passed_over():
    """Within a row a column is not independent of itself, so the means would be wrong."""
    twice = by_label(fourier(["grade"], 4), "grade", 4)
    once = by_label(fourier(["pay"], 4), "grade", 4)
    maps = {"count": Count(), "twice": twice, "once": once}
    plan = Plan(TABLE, tuple(PlannedBlock(name, part, 1 / 3) for name, part in maps.items()))
    release = sketch(people(200), TABLE, epsilon=1, delta=1e-6, plan=plan, simulate=0)
    (target,) = targets_of(release, None, np.ones(1), 1.0)
    assert target.map.reads == (frozenset({"grade"}), frozenset({"pay"}))


def test_gamma_weighs_products():
    release = sketch(people(200), TABLE, epsilon=1, delta=1e-6, plan=PLANS["hp"](), simulate=0)
    plain, heavy = (
        weights(targets_of(release, "sex", np.ones(2) / 2, gamma)) for gamma in (1.0, 5.0)
    )
    ratio = (heavy / plain).unique()
    assert ratio.tolist() == [1.0, 5.0]


def test_columns_that_no_block_reads_are_drawn_evenly():
    plan = Plan(
        TABLE,
        (
            PlannedBlock("count", Count(), 0.5),
            PlannedBlock("b", onehot({"ill": 3, "grade": 4}), 0.5),
        ),
    )
    release = sketch(people(), TABLE, epsilon=5, delta=1e-6, plan=plan, simulate=0)
    network = fit_network(release, steps=5, **SMALL)
    assert network.label is None
    rows = network.sample(3000, seed=0)
    assert (rows["sex"] == "F").mean() == pytest.approx(0.5, abs=0.01)
    assert not rows["age"].isna().any()
    assert (network.sample(20, where={"sex": "M"})["sex"] == "M").all()
