"""Coverage of intervals as tables of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from results_tables import table
from results_tasks import scientific
from runs import Log

BAND = (0.92, 0.98)
ENOUGH = 200
SOURCES = ("noise", "bins", "model")
FIVE = ("mean", "second moment", "cdf", "covariance", "count")


@dataclass
class Tally:
    """Answers of one kind, added up over draws of the noise."""

    asked: int = 0
    held: int = 0
    width: float = 0.0
    error: float = 0.0
    mostly: Counter[str] = field(default_factory=Counter)

    def add(self, found: dict[str, Any]) -> None:
        """Add one draw."""
        self.asked += found["asked"]
        self.held += found["held"]
        self.width += found["width"] * found["asked"]
        self.error += found["error"] * found["asked"]
        self.mostly.update(found["mostly"])

    def merge(self, other: Tally) -> None:
        """Add the answers of another."""
        self.asked += other.asked
        self.held += other.held
        self.width += other.width
        self.error += other.error
        self.mostly.update(other.mostly)

    @property
    def share(self) -> float:
        """How often the truth was held."""
        return self.held / self.asked


def tallies(lines: Iterable[dict[str, Any]]) -> dict[str, Tally]:
    """Add up by kind of question."""
    found: dict[str, Tally] = {}
    for line in lines:
        for kind, part in line["found"]["kinds"].items():
            found.setdefault(kind, Tally()).add(part)
    return found


def cases(log: Log) -> Iterator[tuple[str, str, float, dict[str, Tally]]]:
    """Give each table, plan and ε."""
    settings = [line["settings"] for line in log.lines().values()]
    keys = dict.fromkeys((s["table"], s["method"], s["epsilon"]) for s in settings)
    for name, plan, epsilon in sorted(keys, key=lambda k: (k[1], k[0], k[2])):
        yield name, plan, epsilon, tallies(log.where(table=name, method=plan, epsilon=epsilon))


def fives(log: Log) -> Iterator[tuple[str, str, float, dict[str, Tally]]]:
    """Give each table, plan and ε by the five kinds, with and without predicates together."""
    for name, plan, epsilon, found in cases(log):
        here = {kind: Tally() for kind in FIVE}
        for kind, tally in found.items():
            here[kind.split(",")[0]].merge(tally)
        yield name, plan, epsilon, here


def pooled(log: Log) -> dict[tuple[str, float], dict[str, Tally]]:
    """Give the five kinds for each plan and ε, all tables together."""
    together: dict[tuple[str, float], dict[str, Tally]] = {}
    for _, plan, epsilon, here in fives(log):
        whole = together.setdefault((plan, epsilon), {kind: Tally() for kind in FIVE})
        for kind, tally in here.items():
            whole[kind].merge(tally)
    return together


def five(log: Log) -> list[str]:
    """Write coverage by the five kinds of question."""
    rows = [
        [name, _plan(plan), f"{epsilon:g}", *map(_told, here.values())]
        for name, plan, epsilon, here in fives(log)
    ]
    for (plan, epsilon), whole in pooled(log).items():
        rows.append(["*all*", _plan(plan), f"{epsilon:g}", *map(_told, whole.values())])
    return table(["table", "plan", "ε", *FIVE], rows) if rows else []


def _told(tally: Tally) -> str:
    return f"{_marked(tally)} of {tally.asked:,}" if tally.asked else "–"


def _marked(tally: Tally) -> str:
    """Give the share in per cent, in bold type outside the band."""
    text = f"{100 * tally.share:.1f} %"
    return text if BAND[0] <= tally.share <= BAND[1] else f"**{text}**"


def verdict(log: Log) -> list[str]:
    """Say how many are within the band, over all tables and table by table."""
    lines = []
    for plan in dict.fromkeys(case[1] for case in cases(log)):
        tables = [t for _, p, _, kinds in fives(log) if p == plan for t in kinds.values()]
        whole = [t for (p, _), kinds in pooled(log).items() if p == plan for t in kinds.values()]
        share = sum(t.held for t in whole) / sum(t.asked for t in whole)
        lines.append(
            f"- {_plan(plan)}: {100 * share:.1f} % of {sum(t.asked for t in whole):,} intervals "
            f"hold the truth. By kind of question and ε, all tables together: {_within(whole)}. "
            f"Table by table: {_within(tables)}."
        )
    return [*lines, ""] if lines else []


def _within(found: Sequence[Tally]) -> str:
    inside = sum(BAND[0] <= t.share <= BAND[1] for t in found)
    below = sum(t.share < BAND[0] for t in found)
    said = f"{inside} of {len(found)} are within the band, {below} below it and "
    said += f"{len(found) - inside - below} above"
    if min(t.asked for t in found) < ENOUGH:
        return f"{said}, with fewer than the bar's {ENOUGH} answers each"
    return f"{said}: **the bar is {'met' if inside == len(found) else 'missed'}**"


def _plan(plan: str) -> str:
    return "Default plan" if plan == "default" else f"`{plan}`"


def kinds(log: Log) -> list[str]:
    """Write coverage, width and source of the error by kind."""
    rows = []
    for name, plan, epsilon, found in cases(log):
        for kind, tally in found.items():
            mostly = [f"{100 * tally.mostly[s] / tally.asked:.0f}" for s in SOURCES]
            rows.append(
                [
                    name,
                    _plan(plan),
                    f"{epsilon:g}",
                    kind,
                    str(tally.asked),
                    _marked(tally),
                    scientific(tally.width / tally.asked),
                    scientific(tally.error / tally.asked),
                    " / ".join(mostly),
                ]
            )
    header = ["table", "plan", "ε", "question", "answers", "hold the truth", "width", "error"]
    return table([*header, "mostly noise / bins / model, %"], rows) if rows else []
