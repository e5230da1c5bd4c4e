"""The real-data example and the times of two-sample tests, as Markdown."""

from __future__ import annotations

from results_tables import number, table, verdict
from runs import Log

MOST_SECONDS = 10.0
"""The bar, for a million rows."""
TOP = 10
"""So many of the largest differences are listed."""
WHAT = {"occupations": "two occupations", "halves": "two random halves"}


def adult(log: Log, text: str, command: str) -> list[str]:
    """Write the example: the decisions, and what differs most."""
    lines = {line["settings"]["what"]: line["found"] for line in log.lines().values()}
    if "occupations" not in lines:
        return ["## Two occupations of Adult\n", command, "*Not run yet.*\n"]
    found = lines["occupations"]
    names, sizes = found["names"], found["rows"]
    head = text.format(first=names[0], n=sizes[0], second=names[1], m=sizes[1])
    rows = [
        [WHAT[what], "they differ" if one["reject"] else "no difference found",
         _pvalue(one["pvalue"]), f"{one['cpu_s']:.2f}"]
        for what, one in lines.items()
    ]  # fmt: skip
    made = table(["compared", "at α = .01", "p", "CPU seconds"], rows)
    top = [
        [d["part"], number(d["statistic"], 1), _pvalue(d["adjusted"])]
        for d in found["differences"][:TOP]
    ]
    made += table(["what differs most", "standard deviations", "p, adjusted"], top)
    return [head, command, "\n".join(made)]


def _pvalue(value: float | None) -> str:
    if value is None:
        return "–"
    return "< .0001" if value < 1e-4 else number(value, 4)


def speed(log: Log) -> list[str]:
    """Write how long a million rows take."""
    rows = []
    for line in log.lines().values():
        settings, found = line["settings"], line["found"]
        met = verdict(found["seconds"] < MOST_SECONDS).strip()
        load = f"{found['load']:.1f} on {found['cores']}" if "load" in found else "–"
        rows.append([found["title"], f"{settings['rows']:,}", f"{found['seconds']:.1f}"])
        rows[-1] += [f"{found['cpu_s']:.1f}", load, met]
    header = ["what", "rows of each sample", "seconds", "CPU seconds", "load on cores", "< 10 s"]
    return table(header, rows) if rows else []
