"""Entries of the results book on two-sample tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from book_cells import LEVEL, NOT_RUN, Cell, Entry, Peer, Score, lines, rate
from compare_power import EPSILONS, SIZES
from compare_problems import PROBLEMS

PAPERS_TESTS = {"tcmc": "TCMC", "tcs": "TCS", "nte_me": "NTE"}
OUR_TESTS = {"tcmc": "permutation", "tcs": "permutation", "nte_me": "default"}
"""What one would take here: the default of a curator, and of two releases."""
PUBLISHED_TESTS = {"tcmc": "published_tcmc", "tcs": "published_tcs", "nte_me": "published_nte"}


def entries() -> Iterator[Entry]:
    """Give the figures about tests."""
    yield _ages()
    yield _power()


def _test(name: str, **wanted: Any) -> Score | None:
    return rate(lines("compare-power", method=name, **wanted))


def _power() -> Entry:
    cells = []
    different = [(n, p.title) for n, p in PROBLEMS.items() if not p.same]
    settings = [(10_000, e) for e in sorted(EPSILONS)] + [(rows, 2.5) for rows in SIZES]
    for problem, title in different:
        for rows, epsilon in settings:
            for ours, said in PAPERS_TESTS.items():
                wanted = {"problem": problem, "rows": rows, "epsilon": epsilon}
                published = _test(PUBLISHED_TESTS[ours], **wanted)
                cells.append(
                    Cell(
                        row=f"{title}, {rows:,} rows, {said}",
                        measure="power",
                        epsilon=epsilon,
                        faithful=_test(ours, **wanted),
                        ours=(found := _test(OUR_TESTS[ours], **wanted)),
                        peer=Peer(
                            name="the published protocol, not private",
                            value=published.mean,
                            measured=True,
                        )
                        if published
                        else None,
                        missing="" if found else NOT_RUN,
                    )
                )
    return Entry(
        paper="two-sample",
        item="figure 4",
        title="power against ε and against the number of rows",
        relation="replace one row",
        delta=1e-5,
        public="the declared ranges",
        metric="share of runs that reject at α = .01; ± is the standard error",
        command="compare.py power",
        minutes=300,
        differences=(
            (
                "A picture in the paper, so there is no published column: its protocol was run "
                "here, and is the peer. It is not private: Theorem 1 is false, places come from "
                "rows."
            ),
            "*Ours* is the default: permutation for a curator, the default plan for two releases.",
        ),
        paper_ahead=(
            "in GMDr and GVDr a small difference is spread over all columns: tests for everything "
            "stay behind a few places in all columns that have the whole budget"
        ),
        pictures=(
            ("compare-epsilon.svg", "Power against epsilon."),
            ("compare-rows.svg", "Power against the number of rows."),
        ),
        cells=tuple(cells),
    )


def _ages() -> Entry:
    cells = []
    for what, higher in (("under 25 against 25 to 35", True), ("under 25 only", False)):
        for epsilon in (0.1, 0.3, 0.5, 0.7):
            for method, said in PAPERS_TESTS.items():
                faithful, ours = (
                    rate(lines("book-ages", what=what, method=each, epsilon=epsilon))
                    for each in (method, OUR_TESTS[method])
                )
                cells.append(
                    Cell(
                        row=f"{what}, {said}",
                        measure="power" if higher else LEVEL,
                        epsilon=epsilon,
                        higher=higher,
                        faithful=faithful,
                        ours=ours,
                        missing="" if ours else NOT_RUN,
                    )
                )
    return Entry(
        paper="two-sample",
        item="figure 3",
        title="a real pair of groups: people under 25, and from 25 to 35",
        relation="replace one row",
        delta=1e-5,
        public="the schema",
        metric="share of runs that reject at α = .01, 2,500 rows in each sample",
        command="book_ages.py",
        minutes=15,
        differences=(
            (
                "The paper's photographs of celebrities are not at hand. Here the groups are "
                "Adult's, by the same ages, without the column of ages."
            ),
            "A picture in the paper. *Ours* is the default, as in figure 4.",
        ),
        cells=tuple(cells),
    )
