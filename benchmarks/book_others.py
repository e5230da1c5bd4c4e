"""Entries of the results book on kernels, two-sample tests and questions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from book_cells import Cell, Entry, Peer, Score, lines, of, rate, score
from compare_methods import METHODS
from compare_power import EPSILONS, SIZES
from compare_problems import PROBLEMS
from query_tasks import LEAST_NOISE
from results_tasks import PUBLISHED as M2M
from results_tasks import TITLES as TASKS

NOT_RUN = "not run yet: see the command"
NO_PRIVACY = {
    "relation": "no privacy is claimed",
    "delta": None,
    "public": "everything: the data are made up",
}
PAPERS_TESTS = {"tcmc": "TCMC", "tcs": "TCS", "nte_me": "NTE"}
OUR_TESTS = {"tcmc": "permutation", "tcs": "permutation", "nte_me": "default"}
"""What one would take here: the default of a curator, and of two releases."""
PUBLISHED_TESTS = {"tcmc": "published_tcmc", "tcs": "published_tcs", "nte_me": "published_nte"}


def entries() -> Iterator[Entry]:
    """Give the rest of the book."""
    yield _approximation()
    yield _length_scale()
    yield _bound()
    yield _reduced_set()
    yield _ages()
    yield _power()
    yield _step()
    yield _tasks()
    yield _table_1()
    yield _regression()


def _approximation() -> Entry:
    cells = [
        Cell(
            row=f"{'Hermite, order' if method == 'hermite' else 'random Fourier, number'} {size}",
            measure="mean error of the kernel",
            higher=False,
            faithful=(found := score(_kernels(method, size), of("error"))),
            ours=found,
            missing="" if found else NOT_RUN,
        )
        for method, sizes in (
            ("hermite", (0, 1, 2, 4, 6, 8, 12)),
            ("fourier", (2, 8, 32, 128, 500)),
        )
        for size in sizes
    ]
    return Entry(
        paper="dp-hp",
        item="figure 1",
        title="how fast features approach the kernel",
        metric="mean |k(x, y) − φ(x)·φ(y)| over N(0, 1) × N(1, 1)",
        command="book_kernels.py approximation",
        minutes=2,
        differences=("A picture in the paper: 500 Fourier features are said to match order 2.",),
        pictures=(("book-approximation.svg", "Error of the kernel by order and by number."),),
        cells=tuple(cells),
        **NO_PRIVACY,
    )


def _kernels(method: str, size: int) -> list[dict[str, Any]]:
    return lines("book-approximation", method=method, size=size)


def _length_scale() -> Entry:
    cells = []
    for length, told in ((0.71, 20.0), (7.07, 5.0)):
        found = score(lines("book-length_scale", length=length), of("order"))
        cells.append(
            Cell(
                row=f"length scale {length:g}",
                measure="order past which all features are below a hundredth",
                higher=False,
                published=told,
                faithful=found,
                ours=found,
                missing="" if found else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-hp",
        item="figure 5",
        title="how the length scale sets the order",
        metric="the paper says 'at around order ≤ 20' and '≤ 5' of its picture",
        command="book_kernels.py length_scale",
        minutes=0.1,
        cells=tuple(cells),
        **NO_PRIVACY,
    )


def _bound() -> Entry:
    cells = []
    for features in (100, 1000, 10_000):
        made = lines("book-bound", features=features)
        error, limit = score(made, of("error")), score(made, of("bound"))
        cells.append(
            Cell(
                row=f"{features:,} features",
                measure="error of the noisy MMD²",
                epsilon=1.0,
                higher=False,
                published=limit.mean if limit else None,
                faithful=error,
                ours=error,
                note="*published* is the bound of eq. 12, computed here",
                missing="" if error else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-merf",
        item="proposition 3.1",
        title="the bound against the error that it bounds",
        relation="replace one row",
        delta=1e-5,
        public="everything: the data are made up",
        metric="|noisy MMD² by random features − exact MMD²|, 10,000 rows of N(0, 1) and N(1, 1)",
        command="book_kernels.py bound",
        minutes=5,
        differences=("The bound holds and is loose; the paper measures nothing.",),
        cells=tuple(cells),
    )


def _reduced_set() -> Entry:
    cells = []
    for points in ("10", "30", "100", "300", "1000"):
        made = {
            m: score(lines("book-reduced_set", method=m), of(points))
            for m in ("reduced_set", "dp_merf", "auto")
        }
        reduced = made["reduced_set"]
        cells.append(
            Cell(
                row=f"{int(points):,} points",
                measure="distance of the mean embeddings",
                epsilon=1.0,
                higher=False,
                faithful=made["dp_merf"],
                ours=made["auto"],
                peer=Peer(name="reduced set (Balog et al.)", value=reduced.mean, measured=True)
                if reduced
                else None,
                missing="" if made["dp_merf"] else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-merf",
        item="figure 3",
        title="against a reduced set of points",
        relation="add or remove one row",
        delta=1e-5,
        public="the schema, with its bounds",
        metric="RKHS distance to the private rows' embedding, by 10,000 other Fourier features",
        command="book_kernels.py reduced_set",
        minutes=20,
        differences=(
            "A picture in the paper. The mixture of Gaussians is one like Balog et al.'s.",
            "The reduced set has equal weights and 500 steps of Adam.",
        ),
        pictures=(("book-reduced_set.svg", "Distance of embeddings by the number of points."),),
        cells=tuple(cells),
    )


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
            for method in ("tcmc", "tcs", "nte_me", "permutation", "default"):
                made = lines("book-ages", what=what, method=method, epsilon=epsilon)
                found = rate(made)
                cells.append(
                    Cell(
                        row=f"{what}, {METHODS[method].title}",
                        measure="power" if higher else "type I error",
                        epsilon=epsilon,
                        higher=higher,
                        faithful=found if method in PAPERS_TESTS else None,
                        ours=found,
                        missing="" if found else NOT_RUN,
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
        ),
        cells=tuple(cells),
    )


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
