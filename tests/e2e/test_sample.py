"""`aquatint sample` and `aquatint evaluate` from end to end.

A refusal is one sentence on standard error that starts with "aquatint: ", exit code 1, and no new
file in the folder. Fits are cut short, except in the one real process.
"""

import json
import pickle

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import aquatint as aq
from aquatint.analyst.synthesize import front
from aquatint.analyst.synthesize.fit import Effort
from aquatint.features import Count, race

CSV = ["sample", "out.aqt", "-n", "20", "-o", "rows.csv", "--seed", "3"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick = Effort(components=20, steps=50, fits=1)
    monkeypatch.setattr("aquatint.analyst.synthesize.mixture.Effort", lambda **_: quick)


@pytest.fixture
def release(folder, run):
    """A release of people.csv with simulated noise, beside the data."""
    arguments = folder.sketch(ledger=None, dataset=None, simulate="1")
    assert run([*arguments, "--quiet"]).code == 0
    return folder.path / "out.aqt"


@pytest.fixture
def fits(monkeypatch):
    """How often a model is fitted."""
    made = []

    def counted(*arguments, **options):
        made.append(options)
        return fit(*arguments, **options)

    fit = front.fit_mixture
    monkeypatch.setattr(front, "fit_mixture", counted)
    return made


def refused(folder, run, arguments):
    """Run what has to be refused; give the sentence."""
    before = folder.files()
    done = run(arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("aquatint: ")
    assert done.err.count("\n") == 1
    assert folder.files() == before
    return done.err


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("release")
def test_a_csv_file_of_synthetic_rows(folder, run):
    done = run(CSV)
    assert (done.code, done.out) == (0, "")
    assert done.err == "written: rows.csv, 20 synthetic rows\n"
    lines = (folder.path / "rows.csv").read_text().splitlines()
    assert lines[0] == "age,sex"
    assert len(lines) == 21
    for line in lines[1:]:
        age, sex = line.split(",")
        assert 0 <= int(age) <= 99
        assert sex in {"F", "M"}


@pytest.mark.usefixtures("release")
def test_a_parquet_file_of_synthetic_rows(folder, run):
    done = run(["sample", "out.aqt", "-n", "1234", "-o", "rows.parquet"])
    assert done.code == 0
    assert "1,234 synthetic rows" in done.err
    table = pq.read_table(folder.path / "rows.parquet")
    assert table.column_names == ["age", "sex"]
    assert table.num_rows == 1234
    assert str(table.schema.field("age").type) == "int64"


@pytest.mark.usefixtures("release")
def test_rows_resemble_the_data(folder, run):
    run(["sample", "out.aqt", "-n", "2000", "-o", "rows.csv", "--seed", "1", "--quiet"])
    rows = pd.read_csv(folder.path / "rows.csv")
    assert rows["age"].mean() == pytest.approx(49.5, abs=6)
    assert (rows["sex"] == "F").mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.usefixtures("release")
def test_quiet_says_nothing(run):
    done = run([*CSV, "--quiet"])
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.usefixtures("release")
def test_the_same_seed_gives_the_same_file(folder, run):
    files = []
    for seed in ("3", "3", "4"):
        run([*CSV[:-1], seed])
        files.append((folder.path / "rows.csv").read_bytes())
    assert files[0] == files[1] != files[2]
    drawn = []
    for _ in range(2):
        run(CSV[:-2])
        drawn.append((folder.path / "rows.csv").read_bytes())
    assert drawn[0] != drawn[1], "without a seed rows differ"


@pytest.mark.usefixtures("release")
def test_only_rows_that_satisfy_the_condition(folder, run):
    done = run([*CSV, "--where", "sex = 'F' and age >= 30 and age < 40"])
    assert done.code == 0
    rows = pd.read_csv(folder.path / "rows.csv")
    assert len(rows) == 20
    assert set(rows["sex"]) == {"F"}
    assert rows["age"].between(30, 39).all()


@pytest.mark.usefixtures("release")
def test_a_file_that_is_there_is_written_over(folder, run):
    folder.write("rows.csv", "old\n" * 1000)
    run(CSV)
    assert "old" not in (folder.path / "rows.csv").read_text()


# --- models -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("release")
def test_a_saved_model_draws_the_same_rows_without_the_release(folder, run, fits):
    assert run([*CSV, "--save", "people.model"]).code == 0
    assert len(fits) == 1
    first = (folder.path / "rows.csv").read_bytes()
    (folder.path / "out.aqt").unlink()
    done = run(["sample", "people.model", "-n", "20", "-o", "again.csv", "--seed", "3"])
    assert done.code == 0
    assert (folder.path / "again.csv").read_bytes() == first
    assert len(fits) == 1, "a saved model is not fitted again"
    some = run(["sample", "people.model", "-n", "7", "-o", "some.csv", "--where", "sex = 'M'"])
    assert some.code == 0
    assert set(pd.read_csv(folder.path / "some.csv")["sex"]) == {"M"}


@pytest.mark.usefixtures("release")
def test_a_damaged_model_is_refused(folder, run):
    run([*CSV, "--save", "people.model"])
    whole = (folder.path / "people.model").read_bytes()
    folder.write("people.model", whole[: len(whole) // 2])
    (folder.path / "rows.csv").unlink()
    arguments = ["sample", "people.model", "-n", "5", "-o", "rows.csv"]
    assert "people.model" in refused(folder, run, arguments)
    folder.write("people.model", pickle.dumps({"weights": [1]}))
    assert "people.model" in refused(folder, run, arguments)


@pytest.mark.usefixtures("release")
def test_a_model_of_another_method_is_refused(folder, run):
    run([*CSV, "--save", "people.model"])
    arguments = ["sample", "people.model", "-n", "5", "-o", "more.csv"]
    said = refused(folder, run, [*arguments, "--method", "network"])
    assert "people.model holds a mixture, not a network" in said
    assert run([*arguments, "--method", "mixture"]).code == 0


@pytest.mark.usefixtures("release")
def test_nothing_is_saved_under_a_wrong_condition(folder, run):
    run([*CSV, "--save", "people.model"])
    arguments = ["sample", "people.model", "-n", "5", "-o", "more.csv", "--save", "again.model"]
    assert "no column" in refused(folder, run, [*arguments, "--where", "wrong = 1"])


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("release")
def test_an_unknown_method_is_refused(folder, run, fits):
    said = refused(folder, run, [*CSV, "--method", "wizardry"])
    assert "'wizardry'" in said
    assert "auto, mixture, network" in said
    assert not fits


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.xlsx"])
def test_a_suffix_that_is_not_known_is_refused_before_anything_is_fitted(folder, run, fits, name):
    said = refused(folder, run, ["sample", "out.aqt", "-n", "5", "-o", name])
    assert ".csv or .parquet" in said
    assert not fits, "a fit takes minutes: look at the name first"


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_output_that_cannot_be_written_is_refused(folder, run, suffix):
    (folder.path / f"folder.{suffix}").mkdir()
    for name in (f"nowhere/rows.{suffix}", f"folder.{suffix}"):
        assert f"cannot write {name}" in refused(
            folder, run, ["sample", "out.aqt", "-n", "5", "-o", name]
        )


@pytest.mark.usefixtures("release")
def test_a_model_that_cannot_be_written_is_refused(folder, run):
    assert "cannot write the model" in refused(folder, run, [*CSV, "--save", "nowhere/model"])


def test_a_release_that_is_not_there_is_refused(folder, run):
    assert "cannot read out.aqt" in refused(folder, run, CSV)


def test_a_file_that_is_no_release_is_refused(folder, run):
    said = refused(folder, run, ["sample", "people.csv", "-n", "5", "-o", "rows.csv"])
    assert "not a valid release" in said


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("sex = 'Z'", "no category 'Z'"),
        ("wrong = 1", "no column 'wrong'"),
        ("age > 200", "no value of column 'age'"),
        ("sex = 'F' or age > 3", "within one column"),
        ("sex = 'F'; drop table people", "cannot read the condition"),
        ("age in (select 1)", "aquatint: "),
        ("", "cannot read the condition"),
        ("(" * 5000, "cannot read the condition"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(folder, run, where, said):
    assert said in refused(folder, run, [*CSV, "--where", where])


@pytest.mark.parametrize("maps", [{}, {"hashes": race(["age"], 3, 4)}], ids=["count", "hashes"])
def test_a_release_without_a_usable_block_is_refused(folder, run, maps):
    schema = aq.Schema.from_toml(folder.path / "people.toml")
    maps = {"count": Count(), **maps}
    plan = aq.Plan(schema, tuple(aq.PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items()))
    aq.sketch(
        folder.path / "people.csv",
        schema,
        epsilon=1,
        delta=1e-6,
        plan=plan,
        output=folder.path / "out.aqt",
        simulate=1,
        progress=False,
    )
    for method in ("auto", "mixture", "network"):
        said = refused(folder, run, [*CSV, "--method", method])
        assert "no block" in said or "only the number of rows" in said


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("count", ["0", "-3", "many"])
def test_a_wrong_number_of_rows_is_wrong_usage(folder, run, count):
    before = folder.files()
    done = run(["sample", "out.aqt", "-n", count, "-o", "rows.csv"])
    assert done.code == 2
    assert "-n" in done.err
    assert folder.files() == before


@pytest.mark.usefixtures("release")
def test_a_negative_seed_is_refused_without_a_traceback(folder, run):
    before = folder.files()
    done = run([*CSV[:-1], "-1"])
    assert done.code in {1, 2}
    assert "seed" in done.err
    assert folder.files() == before


@pytest.mark.slow
@pytest.mark.usefixtures("release")
def test_a_real_process_with_all_its_effort(folder):
    done = folder.spawn(CSV)
    assert (done.code, done.out) == (0, "")
    assert "20 synthetic rows" in done.err
    assert len((folder.path / "rows.csv").read_text().splitlines()) == 21


# --- evaluate -----------------------------------------------------------------------------------

EVALUATE = [
    "evaluate",
    *("--schema", "people.toml", "--real", "people.csv", "--synthetic", "rows.csv"),
    *("--classifiers", "quick", "--quiet"),
]


@pytest.fixture
def tables(folder):
    """Real, held-out and synthetic rows; the synthetic ones are a little older."""
    rng = np.random.default_rng(0)
    for name, count, shift in (("people", 300, 0), ("held", 200, 0), ("rows", 250, 10)):
        age = np.clip(rng.integers(0, 100, count) + shift, 0, 99)
        sex = np.where(rng.random(count) < age / 130, "F", "M")
        pd.DataFrame({"age": age, "sex": sex}).to_csv(folder.path / f"{name}.csv", index=False)


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
def test_an_evaluation_prints_a_table_and_draws_plots(folder, run):
    done = run([*EVALUATE, "--test", "held.csv", "--plots", "plots/first"])
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("people: synthetic rows against real rows\nNOT PRIVATE")
    assert "300 real, 200 test, 250 synthetic rows" in done.out
    assert "total variation, 1 pairs" in done.out
    assert "predicting sex" in done.out
    assert "mean" in done.out
    drawn = list((folder.path / "plots" / "first").iterdir())
    assert {p.name for p in drawn} >= {"marginals.png", "pairs.png", "roc.png"}
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in drawn)


@pytest.mark.usefixtures("tables")
def test_an_evaluation_gives_json(folder, run):
    done = run([*EVALUATE, "--json"])
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["private"] is False
    assert found["rows"] == {"real": 300, "synthetic": 250}
    assert found["utility"] is None
    assert 0.05 < found["closeness"]["columns"]["age"]["tv"] < 0.3
    same = run([*EVALUATE, "--json", "--synthetic", "people.csv"])
    assert json.loads(same.out)["closeness"]["columns"]["age"]["tv"] == 0
    assert folder.files() >= {"people.csv", "rows.csv"}


@pytest.mark.usefixtures("release")
def test_what_was_sampled_can_be_evaluated(run):
    run([*CSV, "--quiet"])
    done = run([*EVALUATE, "--json"])
    assert done.code == 0
    assert json.loads(done.out)["outside_schema"] == 0


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--classifiers", "magic"], "magic"),
        (["--target", "sex"], "needs test rows"),
        (["--target", "wrong", "--test", "held.csv"], "wrong"),
        (["--synthetic", "nowhere.csv"], "nowhere.csv"),
        (["--test", "nowhere.csv"], "nowhere.csv"),
        (["--schema", "nowhere.toml"], "cannot read the schema"),
    ],
)
def test_an_evaluation_that_makes_no_sense_is_refused(folder, run, more, said):
    assert said in refused(folder, run, [*EVALUATE, *more])


@pytest.mark.usefixtures("tables")
def test_plots_that_cannot_be_written_are_refused_by_name(folder, run):
    assert "people.csv" in refused(folder, run, [*EVALUATE, "--plots", "people.csv"])


@pytest.mark.usefixtures("tables")
def test_a_negative_seed_of_an_evaluation_is_refused_without_a_traceback(run):
    done = run([*EVALUATE, "--seed", "-1"])
    assert done.code in {1, 2}
    assert "seed" in done.err
