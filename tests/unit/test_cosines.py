"""Cosines: their values, their bound, their integers, and what is drawn from a release of them."""

import json
from math import pi, sqrt

import numpy as np
import pandas as pd
import pytest
import torch

import aquatint as aq
from aquatint.curator.sums import leaf_sum
from aquatint.features import Count, Rows, by_label, cosines, from_spec, onehot
from aquatint.features.cosines import Cosines
from aquatint.features.grid import grid_of, sensitivity
from aquatint.schema import Privacy

STEPS = 2**20


def rows_of(**columns):
    values = {n: torch.tensor(np.asarray(c), dtype=torch.float32) for n, c in columns.items()}
    return Rows({}, values, len(next(iter(values.values()))))


def places(count, seed=0):
    drawn = np.random.default_rng(seed).integers(0, STEPS + 1, (2, count)) / STEPS
    return rows_of(a=drawn[0], b=drawn[1]), drawn


def test_features_are_the_weighted_cosines_in_the_stated_order():
    made = cosines(["a", "b"], 3, pair_order=2, pair_share=0.4)
    rows, (a, b) = places(200)
    wave = {name: [np.cos(pi * k * x) for k in (1, 2, 3)] for name, x in (("a", a), ("b", b))}
    wanted = [
        *wave["a"],
        *wave["b"],
        *(wave["a"][k] * wave["b"][m] for k in (0, 1) for m in (0, 1)),
    ]
    weights = np.array([1, 1 / 2, 1 / 3] * 2 + [1, 1 / 2, 1 / 2, 1 / 4])
    weights[:6] *= 0.6 / weights[:6].sum()
    weights[6:] *= 0.4 / weights[6:].sum()
    assert np.abs(made(rows).numpy() - np.sqrt(weights) * np.stack(wanted, 1)).max() < 1e-6
    assert made.weights.numpy() == pytest.approx(np.sqrt(weights))


def test_high_orders_lose_no_digits():
    made = cosines(["a"], 1_000, pair_order=0)
    rows = rows_of(a=np.arange(0, STEPS + 1, 997) / STEPS)
    angle = pi * rows.values["a"].double()[:, None] * torch.arange(1, 1_001)
    assert (made(rows) - made.weights * angle.cos()).abs().max() < 1e-6


def test_the_lower_end_of_every_column_attains_both_norms():
    made = cosines(["a", "b"], 12)
    row = made(rows_of(a=[0.0], b=[0.0])).double()
    assert float(row.square().sum()) == pytest.approx(1, abs=1e-6)
    assert float(row.abs().sum()) == pytest.approx(float(made.bound.l1), rel=1e-6)
    assert float(made.bound.l1) < sqrt(made.dim)  # tighter than Cauchy–Schwarz
    whole = [int(v) for v in leaf_sum(made, rows_of(a=[0.0], b=[0.0]))]
    limits = grid_of(made).bound
    assert 0.99999 * limits.l2_squared < sum(v * v for v in whole) <= limits.l2_squared
    assert 0.99999 * limits.l1 < sum(map(abs, whole)) <= limits.l1
    squared, total = sensitivity(made, Privacy(protects="add or remove one row"))
    assert (squared, total) == (limits.l2_squared, limits.l1)


def test_the_pairs_have_their_share_of_the_norm():
    for share in (0.1, 0.9):
        weights = cosines(["a", "b", "c"], 4, pair_order=2, pair_share=share).weights
        assert float(weights[12:].square().sum()) == pytest.approx(share)
        assert float(weights.square().sum()) == pytest.approx(1)


def test_a_missing_value_empties_its_column_and_its_pairs_only():
    made = cosines(["a", "b", "c"], 2, pair_order=1)
    row = made(rows_of(a=[0.1], b=[float("nan")], c=[0.7]))[0]
    assert torch.equal(row[2:4], torch.zeros(2))
    assert (row[:2] != 0).all()
    assert (row[4:6] != 0).all()
    assert [bool(v) for v in row[6:]] == [False, True, False]  # a·b, a·c, b·c


