"""The pages of the results book, written from benchmarks/results/book.json alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from book_cells import Book, Cell, Entry, Score
from book_papers import PAPERS
from book_plots import against, draw_all
from page_parts import FOLDER, command, image
from results_tables import number, table
from results_tasks import scientific

HEAD = """\
# The results book

Every table and figure of the five papers that the data at hand allow: what was published, what
our reading of the paper's method gives under a guarantee that holds (*faithful*), and what our best
method gives (*ours*). `make results` makes everything that is missing and writes these pages;
`aquatint bench --paper dp-hp --table 2` makes a part. No figure is typed in by hand but the
published ones, and a test looks those up in the papers' texts. The frame of each figure (relation,
δ, what was public, metric, command) stands with its table; seeds, CPU seconds, memory and the code
that made it are in `benchmarks/results/book.json`. A column has one method in
every row of a table, or the row says which other: nothing is chosen by test scores.

A figure in bold is at least as good as the published one. ± is the standard deviation over runs.

## Summary

Means over the figures that can be compared: those with a published value and ours, by the paper's
own metric.

"""
PAGE = """\
# {title}

{authors}. [The whole book](book.md).

"""


def render(book: Book) -> None:
    """Write the summary, and a page for each paper."""
    draw_all(FOLDER)
    rows = [_summary(entry) for entry in book.entries if _comparable(entry)]
    header = ["paper", "item", "published", "faithful", "ours", "best peer", "ahead"]
    parts = [HEAD, "\n".join(table(header, rows)), *_behind(book), *_paper_ahead(book)]
    parts += _missing(book)
    listed = "\n".join(f"book-{name}" for name in PAPERS)
    parts.append(f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
    told = ", ".join(f"{name} {version}" for name, version in book.versions.items())
    parts.append(f"Software: {told}.\n")
    (FOLDER / "book.md").write_text("\n".join(parts), encoding="utf-8")
    for name, paper in PAPERS.items():
        mine = [entry for entry in book.entries if entry.paper == name]
        drawn = _picture(name, mine)
        text = PAGE.format(title=paper.title, authors=paper.authors) + drawn
        text += "\n".join(_entry(entry) for entry in mine)
        (FOLDER / f"book-{name}.md").write_text(text, encoding="utf-8")


def _comparable(entry: Entry) -> list[Cell]:
    return [cell for cell in entry.cells if cell.ahead is not None]


def _summary(entry: Entry) -> list[str]:
    cells = _comparable(entry)
    ahead = sum(bool(cell.ahead) for cell in cells)
    peers = [cell.peer for cell in entry.cells if cell.peer is not None]
    name = "; ".join(sorted({peer.name for peer in peers}))
    said = f"{_figure(fmean(p.value for p in peers))} ({name})" if peers else "–"
    faithful = [cell.faithful.mean for cell in cells if cell.faithful]
    return [
        f"[{entry.paper}](book-{entry.paper}.md)",
        f"{entry.item}: {entry.title}",
        _figure(fmean(cell.published or 0.0 for cell in cells)),
        _figure(fmean(faithful)) if len(faithful) == len(cells) else "–",
        _figure(fmean(cell.ours.mean for cell in cells if cell.ours)),
        said,
        f"{ahead} of {len(cells)}",
    ]


def _behind(book: Book) -> list[str]:
    rows = [
        [
            entry.paper,
            entry.item,
            cell.key,
            _figure(_short_of(cell)),
            cell.note or "not looked into",
        ]
        for entry in book.entries
        for cell in entry.cells
        if cell.ahead is False
    ]
    text = "## Where ours is behind\n\n"
    if not rows:
        return [text + "Nowhere.\n"]
    return [text, "\n".join(table(["paper", "item", "figure", "by", "why"], rows))]


def _short_of(cell: Cell) -> float:
    return abs((cell.ours.mean if cell.ours else 0.0) - (cell.published or 0.0))


def _paper_ahead(book: Book) -> list[str]:
    """Say where our reading of a paper beats ours: one line for each entry."""
    rows = []
    for entry in book.entries:
        both = [cell for cell in entry.cells if cell.faithful and cell.ours]
        ahead = sum(cell.paper_ahead for cell in both)
        if ahead:
            why = entry.paper_ahead or "not looked into"
            rows.append([entry.paper, entry.item, f"{ahead} of {len(both)}", why])
    text = "## Where our reading of the paper is ahead of ours\n\nBy more than runs differ.\n\n"
    return [text, "\n".join(table(["paper", "item", "figures", "why"], rows))] if rows else []


def _missing(book: Book) -> list[str]:
    told: dict[tuple[str, str, str], int] = {}
    for entry in book.entries:
        for cell in entry.cells:
            if cell.missing:
                every = "; ".join(f"`python benchmarks/{w}`" for w in (entry.command, *entry.also))
                place = (f"{entry.paper}, {entry.item}", cell.missing, every)
                told[place] = told.get(place, 0) + 1
    text = "## What is missing\n\n"
    if not told:
        return [text + "Nothing.\n"]
    rows = [[place, str(count), why, words] for (place, why, words), count in told.items()]
    return [text, "\n".join(table(["where", "figures", "what it takes", "command"], rows))]


def _entry(entry: Entry) -> str:
    frame = [f"Neighbours: {entry.relation}.", f"Public: {entry.public}."]
    if entry.delta is not None:
        frame.insert(1, f"δ = {scientific(entry.delta, 0)}.")
    parts = [
        f"## {entry.item.capitalize()}: {entry.title}\n",
        f"*{entry.metric}.*",
        " ".join(frame),
    ]
    parts.append("")
    parts += [f"- {line}" for line in entry.differences]
    parts += ["", command(entry.command, *entry.also)]
    parts.append("\n".join(_rows(entry.cells)))
    parts += [image(name, alt) for name, alt in entry.pictures]
    return "\n".join(parts)


def _rows(cells: Sequence[Cell]) -> list[str]:
    noted, peers = any(_note(c) or c.missing for c in cells), any(c.peer for c in cells)
    header = ["", "measure", "ε", "published", "faithful", "ours"]
    header += (["peer"] if peers else []) + (["note"] if noted else [])
    rows = []
    for cell in cells:
        row = [cell.row, cell.measure, f"{cell.epsilon:g}" if cell.epsilon else "–"]
        row += ["–" if cell.published is None else _figure(cell.published), _score(cell.faithful)]
        row.append(f"**{_score(cell.ours)}**" if cell.ahead else _score(cell.ours))
        if peers:
            row.append("–" if cell.peer is None else _figure(cell.peer.value))
        if noted:
            row.append(cell.missing or _note(cell))
        rows.append(row)
    return table(header, rows)


def _note(cell: Cell) -> str:
    """Say by how much a figure is behind, and why."""
    if cell.ahead is not False:
        return cell.note
    return f"behind by {_figure(_short_of(cell))}: {cell.note or 'not looked into'}"


def _score(found: Score | None) -> str:
    if found is None:
        return "–"
    spread = "" if found.sd is None else f" ± {_figure(found.sd)}"
    return f"{_figure(found.mean)}{spread} ({found.runs})"


def _figure(value: float) -> str:
    """Write a figure in about three digits, whatever its size."""
    size = abs(value)
    if size >= 10_000 or 0 < size < 1e-3:
        return scientific(value) if size < 1e-3 else f"{value:.3g}"
    return number(value, 3) if size < 1 else f"{value:.1f}"


def _picture(name: str, entries: Iterable[Entry]) -> str:
    """Show ours against published, where more is better, shares and percentages alike."""
    points: dict[str, list[tuple[float, float]]] = {}
    for entry in entries:
        for cell in _comparable(entry):
            unit = 100.0 if "%" in cell.measure else 1.0
            if cell.higher and cell.ours and 0 < (told := cell.published or 0.0) <= unit:
                points.setdefault(entry.item, []).append((told / unit, cell.ours.mean / unit))
    if not points:
        return ""
    against(points, FOLDER / f"book-{name}.svg")
    said = "Ours against published scores, one point a figure; above the line, ours is better."
    return image(f"book-{name}.svg", said) + "\n"
