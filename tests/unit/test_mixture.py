"""The mixture from a release to rows: what it recovers, and that it samples what it says.

Noise is simulated and seeds are fixed. Drawn counts are compared with the model's own
probabilities, computed by enumerating every combination of cells: systematic sampling leaves each
component and each of its atoms within one row of their share, so one-way counts are off by two rows
per component at most. Two-way counts also vary by chance; six standard deviations fail an honest
run in 1e-8.
"""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import torch

import aquatint as aq
from aquatint.analyst.synthesize import balance, mixture
from aquatint.analyst.synthesize import fit as fitting
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.front import load_model
from aquatint.analyst.synthesize.inside import share_met
from aquatint.analyst.synthesize.mixture import Mixture, fit_mixture
from aquatint.analyst.where import conditions
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.errors import DataError, ReleaseError
from aquatint.features import Count, by_label, fourier, hermite, onehot, pairs, race, scale
from aquatint.release.model import Block, Release, Statement
from aquatint.schema import Schema

pytestmark = [
    pytest.mark.filterwarnings("ignore:epsilon = 100 promises very little"),
    pytest.mark.usefixtures("one_thread"),
]

SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "label": "ill",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99], "bins": 8},
            "dose": {"kind": "numeric", "bounds": [0, 1], "bins": 5, "missing": True},
            "seen": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"], "bins": 4},
            "ward": {
                "kind": "categorical",
                "categories": ["north", "south", "east"],
                "missing": True,
            },
            "ill": {"kind": "boolean"},
        },
    }
)
GOOD = Effort(components=30, steps=250, fits=1)
ROUGH = Effort(components=4, steps=40, fits=1)


