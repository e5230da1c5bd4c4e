"""The studio: what it reads and when, what it refuses, what it spends, and that it locks."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_pages import Guest, people, same

import aquatint as aq
from aquatint import web
from aquatint.accounting import Budget
from aquatint.curator import gathering
from aquatint.curator.ledger import Ledger
from aquatint.errors import DataError
from aquatint.web.steps import picking
from aquatint.web.steps.drafting import KINDS, ColumnDraft
from aquatint.web.steps.folder import Folder
from aquatint.web.studio import studio_app

ROW = "add or remove one row"
COLUMNS = {
    "keep.0": "on",
    "kind.0": "integer",
    "low.0": "17",
    "high.0": "90",
    "keep.2": "on",
    "kind.2": "categorical",
    "categories.2": "Female\nMale",
    "keep.5": "on",
    "kind.5": "categorical",
    "categories.5": "low\nhigh",
}
DECLARED = {"name": "people", "label": "income", "protects": ROW, **COLUMNS}
SPENDING = {"rows": "3000", "epsilon": "1", "delta": "1e-6", "output": "people.aqt"}


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    people(0, count=500).to_csv(inside / "people.csv", index=False)
    people(1, count=50).to_csv(inside / "below" / "more.csv", index=False)
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / ".hidden.csv").write_text("a\n1\n", encoding="utf-8")
    return inside


@pytest.fixture
def guest(folder):
    app = studio_app(folder)
    guest = Guest(app)
    guest.learn_secret("/")
    yield guest
    app.state.session.close()


@pytest.fixture
def declared(guest):
    assert guest.post("/pick", path="people.csv").headers["location"] == "/schema"
    assert guest.post("/schema", **DECLARED).headers["location"] == "/budget"
    return guest


def released(guest, **changes):
    """Spend, and wait for the release."""
    assert guest.post("/budget", **SPENDING, **changes).headers["location"] == "/confirm"
    assert guest.post("/spend", sure="on").headers["location"] == "/done"
    for _ in range(600):
        text = guest.get("/done").text
        if "data-done" in text or "No release" in text:
            return text
        time.sleep(0.05)
    raise AssertionError(text)


def test_only_the_folder_is_listed_and_nothing_hidden_or_outside(guest):
    text = guest.get("/").text
    assert "people.csv" in text
    assert "below" in text
    assert "secret.csv" not in text
    assert "link.csv" not in text
    assert ".hidden" not in text
    assert "more.csv" in guest.get("/?in=below").text


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.csv", "below/../../secret.csv", "/etc/passwd", "link.csv", ".hidden.csv"),
        *("..", "", "~/x.csv", "nothing.csv", "below", "people.csv\x00.csv", "%2e%2e/secret.csv"),
        "a" * 5_000,
    ],
)
def test_no_path_leads_out_of_the_folder(guest, path):
    said = guest.post("/pick", path=path)
    assert said.status_code == 422
    assert 'role="alert"' in said.text
    assert guest.get("/?in=" + path.replace("\x00", "%00").replace("%2e", "%252e")).status_code in {
        200,
        422,
    }
    assert "secret.csv" not in guest.get("/", params={"in": ".."}).text


@given(
    path=st.text(max_size=60) | st.lists(st.sampled_from(["..", "x", ".", "/", ""])).map("/".join)
)
def test_whatever_a_path_says_it_stays_inside(path, tmp_path_factory):
    root = tmp_path_factory.getbasetemp()
    folder = Folder(root)
    try:
        found = folder.inside(path)
    except DataError:
        return
    assert found.is_relative_to(root.resolve())


def test_no_row_is_read_before_the_budget_is_confirmed(declared, folder, monkeypatch):
    """Only the header is read: from then on the file is not even there."""
    rows = (folder / "people.csv").read_bytes()
    (folder / "people.csv").unlink()
    opened = []
    monkeypatch.setattr(gathering, "read", lambda *_: opened.append(1))
    monkeypatch.setattr(picking, "kinds", lambda _: opened.append(1))
    assert declared.get("/schema").status_code == 200
    assert declared.post("/check/0", part=True, **COLUMNS).status_code == 200
    assert declared.post("/column/0", part=True, **COLUMNS).status_code == 200
    assert declared.post("/schema", **DECLARED).status_code == 303
    assert "95 % of answers" in declared.post("/preview", part=True, **SPENDING).text
    assert declared.post("/budget", **SPENDING).headers["location"] == "/confirm"
    assert "once and for all" in declared.get("/confirm").text
    assert opened == []
    monkeypatch.undo()
    (folder / "people.csv").write_bytes(rows)
    assert "data-done" in released(declared)


def test_the_header_tells_names_and_types_and_no_value(guest):
    guest.post("/pick", path="people.csv")
    text = guest.get("/schema").text
    for name in ("age", "hours", "joined", "income"):
        assert f"<bdi>{name}</bdi>" in text
    for value in ("Female", "clown", "office"):
        assert value not in text


def test_the_column_that_names_the_person_needs_no_bounds(guest):
    """A blank one is no problem of the form, whether it is checked alone or with the whole."""
    guest.post("/pick", path="people.csv")
    blank = DECLARED | {"keep.1": "on", "kind.1": "numeric", "low.1": "", "high.1": ""}
    person = {"protects": "all rows of one person", "person": "hours"}
    assert "names the person" in guest.post("/check/1", part=True, **blank | person).text
    assert "names the person" in guest.post("/column/1", part=True, **blank | person).text
    other = guest.post("/schema", **blank | person | {"low.0": ""})
    assert other.status_code == 422
    assert "names the person" in other.text
    assert other.text.count('class="problem"') == 2  # of the whole, and of age
    assert guest.post("/schema", **blank | person).headers["location"] == "/budget"


def test_where_rows_are_protected_no_person_has_to_be_named(guest):
    guest.post("/pick", path="people.csv")
    left_over = DECLARED | {"person": "hours", "max_rows": "many"}
    assert guest.post("/schema", **left_over).headers["location"] == "/budget"
    assert guest.post("/schema", **DECLARED | {"person": ""}).headers["location"] == "/budget"
    text = guest.post("/check/1", part=True, **left_over | {"keep.1": "on", "low.1": ""}).text
    assert 'class="problem"' in text


def test_every_kind_is_checked_by_the_schema_itself():
    for kind in KINDS:
        blank = ColumnDraft("x", kind)
        assert bool(blank.problem()) is (kind != "boolean")
        assert not ColumnDraft("x", kind, keep=False).problem()
    assert "low < high" in ColumnDraft("x", "integer", low="9", high="1").problem()
    assert ColumnDraft("x", "integer", low="0", high="9").problem() == ""
    assert ColumnDraft("x", "date", low="2020-01-01", high="2021-01-01").problem() == ""
    assert "bins" in ColumnDraft("x", "integer", low="0", high="9", bins="many").problem()
    codes = ColumnDraft("x", "categorical", codes=True, categories="1\n2\n\n")
    assert codes.to_dict()["categories"] == [1, 2]


def test_mistakes_are_told_in_their_column_and_nothing_goes_on(guest):
    guest.post("/pick", path="people.csv")
    said = guest.post("/schema", **{**DECLARED, "low.0": "90", "high.0": "17"})
    assert said.status_code == 422
    assert "low &lt; high" in said.text
    assert guest.get("/budget").headers["location"] == "/schema"
    said = guest.post("/schema", **{**DECLARED, "protects": ""})
    assert said.status_code == 422
    assert "declare" in said.text


def test_a_schema_file_fills_the_form_in(guest, folder):
    schema = aq.Schema.from_dict(
        {
            "name": "folk",
            "privacy": {"protects": "replace one row"},
            "columns": {"age": {"kind": "integer", "bounds": [17, 90], "bins": 4}},
        }
    )
    import tomli_w

    (folder / "folk.toml").write_text(tomli_w.dumps(schema.to_dict()), encoding="utf-8")
    guest.post("/pick", path="people.csv")
    guest.post("/schema/file", file="folk.toml")
    text = guest.get("/schema").text
    assert 'value="folk"' in text
    assert 'value="17"' in text
    assert text.count("Left out") == 5
    assert guest.post("/schema/file", file="../secret.csv").status_code == 422


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "much"}, "epsilon: give a number"),
        ({"delta": ""}, "delta: give a small number"),
        ({"rows": "none"}, "rows: give a whole number"),
        ({"output": "../out.aqt"}, "not inside"),
        ({"output": "people.csv"}, "ending in .aqt"),
        ({"output": "there.aqt"}, "exists already"),
        ({"ledger": "ledger.db", "dataset": ""}, "dataset&#39;s name"),
        ({"ledger": "ledger.db", "dataset": "people"}, "no ceiling"),
        ({"ledger": "../ledger.db", "dataset": "people", "ceiling": "3"}, "not inside"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(declared, folder, changes, said):
    (folder / "there.aqt").write_text("", encoding="utf-8")
    answer = declared.post("/budget", **{**SPENDING, **changes})
    assert answer.status_code == 422
    assert said in answer.text
    assert declared.get("/confirm").status_code in {303, 200}
    assert not (folder / "people.aqt").exists()


def test_weak_promises_are_warned_of(declared):
    text = declared.post(
        "/preview", part=True, **{**SPENDING, "epsilon": "20", "delta": "0.1"}
    ).text
    assert "promises very little" in text
    assert "far smaller" in text


def test_the_ledger_is_shown_and_obeyed(declared, folder):
    Ledger(folder / "ledger.db").open_account("people", Budget(2.0, 1e-6), ROW)
    booked = {"ledger": "ledger.db", "dataset": "people"}
    text = declared.post("/preview", part=True, **SPENDING, **booked).text
    assert "after this" in text
    much = {**SPENDING, "epsilon": "2.5"}
    assert (
        "more than the ledger has left"
        in declared.post("/preview", part=True, **much, **booked).text
    )
    assert declared.post("/budget", **much, **booked).status_code == 422
    text = released(declared, **booked)
    assert Ledger(folder / "ledger.db").account("people").releases == 1
    assert "to <strong>ε = 1.4" in text


def test_the_page_locks_after_a_release(declared, folder):
    text = released(declared)
    assert "This page is locked" in text
    assert "to <strong>ε = 1.4" in text, "two releases of ε = 1 add up to about 1.45"
    before = (folder / "people.aqt").read_bytes()
    for path, fields in (
        ("/pick", {"path": "people.csv"}),
        ("/schema", DECLARED),
        ("/column/0", {}),
        ("/budget", SPENDING),
        ("/spend", {"sure": "on"}),
    ):
        said = declared.post(path, **fields)
        assert said.status_code == 422
        assert "any change is a new release" in said.text
    for path in ("/", "/schema", "/budget", "/confirm"):
        assert declared.get(path).headers["location"] == "/done"
    assert (folder / "people.aqt").read_bytes() == before
    assert declared.get("/file/release").content == before
    assert declared.get("/file/passwd").status_code == 422
    declared.post("/again")
    assert 'value="people-2.aqt"' in declared.get("/budget").text


def test_a_button_that_is_pressed_twice_at_once_spends_once(declared, folder):
    """Threads press it together, twenty times over; the ledger counts."""
    Ledger(folder / "ledger.db").open_account("people", Budget(9.0, 1e-6), ROW)
    declared.post("/budget", **SPENDING, ledger="ledger.db", dataset="people")
    with ThreadPoolExecutor(20) as pool:
        presses = [pool.submit(declared.post, "/spend", sure="on") for _ in range(20)]
        codes = sorted(press.result().status_code for press in presses)
    assert codes == [303] + [422] * 19
    while "data-done" not in declared.get("/done").text:
        time.sleep(0.05)
    assert Ledger(folder / "ledger.db").account("people").releases == 1


def test_nothing_is_spent_without_the_tick(declared, folder):
    declared.post("/budget", **SPENDING)
    assert declared.post("/spend").status_code == 422
    assert not (folder / "people.aqt").exists()


def test_data_that_does_not_fit_makes_no_release_and_opens_the_page_again(guest, folder):
    guest.post("/pick", path="people.csv")
    wrong = {**DECLARED, "kind.2": "integer", "low.2": "0", "high.2": "9"}
    assert guest.post("/schema", **wrong).status_code == 303
    text = released(guest)
    assert "No release was made" in text
    assert "Female" not in text, "no value of a row in an error"
    assert guest.get("/schema").status_code == 200
    assert not (folder / "people.aqt").exists()


def test_the_command_shown_makes_a_release_of_the_same_promise(declared, folder, monkeypatch):
    import shlex

    from aquatint.cli import app

    python, command = same(released(declared))
    monkeypatch.chdir(folder)
    (folder / "people.aqt").unlink()
    app([*shlex.split(command)[1:], "--quiet"], standalone_mode=False)
    by_command = aq.load("people.aqt")
    Path("people.aqt").unlink()
    exec(python.replace("output=", "progress=False, output="), {})
    by_python = aq.load("people.aqt")
    for release in (by_command, by_python):
        assert (release.statement.epsilon, release.statement.delta) == (1.0, 1e-6)
        assert list(release.schema.columns) == ["age", "sex", "income"]


def test_of_questions_asked_while_one_types_the_last_counts():
    """By default a third question is dropped while the first is answered and a second waits."""
    folder = Path(web.__file__).with_name("templates")
    asking = [
        tag
        for page in folder.glob("*.html")
        for tag in re.findall(r"<[^>]*hx-trigger=\"input[^>]*>", page.read_text(encoding="utf-8"))
    ]
    assert len(asking) == 2
    assert all('hx-sync="this:replace"' in tag for tag in asking)
