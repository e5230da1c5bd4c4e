"""Synthetic tables: Aquatint beside AIM and MST, and beside the papers' own figures.

    python benchmarks/tables.py adult           # Adult at five ε, beside AIM and MST
    python benchmarks/tables.py papers          # the papers' eight tables, twelve classifiers
    python benchmarks/tables.py mixture         # the papers' mixture of Gaussians
    python benchmarks/tables.py marginals       # DP-HP's α-way marginals
    python benchmarks/tables.py development     # the tables that the defaults were chosen on
    python benchmarks/tables.py unseen          # tables that had no say in any default
    python benchmarks/tables.py render          # write the page of the docs from the results

Every run is a line in benchmarks/results/tables-PART.jsonl, known by its settings. A run that is
there is not made again, so a part can be stopped and taken up as often as one likes; `--again`
makes its runs anew. Noise is simulated: seed 0 for the first run, 1 for the second, and so on.
`--rows` and `--quick` are for a look: their results stay in the folder of work.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import comparison
import papers
import torch
from results_pages import render
from runs import RESULTS, ROOT, Log
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Part:
    """One benchmark, and what it runs unless told otherwise."""

    make: Callable[[argparse.Namespace, Log], int]
    methods: tuple[str, ...]
    choice: tuple[str, ...]
    epsilons: tuple[float, ...] = (1.0,)


_PEERS = ("real", "auto", *comparison.PEERS)
_PAPERS = ("real", *papers.METHODS)
PARTS = {
    "adult": Part(comparison.adult, _PEERS, _PEERS, comparison.ADULT_EPSILONS),
    "papers": Part(papers.papers, _PAPERS, _PAPERS),
    "mixture": Part(papers.mixture, _PAPERS, _PAPERS),
    "marginals": Part(papers.marginals, ("auto",), papers.METHODS, papers.MARGINAL_EPSILONS),
    "development": Part(
        comparison.development, ("real", "auto"), _PEERS, comparison.DEVELOPMENT_EPSILONS
    ),
    "unseen": Part(comparison.unseen, ("real", "auto", "aim"), _PEERS),
}
QUICK = {"rows": 1000, "runs": 1, "train_rows": 1000, "subsets": 20, "rounds": 4}


def read_words() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*PARTS, "render"])
    add = parser.add_argument
    add("--runs", type=int, default=3, help="runs of each method, seeds 0, 1, …")
    add("--methods", nargs="+", choices=[*_PEERS, *papers.METHODS[1:]])
    add("--tables", nargs="+", help="only these, where a part has several")
    add("--epsilon", nargs="+", type=float, help="for adult, marginals, development and unseen")
    add("--rows", type=int, help="look at so many rows only")
    add("--quick", action="store_true", help="one run of everything on 1,000 rows")
    add("--again", action="store_true", help="make runs anew that are there already")
    add("--train-rows", type=int, help="papers: most rows to train on; default: by table")
    add("--classifiers", default="papers", help="papers: the twelve, or quick for three")
    add("--no-guess", action="store_true", help="give the papers' plans no guess of the rows")
    add("--subsets", type=int, default=1000, help="marginals: most sets of columns to compare")
    add("--scorer", type=Path, help="the comparisons' script; default: next to the data")
    add("--import-peers", type=Path, help="score peers' files in this folder; run none")
    add("--peers-python", default=str(ROOT / ".venv-peers" / "bin" / "python"))
    add("--rounds", type=int, default=60, help="AIM's rounds")
    add("--results", type=Path, default=RESULTS, help="where the lines of results go")
    add("--work", type=Path, default=Path(tempfile.gettempdir()) / "aquatint-bench")
    asked = parser.parse_args()
    if asked.quick:
        for name, value in QUICK.items():
            setattr(asked, name, value)
    return asked


def main() -> None:
    """Run one part, or write the page."""
    asked = read_words()
    if asked.part == "render":
        render()
        return
    part = PARTS[asked.part]
    asked.methods = asked.methods or part.methods
    asked.epsilon = asked.epsilon or (part.epsilons if not asked.quick else part.epsilons[:1])
    unknown = set(asked.methods) - set(part.choice)
    if unknown:
        sys.exit(
            f"{asked.part} has no method {', '.join(unknown)}: choose {', '.join(part.choice)}"
        )
    look = asked.rows is not None
    asked.plots = asked.work if look else ROOT / "docs" / "results"
    log = Log((asked.work if look else asked.results) / f"tables-{asked.part}.jsonl")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        failed = part.make(asked, log)
    print(f"results: {log.path.name}" + (f", {failed} runs FAILED" if failed else ""))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
