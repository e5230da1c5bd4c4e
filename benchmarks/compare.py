"""Two-sample tests: how often they find a difference, how often they invent one, and time.

    python benchmarks/compare.py budget         # what one run of each method costs
    python benchmarks/compare.py power          # against ε at 10,000 rows, against rows at ε = 2.5
    python benchmarks/compare.py level          # on SG and Blobs-null
    python benchmarks/compare.py splits         # on random halves of real tables
    python benchmarks/compare.py adult          # two occupations; two random halves
    python benchmarks/compare.py speed          # a million rows
    python benchmarks/compare.py render         # write the page of the docs from the results

Every block of runs is a line in benchmarks/results/compare-PART.jsonl, known by its settings. What
is there is not run again, so a part can be stopped and taken up as often as one likes; `--again`
makes its runs anew. Noise is simulated, with the seed of the run. `--quick` is for a look: its
results stay in the folder of work.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from compare_methods import METHODS
from compare_power import budget, level, power, splits
from compare_problems import PROBLEMS
from compare_real import REAL
from compare_real_parts import adult, speed
from results_compare import render
from runs import RESULTS, Log, run_part, settle

PARTS: dict[str, Callable[[argparse.Namespace, Log], int]] = {
    "budget": budget,
    "power": power,
    "level": level,
    "splits": splits,
    "adult": adult,
    "speed": speed,
}
RUNS = {"power": 100, "level": 1000, "splits": 200}
QUICK = {"runs": 2, "rows": 500, "epsilon": [1.0]}


def read_words(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*PARTS, "render"])
    add = parser.add_argument
    add("--runs", type=int, help=f"runs of each cell, seeds 0, 1, …; default: {RUNS}")
    add("--methods", nargs="+", choices=METHODS, help="only these")
    add("--problems", nargs="+", choices=(*PROBLEMS, *REAL), help="only these")
    add("--epsilon", nargs="+", type=float, help="only these")
    add("--rows", type=int, help="this many in each sample, and no curve over them")
    add("--quick", action="store_true", help="a few small runs of everything")
    add("--again", action="store_true", help="make runs anew that are there already")
    add("--results", type=Path, default=RESULTS, help="where the lines of results go")
    add("--work", type=Path, default=Path(tempfile.gettempdir()) / "aquatint-bench")
    asked = parser.parse_args(given)
    settle(asked, QUICK, RUNS)
    return asked


def main() -> None:
    """Run one part, or write the page."""
    asked = read_words()
    if asked.part == "render":
        render()
        return
    run_part("compare", PARTS[asked.part], asked)


if __name__ == "__main__":
    main()
