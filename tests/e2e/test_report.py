"""`aquatint report` from end to end: one safe page, or one sentence and no file."""

import re
import resource
import time
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from wide_release import released, wide_release

import aquatint as aq
from aquatint.analyst.synthesize.fit import Effort
from aquatint.reporting import page as page_module
from aquatint.reporting.page import digest, stylesheet

GOLDEN = aq.__path__[0] + "/../../tests/golden"
HOSTILE = {
    "script": "<script>alert('name')</script>",
    "handler": '"><img src=x onerror=alert(1)>',
    "closing": "</style></svg></textarea><h1>gone</h1>",
    "template": "{{ 7 * 7 }}{% for x in [] %}",
    "right to left": "שלום עולם",
    "entity": "&lt;i&gt; &amp;",
}
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "a", "div", "p", "strong", "em", "b", "h1"),
    *(
        "h2",
        "h3",
        "nav",
        "ul",
        "li",
        "main",
        "section",
        "article",
        "header",
        "footer",
        "sup",
        "bdi",
    ),
    *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "span", "meter", "pre", "bdi"),
    *("svg", "desc", "g", "path", "rect", "text", "circle"),
}


class Reader(HTMLParser):
    """Read a page as a browser does, and keep its elements, attributes and words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def read(path):
    """Read a page; it must be one that runs nothing and asks nobody for anything."""
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.tags <= ALLOWED, reader.tags - ALLOWED
    for name, value in reader.attributes:
        assert not name.startswith("on")
        assert name not in {"src", "style", "srcset", "action", "data", "xlink:href"}
        if name == "href":
            assert value.startswith("#")
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert f"style-src '{digest(style)}'" in text
    assert "default-src 'none'" in text
    return text, " ".join(" ".join(reader.words).split())


@pytest.fixture
def quick(monkeypatch):
    effort = Effort(components=20, steps=50, fits=1)
    monkeypatch.setattr("aquatint.analyst.synthesize.mixture.Effort", lambda **_: effort)


@pytest.fixture
def release(folder, run):
    """A release of people.csv with simulated noise, beside the data."""
    arguments = folder.sketch(ledger=None, dataset=None, simulate="1")
    assert run([*arguments, "--quiet"]).code == 0
    return folder.path / "out.aqt"


def test_the_command_writes_one_page_and_says_so(folder, run, release):
    done = run(["report", "out.aqt"])
    assert (done.code, done.out) == (0, "written: out.html, it is as public as the release\n")
    text, words = read(folder.path / "out.html")
    assert len(text) < 100_000
    for said in ("What is promised", "Every column", "age", "sex", "Noise against signal"):
        assert said in words
    assert "NOT PRIVATE: the noise was simulated" in words
    assert "Nothing is protected." in words
    assert "Nobody’s data." in words
    assert "Curator’s eyes only" not in words


@pytest.mark.parametrize(
    ("privacy", "said"),
    [
        (
            {"protects": "add or remove one row"},
            "than without: at most e ε = 7.39",
        ),
        ({"protects": "replace one row"}, "with one of them than with another in its place"),
        (
            {"protects": "all rows of one person", "person": "id", "max_rows": 2},
            "what any one person did to the sums",
        ),
    ],
    ids=["add or remove", "replace", "person"],
)
def test_the_promise_is_said_in_words_that_fit_it(tmp_path, privacy, said):
    columns = {"age": {"kind": "integer", "bounds": [0, 9], "bins": 3}}
    schema = aq.Schema.from_dict({"name": "people", "privacy": privacy, "columns": columns})
    rows = pd.DataFrame({"age": [1, 2, 3] * 50, "id": range(150)})
    release = aq.sketch(rows, schema, epsilon=2.0, delta=1e-6, progress=False)
    _, words = read(aq.report(release, tmp_path / "x.html", progress=False))
    assert said in words
    assert "but for a chance of about δ = 1e-06" in words


def test_the_same_release_gives_the_same_page(folder, run, release):
    for name in ("one.html", "two.html"):
        assert run(["report", "out.aqt", "-o", name, "--quiet"]).code == 0
    one, two = ((folder.path / name).read_bytes() for name in ("one.html", "two.html"))
    assert one == two


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["report", "out.aqt", "-o", "page.pdf"], 1, "end the name page.pdf in .html"),
        (["report", "none.aqt"], 1, "none.aqt"),
        (["report", "people.csv"], 1, "people.csv"),
        (["report", "out.aqt", "-o", "no/where.html"], 1, "cannot write no/where.html"),
        (["report", "out.aqt", "--test", "people.csv"], 2, "--test goes with --real"),
        (["report", "out.aqt", "--real", "none.csv"], 1, "none.csv"),
    ],
)
def test_refusals_are_short_and_leave_no_file(folder, run, release, quick, arguments, code, said):
    before = folder.files()
    done = run([*arguments, "--quiet"])
    assert (done.code, done.out) == (code, "")
    assert said in " ".join(done.err.split())
    assert folder.files() == before


def test_without_jinja_it_says_what_to_install(run, release, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    page_module.environment.cache_clear()
    done = run(["report", "out.aqt", "--quiet"])
    page_module.environment.cache_clear()
    assert (done.code, done.err) == (
        1,
        "aquatint: jinja2 is not installed: pip install 'aquatint[report]'\n",
    )


def test_images_have_a_page_of_their_own(tmp_path):
    golden = aq.load(f"{GOLDEN}/release_v1_images.aqt")
    _, words = read(aq.report(golden, tmp_path / "x.html", progress=False))
    assert "The release is of images" in words
    assert "perceptual" in words
    assert "Synthetic rows" not in words


@pytest.mark.parametrize("name", ["release_v1", "release_v1_default", "release_v1_cosines"])
def test_releases_of_every_kind_have_a_page(tmp_path, name):
    golden = aq.load(f"{GOLDEN}/{name}.aqt")
    _, words = read(aq.report(golden, tmp_path / "x.html", progress=False))
    for column in golden.schema.columns:
        assert column in words
    for block in golden.blocks:
        assert block.name in words


def hostile_release():
    """Names, categories, blocks and versions that would take over a page, if they could."""
    names = list(HOSTILE.values())
    columns = {n: {"kind": "categorical", "categories": names[:3]} for n in names}
    columns["n" * 200] = {"kind": "numeric", "bounds": [0, 1], "bins": 4}
    schema = aq.Schema.from_dict(
        {
            "name": HOSTILE["script"],
            "privacy": {"protects": "add or remove one row"},
            "columns": columns,
        }
    )
    rng = np.random.default_rng(0)
    hot = [np.eye(n)[rng.integers(0, n, 500)] for n in schema.cells().values()]
    return released(schema, np.concatenate(hot, axis=1), 5.0, rng)


def test_hostile_names_are_shown_and_do_nothing(tmp_path):
    text, words = read(aq.report(hostile_release(), tmp_path / "x.html", progress=False))
    for name in HOSTILE.values():
        assert " ".join(name.split()) in words
    assert "<script" not in text
    assert "<img" not in text
    assert "gone</h1>" not in text


def test_a_page_that_did_not_escape_would_be_caught(tmp_path, monkeypatch):
    """Plant the fault that the test above is there for."""
    made = page_module.environment.__wrapped__().overlay(autoescape=False)
    monkeypatch.setattr(page_module, "environment", lambda: made)
    path = aq.report(hostile_release(), tmp_path / "x.html", progress=False)
    with pytest.raises(AssertionError):
        read(path)


def test_a_hostile_file_is_refused_before_anything_is_drawn(folder, run):
    folder.write("bad.aqt", b"PK\x03\x04" + b"<script>" * 100)
    done = run(["report", "bad.aqt"])
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "bad.html" not in folder.files()


def test_three_hundred_columns_take_five_seconds_and_two_megabytes(folder):
    """The whole command, imports and all; the processor's clock counts where others are at work."""
    release = wide_release(300)
    release.save(folder.path / "wide.aqt")
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = folder.spawn(["report", "wide.aqt"])
    waited, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert (done.code, done.err) == (0, "")
    assert min(used, waited) < 5, f"{used:.2f} s of processor time, {waited:.2f} s in all"
    path = folder.path / "wide.html"
    assert path.stat().st_size < 2_000_000
    _, words = read(path)
    assert all(name in words for name in release.schema.columns)
    assert "The table has 300 columns" in words
    assert "44,844 others are left out" in words


