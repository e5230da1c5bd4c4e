"""``aquatint compare`` from end to end: two owners, one plan, and every refusal.

The texts are golden: their noise is simulated, so they are the same in every run. To accept a
change, look at it and run with AQUATINT_UPDATE_GOLDEN=1.
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aquatint as aq

GOLDEN = Path(__file__).parent.parent / "golden"
SCHEMA = """
name = "clinic"
[privacy]
protects = "add or remove one row"
[columns.age]
kind = "integer"
bounds = [0, 99]
[columns.dose]
kind = "numeric"
bounds = [0, 10]
[columns.ward]
kind = "categorical"
categories = ["north", "south"]
"""


@pytest.fixture
def clinics(folder):
    """Three clinics, the last of which doses higher, each sketched by the plan they share."""
    folder.write("clinic.toml", SCHEMA)
    schema = aq.Schema.from_toml(folder.path / "clinic.toml")
    aq.mixed_fourier(schema, length_scale=0.2).save(folder.path / "plan.json")
    for number, (name, dose) in enumerate([("east", 4), ("west", 4), ("north", 5)]):
        rng = np.random.default_rng(number)
        rows = {
            "age": rng.integers(0, 100, 3000),
            "dose": rng.normal(dose, 1.5, 3000).clip(0, 10).round(2),
            "ward": rng.choice(["north", "south"], 3000),
        }
        pd.DataFrame(rows).to_csv(folder.path / f"{name}.csv", index=False)
    return folder


def sketch(run, name, number):
    options = ["--schema", "clinic.toml", "--plan", "plan.json", "--epsilon", "1"]
    simulated = ["--delta", "1e-6", "--simulate", str(number), "--quiet", "-o", f"{name}.aqt"]
    assert run(["sketch", f"{name}.csv", *options, *simulated]).code == 0


@pytest.fixture
def releases(clinics, run):
    for number, name in enumerate(("east", "west", "north")):
        sketch(run, name, number)
    return clinics


def golden(name, said):
    if os.environ.get("AQUATINT_UPDATE_GOLDEN") == "1":
        (GOLDEN / name).write_text(said, encoding="utf-8")
    return (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["east.aqt", "west.aqt"], "compare_same.txt"),
        (["east.aqt", "north.aqt", "--where", "--conservative"], "compare_where.txt"),
        (["east.aqt", "west.aqt", "north.aqt"], "compare_all.txt"),
    ],
)
def test_what_is_printed_is_the_golden_text(releases, run, arguments, name):
    done = run(["compare", *arguments])
    assert (done.code, done.err) == (0, "")
    assert done.out == golden(name, done.out)


def test_json_has_the_whole_result(releases, run):
    told = json.loads(run(["compare", "east.aqt", "north.aqt", "--json"]).out)
    assert told["reject"] is True
    assert told["pvalue"] < 1e-6
    assert "differences" not in told
    more = json.loads(run(["compare", "east.aqt", "north.aqt", "--json", "--where"]).out)
    assert more["differences"][0]["columns"] == ["dose"]
    pairs = json.loads(run(["compare", "east.aqt", "west.aqt", "north.aqt", "--json"]).out)
    assert [pair["reject"] for pair in pairs] == [False, True, True]


def test_the_plot_is_written(releases, run):
    assert run(["compare", "east.aqt", "north.aqt", "--plot", "where.svg"]).code == 0
    assert "dose" in (releases.path / "where.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["east.aqt", "east.aqt"], "given twice"),
        (["east.aqt", "other.aqt"], "cannot"),
        (["east.aqt", "west.aqt", "--alpha", "2"], "alpha must be between 0 and 1"),
        (["east.aqt", "west.aqt", "--method", "best"], "must be one of auto"),
        (["east.aqt", "west.aqt", "--plot", "where.pdf"], ".png or .svg"),
    ],
)
def test_a_refusal_is_one_sentence(releases, run, arguments, said):
    before = releases.files()
    done = run(["compare", *arguments])
    assert done.code == 1
    assert said in done.err
    assert done.err.startswith("aquatint: ")
    assert done.err.count("\n") == 1
    assert releases.files() == before


@pytest.mark.parametrize("arguments", [["east.aqt"], ["a.aqt", "b.aqt", "c.aqt", "--where"]])
def test_wrong_usage_is_told(releases, run, arguments):
    assert run(["compare", *arguments]).code == 2


def test_releases_by_other_plans_that_share_nothing_are_refused(releases, run):
    schema = aq.Schema.from_toml(releases.path / "clinic.toml")
    other = aq.mixed_fourier(schema, length_scale=0.2, seed=9)
    kept = tuple(b for b in aq.me_test(schema).blocks if b.name != "cells")
    for number, plan in enumerate((other, aq.Plan(other.schema, kept))):
        data = releases.path / "east.csv"
        made = aq.sketch(data, schema, epsilon=1, delta=1e-6, plan=plan, simulate=7)
        made.save(releases.path / f"other{number}.aqt")
    done = run(["compare", "other0.aqt", "other1.aqt"])
    assert done.code == 1
    assert "no features in common" in done.err
