"""Journeys through the pages in a real browser, errors included.

Every journey also checks that no request leaves loopback and that the browser complains of nothing,
such as a breach of the content policy; pages are looked at by axe, and kept as pictures.
"""

import io
import itertools
import re
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from browsing import ROOT, Browsing, chromium, pictures_folder, serious
from statsmodels.datasets import randhie
from web_pages import COLUMNS, people, released, schema

import aquatint as aq
from aquatint.web.serve import analyst_app
from aquatint.web.server import in_background
from aquatint.web.studio import studio_app

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no chromium here: apt has one")
HOSTILE = {
    "<script>alert(1)</script>": {"kind": "boolean"},
    '"><img src=x onerror=alert(2)>': {"kind": "categorical", "categories": ["{{7*7}}", "</td>"]},
    "שלום עולם": {"kind": "categorical", "categories": ["כן", "לא"]},
    "a' or 1=1 --": {"kind": "integer", "bounds": [0, 9], "bins": 3},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two releases that differ, and one with names that mean harm."""
    path = tmp_path_factory.mktemp("releases")
    released(path / "people.aqt", people(0))
    released(path / "older.aqt", people(1, older=0.6))
    rows = pd.DataFrame({n: [0, 1] * 200 for n in HOSTILE})
    first, second, third, _ = HOSTILE
    rows[first] = rows[first] == 1
    rows[second] = rows[second].map({0: "{{7*7}}", 1: "</td>"})
    rows[third] = rows[third].map({0: "כן", 1: "לא"})
    released(path / "hostile.aqt", rows, schema(HOSTILE, name="<b>bold</b>", label=None))
    return path


@pytest.fixture(scope="module")
def analyst(browser, folder):
    app = analyst_app([folder / f"{name}.aqt" for name in ("people", "older", "hostile")])
    with in_background(app) as address:
        yield Browsing(browser, address, pictures_folder())


@pytest.fixture
def visit(analyst):
    yield analyst
    analyst.close()


@pytest.fixture
def studio(browser, tmp_path):
    people(0).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "notes").mkdir()
    with in_background(studio_app(tmp_path)) as address:
        opened = Browsing(browser, address, pictures_folder())
        opened.folder = tmp_path
        yield opened
        opened.close()


def text(page, selector):
    return page.locator(selector).first.inner_text()


def downloaded(page, selector) -> tuple[str, bytes]:
    with page.expect_download() as coming:
        page.click(selector)
    return coming.value.suggested_filename, Path(coming.value.path()).read_bytes()


def test_see_the_release(visit):
    page = visit.open("/")
    assert "(2, 1e-06)-differentially private" in text(page, ".promise")
    assert page.locator(".columns svg.chart").count() == len(COLUMNS), "at once, without a model"
    page.wait_for_selector("dl.told:has-text('quartile')")
    assert page.locator(".columns svg.chart").count() == len(COLUMNS)
    assert page.locator(".grade").count() >= 4
    visit.picture(page, "overview")
    assert serious(page) == []


def test_ask_in_sql_with_completion(visit, folder):
    page = visit.open("/0/ask")
    page.fill("#sql", "")
    page.type("#sql", "select inc")
    page.wait_for_selector("#suggest li")
    assert serious(page) == []
    visit.picture(page, "ask-completion", whole=False)
    page.keyboard.press("Tab")
    page.type("#sql", ", avg(ag")
    page.keyboard.press("Enter")
    page.type("#sql", ") as age from data group by income")
    asked = page.input_value("#sql")
    assert asked == "select income, avg(age) as age from data group by income"
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("[data-answer]")
    assert page.locator("[data-answer] tbody tr").count() == 2
    assert page.locator("[data-answer] svg.chart").count() == 1
    visit.picture(page, "ask")
    assert serious(page) == []
    name, content = downloaded(page, "text=Download as CSV")
    assert name == "people-answer.csv"
    expected = aq.Query(aq.load(folder / "people.aqt"), progress=False).sql(asked)
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(content)), expected)


def test_ask_by_choosing(visit):
    page = visit.open("/0/ask")
    page.select_option("#statistic", "avg")
    page.select_option("#of", "age")
    page.select_option("#group", "income")
    page.select_option("#column0", "sex")
    page.wait_for_selector("select#value0")
    page.select_option("#value0", "Female")
    page.select_option("#column1", "hours")
    page.wait_for_selector("#way1:not(:has(option[value='<>']))")
    page.select_option("#way1", ">=")
    page.fill("#value1", "30")
    page.click("section:has(#statistic) button")
    page.wait_for_selector("[data-answer]")
    expected = "select income, avg(age) as avg from data where sex = 'Female' and hours >= 30"
    assert text(page, "[data-answer] pre") == expected + " group by income"
    assert page.locator("[data-answer] tbody tr").count() == 2


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select avg(salary) from data", "there is no column 'salary'"),
        ("select max(age) from data", "max shows a single row"),
        ("drop table data; <script>alert(1)</script>", "cannot read the question"),
    ],
)
def test_a_question_that_cannot_be_answered(visit, sql, said):
    page = visit.open("/0/ask")
    page.fill("#sql", sql)
    page.click("section:has(#sql) button")
    page.wait_for_selector("#answer .problem")
    assert said in text(page, "#answer .problem")
    assert page.locator("#answer script").count() == 0
    page.fill("#sql", "select count(*) from data")
    page.click("section:has(#sql) button")
    page.wait_for_selector("[data-answer]")


def test_draw_rows(visit, folder):
    page = visit.open("/0/sample")
    page.fill("#count", "500")
    page.fill("#seed", "7")
    page.select_option("#column0", "sex")
    page.wait_for_selector("select#value0")
    page.select_option("#value0", "Male")
    page.click("main button")
    page.wait_for_selector("[data-drawn]")
    assert "500 synthetic rows" in text(page, "[data-drawn] h2")
    visit.picture(page, "sample")
    assert serious(page) == []
    expected = aq.synthesize(aq.load(folder / "people.aqt"), progress=False)
    rows = expected.sample(500, where="sex = 'Male'", seed=7)
    name, content = downloaded(page, "text=Download all as CSV")
    assert (name, content.decode()) == ("people-rows.csv", rows.to_csv(index=False))
    name, content = downloaded(page, "text=Download all as Parquet")
    assert name == "people-rows.parquet"
    table = pq.read_table(io.BytesIO(content)).to_pandas()
    assert table["age"].tolist() == rows["age"].tolist()


def test_rows_that_cannot_be_drawn(visit):
    page = visit.open("/0/sample")
    page.evaluate("document.querySelector('#count').type = 'text'")
    page.fill("#count", "all of them")
    page.click("main button")
    page.wait_for_selector("#drawn .problem")
    assert text(page, "#drawn .problem") == "count: give a whole number from 1 to 1,000,000"


def test_learn(visit, tmp_path):
    page = visit.open("/0/learn")
    page.select_option("#model", "tree")
    page.click("main button")
    page.wait_for_selector("[data-learned]")
    assert "An estimate." in text(page, "[data-learned] .note")
    score = float(page.locator("[data-learned] tbody td").nth(1).inner_text())
    assert score > 0.65, "income follows age and job"
    visit.picture(page, "learn")
    assert serious(page) == []
    name, content = downloaded(page, "text=Download the model")
    assert name == "people-income.skops"
    (tmp_path / name).write_bytes(content)
    told = aq.load_learned(tmp_path / name).predict(people(5)).tolist()
    assert set(told) == {"low", "high"}


def test_compare(visit):
    page = visit.open("/compare")
    page.click("main button")
    page.wait_for_selector("[data-compared]")
    assert text(page, ".verdict") == "people and older: they differ"
    assert page.locator("[data-compared] svg.chart").count() == 1
    visit.picture(page, "compare")
    assert serious(page) == []
    page.select_option("#second", "2")
    page.click("main button")
    page.wait_for_selector("#compared .problem")


def test_hostile_names_do_nothing_but_stand_there(visit):
    page = visit.open("/2/")
    assert "<b>bold</b>" in text(page, "h1")
    page.wait_for_selector("dl.told:has-text('quartile')")
    names = page.locator(".columns h3 bdi").all_inner_texts()
    assert names == list(HOSTILE)
    visit.picture(page, "hostile")
    assert serious(page) == []
    for path in ("/2/ask", "/2/sample", "/2/learn"):
        page.goto(visit.base + path)
        assert page.locator("main img, main script").count() == 0
    page.goto(visit.base + "/2/ask")
    page.select_option("#of", "a' or 1=1 --")
    page.select_option("#statistic", "avg")
    page.select_option("#group", "שלום עולם")
    page.click("section:has(#statistic) button")
    page.wait_for_selector("[data-answer]")
    assert page.locator("[data-answer] tbody tr").count() == 2


def test_a_hundred_megabytes_are_refused_and_the_page_lives_on(visit):
    page = visit.open("/0/ask")
    page.fill("#sql", "x" * 50_000)
    assert len(page.input_value("#sql")) == 10_000, "the browser itself takes no more"
    status = page.evaluate(
        """async () => {
            const body = new URLSearchParams({sql: "x".repeat(100 * 2 ** 20)});
            try { return (await fetch("/0/ask", {method: "POST", body})).status; }
            catch { return 0; }
        }"""
    )
    assert status in {413, 0}, "refused, or hung up upon"
    visit.said.clear()  # the browser may say that the connection was reset
    page.reload()
    page.fill("#sql", "select count(*) from data")
    page.click("section:has(#sql) button")
    page.wait_for_selector("[data-answer]")


def test_without_the_key_there_is_nothing(analyst):
    context = analyst.browser.new_context()
    page = context.new_page()
    for path in ("/", "/0/ask", "/?token=wrong", "/static/page.css"):
        answer = page.goto(analyst.base + path)
        assert answer.status == 403
        assert "people" not in page.content()
    context.close()


def test_without_scripts_forms_post_plainly(visit):
    page = visit.open("/0/ask", java_script_enabled=False)
    page.fill("#sql", "select count(*) as people from data")
    page.click("section:has(#sql) button")
    assert page.locator("[data-answer] tbody tr").count() == 1
    page.goto(visit.base + "/0/sample")
    page.click("main button")
    assert "1,000 synthetic rows" in text(page, "[data-drawn] h2")


def test_by_keyboard_alone(visit):
    page = visit.open("/0/ask")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "sql"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_and_in_the_dark(visit, scheme):
    page = visit.open("/0/", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.wait_for_selector("dl.told")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.picture(page, f"phone-{scheme}", whole=False)
    assert serious(page) == []
    for path in ("/0/ask", "/compare"):
        page.goto(visit.base + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert serious(page) == []


WALK = (ROOT / "docs" / "tutorials" / "without-code.md").read_text(encoding="utf-8")
"""The tutorial whose steps are taken here, as it is written."""
DECLARED = len(COLUMNS)


def table_of(page: str, first: str) -> list[list[str]]:
    """Read a table off a page, by the head of its first column."""
    lines = page.partition(f"| {first} |")[2].splitlines()[2:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def spend(page, epsilon):
    """Fill in the budget, with a ledger."""
    for name, value in (("rows", "3000"), ("epsilon", epsilon), ("delta", "1e-6")):
        page.fill(f"#{name}", value)
    page.select_option("#ledger", "ledger.db")


def declare_as_told(page) -> None:
    """Do what the tutorial's first table says, and leave the other columns out."""
    told = {row[0]: row[1:] for row in table_of(WALK, "column")}
    page.wait_for_load_state()
    names = page.locator("fieldset.column > legend").all_inner_texts()
    assert set(told) < set(names)
    for place, name in enumerate(names):
        if name not in told:
            page.uncheck(f"[name='keep.{place}']")
            page.wait_for_selector(f"#column{place}:not(:has(select))")
            continue
        kind, low, high = told[name]
        if text(page, f"#kind{place} option:checked") != kind:
            page.select_option(f"#kind{place}", label=kind)
            page.wait_for_selector(f"#kind{place}:has(option:checked:has-text('{kind}'))")
        if low:
            page.fill(f"#low{place}", low)
            page.fill(f"#high{place}", high)
            page.wait_for_selector(f"#said{place} .good")


def budget_as_told(page) -> None:
    """Do what the tutorial's second table says."""
    fields = {"About how many rows": "rows", "ε": "epsilon", "δ": "delta", "Ceiling, ε": "ceiling"}
    for field, value in table_of(WALK, "field"):
        if field == "Ledger, file":
            page.select_option("#ledger", value)
        else:
            page.get_by_label(field, exact=True).fill(value)
            assert page.input_value(f"#{fields[field]}") == value


def test_a_newcomers_walk_from_a_csv_to_a_shared_report(browser, tmp_path, monkeypatch):
    """The walk of docs/tutorials/without-code.md: its tables, its buttons, in its order."""
    monkeypatch.chdir(tmp_path)
    demo = tmp_path / "demo"
    demo.mkdir()
    randhie.load_pandas().data.to_csv(demo / "rand_hie.csv", index=False)
    buttons = [b for b in re.findall(r"\*\*(.+?)\*\*", WALK) if b != "never from the rows"]
    with in_background(studio_app("demo")) as address:
        studio = Browsing(browser, address, pictures_folder())
        studio.folder = demo
        begun = time.monotonic()
        page = studio.open("/")
        _press(studio, page, buttons.pop(0), "studio-file")
        page.wait_for_selector("#name")
        page.get_by_label("Add or remove one row").check()
        page.get_by_label("Column that models should predict").select_option("hlthp")
        declare_as_told(page)
        _press(studio, page, buttons.pop(0), "studio-schema")
        page.wait_for_selector("#epsilon")
        budget_as_told(page)
        page.wait_for_selector("#preview svg.chart")
        _press(studio, page, buttons.pop(0), "studio-budget")
        page.wait_for_selector("[name=sure]")
        assert "ε = 1, δ = 1e-06" in text(page, ".promise")
        page.check("[name=sure]")
        _press(studio, page, buttons.pop(0), "studio-confirm")
        page.wait_for_selector("[data-done] [href='/file/report']")
        studio.picture(page, "studio-done")
        assert serious(page) == []
        name, report = downloaded(page, f"text={buttons.pop(0)}")
        took = time.monotonic() - begun
        assert not buttons, "the tutorial names buttons that were not pressed"
        assert name == "rand_hie.html"
        assert report == (demo / name).read_bytes()
        assert len(report) < 2_000_000
        assert aq.load(demo / "rand_hie.aqt").statement.epsilon == 1.0
        assert list(aq.Schema.from_toml(demo / "rand_hie.toml").columns) == [
            *("mdvis", "physlm", "hlthp"),
        ]
        (pictures_folder() / "walk.txt").write_text(f"{took:.1f} s\n", encoding="utf-8")
        is_locked(studio, page)
        studio.close()


def _press(studio, page, button: str, picture: str) -> None:
    """Keep a picture of the page, look for barriers, and press a button."""
    studio.picture(page, picture)
    assert serious(page) == []
    page.click(f"button:has-text('{button}')")


def is_locked(studio, page):
    """After the release nothing can be changed, and another one is priced."""
    locked = text(page, "section:has-text('This page is locked')")
    assert re.search(r"from ε = 1 to ε = 1\.4\d", locked)
    for path in ("/", "/schema", "/budget", "/confirm"):
        page.goto(studio.base + path)
        assert page.url == studio.base + "/done"
    page.click("text=Prepare another release")
    page.wait_for_selector("#epsilon")
    spend(page, "2.99")
    page.wait_for_selector("#preview .problem")
    page.click("text=Go on to confirm")
    page.wait_for_selector("main > .problem")
    assert "more than the ledger has left" in text(page, "main > .problem")


SLOWLY = """() => {
    const send = window.fetch;
    window.fetch = async (...words) => {
        await new Promise(done => setTimeout(done, 1500));
        return send(...words);
    };
}"""
"""Lets every request of a page wait, as on a busy machine."""


def test_a_schema_with_mistakes_is_told_column_by_column(studio):
    page = studio.open("/")
    page.click("text=people.csv")
    page.wait_for_selector("#name")
    page.wait_for_load_state()
    page.evaluate(SLOWLY)
    page.fill("#low0", "90")
    page.wait_for_timeout(600)  # that is asked about, and the change itself is asked about next
    page.fill("#high0", "17")  # the third question is the one that counts
    page.wait_for_selector("#said0 .problem:has-text('low < high')")
    page.select_option("#kind0", "categorical")
    page.wait_for_selector("#categories0")
    page.click("text=Check, and go on")
    page.wait_for_selector("#problem")
    assert page.url.endswith("/schema")
    assert page.locator("fieldset.column .problem").count() == DECLARED
    assert serious(page) == []
    studio.picture(page, "studio-mistakes", whole=False)


def test_data_that_does_not_fit_spends_nothing(studio):
    (studio.folder / "bad.csv").write_text("age,sex\n30,F\nold,M\n", encoding="utf-8")
    page = studio.open("/")
    page.click("text=bad.csv")
    page.wait_for_selector("#name")
    page.wait_for_load_state()  # a choice that is made before the script is there changes nothing
    page.select_option("#kind0", "integer")
    page.wait_for_selector("#low0")
    page.fill("#low0", "0")
    page.fill("#high0", "99")
    page.fill("#categories1", "F\nM")
    page.check("[value='add or remove one row']")
    page.click("text=Check, and go on")
    page.wait_for_selector("#epsilon")
    spend(page, "1")
    page.fill("#ceiling", "3")
    page.click("text=Go on to confirm")
    page.wait_for_selector("[name=sure]")
    page.check("[name=sure]")
    page.click("button:has-text('Spend ε = 1')")
    page.wait_for_selector("text=Change the schema")
    assert "old" not in text(page, ".problem"), "no value of a row in an error"
    assert "ε = 0 spent in 0 releases" in text(page, "main")
    assert not (studio.folder / "bad.aqt").exists()
    studio.picture(page, "studio-failed")
    page.click("text=Change the schema")
    page.wait_for_selector("#name")
