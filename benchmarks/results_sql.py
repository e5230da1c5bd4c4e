"""SQL on Adult, time and learning as tables of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from results_tables import number, table, verdict
from results_tasks import scientific
from runs import Log

NAMES = {
    "query": "**`aq.Query`**",
    "query_full": "`aq.Query`, full model",
    "sample": "`aq.sample`",
    "aim": "AIM's rows",
}
FIRST_S, LATER_MS, REFUSE_S = 3.0, 50.0, 1.0
AUC_BARS = {0.3: 0.97, 1.0: 0.98}
LEARNERS = {"real": "scikit-learn, not private", "dp_erm": "DP-ERM (diffprivlib)"}


def methods(log: Log) -> list[str]:
    """Write every method's error, by kind of question, and the coverage of our intervals."""
    runs = {method: [line["found"] for line in log.where(method=method)] for method in NAMES}
    runs = {method: found for method, found in runs.items() if found}
    if not runs:
        return []
    first = next(iter(runs.values()))[0]["kinds"]
    whole = [scientific(_error(found, None), 2) for found in runs.values()]
    rows = [["all", _total(first), *whole, _held(runs, None)]]
    for kind, part in sorted(first.items()):
        errors = [scientific(_error(found, kind), 2) for found in runs.values()]
        rows.append([kind, str(part["questions"]), *errors, _held(runs, kind)])
    names = [f"{NAMES[m]}, {len(found)} run{'s'[: len(found) > 1]}" for m, found in runs.items()]
    errors = {method: _error(found, None) for method, found in runs.items()}
    best = min(errors, key=lambda method: errors[method])
    said = f"The smallest mean error is that of {NAMES[best]}."
    rivals = {m: errors[m] / errors["query"] - 1 for m in ("sample", "aim") if m in errors}
    parts = [f"by {abs(100 * r):.0f} % {_more(r)} with {NAMES[m]}" for m, r in rivals.items()]
    if parts:
        said += f" Compared with {NAMES['query']} as it comes, one is off {' and '.join(parts)}."
    missing = [NAMES[m] for m in NAMES if m not in runs]
    if missing:
        said += f" Not run yet: {', '.join(missing)}."
    return [*table(["questions", "number", *names, "95 % intervals hold"], rows), said, ""]


def _more(excess: float) -> str:
    return "more" if excess > 0 else "less"


def _total(kinds: dict[str, dict[str, int]]) -> str:
    return str(sum(part["questions"] for part in kinds.values()))


def _error(found: Sequence[dict[str, Any]], kind: str | None) -> float:
    return fmean(run["error"] if kind is None else run["kinds"][kind]["error"] for run in found)


def _held(runs: dict[str, list[dict[str, Any]]], kind: str | None) -> str:
    parts = [
        part
        for run in runs.get("query", [])
        for name, part in run["kinds"].items()
        if kind in {None, name}
    ]
    if not parts:
        return "–"
    asked = sum(part["answers"] for part in parts)
    return f"{100 * sum(part['held'] for part in parts) / asked:.1f} % of {asked:,}"


def speed(log: Log) -> list[str]:
    """Write how long questions take."""
    lines = [line["found"] for line in log.lines().values()]
    if not lines:
        return []
    found = lines[-1]
    rows = [
        ["the first", f"{found['first_s']:.1f} s", f"{found['first_cpu_s']:.1f} s",
         f"*< {FIRST_S:g} s*{verdict(found['first_cpu_s'] < FIRST_S)}"],
    ]  # fmt: skip
    for word, title in (("median", "later: median"), ("p95", "95th percentile"), ("most", "most")):
        wall, cpu = found[f"{word}_ms"], found[f"{word}_cpu_ms"]
        bar = f"*< {LATER_MS:g} ms*{verdict(cpu < LATER_MS)}"
        rows.append([title, f"{wall:.0f} ms", f"{cpu:.0f} ms", bar])
    header = ["question", "wall clock", "processor", "bar, of processor time"]
    kinds = ", ".join(f"{kind} {ms:.0f}" for kind, ms in found["kinds_cpu_ms"].items())
    said = f"Median of processor time by kind, in ms: {kinds}. The slowest was `{found['slowest']}`"
    return [*table(header, rows), f"{said}.", ""]


def hostile(log: Log) -> list[str]:
    """Write how long refusals take, and what was no refusal."""
    lines = list(log.lines().values())
    if not lines:
        return []
    refused = [line for line in lines if line["found"]["said"].startswith("refused")]
    slow = max(line["found"]["cpu_s"] for line in refused)
    said = f"{len(refused)} of {len(lines)} questions are refused, the slowest after "
    said += f"{slow:.2f} s of processor time: *< {REFUSE_S:g} s*{verdict(slow < REFUSE_S)}."
    rows = []
    for line in lines:
        found = line["found"]
        words = found["said"].replace("|", "\\|").replace("\n", " ").replace("`", "'")
        shown = "".join(c if c.isprintable() else "?" for c in words)[:90]
        rows.append([line["settings"]["method"], f"{found['length']:,}",
                     f"{1e3 * found['cpu_s']:,.1f}", f"`{shown}`"])  # fmt: skip
    return [said, "", *table(["question", "characters", "processor, ms", "outcome"], rows)]


def learning(logs: Sequence[Log]) -> list[str]:
    """Write the AUC of every learner at every ε."""
    lines = [line for log in logs for line in log.lines().values()]
    found: dict[tuple[str, float | None], list[float]] = {}
    for line in lines:
        settings = line["settings"]
        key = settings["method"], settings["epsilon"]
        found.setdefault(key, []).append(line["found"]["auc"])
    rows = []
    for (method, epsilon), scores in sorted(found.items(), key=lambda k: (k[0][1] or 0, k[0][0])):
        bar = AUC_BARS.get(epsilon or 0.0) if method not in LEARNERS else None
        said = "" if bar is None else f"*≥ {number(bar, 2)}*{verdict(fmean(scores) >= bar)}"
        spread = number(stdev(scores), 3) if len(scores) > 1 else "–"
        name = LEARNERS.get(method, f"`{method}`")
        rows.append(["–" if epsilon is None else f"{epsilon:g}", name, str(len(scores)),
                     number(fmean(scores)), spread, said])  # fmt: skip
    header = ["ε", "learner", "runs", "AUC", "standard deviation", "bar"]
    return table(header, rows) if rows else []
