"""The results book: every table and figure of the five papers, ours beside theirs.

    python benchmarks/book.py list                      # what there is, and how long it takes
    python benchmarks/book.py run                       # make what is missing, then write the pages
    python benchmarks/book.py run --paper dp-hp --item "table 2" --dataset adult --runs 5
    python benchmarks/book.py build                     # write book.json and the pages from results
    python benchmarks/book.py quick                     # make a few figures anew, and compare them

Runs are kept as lines of benchmarks/results/*.jsonl by the scripts that make them, so everything
can be stopped and taken up again.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import book_classifiers
import book_features
import book_grey
import book_images
import book_marginals
import book_questions
import book_tables
import book_tests
from book_cells import BOOK, Book, Entry
from book_pages import render
from book_papers import PAPERS
from runs import ROOT, Log
from scoreboard import Check, compared

from aquatint.progress import track

PARTS = (
    book_tables,
    book_classifiers,
    book_marginals,
    book_grey,
    book_images,
    book_features,
    book_tests,
    book_questions,
)
DATASET = {
    "tables.py": "--tables",
    "images.py": "--images",
    "compare.py": "--problems",
    "queries.py": "--tables",
}
"""How a script is told to take one dataset only."""
VERSIONS = ("aquatint", "numpy", "opendp", "scikit-learn", "torch")
QUICK = (
    Check("tables.py mixture --methods auto --runs 1", "tables-mixture", ("nll_published",)),
    Check(
        "tables.py papers --tables cervical --methods auto --runs 1",
        "tables-papers",
        ("roc", "prc"),
    ),
    Check(
        "tables.py adult --methods auto --epsilon 1 --runs 1", "tables-adult", ("tv2", "tv3", "auc")
    ),
    Check("queries.py learn --epsilon 1 --plans default --runs 1", "queries-learn", ("auc",)),
    Check("book_kernels.py length_scale --runs 1", "book-length_scale", ("order",)),
    Check("book_kernels.py step --runs 1", "book-step", ("error",)),
    Check("book_kernels.py approximation --runs 1", "book-approximation", ("error",)),
)


def entries() -> tuple[Entry, ...]:
    """Give every entry, paper by paper."""
    made = [entry for part in PARTS for entry in part.entries()]
    return tuple(entry for paper in PAPERS for entry in made if entry.paper == paper)


def build() -> Book:
    """Read all results, check them, and write book.json and the pages."""
    book = Book(versions={name: version(name) for name in VERSIONS}, entries=entries())
    BOOK.write_text(book.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8")
    read = Book.model_validate_json(BOOK.read_text(encoding="utf-8"))
    render(read)
    return read


def chosen(every: Iterable[Entry], paper: str | None, item: str | None) -> list[Entry]:
    """Give the entries that were asked for."""
    wanted = [
        entry
        for entry in every
        if (paper is None or entry.paper == paper)
        and (item is None or item.lower() in entry.item.lower())
    ]
    if not wanted:
        known = ", ".join(f"{e.paper} {e.item}" for e in every if paper in {None, e.paper})
        sys.exit(f"the book has no such entry: choose one of {known or ', '.join(PAPERS)}")
    return wanted


def commands(wanted: Sequence[Entry], dataset: str | None, runs: int | None) -> dict[str, float]:
    """Give the commands of entries, each once, with the minutes that it takes."""
    made: dict[str, float] = {}
    for entry in wanted:
        every = (entry.command, *entry.also)
        for command in every:
            words, script = command, command.split()[0]
            if dataset is not None and script in DATASET:
                words += f" {DATASET[script]} {shlex.quote(dataset)}"
            if runs is not None:
                words += f" --runs {runs}"
            made[words] = max(made.get(words, 0.0), entry.minutes / len(every))
    return made


def call(words: str, *more: str) -> int:
    """Run a script of this folder."""
    script, *rest = shlex.split(words)
    path = Path(__file__).with_name(script)
    return subprocess.run(
        [sys.executable, str(path), *rest, *more], check=False, cwd=ROOT
    ).returncode


def run(asked: argparse.Namespace) -> int:
    """Make what is missing of the entries that were asked for."""
    wanted = chosen(entries(), asked.paper, asked.item)
    todo = commands(wanted, asked.dataset, asked.runs)
    failed = 0
    with track("results, in minutes", round(sum(todo.values()))) as advance:
        for words, minutes in todo.items():
            print(f"python benchmarks/{words}    # about {minutes:g} minutes if nothing is there")
            failed += bool(call(words))
            advance(round(minutes))
    return failed


def show(wanted: Sequence[Entry], dataset: str | None) -> None:
    """Print entries as plain rows."""
    for entry in wanted:
        print(f"\n{entry.paper}, {entry.item}: {entry.title}\n{entry.metric}; {entry.relation}")
        for cell in entry.cells:
            if dataset is not None and dataset.lower() not in cell.row.lower():
                continue
            told = [
                f"{name} {value.mean:.4g}{'' if value.sd is None else f' ± {value.sd:.2g}'}"
                for name, value in (("faithful", cell.faithful), ("ours", cell.ours))
                if value is not None
            ]
            head = (
                f"published {cell.published:.4g}" if cell.published is not None else "published –"
            )
            print(
                f"  {cell.key}: "
                + ", ".join([head, *told])
                + (f"  [{cell.missing}]" if cell.missing else "")
            )


def quick() -> int:
    """Make a few figures anew, apart from those committed, and say which are not as committed."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for check in QUICK:
            failed = call(check.words, "--results", folder)
            fresh = Log(Path(folder) / f"{check.results}.jsonl")
            for line in compared(check, fresh) if not failed else [f"{check.words}: FAILED"]:
                wrong += "FAILED" in line or "WORSE" in line
                print(line)
    return wrong


def read_words() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["list", "run", "show", "build", "quick"])
    parser.add_argument("--paper", choices=PAPERS)
    parser.add_argument("--item", help="for example: table 2, figure 1")
    parser.add_argument("--dataset", help="only this one")
    parser.add_argument("--runs", type=int, help="runs of each figure")
    return parser.parse_args()


def main() -> None:
    """Do what was asked."""
    asked = read_words()
    failed = 0
    if asked.what == "list":
        for entry in chosen(entries(), asked.paper, asked.item):
            there = sum(cell.ours is not None for cell in entry.cells)
            print(f"{entry.paper:10} {entry.item:16} {there:3} of {len(entry.cells):3} figures, "
                  f"{entry.minutes:g} min: {entry.title}")  # fmt: skip
    elif asked.what == "quick":
        failed = quick()
    elif asked.what == "show":
        show(chosen(entries(), asked.paper, asked.item), asked.dataset)
    else:
        if asked.what == "run":
            failed = run(asked)
        show(chosen(build().entries, asked.paper, asked.item), asked.dataset)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
