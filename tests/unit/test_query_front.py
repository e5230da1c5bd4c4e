"""The front door of questions: frames, ready-made questions, text, pictures, the command."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import aquatint as aq
from aquatint import drawing
from aquatint.analyst.query import plots
from aquatint.analyst.query.describe import describe, described_frame, readable, sparkline
from aquatint.analyst.query.priors import broadened, flat
from aquatint.analyst.query.text import answers_table, described_table, pairs_table
from aquatint.cli import app
from aquatint.errors import DataError, ReleaseError
from aquatint.features import Count
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 9]},
            'the "height"': {"kind": "numeric", "bounds": [0, 2], "missing": True},
            "city": {"kind": "categorical", "categories": ["A", "it's B", "C"]},
            "day": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]},
            "ill": {"kind": "boolean"},
        },
    }
)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(3)
    rows = 3000
    height = rng.normal(1.2, 0.2, rows)
    height[rng.random(rows) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 10, rows),
            'the "height"': height,
            "city": rng.choice(["A", "it's B", "C"], rows, p=[0.6, 0.3, 0.1]),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), "D"),
            "ill": rng.random(rows) < 0.2,
        }
    )
    return aq.sketch(frame, SCHEMA, epsilon=3, delta=1e-6, simulate=1, progress=False)


@pytest.fixture(scope="module")
def query(release):
    """Questions over a flat prior: the counts correct it, and nothing needs to be fitted."""
    return aq.Query(release, model=flat(release), progress=False)


def test_groups_come_in_order_and_as_many_as_asked_for(query):
    text = "select city, count(*) n, avg(age) from data group by city order by n desc limit 2"
    found = query.sql(text)
    assert list(found["city"]) == ["A", "A", "it's B", "it's B"]
    assert list(found["statistic"]) == ["n", "avg(age)"] * 2
    rising = query.sql("select city, count(*) n from data group by city order by city")
    assert list(rising["city"]) == ["A", "C", "it's B"]


def test_having_goes_by_the_estimates(query):
    text = "select city, count(*) from data group by city having count(*) > 600"
    assert list(query.sql(text)["city"]) == ["A", "it's B"]
    assert query.sql("select city, count(*) c from data group by city having c > 1e9").empty


def test_methods_ask_what_sql_asks(query):
    name = 'the "height"'
    quoted = '"the ""height"""'
    assert query.mean(name).value == query.sql(f"select avg({quoted}) from data")["value"][0]
    assert query.cdf("day", "2020-07-01").value == pytest.approx(0.5, abs=0.05)
    assert query.quantile("age", 0.5, "ill").value == pytest.approx(4.5, abs=1.5)
    assert query.deviation("age", "city = 'it''s B'").value == pytest.approx(2.87, abs=0.5)
    assert query.count("ill = true").value == pytest.approx(600, abs=120)
    assert query.histogram("city", "ill")["value"].sum() == pytest.approx(1.0, abs=0.02)
    whole = query.histogram(name)
    assert whole.index[-1] == "(missing)"
    assert whole["value"].iloc[-1] == pytest.approx(0.1, abs=0.03)
    assert set(query.covariance(["age", name])["first"]) == {"age", name}
    assert query.numeric == ["age", name, "day", "ill"]


def test_levels_of_confidence_widen_intervals(release):
    narrow, wide = (
        aq.Query(release, model=flat(release), level=level).count("ill") for level in (0.5, 0.99)
    )
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.stderr == pytest.approx(wide.stderr, rel=0.1)


def test_what_cannot_be_asked_is_refused_before_anything_is_fitted(release):
    fresh = aq.Query(release)
    for text in ("select max(age) from data", "select avg(nothing) from data", "drop table data"):
        with pytest.raises(DataError):
            fresh.sql(text)
    assert "model" not in fresh.__dict__
    with pytest.raises(DataError, match="unknown prior 'best'"):
        aq.Query(release, prior="best")
    with pytest.raises(DataError, match="a level of 2 makes no interval"):
        aq.Query(release, level=2)
    with pytest.raises(DataError, match="there is no column 'weight'"):
        fresh.mean("weight")
    with pytest.raises(DataError, match="give a power from 1 to 8"):
        fresh.moment("age", 99)


