"""The tasks of M2M as tables of Markdown."""

from __future__ import annotations

from statistics import fmean

from query_tables import PLANS
from query_tasks import KINDS, LEAST_NOISE, TABLES
from results_tables import mean, of, table, verdict
from runs import Log

NAMES = {
    "default": "default plan",
    "m2m": "**`m2m`**",
    "hist": "`m2m_hist`",
    "rff": "`m2m_rff`",
    "race": "`m2m_race`",
}
TABLE_NAMES = {"lifesci": "LifeSci", "random10": "Random10"}
TITLES = ["mean", "second moment", "CDF", "covariance", "count"]
BARS = {"mean": 2e-3, "cdf": 2e-3, "covariance": 4e-3, "count": 4e-3}
"""At ε = 1, LifeSci, for `m2m`."""
PUBLISHED = {
    ("random10", LEAST_NOISE): (6.25e-8, 1.87e-5),
    ("random10", 1.0): (9.55e-3, 9.10e-4),
    ("lifesci", LEAST_NOISE): (1.67e-6, 5.91e-5),
    ("lifesci", 1.0): (4.20e-2, 3.8e-3),
}
"""Table 1: the mean relative error of the mean by RFF and by HIST."""


def scientific(value: float | None, digits: int = 1) -> str:
    """Write a number as 1.2 × 10⁻³, or plainly from .1 on."""
    if value is None:
        return "–"
    if value >= 0.1:
        return f"{value:.2f}"
    shown, power = f"{value:.{digits}e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{shown} × 10{raised}"


def runs(log: Log) -> str:
    """Say how many draws of the noise there are at each ε."""
    lines = [line["settings"] for line in log.lines().values()]
    epsilons = sorted({s["epsilon"] for s in lines})
    counts = {e: max(s["seed"] for s in lines if s["epsilon"] == e) + 1 for e in epsilons}
    said = ", ".join(f"{count} at {e:g}" for e, count in counts.items())
    return f"Draws of the noise: {said}." if said else ""


def _row(log: Log, **wanted: object) -> list[str] | None:
    lines = list(log.where(**wanted))
    return [scientific(mean(lines, of(kind))) for kind in KINDS] if lines else None


def at_one(log: Log) -> list[str]:
    """Write both tables at ε = 1, with the bars."""
    rows = []
    for name in TABLES:
        for plan in PLANS:
            found = _row(log, table=name, method=plan, epsilon=1.0)
            if found:
                rows.append([TABLE_NAMES[name], NAMES[plan], *found])
            if found and name == "lifesci" and plan == "m2m":
                rows.append(_bars(log))
    return table(["table, ε = 1", "sketch", *TITLES], rows) if rows else []


def _bars(log: Log) -> list[str]:
    lines = list(log.where(table="lifesci", method="m2m", epsilon=1.0))
    cells = []
    for kind in KINDS:
        bar = BARS.get(kind)
        ours = fmean(line["found"][kind] for line in lines)
        cells.append("" if bar is None else f"*≤ {scientific(bar)}*{verdict(ours <= bar)}")
    return ["", "*bar for `m2m`*", *cells]


def every(log: Log) -> list[str]:
    """Write everything at every ε."""
    rows = []
    for name in TABLES:
        for epsilon in sorted({line["settings"]["epsilon"] for line in log.where(table=name)}):
            for plan in PLANS:
                found = _row(log, table=name, method=plan, epsilon=epsilon)
                if found:
                    rows.append([TABLE_NAMES[name], f"{epsilon:g}", NAMES[plan], *found])
    return table(["table", "ε", "sketch", *TITLES], rows) if rows else []


def table_1(log: Log) -> list[str]:
    """Write the mean relative error of the mean beside the paper's table 1."""
    rows = []
    for (name, epsilon), published in PUBLISHED.items():
        found = {
            plan: mean(log.where(table=name, method=plan, epsilon=epsilon), of("mean"))
            for plan in ("rff", "hist", "m2m")
        }
        if any(value is not None for value in found.values()):
            said = f"∞, here {epsilon:g}" if epsilon == LEAST_NOISE else f"{epsilon:g}"
            cells = [published[0], found["rff"], published[1], found["hist"], found["m2m"]]
            rows.append([TABLE_NAMES[name], said, *map(scientific, cells)])
    header = ["table", "ε", "RFF, published", "`m2m_rff`", "HIST, published", "`m2m_hist`"]
    return table([*header, "`m2m`"], rows) if rows else []
