"""The analyst's page: every card gives what Python and the command line give."""

import io
import shlex

import pandas as pd
import pytest
from web_pages import COLUMNS, Guest, people, released, same, schema
from wide_release import wide_release

import aquatint as aq
from aquatint.cli import app as command_line
from aquatint.errors import AquatintError, DataError
from aquatint.web.cards import filters
from aquatint.web.forms import Form
from aquatint.web.jobs import Job
from aquatint.web.serve import analyst_app

QUESTION = "select sex, avg(age) as age, count(*) as people from data where age >= 30 group by sex"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served")
    released(path / "people.aqt", people(0))
    released(path / "older.aqt", people(1, older=0.6))
    return path


@pytest.fixture(scope="module")
def served(folder):
    """One server and one fit for all tests of this module."""
    made = analyst_app([folder / "people.aqt", folder / "older.aqt"], fit=False)
    first = made.state.shelf.opened[0]
    for job in (first.asking, first.drawing):
        job.start().wait()
    yield made
    made.state.shelf.stop()


@pytest.fixture
def guest(served):
    guest = Guest(served)
    guest.learn_secret("/0/ask")
    return guest


def run_python(text):
    """Run what a card shows; give its names."""
    names = {}
    exec(text, names)
    return names


def run_command(text):
    for line in text.splitlines():
        command_line([*shlex.split(line)[1:]], standalone_mode=False)


def until(guest, sign, path, **fields):
    """Ask again and again, as the page does, until the work is done."""
    for _ in range(300):
        said = guest.post(path, part=True, **fields)
        assert said.status_code == 200, said.text
        if sign in said.text:
            return said.text
        assert "<progress" in said.text
    raise AssertionError(said.text)


@pytest.mark.parametrize("path", ["/0/", "/1/", "/0/ask", "/0/sample", "/0/learn", "/compare"])
def test_every_page_is_there(guest, path):
    said = guest.get(path)
    assert said.status_code == 200
    assert "<h1>" in said.text
    assert "style=" not in said.text, "the content policy would not let it through"
    assert "<script>" not in said.text


def test_unknown_pages_and_releases_are_told_of(guest):
    assert guest.get("/nowhere").status_code == 404
    assert guest.get("/7/").status_code == 422
    for path in ("/static/../serve.py", "/static/%2e%2e/serve.py", "/static//etc/passwd"):
        assert guest.get(path).status_code == 404


def test_the_answer_is_that_of_python_and_of_the_command(guest, folder, tmp_path, monkeypatch):
    said = guest.post("/0/ask", part=True, sql=QUESTION)
    assert said.status_code == 200
    content = guest.post("/0/ask.csv", sql=QUESTION).content
    shown = pd.read_csv(io.BytesIO(content))
    python, command = same(said.text)
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(shown, run_python(python)["found"])
    run_command(f"{command} -o answer.csv --quiet")
    assert (tmp_path / "answer.csv").read_bytes() == content


@pytest.mark.parametrize(("seed", "where"), [("0", ""), ("5", "sex = 'Female' and age >= 30")])
def test_rows_are_those_of_python_and_of_the_command(guest, tmp_path, monkeypatch, seed, where):
    asked = {"count": "200", "seed": seed, "where": where}
    said = until(guest, "data-drawn", "/0/sample", **asked)
    content = guest.post("/0/rows", suffix="csv", **asked).content
    python, command = same(said)
    monkeypatch.chdir(tmp_path)
    run_python(python)
    assert (tmp_path / "rows.csv").read_bytes() == content
    (tmp_path / "rows.csv").unlink()
    run_command(command)
    assert (tmp_path / "rows.csv").read_bytes() == content


def test_the_model_is_that_of_python_and_of_the_command(guest, tmp_path, monkeypatch):
    asked = {"target": "income", "model": "tree"}
    said = until(guest, "data-learned", "/0/learn", **asked)
    assert "An estimate." in said
    (tmp_path / "page.skops").write_bytes(guest.post("/0/learn.skops", **asked).content)
    python, command = same(said)
    monkeypatch.chdir(tmp_path)
    rows = people(9)
    expected = aq.load_learned("page.skops").predict(rows).tolist()
    run_python(python)
    assert aq.load_learned("model.skops").predict(rows).tolist() == expected
    (tmp_path / "model.skops").unlink()
    run_command(f"{command} --quiet")
    assert aq.load_learned("model.skops").predict(rows).tolist() == expected


def test_the_comparison_is_that_of_python_and_of_the_command(guest, capsys):
    said = until(guest, "data-compared", "/compare", first="0", second="1", alpha="0.01")
    assert "they differ" in said
    python, command = same(said)
    found = run_python(python)["found"]
    assert found.reject
    assert f"{found.pvalue:.3g}, at level 0.01" in said
    capsys.readouterr()
    run_command(command)
    assert "they differ" in capsys.readouterr().out
    for first, second in (("0", "0"), ("0", "9"), ("x", "1")):
        assert (
            guest.post("/compare", part=True, first=first, second=second, alpha=".1").status_code
            == 422
        )
    assert guest.post("/compare", part=True, first="0", second="1", alpha="2").status_code == 422


def test_the_overview_runs_in_python_and_on_the_command_line(guest, capsys):
    python, command = same(guest.get("/0/").text)
    run_python(python)
    run_command(command)
    said = capsys.readouterr().out
    assert "differentially private" in said
    assert all(name in said for name in COLUMNS)


@pytest.mark.parametrize(
    ("model", "target", "said"),
    [
        ("logistic", "age", "has numbers, which"),
        ("linear", "income", "has classes, which"),
        ("magic", "income", "choose one for model"),
        ("tree", "nothing", "there is no column"),
    ],
)
def test_a_model_that_cannot_be_is_refused(guest, model, target, said):
    answer = guest.post("/0/learn", part=True, target=target, model=model)
    assert answer.status_code == 422
    assert said in answer.text


