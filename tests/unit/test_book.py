"""The results book: published figures as the papers have them, bars that can be missed."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from benchmark_scripts import BENCHMARKS, fetch
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn import metrics

papers = fetch("book_papers")
cells = fetch("book_cells")
scoreboard = fetch("scoreboard")
pages = fetch("book_pages")
results_papers = fetch("results_papers")
book = fetch("book")
kernels = fetch("book_kernels")
runs = fetch("runs")

TYPED = list(papers.typed())
TEXTS = {name: papers.paper_text(name) for name in papers.PAPERS}
needs_papers = pytest.mark.skipif(
    TEXTS["dp-hp"] is None, reason="the papers' texts are not beside the data"
)


@needs_papers
@pytest.mark.parametrize("typed", TYPED, ids=lambda t: f"{t.paper}-{t.line}-{t.figures[0]}"[:60])
def test_every_published_figure_stands_in_its_paper(typed):
    assert typed.stands(TEXTS[typed.paper])


@needs_papers
def test_a_wrong_figure_would_be_seen():
    """Change the last digit of the last figure of each line: next to none may still be found."""
    found = 0
    for typed in TYPED:
        digit = re.search(r"\d(?!.*\d)", typed.figures[-1])
        other = str((int(digit[0]) + 5) % 10)
        wrong = typed.figures[-1][: digit.start()] + other + typed.figures[-1][digit.end() :]
        planted = papers.Typed(typed.paper, typed.line, (*typed.figures[:-1], wrong), typed.torn)
        found += planted.stands(TEXTS[typed.paper])
    assert found <= len(TYPED) // 20


def test_the_committed_book_is_what_the_committed_results_give(tmp_path, monkeypatch):
    committed = cells.BOOK.read_text(encoding="utf-8")
    made = cells.Book(
        versions=cells.Book.model_validate_json(committed).versions, entries=book.entries()
    )
    assert json.loads(made.model_dump_json(exclude_defaults=True)) == json.loads(committed)
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    monkeypatch.setattr(pages, "draw_all", lambda _: None)
    pages.render(made)
    for page in tmp_path.glob("*.md"):
        shown = (BENCHMARKS.parent / "docs" / "results" / page.name).read_text(encoding="utf-8")
        assert _without_pictures(page.read_text(encoding="utf-8")) == _without_pictures(shown)


def _without_pictures(text):
    return re.sub(r"\s*```\{image\}.*?```\s*", "\n", text, flags=re.DOTALL)


def test_every_table_and_figure_that_was_promised_is_there():
    promised = {
        "dp-merf": "figure 1|table 1|table 5|table 6|table 7|table 8|table 3|table 9|table 10|"
        "figure 3|§M.2|proposition 3.1",
        "dp-hp": "figure 1|figure 5|figure 2|table 1|table 2|table 7|figure 3|figure 6|table 5|"
        "table 8",
        "dp-mepf": "tables 1 and 2|table 5|table 6|table 4",
        "two-sample": "figure 3|figure 4",
        "m2m": "figure 2|figure 3|figure 4|table 1",
    }
    there = {(entry.paper, entry.item) for entry in book.entries()}
    wanted = {(paper, item) for paper, items in promised.items() for item in items.split("|")}
    assert wanted <= there


def test_a_cell_has_one_figure_a_seed_or_says_what_it_takes():
    for entry in book.entries():
        for cell in entry.cells:
            assert cell.ours or cell.faithful or cell.missing, (entry.item, cell.key)
            assert cell.ahead is not False or cell.note, f"{cell.key} is behind: say why"
            for found in (cell.faithful, cell.ours):
                assert found is None or len(set(found.seeds)) == len(found.seeds), cell.key


def test_digits_and_clothes_have_one_method_in_a_column_and_a_command_for_each():
    wanted = [e for e in book.entries() if e.also]
    assert {(e.paper, e.item) for e in wanted} >= {("dp-merf", "table 9"), ("dp-merf", "table 10")}
    for entry in wanted:
        assert set(book.commands([entry], None, None)) == {entry.command, *entry.also}
        for cell in entry.cells:
            assert cell.ours is None or cell.ours != cell.faithful, cell.key


@pytest.mark.parametrize(
    ("higher", "faithful", "ours", "sd", "ahead"),
    [(True, 0.9, 0.8, 0.05, True), (True, 0.9, 0.8, 0.2, False), (False, 0.9, 0.8, 0.0, False)],
)
def test_our_reading_of_a_paper_is_ahead_by_more_than_runs_differ(
    higher, faithful, ours, sd, ahead
):
    cell = cells.Cell(
        row="a", measure="b", higher=higher, faithful=cells.Score(mean=faithful, sd=sd, runs=3),
        ours=cells.Score(mean=ours, runs=3),
    )  # fmt: skip
    assert cell.paper_ahead is ahead


def test_the_scoreboard_holds_and_exits_otherwise(tmp_path):
    script = str(BENCHMARKS / "scoreboard.py")
    done = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    committed = cells.Book.model_validate_json(cells.BOOK.read_text(encoding="utf-8"))
    place, entry = next(
        (i, e) for i, e in enumerate(committed.entries) if any(c.ahead for c in e.cells)
    )
    worse = tuple(_worse(cell) for cell in entry.cells)
    planted = entry.model_copy(update={"cells": worse})
    other = (*committed.entries[:place], planted, *committed.entries[place + 1 :])
    file = tmp_path / "worse.json"
    file.write_text(committed.model_copy(update={"entries": other}).model_dump_json())
    words = [sys.executable, script, "--against", str(file)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert entry.item in done.stdout


def _worse(cell):
    if cell.ours is None:
        return cell
    factor = 0.5 if cell.higher else 2.0
    return cell.model_copy(
        update={"ours": cell.ours.model_copy(update={"mean": cell.ours.mean * factor})}
    )


def one(mean):
    """Give a book of one figure."""
    cell = cells.Cell(row="a", measure="b", ours=cells.Score(mean=mean, runs=3))
    entry = cells.Entry(
        paper="dp-hp", item="table 1", title="t", relation="replace one row", delta=None,
        public="p", metric="m", command="c", minutes=1, cells=(cell,),
    )  # fmt: skip
    return cells.Book(versions={}, entries=(entry,))


def test_bars_rise_and_never_fall():
    (low,) = scoreboard.raised(one(0.5), [])
    (high,) = scoreboard.raised(one(0.9), [low])
    (still,) = scoreboard.raised(one(0.5), [high])
    assert low.bar < high.bar == still.bar
    assert list(scoreboard.missed(one(0.5), [high]))
    assert not list(scoreboard.missed(one(0.9), [high]))


def test_a_bar_that_is_known_to_be_missed_is_told_and_may_not_get_worse(tmp_path):
    (bar,) = scoreboard.raised(one(0.9), [])
    marked = replace(bar, at=0.7, why="looked into")
    file = tmp_path / "bars.toml"
    file.write_text(scoreboard.written([marked]), encoding="utf-8")
    assert scoreboard.bars(file) == [marked]
    for mean, news, known in ((0.9, 0, 0), (0.7, 0, 1), (0.6, 1, 0)):
        assert len(list(scoreboard.missed(one(mean), [marked]))) == news
        assert len(list(scoreboard.missed(one(mean), [marked], known=True))) == known
    (still,) = scoreboard.raised(one(0.7), [marked])
    assert still == marked


def test_figures_made_anew_are_compared_within_their_spread(tmp_path):
    committed, fresh = runs.Log(tmp_path / "a.jsonl"), runs.Log(tmp_path / "b.jsonl")
    for seed, value in enumerate((0.80, 0.81, 0.79)):
        committed.add({"method": "auto", "seed": seed}, {"auc": value})
    check = scoreboard.Check("words", "unused", ("auc",))
    fresh.add({"method": "auto", "seed": 0}, {"auc": 0.82})
    (said,) = scoreboard.compared(check, fresh, committed)
    assert "as committed" in said
    fresh.add({"method": "auto", "seed": 0}, {"auc": 0.5})
    (said,) = scoreboard.compared(check, fresh, committed)
    assert "WORSE" in said
    fresh.add({"method": "other", "seed": 0}, {"auc": 0.5})
    assert any("nothing committed" in line for line in scoreboard.compared(check, fresh, committed))


@given(found=st.integers(0, 40), of_others=st.integers(0, 160), positives=st.integers(1, 40))
def test_no_hard_labels_have_more_precision_than_their_roc_allows(found, of_others, positives):
    """Labels no worse than chance, against scikit-learn's own area and average precision."""
    found = min(found, positives)
    assume(found / positives >= of_others / 160)
    truth = np.repeat([1, 0], [positives, 160])
    said = np.zeros(positives + 160, dtype=int)
    said[:found] = said[positives : positives + of_others] = 1
    roc = metrics.roc_auc_score(truth, said)
    limit = results_papers.highest_prc(roc, positives / (positives + 160))
    assert metrics.average_precision_score(truth, said) <= limit + 1e-12
    if of_others == 0:
        assert metrics.average_precision_score(truth, said) == pytest.approx(limit)


def test_a_book_with_a_strange_field_or_an_infinite_figure_is_refused():
    for planted in ({"mean": float("nan"), "runs": 1}, {"mean": 1, "runs": 1, "guess": 2}):
        with pytest.raises(ValidationError):
            cells.Score(**planted)


def test_the_bound_of_proposition_3_1_holds_where_it_was_measured():
    for line in cells.lines("book-bound"):
        assert line["found"]["error"] <= line["found"]["bound"]


def test_the_exact_mmd_of_a_sample_with_itself_is_zero():
    x = kernels.np.random.default_rng(0).normal(size=500)
    assert kernels.exact_mmd(x, x) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--paper", "dp-hp", "--table", "2", "--dataset", "adult", "--show"], 0, "0.688"),
        (["--paper", "dp-hp", "--table", "77", "--show"], 1, "no such entry"),
    ],
)
def test_aquatint_bench(words, code, said):
    asked = [sys.executable, "-m", "aquatint", "bench", *words]
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