def test_the_same_integers_for_ever():
    spec = {
        "kind": "cosines",
        "columns": ["a", "b"],
        "order": 2,
        "pairs": [[0, 1]],
        "pair_order": 1,
        "pair_share": 0.5,
    }
    made = cosines(["a", "b"], 2, pair_order=1)
    assert made.spec() == spec
    assert from_spec(json.loads(json.dumps(spec))) == made
    rows = rows_of(a=np.arange(100) * 9973 % STEPS / STEPS, b=np.arange(100) * 7919 % STEPS / STEPS)
    assert leaf_sum(made, rows).tolist() == [10470827, -6097586, 51658869, -24912285, 117488198]


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": [[0, 2]]},
        {"pairs": [[-2, 1]]},
        {"pairs": [[0]]},
        {"pairs": [[0, 1, 1]]},
        {"pairs": [[0.0, 1]]},
        {"order": True},
        {"order": 1e3},
        {"order": 10**9},
        {"pair_share": "half"},
        {"pair_share": 1.5},
        {"columns": ["a", 1]},
        {"columns": "ab"},
    ],
    ids=str,
)
def test_a_spec_that_makes_no_sense_is_refused(change):
    with pytest.raises(aq.AquatintError):
        from_spec(cosines(["a", "b"]).spec() | change)


def test_cosines_alone_tell_a_column_apart_from_its_neighbours():
    """Their means are the coefficients of the density: p(x) = 1 + 2·Σ E cos(πk·X)·cos(πk·x)."""
    made = cosines(["a"], 30, pair_order=0)
    drawn = np.random.default_rng(0).beta(8, 4, 50_000)
    means = made(rows_of(a=drawn)).double().mean(0) / made.weights
    grid = np.linspace(0, 1, 101)
    density = 1 + 2 * np.cos(pi * np.outer(grid, np.arange(1, 31))) @ means.numpy()
    exact = grid**7 * (1 - grid) ** 3 * 1320
    assert np.abs(density - exact).max() < 0.2  # sampling: √(2·30/50,000) = 0.035 each


def table(count=8_000, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.beta(2, 5, count)
    pay = np.clip(0.7 * size + 0.1 * rng.normal(size=count) + 0.2, 0, 1)
    return pd.DataFrame({"size": size, "pay": pay, "old": rng.random(count) < size})


def schema_of(protects="add or remove one row"):
    return aq.Schema.from_dict(
        {
            "name": "things",
            "label": "old",
            "privacy": {"protects": protects},
            "columns": {
                "size": {"kind": "numeric", "bounds": [0, 1], "bins": 32},
                "pay": {"kind": "numeric", "bounds": [0, 1], "bins": 32},
                "old": {"kind": "boolean"},
            },
        }
    )


@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_release_of_cosines_is_saved_verified_and_close(tmp_path, protects, delta):
    schema, real = schema_of(protects), table()
    both = cosines(["size", "pay"])
    blocks = (
        aq.PlannedBlock("count", Count(), 0.1),
        aq.PlannedBlock("cosines", both, 0.5),
        aq.PlannedBlock("by label", by_label(both, "old", 2), 0.4),
    )
    plan = aq.Plan(schema, blocks)
    assert aq.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    release = aq.sketch(real, schema, epsilon=10, delta=delta, plan=plan, progress=False)
    release.save(tmp_path / "things.aqt")
    again = aq.load(tmp_path / "things.aqt")  # recomputes the promise from the noise
    block = again.block("cosines")
    assert isinstance(block.map, Cosines)
    rows = rows_of(size=real["size"], pay=real["pay"])
    apart = (block.sum - block.map(rows).double().sum(0).numpy()) / block.stderr
    assert np.abs(apart).max() < (25 if delta == 0 else 7)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("counted", [False, True], ids=["cosines", "cosines and histograms"])
def test_a_table_is_drawn_from_a_release_of_cosines(counted):
    schema, real = schema_of("replace one row"), table()
    blocks = [("cosines", cosines(["size", "pay"]))]
    blocks += [("by label", by_label(cosines(["size", "pay"], 4), "old", 2))]
    if counted:
        blocks.append(("histograms", onehot(schema.cells())))
    plan = aq.Plan(schema, tuple(aq.PlannedBlock(n, m, 1 / len(blocks)) for n, m in blocks))
    release = aq.sketch(real, schema, epsilon=10, delta=1e-6, plan=plan, progress=False, simulate=1)
    drawn = aq.synthesize(release, progress=False).sample(20_000, seed=1)
    for name in ("size", "pay"):
        assert abs(drawn[name].mean() - real[name].mean()) < 0.02
        assert abs(drawn[name].std() - real[name].std()) < 0.02
    wanted = real["size"].corr(real["pay"])
    assert abs(drawn["size"].corr(drawn["pay"]) - wanted) < 0.15
    assert abs(drawn["size"].corr(drawn["old"]) - real["size"].corr(real["old"])) < 0.1