@pytest.mark.parametrize(
    ("form", "sql"),
    [
        ({}, "select count(*) as people from data"),
        (
            {"statistic": "avg", "of": "age", "group": "sex"},
            "select sex, avg(age) as avg from data group by sex",
        ),
        (
            {"column0": "job", "way0": "<>", "value0": "it's"},
            "select count(*) as people from data where job <> 'it''s'",
        ),
        (
            {"column1": "hours", "way1": "missing", "column2": "joined", "value2": "2020-01-01"},
            "select count(*) as people from data where hours is null and joined = '2020-01-01'",
        ),
    ],
)
def test_what_is_chosen_is_written_as_sql(form, sql):
    assert filters.question(schema(), Form({k: [v] for k, v in form.items()})) == sql


@pytest.mark.parametrize(
    "form",
    [
        {"statistic": "avg"},
        {"statistic": "drop table"},
        {"group": "age"},
        {"group": "nothing"},
        {"column0": "nothing"},
        {"column0": "sex"},
        {"column0": "sex", "way0": ">=", "value0": "x"},
        {"column0": "age", "way0": ">=", "value0": "1; drop table data"},
    ],
)
def test_what_cannot_be_chosen_is_refused(form):
    with pytest.raises(DataError):
        filters.question(schema(), Form({k: [v] for k, v in form.items()}))


def test_names_and_values_are_quoted_so_that_they_stay_names_and_values(tmp_path):
    name = 'x" or 1=1; --'
    odd = schema({name: {"kind": "categorical", "categories": ["a'b", 'c"d']}}, label=None)
    form = Form({"column0": [name], "value0": ["a'b"], "group": [name]})
    path = released(tmp_path / "odd.aqt", pd.DataFrame({name: ["a'b", 'c"d'] * 300}), odd)
    found = aq.Query(aq.load(path), progress=False).sql(filters.question(odd, form))
    assert found["value"].iloc[0] == pytest.approx(300, abs=60)


def test_a_file_that_is_no_release_is_refused_before_anything_is_served(tmp_path, folder):
    (tmp_path / "bad.aqt").write_bytes(b"PK\x03\x04 and not a release")
    with pytest.raises(AquatintError):
        analyst_app([tmp_path / "bad.aqt"])
    with pytest.raises(DataError, match="twice"):
        analyst_app([folder / "people.aqt", folder / "people.aqt"])


def test_a_question_waits_for_the_fit_and_says_how_far_it_is(folder):
    guest = Guest(analyst_app([folder / "people.aqt"], fit=False))
    guest.learn_secret("/0/ask")
    said = guest.post("/0/ask", part=True, sql="select count(*) from data")
    assert "<progress" in said.text
    assert "waits for a model" in said.text
    assert "<progress" in guest.post("/0/sample", part=True, count="5", seed="0").text
    assert guest.post("/0/rows", suffix="csv", count="5").status_code == 422


def test_a_job_tells_of_its_progress_and_of_its_end():
    from aquatint.progress import track

    def work():
        with track("outer", 4) as advance, track("inner", 100) as more:
            more(50)
            advance(3)
        return "done"

    job = Job("work", work).start()
    assert job.wait(10)
    assert (job.label, job.done, job.total, job.result) == ("outer", 3, 4, "done")

    def refuse():
        raise DataError("give more")

    job = Job("work", refuse).start()
    job.wait(10)
    assert (job.problem, job.ready, job.over) == ("give more", False, True)

    def fail():
        raise KeyError("a private value")

    job = Job("work", fail).start()
    job.wait(10)
    assert "KeyError" in job.problem
    assert "private value" not in job.problem

    def endless():
        with track("endless", None) as advance:
            while True:
                advance(1)

    job = Job("work", endless).start()
    job.stop()
    assert job.wait(10)


def test_the_script_of_others_is_the_one_that_was_vetted():
    """The file is what docs/dependencies.md says it is."""
    import hashlib
    import re
    from importlib.resources import files
    from pathlib import Path

    root = Path(__file__).parents[2]
    said = (root / "docs" / "dependencies.md").read_text(encoding="utf-8")
    vendored = [
        files("aquatint.web").joinpath("static", "htmx-4.0.1.min.js").read_bytes(),
        (root / "tests" / "vendor" / "axe-4.14.0.min.js").read_bytes(),
    ]
    for content in vendored:
        assert hashlib.sha256(content).hexdigest() in re.findall(r"`([0-9a-f]{64})`", said)


def test_a_wide_table_is_shown_as_counted_and_its_columns_are_found_by_typing(tmp_path):
    wide_release(45).save(tmp_path / "wide.aqt")
    guest = Guest(analyst_app([tmp_path / "wide.aqt"], fit=False))
    overview = guest.get("/0/").text
    assert overview.count("<svg") == 45
    assert "/0/fitting" in overview
    progress = guest.part("/0/fitting").text
    assert "questions wait for the model" in progress
    assert "<svg" not in progress, "charts are not sent again with every sign of progress"
    asking = guest.get("/0/ask").text
    assert asking.count('<option value="category 0">') == 1, "one list serves all fields"
    assert '<select id="of"' not in asking
    assert '<input id="of" name="of" list="column-names"' in asking
    assert '<select id="group"' in asking, "23 columns make groups: a plain list will do"
    guest.learn_secret("/0/ask")
    wrong = guest.post("/0/ask", part=True, by="lists", statistic="avg", of="number", group="")
    assert "there is no column" in wrong.text


def test_progress_ends_in_better_charts(guest):
    assert "/0/columns" in guest.part("/0/fitting").text
    assert "quartile" in guest.part("/0/columns").text