def test_a_release_of_the_number_of_rows_only_says_so(release):
    plan = Plan(release.schema, (PlannedBlock("count", Count(), 1.0),))
    frame = pd.DataFrame({"age": [1], 'the "height"': [1.0], "city": ["A"], "ill": [True]})
    frame["day"] = pd.Timestamp("2020-02-02")
    bare = aq.sketch(
        frame, release.schema, epsilon=1, delta=1e-6, simulate=1, plan=plan, progress=False
    )
    with pytest.raises(ReleaseError, match="holds only the number of rows"):
        aq.Query(bare).mean("age")


def test_a_broadened_prior_reaches_every_cell(release):
    sure = flat(release)
    narrow = type(sure)(sure.schema, sure.atoms, sure.weights, np.zeros_like(sure.probabilities))
    for place in sure.atoms.slices.values():
        narrow.probabilities[:, place.start] = 1.0
    wide = broadened(narrow)
    for name in SCHEMA.columns:
        assert (wide.histogram(name) > 0).all()
        assert wide.histogram(name).sum() == pytest.approx(1.0)


def test_a_description_has_every_column(query):
    found = describe(query, progress=False)
    assert [one.name for one in found] == list(SCHEMA.columns)
    assert found[1].statistics["missing"].value == pytest.approx(0.1, abs=0.03)
    frame = described_frame(found)
    assert "share of (missing)" in set(frame["statistic"])
    assert readable(found[3].column, found[3].statistics["median"].value).startswith("2020-0")
    text = _printed(described_table(found))
    assert "2020-0" in text
    assert "it's B 3" in text
    line = next(line for line in text.splitlines() if line.startswith("age"))
    assert line.count(" ± ") == 3, "mean, deviation and quartiles have intervals"
    assert all(" ± " in line for line in text.splitlines()[1:])


def test_a_word_of_blocks():
    assert sparkline(np.array([0.0, 0.5, 1.0])) == "▁▅█"
    assert len(sparkline(np.ones(100))) == 16
    assert sparkline(np.zeros(3)) == "▁▁▁"


def test_answers_as_text(query):
    found = query.sql("select city, avg(age) from data where ill group by city")
    text = _printed(answers_table(found))
    assert "it's B" in text
    assert " to " in text
    assert "age" in _printed(pairs_table(query.correlation(["age", "ill"])))


def _printed(table):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_answers_as_pictures(query, tmp_path):
    grouped = query.sql("select city, avg(age), count(*) from data group by city")
    for name, figure in (
        ("answers.png", plots.answers(grouped, "what $ was asked")),
        ("corr.svg", plots.correlations(query.correlation(["age", "ill", "day"]), "people")),
        ("columns.png", plots.columns(describe(query, progress=False), "people")),
    ):
        drawing.save(figure, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000
    with pytest.raises(DataError, match="no answer to draw"):
        plots.answers(grouped[:0], "nothing")


@pytest.fixture
def run(release, tmp_path):
    release.save(tmp_path / "people.aqt")
    flat(release).save(tmp_path / "people.model")

    def invoke(*words):
        model = ["--model", str(tmp_path / "people.model"), "--quiet"]
        return CliRunner().invoke(app, ["query", str(tmp_path / "people.aqt"), *words, *model])

    return invoke


def test_the_command_answers(run, tmp_path):
    found = json.loads(run("select avg(age) from data", "--json").stdout)
    assert found[0]["statistic"] == "avg(age)"
    assert found[0]["low"] < found[0]["value"] < found[0]["high"]
    out = tmp_path / "corr.csv"
    assert run("--corr", "-o", str(out), "--plot", str(tmp_path / "corr.png")).exit_code == 0
    assert len(pd.read_csv(out)) == 6
    described = run("--describe").stdout
    assert all(name in described for name in SCHEMA.columns)


def test_the_command_takes_one_question(run):
    assert run().exit_code == 2
    assert run("select avg(age) from data", "--corr").exit_code == 2


def test_a_model_of_another_release_is_refused(run, release, tmp_path):
    other = Schema.from_dict({**release.schema.to_dict(), "name": "others"})
    flat_of_other = type(flat(release))(
        other, flat(release).atoms, flat(release).weights, flat(release).probabilities
    )
    flat_of_other.save(tmp_path / "people.model")
    with pytest.raises(ReleaseError, match="a release of 'others' with another schema"):
        raise run("select avg(age) from data").exception