def people(count, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(count) < 0.3
    age = np.where(ill, rng.normal(65, 12, count), rng.normal(35, 15, count))
    age = np.clip(age, 0, 99).astype(int)
    dose = np.where(ill, rng.beta(5, 2, count), rng.beta(1, 4, count))
    dose[rng.random(count) < np.where(ill, 0.05, 0.4)] = np.nan
    day = np.clip(age * 3 + rng.integers(0, 70, count), 0, 365)
    ward = np.where(age < 40, "north", np.where(rng.random(count) < 0.8, "south", "east"))
    ward = ward.astype(object)
    ward[rng.random(count) < 0.1] = None
    seen = pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D")
    return pd.DataFrame({"age": age, "dose": dose, "seen": seen, "ward": ward, "ill": ill})


REAL = people(4000)


def sketch(data=REAL, schema=SCHEMA, maps=None, **options):
    options = {"epsilon": 100, "delta": 1e-6, "simulate": 1, "progress": False, **options}
    if maps is not None:
        maps = maps if schema.privacy.replaces else {"count": Count(), **maps}
        blocks = tuple(aq.PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
        options["plan"] = aq.Plan(schema, blocks)
    return aq.sketch(data, schema, **options)


def codes_of(table, schema=SCHEMA):
    notes, names = Notes(), list(schema.columns)
    encoder = Encoder(schema, frozenset(names), frozenset())
    parts = [encoder(batch, notes) for batch in read(table, schema, names).open()]
    assert not notes.clipped
    return {n: np.concatenate([rows.codes[n].numpy() for rows in parts]) for n in names}


def table_of(codes, names, schema=SCHEMA):
    """Count the joint cells of some columns."""
    counts = np.zeros([schema.columns[n].cells for n in names])
    np.add.at(counts, tuple(codes[n] for n in names), 1)
    return counts


def joint_of(model, names, where=None):
    """Give the model's probabilities of some columns, given a condition, by plain enumeration."""
    given = {
        name: share_met(model.schema.columns[name], model.histogram(name), condition)
        for name, condition in conditions(model.schema, where).items()
    }
    every = [n for n in model.schema.columns if n in {*names, *given}]
    total = np.zeros([model.schema.columns[n].cells for n in every])
    for cell in product(*(range(size) for size in total.shape)):
        chance = np.array(model.weights, dtype=float)
        for name, code in zip(every, cell, strict=True):
            chance = chance * model.cells(name)[:, code]
            chance = chance * (given[name][code] if name in given else 1.0)
        total[cell] = chance.sum()
    kept = total.sum(tuple(i for i, n in enumerate(every) if n not in names))
    order = [n for n in every if n in names]
    return kept.transpose([order.index(n) for n in names]) / total.sum()


@pytest.fixture(scope="module")
def release():
    return sketch()


@pytest.fixture(scope="module")
def model(release):
    return fit_mixture(release, effort=GOOD, progress=False)


@pytest.fixture(scope="module")
def rough(release):
    """A few components, so that sampling is almost free of chance."""
    return fit_mixture(release, effort=ROUGH, progress=False)


# --- what is recovered --------------------------------------------------------------------------


def test_the_pair_tables_of_the_data_are_recovered(model):
    real, synthetic = codes_of(REAL), codes_of(model.sample(4000, seed=3))
    for pair in combinations(SCHEMA.columns, 2):
        wanted, found = (table_of(codes, pair) / 4000 for codes in (real, synthetic))
        apart = np.outer(wanted.sum(1), wanted.sum(0))
        distance = np.abs(found - wanted).sum() / 2
        assert distance < 0.08, pair
        dependence = np.abs(apart - wanted).sum() / 2
        if dependence > 0.2:
            assert distance < dependence / 3, pair


def test_the_triples_with_the_label_are_recovered(model):
    real, synthetic = codes_of(REAL), codes_of(model.sample(4000, seed=4))
    names = ("age", "ward", "ill")
    wanted, found = (table_of(codes, names) / 4000 for codes in (real, synthetic))
    assert np.abs(found - wanted).sum() / 2 < 0.08


def test_histograms_are_recovered_closely(model):
    real = codes_of(REAL)
    for name in SCHEMA.columns:
        wanted = table_of(real, [name]) / 4000
        assert model.histogram(name).sum() == pytest.approx(1, abs=1e-4)
        assert np.abs(model.histogram(name) - wanted).sum() / 2 < 0.02


def test_missing_values_are_reproduced_with_what_they_go_with(model):
    table = model.sample(4000, seed=5)
    for column in ("dose", "ward"):
        assert table[column].isna().mean() == pytest.approx(REAL[column].isna().mean(), abs=0.02)
    for ill in (True, False):
        wanted = REAL.loc[REAL["ill"] == ill, "dose"].isna().mean()
        assert table.loc[table["ill"] == ill, "dose"].isna().mean() == pytest.approx(
            wanted, abs=0.05
        )
    assert not table[["age", "seen", "ill"]].isna().any(axis=None)


def test_values_come_back_in_the_schemas_types(model):
    table = model.sample(500, seed=6)
    assert list(table.columns) == list(SCHEMA.columns)
    assert {n: str(t) for n, t in table.dtypes.items()} == {
        "age": "int64",
        "dose": "float64",
        "seen": "datetime64[s]",
        "ward": str(pd.Series(["text"]).dtype),
        "ill": "bool",
    }
    assert table["age"].between(0, 99).all()
    assert table["seen"].between("2020-01-01", "2020-12-31").all()
    assert (table["seen"].dt.normalize() == table["seen"]).all()
    assert set(table["ward"].dropna()) == {"north", "south", "east"}
    assert table["age"].nunique() > 60, "all whole numbers of a bin are drawn"


def test_a_mixture_is_shown_in_one_line(model):
    shown = f"Mixture(table '{SCHEMA.name}', {len(model.weights):,} components, 5 columns)"
    assert repr(model) == shown


def test_rows_are_shuffled(model):
    table = model.sample(2000, seed=7)
    first, second = table["age"][:1000].mean(), table["age"][1000:].mean()
    assert abs(first - second) < 6 * table["age"].std() * np.sqrt(2 / 1000)
    assert table.index.tolist() == list(range(2000))


@pytest.mark.parametrize(
    "options", [{"delta": 0.0}, {"epsilon": 0.05}, {"epsilon": 0.05, "delta": 0.0}]
)
def test_any_noise_gives_a_sound_model(options):
    found = fit_mixture(sketch(**options), effort=ROUGH, progress=False)
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.probabilities).all()
    codes_of(found.sample(50, seed=0))


@pytest.mark.parametrize("protects", ["replace one row", "all rows of one person"])
def test_every_unit_of_privacy_can_be_drawn_from(protects):
    privacy = {"protects": protects}
    data = REAL
    if protects == "all rows of one person":
        privacy |= {"person": "id", "max_rows": 2}
        data = REAL.assign(id=np.arange(len(REAL)) // 2)
    schema = Schema.from_dict({**SCHEMA.to_dict(), "privacy": privacy})
    found = fit_mixture(sketch(data, schema), effort=GOOD, progress=False)
    wanted = table_of(codes_of(REAL), ["ward"]) / len(REAL)
    assert np.abs(found.histogram("ward") - wanted).max() < 0.03


DENSE = {
    "waves by label": {"w": by_label(fourier(["age", "seen"], 60, length_scale=0.3), "ill", 2)},
    "polynomials by label": {"h": by_label(hermite(["age", "dose"], 8), "ill", 2)},
    "products": {"p": hermite(["age"], 6) * onehot({"ill": 2}), "h": onehot({"age": 8, "ill": 2})},
    "scaled": {"s": scale(pairs({"age": 8, "ill": 2}), 0.2)},
}


@pytest.mark.parametrize("maps", DENSE.values(), ids=DENSE.keys())
def test_what_goes_with_the_label_is_recovered_from_any_map(maps):
    found = fit_mixture(sketch(maps=maps), effort=GOOD, progress=False)
    table = found.sample(4000, seed=8)
    assert table["ill"].mean() == pytest.approx(REAL["ill"].mean(), abs=0.03)
    for ill in (True, False):
        wanted = REAL.loc[REAL["ill"] == ill, "age"].mean()
        assert table.loc[table["ill"] == ill, "age"].mean() == pytest.approx(wanted, abs=4)


def test_a_column_that_no_block_reads_is_drawn_evenly():
    found = fit_mixture(sketch(maps={"h": onehot({"ill": 2})}), effort=ROUGH, progress=False)
    assert found.histogram("age") == pytest.approx(np.full(8, 1 / 8))
    assert found.histogram("ill")[1] == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    "maps",
    [
        {"hashes": race(["age"], 4, 5)},
        {"counts": scale(Count(), 2.0)},
        {"twice": by_label(onehot({"ill": 2}), "ill", 2)},
        {"merged": onehot({"age": 8}).merge({"age": (0, 0, 0, 0, 1, 1, 1, 1)})},
    ],
)
def test_a_release_without_a_usable_block_is_refused(maps):
    with pytest.raises(ReleaseError, match="no block that a table can be drawn from"):
        fit_mixture(sketch(maps=maps), effort=ROUGH, progress=False)


# --- sampling is what the model says ------------------------------------------------------------

CONDITIONS = [
    None,
    {"ill": True},
    {"ward": ["south", "east"]},
    {"ward": None},
    {"dose": None, "ill": False},
    {"age": (30, 50)},
    "age > 70 and ward is not null",
    "dose between 0.1 and 0.35 and ill = false",
    "seen >= '2020-06-15' and seen < '2020-09-01'",
    {"age": 44},
]


@pytest.mark.parametrize("where", CONDITIONS, ids=str)
def test_one_way_counts_are_the_models_own_up_to_systematic_rounding(rough, where):
    count = 3000
    codes = codes_of(rough.sample(count, where=where, seed=9))
    slack = 2 * len(rough.weights) + 2
    for name in SCHEMA.columns:
        wanted = count * joint_of(rough, [name], where)
        found = table_of(codes, [name])
        assert np.abs(found - wanted).max() <= slack, name
        assert not found[wanted == 0].any(), name


@pytest.mark.parametrize("where", CONDITIONS, ids=str)
def test_two_way_counts_are_the_models_own(rough, where):
    count = 3000
    codes = codes_of(rough.sample(count, where=where, seed=10))
    slack = 2 * len(rough.weights) + 2
    for pair in (("age", "dose"), ("ward", "ill"), ("seen", "ward"), ("age", "ill")):
        wanted = count * joint_of(rough, pair, where)
        assert (np.abs(table_of(codes, pair) - wanted) <= slack + 6 * np.sqrt(wanted)).all(), pair


def far_apart(model, where, seed):
    """How far the pairs of drawn rows are from the model's own, squared and added up."""
    count = 3000
    codes = codes_of(model.sample(count, where=where, seed=seed))
    return sum(
        ((table_of(codes, pair) - count * joint_of(model, pair, where)) ** 2).sum()
        for pair in combinations(SCHEMA.columns, 2)
    )


@pytest.mark.parametrize("cells", [True, False], ids=["by cells", "by atoms"])
@pytest.mark.parametrize("where", [None, {"ill": True}, {"age": (30, 50)}], ids=str)
def test_rows_are_balanced_under_conditions_too(rough, where, cells, monkeypatch):
    """Without trades both sides are alike: a planted fault of that kind fails here."""
    if not cells:
        monkeypatch.setattr(mixture, "fits", lambda *_: False)
    balanced = sum(far_apart(rough, where, seed) for seed in range(3))
    monkeypatch.setattr(mixture, "balance", lambda codes, *_: codes)
    assert balanced < 0.6 * sum(far_apart(rough, where, seed) for seed in range(3))


def test_a_table_with_too_many_cells_is_drawn_all_the_same(rough, monkeypatch):
    monkeypatch.setattr(balance, "MOST_COUNTS", 1)
    assert len(codes_of(rough.sample(50, seed=0))) == len(SCHEMA.columns)


@pytest.mark.parametrize(
    ("where", "check"),
    [
        ({"age": (30, 50)}, lambda t: t["age"].between(30, 50)),
        ("age > 70 and age < 73", lambda t: t["age"].isin([71, 72])),
        ("age between 30.5 and 33.5", lambda t: t["age"].isin([31, 32, 33])),
        ("age > 30.5 and age < 33.5", lambda t: t["age"].isin([31, 32, 33])),
        ({"age": 44}, lambda t: t["age"] == 44),
        ("dose < 0.05", lambda t: t["dose"] < 0.05),
        ("dose is null", lambda t: t["dose"].isna()),
        ("dose >= 0.3 and ill = true", lambda t: (t["dose"] >= 0.3) & t["ill"]),
        ("ward <> 'north'", lambda t: t["ward"].isin(["south", "east"])),
        ("ward is null", lambda t: t["ward"].isna()),
        ("seen = '2020-02-29'", lambda t: t["seen"] == pd.Timestamp("2020-02-29")),
        ("seen < '2020-01-03'", lambda t: t["seen"] < pd.Timestamp("2020-01-03")),
    ],
)
def test_every_row_satisfies_the_condition(model, where, check):
    table = model.sample(400, where=where, seed=11)
    assert len(table) == 400
    assert check(table).all()


def test_both_ways_of_writing_a_condition_give_the_same_rows(model):
    one = model.sample(100, where={"ill": True, "age": (30, 50)}, seed=1)
    two = model.sample(100, where="ill = true and age between 30 and 50", seed=1)
    pd.testing.assert_frame_equal(one, two)


def test_a_condition_that_the_model_excludes_is_refused(model):
    names = list(SCHEMA.columns)
    sizes = [SCHEMA.columns[n].cells for n in names]
    atoms = Atoms(
        {n: np.arange(s) for n, s in zip(names, sizes, strict=True)},
        {n: np.ones(s) for n, s in zip(names, sizes, strict=True)},
    )
    sure = np.concatenate([np.eye(s)[0] for s in sizes])[None]
    never = Mixture(SCHEMA, atoms, np.ones(1), sure)
    assert never.sample(5, where={"ill": False})["ill"].tolist() == [False] * 5
    with pytest.raises(ReleaseError, match="no chance"):
        never.sample(5, where={"ill": True})
    with pytest.raises(DataError, match="no column"):
        model.sample(5, where="wrong = 1")


def test_no_row_one_row_and_less(model):
    none = model.sample(0, seed=0)
    assert len(none) == 0
    assert none.dtypes.equals(model.sample(3, seed=0).dtypes)
    assert len(model.sample(1, where={"ill": True}, seed=0)) == 1
    with pytest.raises(DataError, match="-1"):
        model.sample(-1)


# --- repeatable, and nothing else touched -------------------------------------------------------


def test_the_same_seed_gives_the_same_rows(model):
    pd.testing.assert_frame_equal(model.sample(200, seed=12), model.sample(200, seed=12))
    assert not model.sample(200, seed=12).equals(model.sample(200, seed=13))
    assert not model.sample(200).equals(model.sample(200))


def test_the_same_seed_gives_the_same_model(release):
    effort = replace(ROUGH, fits=2)
    one, two, three = (
        fit_mixture(release, effort=effort, seed=s, progress=False) for s in (5, 5, 6)
    )
    assert (one.weights == two.weights).all()
    assert (one.probabilities == two.probabilities).all()
    assert not (one.probabilities == three.probabilities).all()
    assert len(one.weights) == 2 * ROUGH.components
    assert one.weights.sum() == pytest.approx(1)
    first, second = np.split(one.probabilities, 2)
    assert not np.allclose(first, second)


def test_a_fit_leaves_global_state_alone(release):
    before = torch.get_num_threads(), torch.get_rng_state().clone(), np.random.get_state()[1].copy()  # noqa: NPY002
    fit_mixture(release, effort=ROUGH, progress=False).sample(10)
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert (np.random.get_state()[1] == before[2]).all()  # noqa: NPY002


@pytest.mark.parametrize("where", [None, "age between 30 and 50 and ward = 'south'"])
def test_a_saved_model_gives_the_same_rows(model, tmp_path, where):
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.schema == model.schema
    pd.testing.assert_frame_equal(
        again.sample(300, where=where, seed=14), model.sample(300, where=where, seed=14)
    )
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_cell_that_noise_made_look_empty_can_be_asked_for():
    columns = {"a": {"kind": "integer", "bounds": [0, 5], "bins": 6}}
    schema = Schema.from_dict(
        {"name": "x", "privacy": {"protects": "replace one row"}, "columns": columns}
    )
    counts = np.array([-40, 400, 250, -300, -500, 550]) * 2**20
    block = Block(
        "columns", onehot(schema.cells()), counts.astype(np.int64), (4e8,), "discrete gaussian"
    )
    release = Release(schema, (block,), Statement(1.0, 1e-6, simulated=True), 300, "2026-11-16", {})
    model = fit_mixture(release, progress=False)
    assert (model.histogram("a") > 0).all()
    assert model.sample(20, where="a = 4", seed=0)["a"].tolist() == [4] * 20


def test_shared_parameters_are_added_up_alike_in_parts_and_at_once(monkeypatch):
    """Wide tables are worked on some columns at a time; a run never leaves its column."""
    sizes = {"a": 9, "b": 2, "c": 17, "d": 5, "e": 8}
    cells = {name: np.arange(size) for name, size in sizes.items()}
    atoms = Atoms(cells, {name: np.ones(size) for name, size in sizes.items()})
    (whole,) = fitting._runs(atoms, {"a", "c", "e"})
    monkeypatch.setattr(fitting, "PART", 12)
    parts = fitting._runs(atoms, {"a", "c", "e"})
    assert [part.shape[1] for part in parts] == [11, 17, 5, 8]
    assert torch.equal(torch.block_diag(*parts), whole)
    shared = torch.randn(2, 3, len(whole), generator=torch.Generator().manual_seed(0))
    spread = fitting._spread(shared, parts)
    assert torch.allclose(spread, shared @ whole, rtol=1e-5, atol=1e-6)
