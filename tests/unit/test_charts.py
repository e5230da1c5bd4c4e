"""Charts: sound SVG whatever the names, small, described in words, and true to the numbers."""

import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aquatint.reporting import charts
from aquatint.reporting.svg import brief, clean, percent, round_numbers, scale

SPACE = "{http://www.w3.org/2000/svg}"
KNOWN = {"svg", "title", "desc", "g", "path", "rect", "text", "circle"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]><svg onload=alert(1)>",
    "age\u202egnp.exe",
    "\x00\x1b[31m\ud800",
    "עברית",
    "&lt;b&gt;",
    "' onmouseover='alert(1)",
]


def parsed(chart):
    """Read a chart back, and see that it has only the elements and attributes that charts have."""
    root = ET.fromstring(chart)
    for part in root.iter():
        assert part.tag.removeprefix(SPACE) in KNOWN
        for name in part.attrib:
            assert not name.startswith("on")
            assert name not in {"href", "style", "src"}
    assert root.get("role") == "img"
    assert root.find(f"{SPACE}title").text
    return root


def texts(root):
    return [t.text for t in root.iter(f"{SPACE}text")]


def examples(names):
    """Draw every kind of chart with these names."""
    size = len(names)
    value = np.linspace(0.1, 0.9, size)
    low, high = value - 0.05, value + 0.05
    title = names[0]
    return {
        "bars": charts.bars(names, value, low, high, title=title, beside=value[::-1]),
        "histogram": charts.histogram(np.arange(size + 1), value, low, high, title=title),
        "points": charts.points_with_intervals(names, value, low, high, title=title, zero=True),
        "heat map": charts.heat_map(np.outer(value, value), names, names, title=title),
        "line": charts.line([0, 1], {n: [0, 1] for n in names[:3]}, title=title, x_label=title),
    }


@pytest.mark.parametrize("kind", ["bars", "histogram", "points", "heat map", "line"])
def test_hostile_names_are_text_and_nothing_else(kind):
    chart = examples(HOSTILE)[kind]
    root = parsed(chart)
    assert root.find(f"{SPACE}title").text == HOSTILE[0]
    assert "<script" not in chart
    assert "<img" not in chart
    assert "\u202e" not in chart
    chart.encode("utf-8")


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4))
def test_any_names_at_all_make_sound_charts(names):
    for chart in examples(names).values():
        root = ET.fromstring(chart)
        assert all(part.tag.removeprefix(SPACE) in KNOWN for part in root.iter())


def test_hidden_characters_are_shown_and_letters_stay():
    assert clean("a\u202eb\u2066c\x00") == "a\\u202eb\\u2066c\\u0000"
    assert clean("עברית عربي 漢字 naïve") == "עברית عربي 漢字 naïve"
    assert clean("two\nlines") == "two lines"


numbers = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.just(0.0))


@given(st.lists(numbers, min_size=1, max_size=8))
def test_any_numbers_at_all_make_sound_charts(values):
    with np.errstate(all="ignore"):
        low, high = np.array(values) - 1, np.array(values) + 1
    names = [str(i) for i in range(len(values))]
    drawn = [
        charts.bars(names, values, low, high, title="t"),
        charts.histogram(np.arange(len(values) + 1), values, low, high, title="t"),
        charts.points_with_intervals(names, values, low, high, title="t"),
        charts.heat_map([values], ["r"], names, title="t", signed=True),
        charts.line(np.arange(len(values)), {"one": values}, title="t"),
    ]
    for chart in drawn:
        ET.fromstring(chart)
        marks = re.sub(r"<(title|desc|text)\b[^>]*>[^<]*", "", chart)
        assert not re.search(r"\b(nan|inf)\b", marks)


def test_bars_are_as_long_as_their_numbers():
    root = parsed(charts.bars(["a", "b", "c"], [0.8, 0.4, 0.0], title="t"))
    wide = [float(r.get("width")) for r in root.iter(f"{SPACE}rect")]
    assert wide[0] == pytest.approx(2 * wide[1], abs=0.2)
    assert wide[2] == 0


def test_whiskers_span_the_interval():
    root = parsed(charts.bars(["a"], [0.5], [0.25], [1.0], title="t"))
    bar = root.find(f".//{SPACE}rect")
    start, wide = float(bar.get("x")), float(bar.get("width"))
    path = next(p.get("d") for p in root.iter(f"{SPACE}path") if p.get("class") == "whisker")
    low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", path).groups())
    assert low == pytest.approx(start + wide / 2, abs=0.2)
    assert high == pytest.approx(start + wide * 2, abs=0.2)


def test_what_is_not_known_is_left_out_and_said_so():
    root = parsed(charts.bars(["a", "b"], [0.5, math.nan], title="t"))
    assert len(list(root.iter(f"{SPACE}rect"))) == 1
    assert {"a", "b", "50 %"} <= set(texts(root))


def test_a_screen_reader_hears_the_largest():
    root = parsed(charts.bars(list("abcdefg"), [1, 9, 2, 8, 3, 7, 4], title="t", form=brief))
    assert root.find(f"{SPACE}desc").text == "The largest: b 9, d 8, f 7, g 4, e 3."
    root = parsed(charts.histogram([0, 1, 2], [0.2, 0.8], title="t"))
    assert root.find(f"{SPACE}desc").text == "2 bins from 0 to 2; the fullest, 1 to 2, has 80 %."


def test_signs_have_colours_and_doubt_is_faint():
    sure = np.array([[True, False]])
    root = parsed(
        charts.heat_map([[0.5, -0.5]], ["r"], ["a", "b"], title="t", signed=True, sure=sure)
    )
    kinds = [p.get("class") for p in root.iter(f"{SPACE}path")]
    assert {"one", "two"} <= set(kinds)
    written = {t.text: t.get("class") for t in root.iter(f"{SPACE}text") if t.get("class")}
    assert "faint" in written["-0.5"]
    assert "faint" not in written["0.5"]


def test_charts_are_small():
    value = np.full(32, 1 / 32)
    with_tips = charts.histogram(np.arange(33), value, value, value, title="t")
    without = charts.histogram(np.arange(33), value, value, value, title="t", tips=False)
    assert len(without) < 2_500 < len(with_tips) < 7_000
    big = charts.heat_map(
        np.random.default_rng(0).random((40, 40)), ["r"] * 40, ["c"] * 40, title="t"
    )
    assert len(big) < 60_000


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 17), (1e-9, 3e-9), (0, 1e12), (0.1, 0.1001)]
)
def test_round_numbers_are_inside_and_few(low, high):
    found = round_numbers(low, high)
    assert 2 <= len(found) <= 7
    assert low - 1e-9 * (high - low) <= min(found)
    assert max(found) <= high + 1e-9 * (high - low)


@given(st.lists(st.floats(-1e300, 1e300), max_size=5), st.booleans())
def test_a_scale_always_has_a_length(values, zero):
    made = scale(values, 0, 100, zero=zero)
    assert made.low < made.high
    assert all(-1e-9 <= made(v) <= 100 + 1e-9 for v in values)


def test_numbers_in_words():
    assert [brief(x) for x in (0, 1234, 56_789, 2.5e6, math.nan)] == [
        *("0", "1,234", "56.8k", "2.5M", "unknown")
    ]
    assert percent(math.inf) == "unknown"
