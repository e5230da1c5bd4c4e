"""The front door of synthesis: which model is fitted, what is refused, and tables as files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from release_files import release_of

import aquatint as aq
from aquatint.analyst.synthesize import front
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.front import open_model, sample, synthesize, write_table
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.errors import DataError, ReleaseError
from aquatint.features import Count, FeatureMap, onehot, race
from aquatint.schema import Schema

QUICK = Effort(components=5, steps=10, fits=1)
COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99], "bins": 5},
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
}


def sketch(maps: dict[str, FeatureMap], protects="add or remove one row", columns=COLUMNS):
    schema = Schema.from_dict({"name": "x", "privacy": {"protects": protects}, "columns": columns})
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"age": rng.integers(0, 100, 500), "sex": rng.choice(["F", "M"], 500)})
    blocks = tuple(aq.PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
    plan = aq.Plan(schema, blocks)
    return aq.sketch(data, schema, epsilon=1, delta=1e-6, plan=plan, simulate=1, progress=False)


@pytest.fixture(scope="module")
def release():
    return sketch({"count": Count(), "columns": onehot({"age": 5, "sex": 2})})


@pytest.fixture
def quick(monkeypatch):
    """Fit quickly where no effort can be passed."""
    monkeypatch.setattr("aquatint.analyst.synthesize.mixture.Effort", lambda **_: QUICK)


@pytest.fixture
def no_network(monkeypatch):
    """Say which settings a network would be trained with, and train none."""
    asked = []

    def noted(release, **settings):
        asked.append(settings)
        return "network"

    monkeypatch.setattr(front, "fit_network", noted)
    return asked


# --- which model --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "mixture"])
def test_a_mixture_is_fitted_wherever_one_can_be(release, method, no_network):
    model = synthesize(release, method, effort=QUICK, progress=False)
    assert isinstance(model, Mixture)
    assert model.schema == release.schema
    assert not no_network


def test_a_network_is_trained_where_it_is_asked_for(release, no_network):
    assert synthesize(release, "network", steps=3, seed=7, progress=False) == "network"
    assert no_network == [{"steps": 3, "seed": 7, "progress": False}]


def test_a_network_is_trained_where_no_mixture_can_be(no_network):
    hashes = sketch({"count": Count(), "hashes": race(["age"], 3, 4)})
    assert synthesize(hashes, progress=False) == "network"
    assert len(no_network) == 1


@pytest.mark.parametrize("method", ["auto", "mixture", "network"])
@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
def test_a_release_of_the_count_alone_is_refused(method, protects):
    counted = sketch({"count": Count()}, protects)
    with pytest.raises(ReleaseError, match="holds only the number of rows"):
        synthesize(counted, method, progress=False)
    with pytest.raises(ReleaseError, match="holds only the number of rows"):
        sample(counted, 10, method=method, progress=False)


@pytest.mark.parametrize("method", ["auto", "mixture", "network"])
def test_a_release_of_hashes_alone_is_refused(method):
    hashes = sketch({"count": Count(), "hashes": race(["age"], 3, 4)})
    with pytest.raises(ReleaseError, match=r"no block that .* can be"):
        synthesize(hashes, method, progress=False)


@pytest.mark.parametrize("method", ["wizardry", "", "Mixture", None])
def test_an_unknown_method_is_refused_with_those_there_are(release, method):
    with pytest.raises(ReleaseError, match="auto, mixture, network"):
        synthesize(release, method)


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_rows(release):
    one, two, three = (sample(release, 50, seed=s, progress=False) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(three)


@pytest.mark.usefixtures("quick")
def test_a_sample_satisfies_its_condition(release):
    table = sample(release, 40, where="sex = 'F' and age >= 60", seed=0, progress=False)
    assert len(table) == 40
    assert (table["sex"] == "F").all()
    assert (table["age"] >= 60).all()


@pytest.mark.usefixtures("quick")
def test_without_a_seed_rows_differ_and_the_model_does_not(release):
    model, again = (synthesize(release, progress=False) for _ in range(2))
    assert (model.probabilities == again.probabilities).all()
    assert not model.sample(50).equals(model.sample(50))


def test_the_names_are_in_the_public_interface():
    assert aq.sample is sample
    assert aq.synthesize is synthesize
    assert aq.load_model is front.load_model


# --- files --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_a_release_and_a_model_are_opened_alike(release, tmp_path):
    release.save(tmp_path / "x.aqt")
    model = open_model(tmp_path / "x.aqt", seed=3, progress=False)
    model.save(tmp_path / "model")
    again = open_model(tmp_path / "model")
    pd.testing.assert_frame_equal(model.sample(30, seed=1), again.sample(30, seed=1))


def test_what_cannot_be_opened_is_refused(release, tmp_path):
    with pytest.raises(ReleaseError, match="cannot read"):
        open_model(tmp_path / "nowhere.aqt")
    (tmp_path / "x.csv").write_text("age,sex\n1,F\n")
    with pytest.raises(ReleaseError, match="not a valid release"):
        open_model(tmp_path / "x.csv")
    release.save(tmp_path / "x.aqt")
    with pytest.raises(ReleaseError, match="unknown method"):
        open_model(tmp_path / "x.aqt", "wizardry")


def test_an_unknown_method_is_refused_for_a_model_too(release, tmp_path):
    synthesize(release, effort=QUICK, progress=False).save(tmp_path / "model")
    with pytest.raises(ReleaseError, match="unknown method"):
        open_model(tmp_path / "model", "wizardry")


def test_a_model_of_another_method_is_refused(release, tmp_path):
    path = tmp_path / "model"
    synthesize(release, effort=QUICK, progress=False).save(path)
    assert isinstance(open_model(path, "mixture"), Mixture)
    with pytest.raises(ReleaseError, match="holds a mixture, not a network"):
        open_model(path, "network")
    small = {"hidden": (8,), "components": 2, "steps": 1, "batch": 20}
    synthesize(release, "network", progress=False, **small).save(path)
    assert open_model(path, "auto").schema == release.schema
    with pytest.raises(ReleaseError, match="holds a network, not a mixture"):
        open_model(path, "mixture")


def test_a_wrong_condition_is_told_when_a_model_is_opened(release, tmp_path):
    synthesize(release, effort=QUICK, progress=False).save(tmp_path / "model")
    with pytest.raises(DataError, match="no column"):
        open_model(tmp_path / "model", where="wrong = 1")


EVERY = Schema.from_dict(
    {
        "name": "every",
        "privacy": {"protects": "replace one row"},
        "columns": {
            f"{name}{' with holes' if holes else ''}": {**column, "missing": holes}
            for holes in (False, True)
            for name, column in {
                "integer": {"kind": "integer", "bounds": [-5, 99], "bins": 5},
                "numeric": {"kind": "numeric", "bounds": [-1e-3, 1e6], "bins": 7},
                "date": {"kind": "date", "bounds": ["1960-01-01", "2020-12-31"], "bins": 6},
                "moment": {
                    "kind": "datetime",
                    "bounds": ["1960-01-01T00:00:00", "2020-12-31T00:00:00"],
                    "bins": 6,
                },
                "zoned": {
                    "kind": "datetime",
                    "bounds": ["2020-01-01T00:00:00+02:00", "2020-02-01T00:00:00+02:00"],
                    "bins": 3,
                },
                "ordered": {"kind": "ordered", "categories": ["low", "mid, dle", 'hi"gh']},
                "levels": {"kind": "ordered", "categories": [3, 1, 2]},
                "job": {"kind": "categorical", "categories": ["NA", "é"], "other": True},
                "code": {"kind": "categorical", "categories": [-1, 7], "other": True},
                "text": {"kind": "text", "categories": ["null", "two words"]},
                "yes": {"kind": "boolean"},
            }.items()
        },
    }
)


def uniform(schema):
    cells = schema.cells()
    atoms = Atoms(
        {n: np.arange(c) for n, c in cells.items()}, {n: np.ones(c) for n, c in cells.items()}
    )
    return Mixture(
        schema, atoms, np.ones(1), np.concatenate([np.full(c, 1 / c) for c in cells.values()])[None]
    )


def cells_of(data):
    notes, names = Notes(), list(EVERY.columns)
    encoder = Encoder(EVERY, frozenset(names), frozenset())
    parts = [encoder(batch, notes) for batch in read(data, EVERY, names).open()]
    assert not notes.clipped
    return {n: np.concatenate([rows.codes[n].numpy() for rows in parts]).tolist() for n in names}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_written_table_is_read_back_cell_by_cell(tmp_path, suffix):
    table = uniform(EVERY).sample(300, seed=4)
    path = tmp_path / f"rows.{suffix}"
    write_table(table, path)
    found, wanted = cells_of(path), cells_of(table)
    for name in EVERY.columns:
        assert found[name] == wanted[name], name
        assert len(set(wanted[name])) == EVERY.columns[name].cells, name


def test_a_parquet_file_keeps_the_types(tmp_path):
    table = uniform(EVERY).sample(20, seed=5)
    write_table(table, tmp_path / "rows.parquet")
    again = pd.read_parquet(tmp_path / "rows.parquet")
    for name in ("integer", "numeric", "yes", "integer with holes", "yes with holes", "zoned"):
        assert again[name].tolist() == table[name].tolist() or again[name].equals(table[name]), name
    assert list(again.columns) == list(EVERY.columns)


def test_a_csv_file_has_dates_and_no_index(tmp_path):
    schema = Schema.from_dict(
        {
            "name": "x",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "born": {
                    "kind": "date",
                    "bounds": ["2020-01-01", "2020-01-02"],
                    "bins": [18262, 18263],
                },
                "ill": {"kind": "boolean"},
            },
        }
    )
    write_table(
        uniform(schema).sample(2, where={"born": "2020-01-02", "ill": True}), tmp_path / "x.csv"
    )
    assert (tmp_path / "x.csv").read_text() == "born,ill\n2020-01-02,True\n2020-01-02,True\n"


@pytest.mark.parametrize("name", ["x.txt", "x", "x.csv.gz", "x.xlsx"])
def test_another_suffix_is_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"end its name in \.csv or \.parquet"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, suffix):
    (tmp_path / f"folder.{suffix}").mkdir()
    for name in (f"nowhere/x.{suffix}", f"folder.{suffix}"):
        with pytest.raises(DataError, match="cannot write") as caught:
            write_table(pd.DataFrame({"a": [1]}), tmp_path / name)
        assert Path(name).name in str(caught.value)


def test_a_release_with_every_map_can_be_drawn_from():
    model = synthesize(release_of(simulate=1), effort=QUICK, progress=False)
    assert len(model.sample(10)) == 10
