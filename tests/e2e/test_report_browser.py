"""The report in a real browser: light and dark, wide and narrow, on paper, and read aloud."""

import pytest
from browsing import ROOT, chromium, pictures_folder, serious
from statsmodels.datasets import randhie

import aquatint as aq

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no chromium here: apt has one")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on the survey of the demonstration."""
    schema = aq.Schema.from_toml(ROOT / "examples" / "rand_hie.toml")
    given = {"epsilon": 1.0, "delta": 1e-6, "progress": False}
    release = aq.sketch(randhie.load_pandas().data, schema, **given)
    return aq.report(release, tmp_path_factory.mktemp("report") / "x.html", progress=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_page_reads_well_and_asks_nobody_for_anything(browser, report, scheme, size):
    context = browser.new_context(viewport=size, color_scheme=scheme)
    context.set_default_timeout(90_000)
    asked, said = [], []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    page = context.new_page()
    page.goto(report.as_uri())
    assert asked == [report.as_uri()]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.locator("svg.chart[role=img]").count() > 10
    assert serious(page) == []
    name = "report" + ("-phone" if size is PHONE else "") + ("-dark" if scheme == "dark" else "")
    page.screenshot(path=pictures_folder() / f"{name}.png", full_page=size is WIDE)
    if size is PHONE:
        page.locator("#columns").scroll_into_view_if_needed()
        page.screenshot(path=pictures_folder() / f"{name}-columns.png")
    context.close()


def test_the_page_prints_without_cutting_cards_in_two(browser, report):
    context = browser.new_context()
    page = context.new_page()
    page.goto(report.as_uri())
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert 2 <= paper.count(b"/Type /Page\n") <= 14
    context.close()
