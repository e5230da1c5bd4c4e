"""Results as tables of Markdown, with the bars that they are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from datasets import MARGINALS, PUBLISHED
from runs import RESULTS, Log

NAMES = {
    "real": "real rows",
    "auto": "**Aquatint**",
    "aim": "AIM",
    "mst": "MST",
    "dp_merf": "`dp_merf`",
    "dp_hp": "`dp_hp`",
}
SCORES = ("tv1", "tv2", "tv3", "auc", "ap")
LOWER = {"tv1", "tv2", "tv3", "cpu_s", "peak_mb"}
BARS: dict[float, dict[str, float]] = {
    1.0: {"tv2": 0.0245, "tv3": 0.060, "auc": 0.897, "ap": 0.750},
    0.3: {"tv2": 0.040, "tv3": 0.086, "auc": 0.880, "ap": 0.717},
}
MOST_CPU_S, MOST_MB = 10.0, 1000.0
ENOUGH = 3
"""Runs that a mean is taken over at least."""
PUBLISHED_NLL = {"real": 3.1e5, "dp_merf": 4.1e5, "dp_hp": 3.7e5}

Pick = Callable[[dict[str, Any]], float | None]


def log_of(part: str) -> Log:
    """Give the results of a part, once it is clear that they can be averaged."""
    log = Log(RESULTS / f"tables-{part}.jsonl")
    log.check_alike("scorer", "rounds", "most", "classifiers", "subsets", "guess")
    return log


def number(value: float | None, digits: int = 4) -> str:
    """Write a score without the leading zero; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.{digits}f}".removeprefix("0") if abs(value) < 1 else f"{value:.{digits}f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table of Markdown."""
    made = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(row)} |" for row in made), ""]


def mean(lines: Iterable[dict[str, Any]], pick: Pick) -> float | None:
    """Average over runs what is there."""
    found = [value for line in lines if (value := pick(line["found"])) is not None]
    return fmean(found) if found else None


def of(name: str) -> Pick:
    """Pick one number of a run."""
    return lambda found: found.get(name)


def means(lines: list[dict[str, Any]]) -> dict[str, float | None]:
    """Average every score, the time and the memory."""
    return {name: mean(lines, of(name)) for name in (*SCORES, "cpu_s", "peak_mb")}


def adult() -> list[str]:
    """Write Aquatint, AIM and MST on Adult at every ε, with the bars."""
    log = log_of("adult")
    header = ["ε", "method", "runs", "1-way", "2-way", "3-way", "mean ROC-AUC", "mean AP"]
    rows = [_scores("–", "real", list(log.where(method="real")))]
    found = {line["settings"]["epsilon"] for line in log.lines().values()} - {None}
    for epsilon in sorted(found):
        ran = {m: list(log.where(method=m, epsilon=epsilon)) for m in ("auto", "aim", "mst")}
        ran = {method: lines for method, lines in ran.items() if lines}
        rows += [_scores(f"{epsilon:g}", method, lines) for method, lines in ran.items()]
        if "auto" in ran:
            rows.append(_bars(epsilon, {method: means(lines) for method, lines in ran.items()}))
            rows[-1][2] = "" if min(map(len, ran.values())) >= ENOUGH else "too few"
    kept = [row for row in rows if row]
    return table([*header, "CPU s", "peak MB"], kept) if kept else []


def _scores(epsilon: str, method: str, lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return []
    found = means(lines)
    cost = ["–" if found[c] is None else f"{found[c]:,.0f}" for c in ("cpu_s", "peak_mb")]
    return [epsilon, NAMES[method], str(len(lines)), *(number(found[s]) for s in SCORES), *cost]


def _bars(epsilon: float, found: dict[str, dict[str, float | None]]) -> list[str]:
    """Write what was asked, and whether it was met."""
    ours = found["auto"]
    asked: dict[str, float | None] = dict(BARS.get(epsilon, {}))
    if not asked:
        asked = {name: found.get("aim", {}).get(name) for name in SCORES if name != "tv1"}
    words = {
        name: _bar(name, ours[name], asked.get(name), strict=epsilon not in BARS) for name in SCORES
    }
    words["cpu_s"] = _bar("cpu_s", ours["cpu_s"], MOST_CPU_S, 0)
    words["peak_mb"] = _bar("peak_mb", ours["peak_mb"], MOST_MB, 0, strict=True)
    title = "*bar*" if epsilon in BARS else "*bar: AIM*"
    return [f"{epsilon:g}", title, "", *words.values()]


def _bar(
    name: str, ours: float | None, asked: float | None, digits: int = 4, *, strict: bool = False
) -> str:
    if asked is None or ours is None:
        return ""
    ahead = ours < asked if name in LOWER else ours > asked
    sign = ("<" if name in LOWER else ">") if strict else ("≤" if name in LOWER else "≥")
    met = ahead or (ours == asked and not strict)
    return f"*{sign} {number(asked, digits)}*{verdict(met)}"


def verdict(met: bool) -> str:
    """Say whether a bar is met."""
    return " met" if met else " **missed**"


def by_table(part: str) -> list[str]:
    """Write a part that has several tables: the development tables, or the unseen ones."""
    log = log_of(part)
    names = dict.fromkeys(line["settings"]["table"] for line in log.lines().values())
    rows = []
    for name in names:
        rows.append([name, *_scores("–", "real", list(log.where(table=name, method="real")))])
        epsilons = {line["settings"]["epsilon"] for line in log.where(table=name)} - {None}
        for epsilon in sorted(epsilons):
            for method in ("auto", "aim", "mst"):
                lines = list(log.where(table=name, method=method, epsilon=epsilon))
                rows.append([name, *_scores(f"{epsilon:g}", method, lines)])
    header = ["table", "ε", "method", "runs", "1-way", "2-way", "3-way", "mean ROC-AUC"]
    kept = [row for row in rows if len(row) > 1]
    return table([*header, "mean AP", "CPU s", "peak MB"], kept) if kept else []


def mixture() -> list[str]:
    """Write the likelihood of samples of the mixture of Gaussians."""
    log, rows = log_of("mixture"), []
    for method in ("real", "dp_merf", "dp_hp", "auto"):
        lines = list(log.where(method=method))
        if not lines:
            continue
        published = PUBLISHED_NLL.get(method)
        total, right = (mean(lines, of(name)) for name in ("nll_published", "nll"))
        modes = min(line["found"]["modes"] for line in lines)
        cpu = mean(lines, of("cpu_s"))
        rows.append(
            [
                NAMES[method],
                str(len(lines)),
                "–" if published is None else f"{published / 1e5:.1f} × 10⁵",
                f"{(total or 0) / 1e5:.2f} × 10⁵",
                number(right, 3),
                f"{modes} of 25",
                "–" if cpu is None else f"{cpu:,.0f}",
            ]
        )
    header = ["method", "runs", "NLL in DP-HP, fig. 2", "NLL here, their normaliser"]
    header += ["NLL per row, right", "modes, worst run", "CPU s"]
    return table(header, rows) if rows else []


def marginals() -> list[str]:
    """Write the errors of α-way marginals beside those of DP-HP."""
    log, rows = log_of("marginals"), []
    for (name, alpha), figures in MARGINALS.items():
        for place, epsilon in enumerate((0.3, 0.1)):
            lines = list(log.where(table=name, epsilon=epsilon, method="auto"))
            if not lines:
                continue
            bar = figures["DP-HP"][place] / 2
            ours = fmean(line["found"]["published"][str(alpha)] for line in lines)
            right = fmean(line["found"]["right"][str(alpha)] for line in lines)
            published = [number(figures[m][place], 3) for m in ("PrivBayes", "DP-MERF", "DP-HP")]
            held = f"≤ {number(bar)}{verdict(ours <= bar)}"
            cells = [name, str(alpha), f"{epsilon:g}", *published, number(ours), held]
            rows.append([*cells, number(right), verdict(right <= bar).strip(), str(len(lines))])
    header = ["table", "α", "ε", "PrivBayes", "DP-MERF", "DP-HP", "Aquatint, their metric"]
    header += ["bar: half of DP-HP", "Aquatint, right metric", "against the bar", "runs"]
    return table(header, rows) if rows else []


def tables_here() -> list[str]:
    """Name the papers' tables that have results."""
    done = {line["settings"]["table"] for line in log_of("papers").lines().values()}
    return [name for name in PUBLISHED if name in done]


def beside_aim(part: str) -> str:
    """Count the tables of a part on which Aquatint is ahead of AIM, measure by measure."""
    log = log_of(part)
    names = dict.fromkeys(line["settings"]["table"] for line in log.lines().values())
    both = []
    for name in names:
        ran = [list(log.where(table=name, method=method)) for method in ("auto", "aim")]
        if all(ran):
            both.append((name, *map(means, ran)))
    if not both:
        return ""
    words = {
        "tv2": "2-way error",
        "tv3": "3-way error",
        "auc": "ROC-AUC",
        "ap": "average precision",
    }
    told = []
    for measure, word in words.items():
        behind = [name for name, ours, theirs in both if not _ahead(measure, ours, theirs)]
        but = f" (not: {', '.join(behind)})" if behind else ""
        told.append(f"on {len(both) - len(behind)} by {word}{but}")
    return f"Of the {len(both)} tables that AIM ran on, `auto` is ahead {', '.join(told)}."


def _ahead(measure: str, ours: dict[str, float | None], theirs: dict[str, float | None]) -> bool:
    mine, its = ours[measure], theirs[measure]
    if mine is None or its is None:
        return False
    return mine < its if measure in LOWER else mine > its
