"""The tables of the benchmarks: loaders, published figures, and the peers' bins."""

import re
from math import log, sqrt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmark_scripts import fetch

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.schema import Schema

datasets = fetch("datasets")
development = fetch("development")
peers = fetch("peers")
unseen = fetch("unseen")
TABLES = development.TABLES | unseen.UNSEEN


def encode(frame, schema):
    """Encode a whole frame by the schema; this fails on whatever the schema does not declare."""
    names = list(schema.columns)
    encoder, notes = Encoder(schema, frozenset(names), frozenset()), Notes()
    parts = [encoder(batch, notes).codes for batch in read(frame, schema, names).open()]
    return {name: np.concatenate([p[name].numpy() for p in parts]) for name in names}


def loaded(make):
    try:
        return make()
    except datasets.NotHereError as absent:
        pytest.skip(str(absent))


def paper(start):
    found = sorted((datasets.data_folder().parent / "papers").glob(f"{start}_*.txt"))
    if not found:
        pytest.skip("the papers' texts are not here")
    return found[0].read_text(encoding="utf-8")


def numbers(line):
    """Read a row of figures; a cell over two columns was cut up like '0.4 167' for 0.467."""
    words = re.findall(r"[\d.]+", line.replace(",", "."))
    made = []
    while words:
        word = words.pop(0)
        made.append(float(word if len(word) > 3 else word + words.pop(0)[-2:]))
    return made


def row(text, name, start):
    """Find the row of a table that begins with a name, after the words that begin the table."""
    body = text[text.index(start) :]
    line = re.search(rf"^{name}\t(.*\d)", body, flags=re.MULTILINE)
    assert line is not None
    return numbers(line[1])


@pytest.mark.parametrize("name", datasets.PUBLISHED)
def test_figures_of_dp_hp_are_as_printed(name):
    printed = row(paper("000"), name, "Table 7. Performance comparison")
    figures = datasets.PUBLISHED[name]
    width = len(figures.measures)
    assert tuple(printed[:width]) == figures.hp_real
    assert tuple(printed[-2 * width : -width]) == figures.merf_in_hp
    assert tuple(printed[-width:]) == figures.hp


@pytest.mark.parametrize("name", [n for n in datasets.PUBLISHED if n != "intrusion"])
def test_figures_of_dp_merf_are_as_printed(name):
    printed = row(paper("001"), name, "6 Experiments")
    figures = datasets.PUBLISHED[name]
    width = len(figures.measures)
    assert tuple(printed[:width]) == figures.merf_real
    assert tuple(printed[3 * width : 4 * width]) == figures.merf


def test_the_figure_of_dp_merf_for_intrusion_is_as_printed():
    average = row(paper("001"), "Average", "Table 8: Performance comparison on Intrusion")
    assert datasets.PUBLISHED["intrusion"].merf == (average[1],)


def test_marginals_are_as_printed():
    text = paper("000")
    body = text[text.index("Table 1.  $\\alpha$ -way marginals") :]
    lines = [re.sub(r"\$.*?\$", " ", x) for x in body.splitlines() if x.startswith("$\\alpha=")]
    wanted = [[("adult", 3), ("census", 2)], [("adult", 4), ("census", 3)]]
    for line, keys in zip(lines[:2], wanted, strict=True):
        told = [x for key in keys for pair in datasets.MARGINALS[key].values() for x in pair]
        assert told == numbers(line)


@pytest.mark.parametrize("name", [n for n in datasets.LOADERS if n != "mixture"])
def test_absent_data_are_named_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.setenv("AQUATINT_DATA", str(tmp_path))
    with pytest.raises(datasets.NotHereError, match="is not here: set AQUATINT_DATA") as caught:
        datasets.load(name)
    assert str(tmp_path) not in str(caught.value)


