"""Power and level of two-sample tests as tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compare_cases import CURATOR, PLAIN, RELEASES
from compare_methods import METHODS
from compare_power import ROWS, SIZES_EPSILON
from compare_problems import PROBLEMS
from compare_real import REAL
from results_tables import number, table, verdict
from runs import Log
from scipy.stats import beta

CURATORS = ("permutation", "signflip", "tcmc", "tcs")
BARS: dict[tuple[str, str], float] = {
    ("gvd", "tcmc"): 0.80,
    ("gvd", "nte_me"): 0.65,
    ("gvd", "signflip"): 0.85,
    ("gvd", "mixed"): 0.95,
    ("gvd", "default"): 0.95,
    **{("gmd", method): 0.85 for method in (*CURATORS, "nte_me", "nte_scf", "mixed", "default")},
    ("blobs", "permutation"): 0.95,
    ("blobs", "mixed"): 0.90,
    ("blobs", "default"): 0.90,
}
"""The least power at ε = 1 and 10,000 rows, by problem and test."""
LEVELS = {name: problem.title for name, problem in PROBLEMS.items() if problem.same} | REAL
MOST_LEVEL = 0.02
"""The bar: how often a test at the nominal level of .01 may invent a difference."""


@dataclass(frozen=True)
class Rate:
    """How often a test said that two samples differ."""

    rejected: int
    runs: int

    @property
    def share(self) -> float:
        """As a share."""
        return self.rejected / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of Clopper and Pearson."""
        others = self.runs - self.rejected
        low = beta.ppf(0.025, self.rejected, others + 1) if self.rejected else 0.0
        high = beta.ppf(0.975, self.rejected + 1, others) if others else 1.0
        return float(low), float(high)


def rate(lines: Iterable[dict[str, Any]]) -> Rate | None:
    """Add up blocks of runs; where two blocks hold the same run, the later one counts."""
    decided: dict[tuple[Any, ...], str] = {}
    for line in lines:
        settings = line["settings"]
        for place, said in enumerate(line["found"]["decisions"]):
            cell = (settings["problem"], settings["method"], settings["rows"], settings["epsilon"])
            decided[(*cell, settings["first"] + place)] = said
    return Rate(list(decided.values()).count("1"), len(decided)) if decided else None


def bars(log: Log) -> list[str]:
    """Write what was asked at ε = 1 and 10,000 rows, and what was found."""
    rows = []
    for (problem, method), bar in BARS.items():
        found = rate_at(log, problem, method, rows=ROWS, epsilon=1.0)
        if found is not None:
            said = [PROBLEMS[problem].title, METHODS[method].group, named(method), str(found.runs)]
            met = verdict(found.share >= bar).strip()
            said += [f"≥ {number(bar, 2)}", number(found.share, 2), _interval(found), met]
            rows.append(said)
    header = ["problem", "", "test", "runs", "bar", "power", "95 % interval", ""]
    return table(header, rows) if rows else []


def missed(log: Log) -> str:
    """Count the bars that are met, and say which are not."""
    found = {key: (rate_at(log, *key, rows=ROWS, epsilon=1.0), bar) for key, bar in BARS.items()}
    run = {key: (one.share, bar) for key, (one, bar) in found.items() if one is not None}
    short = {key: both for key, both in run.items() if both[0] < both[1]}
    said = [f"{len(run) - len(short)} of {len(run)} bars are met."]
    for (problem, method), (share, bar) in short.items():
        title = f"{METHODS[method].title} on {PROBLEMS[problem].title}"
        said.append(f"{title} is missed, with {number(share, 2)} for {number(bar, 2)}.")
    return " ".join(said) + "\n" if run else ""


def against_epsilon(log: Log) -> list[str]:
    """Write power at 10,000 rows for each ε."""
    epsilons = sorted({s["epsilon"] for s in _settings(log, rows=ROWS)} - {None})
    return _curves(log, "ε", [{"rows": ROWS, "epsilon": epsilon} for epsilon in epsilons])


def against_rows(log: Log) -> list[str]:
    """Write power at ε = 2.5 for each number of rows."""
    sizes = sorted({s["rows"] for s in _settings(log, epsilon=SIZES_EPSILON)})
    points = [{"rows": rows, "epsilon": SIZES_EPSILON} for rows in sizes]
    return _curves(log, "rows", points)


def _settings(log: Log, **wanted: Any) -> list[dict[str, Any]]:
    return [line["settings"] for line in log.where(**wanted)]


def _curves(log: Log, what: str, points: list[dict[str, Any]]) -> list[str]:
    made = []
    for problem in PROBLEMS:
        for method in METHODS:
            found = [rate_at(log, problem, method, **point) for point in points]
            if any(found):
                runs = sorted({one.runs for one in found if one})
                cells = [number(one.share, 2) if one else "–" for one in found]
                said = "–".join(str(n) for n in dict.fromkeys((runs[0], runs[-1])))
                made.append([PROBLEMS[problem].title, METHODS[method].group, named(method), said])
                made[-1] += cells
    name = "epsilon" if what == "ε" else "rows"
    heads = [f"{what} = {point[name]:,g}" for point in points]
    return table(["problem", "", "test", "runs", *heads], made) if made else []


def rate_at(
    log: Log, problem: str, method: str, *, rows: int, epsilon: float | None
) -> Rate | None:
    """Give the rate of a cell; without privacy ε does not matter."""
    told = None if METHODS[method].group == PLAIN else epsilon
    return rate(log.where(problem=problem, method=method, rows=rows, epsilon=told))


def level(log: Log) -> list[str]:
    """Write how often each test invents a difference, where the bar is .02."""
    made = []
    found = _settings(log)
    problems = [name for name in LEVELS if any(s["problem"] == name for s in found)]
    for problem in problems:
        epsilons = sorted({s["epsilon"] for s in found if s["problem"] == problem} - {None})
        for method in METHODS:
            rates = {
                None: rate(log.where(problem=problem, method=method, epsilon=None)),
                **{e: rate(log.where(problem=problem, method=method, epsilon=e)) for e in epsilons},
            }
            for epsilon, one in rates.items():
                if one is not None:
                    made.append([LEVELS[problem], METHODS[method].group, named(method)])
                    said = "–" if epsilon is None else f"{epsilon:g}"
                    made[-1] += [said, str(one.runs), number(one.share, 4), _interval(one)]
                    made[-1].append(_held(METHODS[method].group, one))
    header = ["rows of", "", "test", "ε", "draws", "says they differ", "95 % interval", "≤ .02"]
    return table(header, made) if made else []


def _held(group: str, found: Rate) -> str:
    """Say whether the level is held: a bar for our tests alone."""
    ours = group in {RELEASES, CURATOR}
    return verdict(found.share <= MOST_LEVEL).strip() if ours else ""


def named(method: str) -> str:
    """Give a method's title; ours stand out."""
    found = METHODS[method]
    return f"**{found.title}**" if found.group in {RELEASES, CURATOR} else found.title


def _interval(found: Rate) -> str:
    low, high = found.interval
    return f"{number(low, 3)} to {number(high, 3)}"
