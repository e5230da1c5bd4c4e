"""The scoreboard: whether every committed result reaches its bar.

    python benchmarks/scoreboard.py                       # exits 1 if a bar is not reached
    python benchmarks/scoreboard.py --against NEW.json    # another book than the committed one
    python benchmarks/scoreboard.py --raise               # set bars for figures without one

A bar is what a committed result must not fall behind: the published figure where ours is ahead of
it, and otherwise our own less its spread. `--raise` sets none by fewer than three runs, and never
lowers one. A bar that is missed for a reason that was looked into keeps its height and says `at`
what figure, and `why`: it is printed with every check, and only a worse figure exits 1.
`compared` is for figures that are made anew: they must agree with those committed, within their
spread.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from book_cells import BOOK, Book, Cell, of
from book_cells import LEVEL as TYPE_I
from results_tables import ENOUGH
from runs import RESULTS, Log, key

BARS = Path(__file__).with_name("bars.toml")
SPREADS = 4.0
"""A figure made anew may be so many standard deviations off."""
ROUNDING = 0.02
"""Or this share of itself: other processors round differently, and a fit carries it on."""
LEVEL = 0.02
"""What a test at a nominal level of .01 may reject of equal tables."""


@dataclass(frozen=True)
class Bar:
    """What a figure of the book must reach."""

    paper: str
    item: str
    cell: str
    bar: float
    at: float | None = None
    why: str = ""

    def held_by(self, cell: Cell) -> bool:
        """Whether a figure reaches the bar."""
        return _reaches(cell, self.bar)

    def known_at(self, cell: Cell) -> bool:
        """Whether a figure that misses the bar is the one that is known to, or a better one."""
        return self.at is not None and _reaches(cell, self.at)


def _reaches(cell: Cell, least: float) -> bool:
    if cell.ours is None:
        return False
    return cell.ours.mean >= least if cell.higher else cell.ours.mean <= least


@dataclass(frozen=True)
class Check:
    """A command that makes a few lines of results anew, and which of their measures count."""

    words: str
    results: str
    measures: tuple[str, ...]


def bars(path: Path = BARS) -> list[Bar]:
    """Read the bars."""
    return [Bar(**told) for told in tomllib.loads(path.read_text(encoding="utf-8"))["bar"]]


def raised(book: Book, known: list[Bar]) -> list[Bar]:
    """Give the bars with those of new figures; a bar that is there may rise, and never falls."""
    made = {(bar.paper, bar.item, bar.cell): bar for bar in known}
    for entry in book.entries:
        for cell in entry.cells:
            if cell.ours is None or cell.ours.runs < ENOUGH:
                continue
            place = (entry.paper, entry.item, cell.key)
            sign = 1.0 if cell.higher else -1.0
            slack = max(2 * (cell.ours.sd or 0.0), ROUNDING * abs(cell.ours.mean))
            own = cell.ours.mean - sign * slack
            bar = cell.published if cell.ahead and cell.published is not None else own
            if cell.measure == TYPE_I:
                bar = LEVEL  # no luck of a hundred draws is a promise to keep
            elif place in made:
                bar = sign * max(sign * bar, sign * made[place].bar)
            told = made.get(place, Bar(*place, bar=bar))
            made[place] = replace(told, bar=float(f"{bar:.6g}"))
    return sorted(made.values(), key=lambda bar: (bar.paper, bar.item, bar.cell))


def written(wanted: list[Bar]) -> str:
    """Write bars as TOML."""
    lines = ["# What committed results must reach; see scoreboard.py."]
    for bar in wanted:
        told = {"paper": bar.paper, "item": bar.item, "cell": bar.cell}
        lines += [
            "",
            "[[bar]]",
            *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in told.items()),
        ]
        lines.append(f"bar = {bar.bar!r}")
        if bar.at is not None:
            lines += [f"at = {bar.at!r}", f"why = {json.dumps(bar.why, ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"


def missed(book: Book, wanted: list[Bar], *, known: bool = False) -> Iterator[str]:
    """Say which bars are not reached, and by how much: those that are news, or those known."""
    cells = {(e.paper, e.item, c.key): c for e in book.entries for c in e.cells}
    for bar in wanted:
        cell = cells.get((bar.paper, bar.item, bar.cell))
        if cell is None:
            if not known:
                yield f"{bar.paper}, {bar.item}: the book has no figure {bar.cell!r}"
        elif not bar.held_by(cell) and bar.known_at(cell) is known:
            found = "nothing" if cell.ours is None else f"{cell.ours.mean:.4g}"
            because = f" (known: {bar.why})" if known else ""
            yield f"{bar.paper}, {bar.item}, {bar.cell}: {found}, the bar is {bar.bar:g}{because}"


def compared(check: Check, fresh: Log, committed: Log | None = None) -> Iterator[str]:
    """Compare figures made anew with the committed runs that differ from them in the seed alone."""
    known = (committed or Log(RESULTS / f"{check.results}.jsonl")).lines().values()
    for line in fresh.lines().values():
        alike = [other["found"] for other in known if _unseeded(other) == _unseeded(line)]
        for measure in check.measures:
            pick = of(*measure.split("."))
            told = pick(line["found"])
            values = [float(v) for found in alike if (v := pick(found)) is not None]
            if told is None or not values:
                yield f"{check.words}: {measure}: FAILED: nothing committed to compare with"
                continue
            yield _verdict(f"{check.words}: {measure}", float(told), values)


def _verdict(what: str, told: float, values: list[float]) -> str:
    mean = fmean(values)
    room = max(SPREADS * stdev(values) if len(values) > 1 else 0.0, ROUNDING * abs(mean), 1e-9)
    said = "as committed" if abs(told - mean) <= room else "WORSE OR OTHER than committed"
    return f"{what}: {told:.4g}, committed {mean:.4g}, within {room:.2g}: {said}"


def _unseeded(line: dict[str, Any]) -> str:
    return key({name: value for name, value in line["settings"].items() if name != "seed"})


def main() -> None:
    """Check every bar."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, default=BOOK, help="a book.json; default: ours")
    parser.add_argument("--raise", dest="higher", action="store_true", help="set missing bars")
    asked = parser.parse_args()
    book = Book.model_validate_json(asked.against.read_text(encoding="utf-8"))
    wanted = bars() if BARS.is_file() else []
    if asked.higher:
        wanted = raised(book, wanted)
        BARS.write_text(written(wanted), encoding="utf-8")
    behind, before = list(missed(book, wanted)), list(missed(book, wanted, known=True))
    reached = len(wanted) - len(behind) - len(before)
    print("\n".join([*behind, *before, f"{reached} of {len(wanted)} bars are reached"]))
    sys.exit(bool(behind))


if __name__ == "__main__":
    main()
