"""The papers' eight tables: what was published, what is found here, and what was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from datasets import PUBLISHED
from results_tables import log_of, mean, number, of, table, tables_here

METHODS = ("real", "dp_merf", "dp_hp", "auto")
POSITIVES = {"epileptic": 0.2, "isolet": 300 / 1559}
"""The share of test rows in the rare class, where the papers say that none were thinned."""


def highest_prc(roc: float, positives: float) -> float:
    """Give the largest mean average precision that hard labels with a mean ROC area can have.

    Hard labels that find a share t of the positives and f of the others have ROC area
    (1 + t − f) / 2 and average precision t · precision + (1 − t) · p. For a given t − f the latter
    is largest at f = 0, where it is p + (t − f)(1 − p): linear, so it holds for means as well, if
    no classifier is worse than chance (t < f).

    Examples
    --------
    >>> round(highest_prc(0.572, 300 / 1559), 2)
    0.31
    """
    return positives + (2 * roc - 1) * (1 - positives)


@dataclass(frozen=True)
class Row:
    """One measure of one table.

    Attributes
    ----------
    published
        DP-MERF by its own paper, DP-HP, and real rows as DP-HP has them.
    as_published, right
        What is found here by method: by the papers' metric, and by the right one.
    """

    name: str
    measure: str
    published: dict[str, float | None]
    as_published: dict[str, float | None]
    right: dict[str, float | None]

    @property
    def gap_published(self) -> float | None:
        """The share of the gap between published DP-HP and real rows that `auto` closes."""
        return _gap(self.published["dp_hp"], self.as_published)

    @property
    def gap_possible(self) -> float | None:
        """The same, from the most that DP-HP's PRC can have been beside its ROC."""
        told, roc = self.published["dp_hp"], PUBLISHED[self.name].hp
        if self.measure == "PRC" and self.name in POSITIVES and told is not None and roc:
            told = min(told, highest_prc(roc[0], POSITIVES[self.name]))
        return _gap(told, self.as_published)

    @property
    def gap(self) -> float | None:
        """The same with `dp_hp` as it runs here and the right metric."""
        return _gap(self.right["dp_hp"], self.right)

    @property
    def ahead(self) -> bool:
        """Whether `auto` beats both papers, as published and as they run here."""
        pairs = [(self.as_published["auto"], self.published[m]) for m in ("dp_merf", "dp_hp")]
        pairs += [(self.right["auto"], self.right[m]) for m in ("dp_merf", "dp_hp")]
        return all(a is not None and b is not None and a > b for a, b in pairs)


def _gap(start: float | None, found: dict[str, float | None]) -> float | None:
    ours, best = found["auto"], found["real"]
    if start is None or ours is None or best is None or best <= start:
        return None
    return (ours - start) / (best - start)


def rows() -> list[Row]:
    """Give every measure of every table that has results."""
    log, made = log_of("papers"), []
    for name in tables_here():
        known = PUBLISHED[name]
        runs = {m: list(log.where(table=name, method=m)) for m in METHODS}
        for place, measure in enumerate(known.measures):
            short = measure.lower()
            published = {"dp_merf": known.merf, "dp_hp": known.hp, "real": known.hp_real}
            made.append(
                Row(
                    name,
                    measure,
                    {m: v[place] if v else None for m, v in published.items()},
                    {
                        m: mean(lines, lambda found, s=short: found["as_published"].get(s))
                        for m, lines in runs.items()
                    },
                    {m: mean(lines, of(short)) for m, lines in runs.items()},
                )
            )
    return made


def as_published() -> list[str]:
    """Write the scores by the papers' metric, beside the papers' figures."""
    header = ["table", "measure", "real, DP-HP's paper", "real", "DP-MERF, published", "`dp_merf`"]
    header += ["DP-HP, published", "`dp_hp`", "**`auto`**", "gap closed"]
    made = []
    for row in rows():
        p, a = row.published, row.as_published
        cells = (p["real"], a["real"], p["dp_merf"], a["dp_merf"], p["dp_hp"], a["dp_hp"])
        scores = [number(value, 3) for value in (*cells, a["auto"])]
        made.append([row.name, row.measure, *scores, _percent(row.gap_published)])
    return table(header, made) if made else []


def right() -> list[str]:
    """Write the scores by the right metric: probabilities, untouched test rows."""
    log, made = log_of("papers"), []
    words = {"ROC": "ROC-AUC", "PRC": "average precision", "F1": "F1, weighted"}
    for row in rows():
        cpu = mean(log.where(table=row.name, method="auto"), of("cpu_s"))
        pairs = mean(log.where(table=row.name, method="auto"), of("tv2"))
        scores = [number(row.right[method], 3) for method in METHODS]
        made.append([row.name, words[row.measure], *scores, _percent(row.gap)])
        made[-1] += [number(pairs), "–" if cpu is None else f"{cpu:,.0f}"]
    header = ["table", "measure", "real", "`dp_merf`", "`dp_hp`", "**`auto`**", "gap closed"]
    return table([*header, "`auto`: 2-way", "`auto`: CPU s"], made) if made else []


def runs_line() -> str:
    """Say how many runs there are of each method, and how many rows the classifiers saw."""
    lines = [line["settings"] for line in log_of("papers").lines().values()]
    names = tables_here()
    counts = {
        m: [sum(s["table"] == n and s["method"] == m for s in lines) for n in names]
        for m in METHODS
    }
    said = ", ".join(f"{m} {_span(found)}" for m, found in counts.items() if found)
    most = _span([line["most"] for line in lines])
    return f"Runs for each table: {said}. Classifiers were trained on at most {most} rows."


def _span(found: list[int]) -> str:
    low, high = min(found), max(found)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def verdicts() -> list[str]:
    """Say in words which of the things asked for hold."""
    found = rows()
    names = list(dict.fromkeys(row.name for row in found))

    def held(test: dict[str, bool]) -> str:
        good = [name for name in names if test[name]]
        rest = ", ".join(name for name in names if name not in good)
        return f"{len(good)} of {len(names)}" + (f" (not: {rest})" if rest else "")

    def every(what: str) -> dict[str, bool]:
        return {n: all(getattr(r, what) for r in found if r.name == n) for n in names}

    def half(what: str) -> dict[str, bool]:
        return {n: all((getattr(r, what) or 0) >= 0.5 for r in found if r.name == n) for n in names}

    ruled = " and ".join(POSITIVES)
    lines = [
        f"- `auto` is ahead of both, as published and as they run here: {held(every('ahead'))}.",
        "- `auto` closes at least half of the gap between DP-HP and real rows:",
        f"  - from published DP-HP, by the papers' metric: {held(half('gap_published'))};",
        f"  - the same, but {ruled} from the most that can be: {held(half('gap_possible'))};",
        f"  - from `dp_hp` as it runs here, by the right metric: {held(half('gap'))}.",
    ]
    for method in ("dp_merf", "dp_hp"):
        fine = {n: all(_no_worse(r, method) for r in found if r.name == n) for n in names}
        lines.append(f"- `{method}` is no worse than published: {held(fine)}.")
    last = (
        "A table counts if every one of its measures does, and not while runs are missing. DP-HP's "
        f"published PRC of {ruled} cannot stand beside its ROC ([why](book-dp-hp.md))."
    )
    return [*lines, "", last, ""]


def _no_worse(row: Row, method: str) -> bool:
    ours, published = row.as_published[method], row.published[method]
    return ours is not None and published is not None and round(ours, 3) >= published


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
