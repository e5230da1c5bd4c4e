"""Questions to a release: the tasks of M2M, coverage of intervals, SQL on Adult, and time.

    python benchmarks/queries.py tasks          # M2M's figure 3 and table 1
    python benchmarks/queries.py coverage       # how often 95 % intervals hold the truth
    python benchmarks/queries.py sql            # 500 questions on Adult, beside AIM's rows and ours
    python benchmarks/queries.py speed          # how long these questions take
    python benchmarks/queries.py hostile        # how long it takes to refuse hostile ones
    python benchmarks/queries.py dp_erm         # diffprivlib's logistic regression on Occupancy
    python benchmarks/queries.py render         # write the page of the docs from the results

Every run is a line in benchmarks/results/queries-PART.jsonl, known by its settings. A run that is
there is not made again, so a part can be stopped and taken up as often as one likes; `--again`
makes its runs anew. Noise is simulated: seed 0 for the first run, 1 for the second, and so on.
`--quick` is for a look: its results stay in the folder of work.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from query_coverage import coverage
from query_learning import dp_erm, learn
from query_speed import hostile, speed
from query_sql import METHODS, QUESTIONS, sql
from query_tables import PLANS
from query_tasks import tasks
from results_queries import render
from runs import RESULTS, ROOT, Log, run_part, settle

PARTS: dict[str, Callable[[argparse.Namespace, Log], int]] = {
    "tasks": tasks,
    "coverage": coverage,
    "sql": sql,
    "speed": speed,
    "hostile": hostile,
    "learn": learn,
    "dp_erm": dp_erm,
}
RUNS = {"tasks": 3, "coverage": 8, "sql": 3, "learn": 3, "dp_erm": 5}
QUICK = {"runs": 1, "counts": 5, "each": 3, "questions": 20, "rounds": 4}


def read_words() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*PARTS, "render"])
    add = parser.add_argument
    add("--runs", type=int, help=f"draws of the noise, seeds 0, 1, …; default: {RUNS}")
    add("--tables", nargs="+", help="only these, for tasks and coverage")
    add("--plans", nargs="+", choices=PLANS, help="only these, for tasks, coverage and learn")
    add("--methods", nargs="+", choices=METHODS, help="only these, for sql")
    add("--epsilon", nargs="+", type=float, help="for tasks, coverage, learn and dp_erm")
    add("--counts", type=int, default=40, help="tasks: counts to ask of each release")
    add("--each", type=int, default=26, help="coverage: questions of a kind to a release")
    add("--questions", type=int, default=QUESTIONS, help="sql and speed")
    add("--quick", action="store_true", help="one small run of everything")
    add("--again", action="store_true", help="make runs anew that are there already")
    add("--peers-python", default=str(ROOT / ".venv-peers" / "bin" / "python"))
    add("--rounds", type=int, default=60, help="AIM's rounds")
    add("--results", type=Path, default=RESULTS, help="where the lines of results go")
    add("--work", type=Path, default=Path(tempfile.gettempdir()) / "aquatint-bench")
    asked = parser.parse_args()
    settle(asked, QUICK, RUNS)
    return asked


def main() -> None:
    """Run one part, or write the page."""
    asked = read_words()
    if asked.part == "render":
        render()
        return
    run_part("queries", PARTS[asked.part], asked)


if __name__ == "__main__":
    main()
