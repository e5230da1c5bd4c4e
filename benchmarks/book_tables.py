"""Entries of the results book on tables: a mixture of Gaussians, and the best of other methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from book_cells import NOT_RUN, Cell, Entry, Peer, Score, lines, of, score
from results_tables import PUBLISHED_NLL as NLL

RELATION = "add or remove one row"
DELTA = 1e-5


def entries() -> Iterator[Entry]:
    """Give the figures about the mixture of Gaussians, and the table beside AIM and MST."""
    yield _mixture("dp-merf", "figure 1")
    yield _mixture("dp-hp", "figure 2")
    yield _peers()


def frame(metric: str, command: str, minutes: float, **more: Any) -> dict[str, Any]:
    """Give what all entries on tables have in common."""
    base = {"relation": RELATION, "delta": DELTA, "public": "the schema, with its bounds"}
    return {**base, "metric": metric, "command": command, "minutes": minutes, **more}


def _mixture(paper: str, item: str) -> Entry:
    method = paper.replace("-", "_")
    every = {m: lines("tables-mixture", method=m) for m in ("real", "dp_merf", "dp_hp", "auto")}
    nll = {m: score(made, of("nll_published")) for m, made in every.items()}
    modes = {m: score(made, of("modes")) for m, made in every.items()}
    cells = [
        Cell(
            row="mixture of Gaussians",
            measure="NLL of drawn rows, the papers' normaliser",
            epsilon=1.0,
            higher=False,
            published=NLL[method],
            faithful=nll[method],
            ours=nll["auto"],
        ),
        Cell(
            row="mixture of Gaussians",
            measure="modes found, of 25",
            epsilon=1.0,
            published=25.0,
            faithful=modes[method],
            ours=modes["auto"],
        ),
    ]
    shown = "Real rows, DP-MERF, DP-HP and the default on the grid of Gaussians."
    return Entry(
        paper=paper,
        item=item,
        title="a mixture of Gaussians on a grid",
        differences=(
            "The published figure is DP-HP's figure 2; DP-MERF's own has it in a picture only.",
            "The papers' normaliser is that of one dimension, which adds 0.691 a row.",
            *([f"Real rows have {nll['real'].mean:.3g}."] if nll["real"] else []),
        ),
        paper_ahead="one drawn row in forty lies at a mode of another class; see the notes",
        pictures=(("tables-mixture.png", shown),),
        cells=tuple(cells),
        **frame("negative log-likelihood of 90,000 drawn rows, summed", "tables.py mixture", 5),
    )


def _beside(ours: Score | None, peer: Score | None, name: str, higher: bool) -> str:
    """Name the peer, and say by how much ours is behind it, if it is."""
    if ours is None or peer is None:
        return "no peer was run"
    said = f"the peer is {name}, {peer.runs} runs"
    behind = (peer.mean - ours.mean) * (1 if higher else -1)
    if behind <= 0:
        return said
    spread = max(ours.sd or 0.0, peer.sd or 0.0)
    why = "less than runs differ" if behind < spread else "the notes say where it comes from"
    return f"{said}; ours is behind by {behind:.3f}: {why}"


def _peers() -> Entry:
    cells = []
    for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
        made = {m: lines("tables-adult", method=m, epsilon=epsilon) for m in ("auto", "aim", "mst")}
        for key, title, higher in (
            ("tv2", "2-way error", False),
            ("tv3", "3-way error", False),
            ("auc", "mean ROC-AUC", True),
            ("ap", "mean average precision", True),
        ):
            ours, *others = (score(made[m], of(key)) for m in ("auto", "aim", "mst"))
            named = [(n, s) for n, s in zip(("AIM", "MST"), others, strict=True) if s is not None]
            name, peer = (
                (max if higher else min)(named, key=lambda pair: pair[1].mean)
                if named
                else ("", None)
            )
            cells.append(
                Cell(
                    row="Adult",
                    measure=title,
                    epsilon=epsilon,
                    higher=higher,
                    ours=ours,
                    peer=Peer(name=name, value=peer.mean, measured=True) if peer else None,
                    note=_beside(ours, peer, name, higher),
                    missing="" if ours else NOT_RUN,
                )
            )
    return Entry(
        paper="peers",
        item="Adult",
        title="the default beside AIM and MST",
        cells=tuple(cells),
        **frame(
            "eval_tabular.py: total variation, classifiers on real rows", "tables.py adult", 180
        ),
    )