ROWS = {
    "adult": (39_073, 9769),
    "cervical": (602, 151),
    "credit": (3759, 940),
    "epileptic": (350 * 23, 150 * 23),
    "mixture": (90_000, 10_000),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_table_is_what_its_schema_says(name):
    table = loaded(lambda: datasets.load(name))
    assert (len(table.train), len(table.test)) == ROWS[name]
    schema = datasets.binned(table.schema, 8)
    assert schema.label == table.target
    for part in (table.train, table.test):
        codes = encode(part, schema)
        assert len(set(codes[table.target])) == schema.cells()[table.target]
    assert table.differences
    assert table.source
    assert table.licence


def test_no_recording_is_on_both_sides_of_the_epileptic_split():
    table = loaded(lambda: datasets.load("epileptic"))
    raw = pd.read_csv(datasets.data_file("tabular", "epileptic", "data.csv.xz"), index_col=0)
    of_row = dict(zip(map(tuple, raw.to_numpy()[:, :178]), raw.index.str[:4], strict=True))
    sides = [
        {of_row[tuple(values)] for values in part.to_numpy()[:, :178]}
        for part in (table.train, table.test)
    ]
    assert [len(side) for side in sides] == [350, 150]
    assert not sides[0] & sides[1]


def test_the_mixture_has_the_likelihood_of_theory():
    table = datasets.load("mixture")
    x, label = table.test[["x1", "x2"]].to_numpy(), table.test["label"].to_numpy()
    entropy = log(25) + 1 + log(2 * np.pi * 0.04)
    assert datasets.mixture_nll(x, label) == pytest.approx(entropy, abs=5 / sqrt(len(x)))
    assert datasets.mixture_nll(x, np.roll(label, 1)) > entropy + 1


def test_discretised_adult_is_all_codes():
    table = loaded(lambda: datasets.discretised("adult", 16))
    assert table.target is None
    assert max(len(c.categories) for c in table.schema.columns.values()) == 42
    encode(table.train, table.schema)
    assert set(table.train["age"]) <= set(map(str, range(16)))


def test_no_unseen_table_is_a_development_table():
    assert len(TABLES) == len(development.TABLES) + len(unseen.UNSEEN)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_what_their_schemas_say(name, tmp_path):
    table = loaded(TABLES[name])
    assert name not in datasets.PUBLISHED
    datasets.write_table(tmp_path, *table)
    assert Schema.from_toml(tmp_path / "schema.toml") == table.schema
    codes = encode(tmp_path / "train.csv", table.schema)
    assert len(codes[table.schema.label]) == len(table.train)
    theirs = _peer_codes(tmp_path / "train.csv", table.schema)
    for column in table.schema.columns:
        np.testing.assert_array_equal(theirs[column], codes[column], err_msg=column)


def _peer_codes(path, schema):
    frame = pl.read_csv(path, infer_schema_length=0)
    columns = peers.codings(schema.to_dict())
    return {name: coding.encode(frame[name]) for name, coding in columns.items()}


SCHEMA = {
    "name": "every kind",
    "privacy": {"protects": "add or remove one row"},
    "columns": {
        "number": {"kind": "numeric", "bounds": [-1, 2], "bins": 7, "missing": True},
        "edges": {"kind": "numeric", "bounds": [0, 10], "bins": [0, 1, 10]},
        "whole": {"kind": "integer", "bounds": [3, 40], "bins": 5, "missing": True},
        "rough": {"kind": "integer", "bounds": [0, 99], "bins": [0, 1, 10, 99]},
        "word": {"kind": "categorical", "categories": ["a", "b"], "missing": True},
        "grade": {"kind": "ordered", "categories": [1, 2, 3]},
    },
}


def test_what_a_peer_draws_falls_into_the_cell_it_drew(tmp_path):
    schema = Schema.from_dict(SCHEMA)
    rng = np.random.default_rng(0)
    columns = peers.codings(SCHEMA)
    cells = {name: rng.integers(0, coding.cells, 500) for name, coding in columns.items()}
    drawn = {name: coding.decode(cells[name], rng) for name, coding in columns.items()}
    pl.DataFrame(drawn).write_csv(tmp_path / "drawn.csv")
    ours = encode(tmp_path / "drawn.csv", schema)
    theirs = _peer_codes(tmp_path / "drawn.csv", schema)
    for name, n in schema.cells().items():
        assert columns[name].cells == n
        np.testing.assert_array_equal(ours[name], cells[name], err_msg=name)
        np.testing.assert_array_equal(theirs[name], cells[name], err_msg=name)


def test_a_peer_gets_the_largest_budget_that_theory_allows():
    rho = peers.rho_of(1.0, 1e-5)
    alpha = np.linspace(1.001, 60, 1_000_000)
    deltas = np.exp((alpha - 1) * (alpha * rho - 1) + alpha * np.log1p(-1 / alpha)) / (alpha - 1)
    assert deltas.min() == pytest.approx(1e-5, rel=1e-6)
    plain = (sqrt(log(1e5) + 1) - sqrt(log(1e5))) ** 2  # from ε = ρ + 2 √(ρ log 1/δ)
    exact = 1 / (2 * 3.7306**2)  # the Gaussian mechanism alone, by its exact curve
    assert plain < rho < exact
