"""The page docs/results/queries.md, written from the results alone."""

from __future__ import annotations

import results_coverage
import results_sql
import results_tasks
from page_parts import FOLDER, command, filled, image
from results_pages import machine
from results_queries_plots import coverage_plot, tasks_plot
from runs import RESULTS, Log

PARTS = ("tasks", "coverage", "sql", "speed", "hostile", "learn", "dp_erm")

HEAD = """\
# Questions to a release

`aq.Query` beside the published figures of M2M, beside synthetic rows, and beside its own promise:
that 95 % intervals hold the truth 95 times in 100. This page is written by `make bench-queries`.
Each part names the command that made it; a part that was stopped goes on where it was, since every
run is kept as a line of `benchmarks/results/queries-*.jsonl`.

Everywhere δ = 10⁻⁵, unless it is said otherwise, and neighbouring tables differ by one row more or
less. The noise of run 1, 2, 3 is simulated with seed 0, 1, 2 (`simulate=`), so that a run can be
repeated exactly.
"""

TASKS = """\
## The tasks of M2M

Figure 3 and table 1 of the paper: columns in isolation (§4.1) and together (§4.2). LifeSci has
26,733 rows and 10 columns, scaled to [0, 1] by their own ends. **Those ends are not private, in
the paper and here**: a release of one's own declares them. Random10 is uniform noise of the same
shape. `m2m_hist`, `m2m_rff` and `m2m_race` have the paper's Laplace noise (δ = 0) and its sizes,
under the right bounds (HIST's norm is the number of columns); `m2m` and the default plan have
Gaussian noise.

*Mean* and *second moment*: mean relative error over columns. *CDF*: mean error at ten points.
*Covariance*: Frobenius norm of the error of the matrix. *Count*: mean error, as a share of the
rows, of {counts} counts for each run, under three predicates X ≤ u or X ≥ l, with u and l uniform.
In the picture, stars are the published points and short black lines the bars. {runs} Runs of
`m2m_race` on LifeSci at ε = 0.1, 1 and 10 and on Random10 at ε = 1 are older than the last change
of the estimator, and wait for another one.
"""

TABLE_1 = """\
### Beside the published points

The paper gives numbers in table 1 only; figure 3 is a picture. A release has ε = 100 at most, which
stands beside the paper's ε = ∞. Not all of it can be had as described: at ε = 1 the noise of the
number of rows alone, under the paper's own share of 2 %, makes a relative error of 1.9 × 10⁻³,
twice what it publishes for HIST.
"""

COVERAGE = """\
## How often intervals hold the truth

The constants of the intervals were set on insurance, crashes, votes, lending and developers, and on
two made-up tables of numbers: nine columns with heavy tails and common factors, five like sensors.
Adult had no say in them. LifeSci was looked at in the first trials, and for how rough columns are
inside their bins, as were Occupancy and diamonds; the latter two chose the prior of `m2m`.

*Width* is the mean width of the interval and *error* the mean error, both as a share of the
column's declared range (its square for second moments, the product of two for covariances) or of
the rows. *Mostly* is where most of the error is said to come from: noise, bins or model, in per
cent of the answers. Questions are drawn by chance for each draw of the noise; their conditions name
values that occur. Means, second moments and covariances are first asked of all rows, once for each
column or two, and then under a predicate. Answers from one release share its noise, so that 200 of
them tell less than 200 releases would. The bar is 92 to 98 %.
"""

SQL = """\
## 500 questions about Adult

ε = 1. {questions} questions in SQL, drawn with seed {seed}: counts, shares, averages, standard
deviations, counts and averages by group, under up to three predicates. Averages and shares are
asked of at least 1 % of the rows, and compared in groups of at least 1 %. An error is a share of
the rows for counts, of 1 for shares, and of the column's declared range for averages and standard
deviations; a question by group has the mean over its groups. Synthetic rows are asked by SQLite:
AIM's (`benchmarks/peers.py`, as [elsewhere](tables.md)), and `aq.sample` of the same release that
`aq.Query` answers from.
"""

SPEED = """\
## Time

The same questions on Adult. The first question fits the model. Wall-clock time is what a user waits
on a machine with other work; processor time is on one thread.
"""

HOSTILE = """\
### Hostile questions

Asked of a `Query` that was never asked before; a refusal comes before anything is fitted.
"""

LEARN = """\
## Learning

Figure 4 of the paper: logistic regression on Occupancy, five columns scaled to [0, 1] by their own
ends, 90 % of 20,560 rows to learn from. DP-ERM is diffprivlib's at its defaults, with pure ε. Those
defaults are unlucky at ε = 1: the noise has what ε − 2·log(1 + c/α) leaves, a tenth of it or less,
where at smaller ε the library regularises more and keeps a half. HIST never looks at two columns
together and is refused (the paper has it at chance). The bars: AUC .97 at ε = 0.3 and
.98 at ε = 1.
"""


def log_of(part: str) -> Log:
    """Give the results of a part."""
    return Log(RESULTS / f"queries-{part}.jsonl")


def render() -> None:
    """Write the page, with what results there are."""
    logs = {part: log_of(part) for part in PARTS}
    lines = [line for log in logs.values() for line in log.lines().values()]
    made = [HEAD, *_tasks(logs["tasks"]), *_coverage(logs["coverage"]), *_sql(logs), machine(lines)]
    text = "\n".join(part for part in made if part)
    (FOLDER / "queries.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    print("written: docs/results/queries.md")


def _tasks(log: Log) -> list[str]:
    lines = list(log.lines().values())
    counts = " or ".join(str(n) for n in sorted({line["settings"]["counts"] for line in lines}))
    if lines:
        tasks_plot(log, FOLDER)
    alt = "Five errors against epsilon, for five sketches, on LifeSci and Random10."
    return [
        TASKS.format(counts=counts or "40", runs=results_tasks.runs(log)),
        command("queries.py tasks"),
        filled(results_tasks.at_one(log)),
        image("queries-tasks.svg", alt),
        TABLE_1,
        filled(results_tasks.table_1(log)),
        "### Every ε\n",
        filled(results_tasks.every(log)),
    ]


def _coverage(log: Log) -> list[str]:
    if log.lines():
        coverage_plot(log, FOLDER)
    alt = "Coverage by table and kind of question, beside the band from 92 to 98 per cent."
    found = [COVERAGE, command("queries.py coverage"), filled(results_coverage.verdict(log))]
    found += [filled(results_coverage.five(log)), image("queries-coverage.svg", alt)]
    return [*found, filled(results_coverage.kinds(log))]


def _sql(logs: dict[str, Log]) -> list[str]:
    settings = [line["settings"] for line in logs["sql"].lines().values()]
    words = {"questions": "500", "seed": "2024"}
    if settings:
        words = {"questions": str(settings[0]["questions"]), "seed": str(settings[0]["drawn"])}
    return [
        SQL.format(**words),
        command("queries.py sql"),
        filled(results_sql.methods(logs["sql"])),
        SPEED,
        command("queries.py speed"),
        filled(results_sql.speed(logs["speed"])),
        HOSTILE,
        command("queries.py hostile"),
        filled(results_sql.hostile(logs["hostile"])),
        LEARN,
        command("queries.py learn") + command("queries.py dp_erm"),
        filled(results_sql.learning([logs["learn"], logs["dp_erm"]])),
    ]
