"""Power and level of two-sample tests as tables of Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from compare_cases import PLAIN
from compare_methods import METHODS
from compare_ours import OURS
from compare_power import DIFFERENT, ROWS, SIZES_EPSILON
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


Cell = tuple[str, str, int, float | None]
"""A problem, a method, a number of rows, and an ε."""
Rates = dict[Cell, Rate]


def rates(log: Log) -> Rates:
    """Add up blocks of runs by cell; where two blocks hold the same run, the later one counts."""
    decided: dict[Cell, dict[int, str]] = {}
    for line in log.lines().values():
        told = line["settings"]
        cell = (told["problem"], told["method"], told["rows"], told["epsilon"])
        runs = enumerate(line["found"]["decisions"], told["first"])
        decided.setdefault(cell, {}).update(runs)
    return {cell: Rate(list(runs.values()).count("1"), len(runs)) for cell, runs in decided.items()}


def rate_at(
    found: Rates, problem: str, method: str, *, rows: int, epsilon: float | None
) -> Rate | None:
    """Give the rate of a cell; without privacy ε does not matter."""
    told = None if METHODS[method].group == PLAIN else epsilon
    return found.get((problem, method, rows, told))


def points_of(found: Rates) -> tuple[list[float], list[int]]:
    """Give every ε at 10,000 rows, and every number of rows at ε = 2.5."""
    epsilons = {e for _, _, rows, e in found if rows == ROWS and e is not None}
    sizes = {rows for _, _, rows, e in found if e == SIZES_EPSILON}
    return sorted(epsilons), sorted(sizes)


def bars(found: Rates) -> list[str]:
    """Write what was asked at ε = 1 and 10,000 rows, and what was found."""
    rows = []
    for (problem, method), bar in BARS.items():
        one = rate_at(found, problem, method, rows=ROWS, epsilon=1.0)
        if one is not None:
            said = [PROBLEMS[problem].title, METHODS[method].group, named(method), str(one.runs)]
            met = verdict(one.share >= bar).strip()
            said += [f"≥ {number(bar, 2)}", number(one.share, 2), _interval(one), met]
            rows.append(said)
    header = ["problem", "", "test", "runs", "bar", "power", "95 % interval", ""]
    return table(header, rows) if rows else []


def missed(found: Rates) -> str:
    """Count the bars that are met, and say which are not."""
    asked = {key: (rate_at(found, *key, rows=ROWS, epsilon=1.0), bar) for key, bar in BARS.items()}
    run = {key: (one.share, bar) for key, (one, bar) in asked.items() if one is not None}
    short = {key: both for key, both in run.items() if both[0] < both[1]}
    said = [f"{len(run) - len(short)} of {len(run)} bars are met."]
    if len(run) < len(BARS):
        said.append(f"Not run yet: {len(BARS) - len(run)}.")
    for (problem, method), (share, bar) in short.items():
        title = f"{METHODS[method].title} on {PROBLEMS[problem].title}"
        said.append(f"{title} is missed, with {number(share, 2)} for {number(bar, 2)}.")
    return " ".join(said) + "\n" if run else ""


def lost(found: Rates) -> str:
    """Say which of our tests find a difference less than half of the time, problem by problem."""
    said = []
    for problem in DIFFERENT:
        weak = []
        for method in OURS:
            one = rate_at(found, problem, method, rows=ROWS, epsilon=1.0)
            if one is not None and one.share < 0.5:
                weak.append(f"{METHODS[method].title} ({number(one.share, 2)})")
        if weak:
            said.append(f"- {PROBLEMS[problem].title}: {', '.join(weak)}")
    return "\n".join(["Found less than half of the time at ε = 1:\n", *said, ""]) if said else ""


def against_epsilon(found: Rates) -> list[str]:
    """Write power at 10,000 rows for each ε."""
    points = {f"ε = {e:g}": {"rows": ROWS, "epsilon": e} for e in points_of(found)[0]}
    return _curves(found, points)


def against_rows(found: Rates) -> list[str]:
    """Write power at ε = 2.5 for each number of rows."""
    sizes = points_of(found)[1]
    return _curves(found, {f"{n:,} rows": {"rows": n, "epsilon": SIZES_EPSILON} for n in sizes})


def _curves(found: Rates, points: dict[str, dict[str, Any]]) -> list[str]:
    made = []
    for problem, method in product(DIFFERENT, METHODS):
        along = [rate_at(found, problem, method, **point) for point in points.values()]
        if any(along):
            runs = sorted({one.runs for one in along if one})
            said = "–".join(str(n) for n in dict.fromkeys((runs[0], runs[-1])))
            made.append([PROBLEMS[problem].title, METHODS[method].group, named(method), said])
            made[-1] += [number(one.share, 2) if one else "–" for one in along]
    return table(["problem", "", "test", "runs", *points], made) if made else []


def level_verdict(found: Rates) -> str:
    """Say how many of our cells hold the level, and name the others."""
    ours = {cell: one for cell, one in found.items() if cell[1] in OURS}
    above = {cell: one for cell, one in ours.items() if one.share > MOST_LEVEL}
    said = f"Of {len(ours)} cells of our tests, {len(ours) - len(above)} are at .02 or below"
    names = [
        f"{METHODS[method].title} on {LEVELS[problem]} at ε = {epsilon:g} ({number(one.share, 4)})"
        for (problem, method, _, epsilon), one in above.items()
    ]
    return said + (f"; above it: {'; '.join(names)}.\n" if names else ".\n") if ours else ""


def level(found: Rates) -> list[str]:
    """Write how often each test invents a difference, where the bar is .02."""
    made = []
    places = {name: place for place, name in enumerate((*LEVELS, *METHODS))}
    order = sorted(found, key=lambda c: (places[c[0]], places[c[1]], c[3] or 0.0))
    for cell in order:
        (problem, method, _, epsilon), one = cell, found[cell]
        said = "–" if epsilon is None else f"{epsilon:g}"
        made.append([LEVELS[problem], METHODS[method].group, named(method), said, str(one.runs)])
        held = verdict(one.share <= MOST_LEVEL).strip() if method in OURS else ""
        made[-1] += [number(one.share, 4), _interval(one), held]
    header = ["rows of", "", "test", "ε", "draws", "says they differ", "95 % interval", "≤ .02"]
    return table(header, made) if made else []


def named(method: str) -> str:
    """Give a method's title; ours stand out."""
    title = METHODS[method].title
    return f"**{title}**" if method in OURS else title


def _interval(found: Rate) -> str:
    low, high = found.interval
    return f"{number(low, 3)} to {number(high, 3)}"
