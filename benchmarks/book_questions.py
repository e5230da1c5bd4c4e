"""Entries of the results book on questions to a sketch: M2M."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from book_cells import NOT_RUN, Cell, Entry, Peer, lines, of, score
from book_features import NO_PRIVACY
from query_tasks import LEAST_NOISE
from results_tasks import PUBLISHED as M2M
from results_tasks import TITLES as TASKS

FINE = "HIST has 100 bins for each column and ours 32, which decides where noise is small"


def entries() -> Iterator[Entry]:
    """Give the tables and figures about questions."""
    yield _step()
    yield _tasks()
    yield _table_1()
    yield _regression()


def _step() -> Entry:
    cells = [
        Cell(
            row=method.upper(),
            measure="mean error of the fitted step",
            higher=False,
            faithful=(found := score(lines("book-step", method=method), of("error"))),
            ours=found,
            missing="" if found else NOT_RUN,
        )
        for method in ("rff", "race", "hist")
    ]
    return Entry(
        paper="m2m",
        item="figure 2",
        title="a step as a combination of features",
        metric="mean |f − f̃| over [0, 1], f(x) = 1 for x ≥ ½",
        command="book_kernels.py step",
        minutes=0.1,
        differences=("A picture in the paper. 20 frequencies, 10 hashes, 9 bins.",),
        pictures=(("book-step.svg", "A step and three combinations of features."),),
        cells=tuple(cells),
        **NO_PRIVACY,
    )


def _tasks() -> Entry:
    cells = []
    kinds = ("mean", "moment", "cdf", "covariance", "count")
    for table, epsilon in product(("lifesci", "random10"), (0.01, 0.1, 1.0, 10.0, 100.0)):
        for kind, title in zip(kinds, TASKS, strict=True):
            made = {
                m: score(lines("queries-tasks", table=table, method=m, epsilon=epsilon), of(kind))
                for m in ("hist", "rff", "race", "m2m")
            }
            cells += [
                Cell(
                    row=f"{table}, {title}, {sketch.upper()}",
                    measure="error",
                    epsilon=epsilon,
                    higher=False,
                    faithful=made[sketch],
                    ours=made["m2m"],
                    missing="" if made[sketch] else NOT_RUN,
                )
                for sketch in ("hist", "rff", "race")
            ]
    return Entry(
        paper="m2m",
        item="figure 3",
        title="statistics from a sketch",
        relation="add or remove one row",
        delta=1e-5,
        public="the schema; LifeSci's ends of ranges, as in the paper, are not private",
        metric="as on the page of questions",
        command="queries.py tasks",
        minutes=60,
        differences=("A picture in the paper. *Ours* is `aq.m2m`.",),
        paper_ahead=f"{FINE}; HIST sees no pair, and Random10 has no covariance to see",
        pictures=(("queries-tasks.svg", "Five errors against epsilon."),),
        cells=tuple(cells),
    )


def _table_1() -> Entry:
    cells = []
    for (table, epsilon), told in M2M.items():
        for place, sketch in enumerate(("rff", "hist")):
            wanted = {"table": table, "epsilon": epsilon}
            faithful = score(lines("queries-tasks", method=sketch, **wanted), of("mean"))
            ours = score(lines("queries-tasks", method="m2m", **wanted), of("mean"))
            without = epsilon == LEAST_NOISE
            made = Cell(
                row=f"{table}, {sketch.upper()}" + (", no noise" if without else ""),
                measure="relative error of means",
                epsilon=epsilon,
                higher=False,
                published=told[place],
                faithful=faithful,
                ours=ours,
            )
            if made.ahead is False:
                why = (
                    "published without noise; a release has ε = 100 at most"
                    if without
                    else "at ε = 1 the noise of the number of rows alone is larger than published"
                )
                made = made.model_copy(update={"note": why})
            cells.append(made)
    return Entry(
        paper="m2m",
        item="table 1",
        title="where the error of a mean comes from",
        relation="add or remove one row",
        delta=1e-5,
        public="the schema; LifeSci's ends of ranges, as in the paper, are not private",
        metric="mean relative error over columns",
        paper_ahead=FINE,
        command="queries.py tasks",
        minutes=60,
        cells=tuple(cells),
    )


def _regression() -> Entry:
    cells = []
    for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
        wanted = {"table": "occupancy", "epsilon": epsilon}
        made = {
            m: score(lines("queries-learn", method=m, **wanted), of("auc"))
            for m in ("default", "rff")
        }
        erm = score(lines("queries-dp_erm", method="dp_erm", **wanted), of("auc"))
        if not any((*made.values(), erm)):
            continue
        cells.append(
            Cell(
                row="Occupancy, logistic regression",
                measure="AUC",
                epsilon=epsilon,
                faithful=made["rff"],
                ours=made["default"],
                peer=Peer(name="DP-ERM (diffprivlib)", value=erm.mean, measured=True)
                if erm
                else None,
                missing="" if made["default"] else NOT_RUN,
            )
        )
    return Entry(
        paper="m2m",
        item="figure 4",
        title="logistic regression from a sketch",
        relation="add or remove one row",
        delta=1e-5,
        public="the schema",
        metric="AUC on the test rows",
        command="queries.py learn",
        minutes=10,
        differences=(
            "A picture in the paper: *faithful* is our reading of RFF; ours is the default plan.",
        ),
        cells=tuple(cells),
    )
