"""The page docs/results/compare.md, written from the results alone."""

from __future__ import annotations

from results_compare_plots import power_plots
from results_compare_tables import against_epsilon, against_rows, bars, level
from results_pages import FOLDER, machine
from runs import RESULTS, Log

PARTS = ("power", "level")

HEAD = """\
# Two-sample tests
"""


def log_of(part: str) -> Log:
    """Give the results of a part."""
    return Log(RESULTS / f"compare-{part}.jsonl")


def render() -> None:
    """Write the page, with what results there are."""
    logs = {part: log_of(part) for part in PARTS}
    lines = [line for log in logs.values() for line in log.lines().values()]
    if logs["power"].lines():
        power_plots(logs["power"], FOLDER)
    made = [HEAD, *bars(logs["power"]), *against_epsilon(logs["power"])]
    made += [*against_rows(logs["power"]), *level(logs["level"])]
    text = "\n".join([*made, machine(lines)])
    (FOLDER / "compare.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    print("written: docs/results/compare.md")