def test_a_page_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_BYTES", 10_000)
    with pytest.raises(aq.AquatintError, match="more than 2: too many columns"):
        aq.report(wide_release(4), tmp_path / "x.html", progress=False)


@pytest.fixture
def more_people(folder):
    """Rows with a label that can be predicted, of which some are kept apart."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, 700)
    sex = np.where(rng.random(700) < age / 100, "F", "M")
    table = pd.DataFrame({"age": age, "sex": sex})
    table[:500].to_csv(folder.path / "people.csv", index=False)
    table[500:].to_csv(folder.path / "test.csv", index=False)


def test_beside_real_rows_the_page_says_that_it_is_not_private(
    folder, more_people, run, release, quick
):
    given = ["--classifiers", "logistic", "--quiet"]
    done = run(["report", "out.aqt", "--real", "people.csv", "--test", "test.csv", *given])
    assert (done.code, done.out, done.err) == (0, "", "")
    text, words = read(folder.path / "out.curator-only.html")
    assert text.index("Curator’s eyes only.") < text.index("<h1>")
    assert "CURATOR'S EYES ONLY" in words
    assert "500 that were sketched, 200 kept apart, and 500 synthetic ones" in words
    for said in ("Columns side by side", "Classifiers that predict sex", "Nearest neighbours"):
        assert said in words
    assert "true positive rate" in words


def test_without_test_rows_a_third_is_kept_apart_and_the_page_says_so(
    folder, more_people, run, release, quick
):
    given = ["--classifiers", "logistic", "-o", "page.html"]
    done = run(["report", "out.aqt", "--real", "people.csv", *given])
    assert done.code == 0
    assert "call it page.curator-only.html" in done.err
    assert done.out == "written: page.html, NOT PRIVATE, for the curator's eyes only\n"
    _, words = read(folder.path / "page.html")
    assert "167 kept apart by lot, which were in the release as well" in words
    assert "no test here: both were sketched" in words


def test_images_are_not_compared_with_real_rows(folder, run):
    done = run(
        ["report", f"{GOLDEN}/release_v1_images.aqt", "-o", "x.html", "--real", "people.csv"]
    )
    assert done.code == 1
    assert "a report with real rows is for tables" in done.err


def test_the_style_is_the_one_that_the_policy_names(tmp_path):
    path = aq.report(wide_release(4), tmp_path / "x.html", progress=False)
    assert digest(stylesheet()) in path.read_text(encoding="utf-8")
