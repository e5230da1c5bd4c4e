"""The page docs/results/compare.md, written from the results alone."""

from __future__ import annotations

import results_compare_real as real
import results_compare_tables as tables
from page_parts import FOLDER, command, filled, image
from results_compare_plots import power_plots
from results_pages import machine
from runs import RESULTS, Log

PARTS = ("power", "level", "splits", "adult", "speed")

HEAD = """\
# Two-sample tests

`aq.compare` on two releases, and `aq.compare_private` by a curator who holds both tables, beside
the tests of Raj et al. (2019) as they were published and without privacy. This page is written by
`make bench-compare`. Each part names the command that made it; a part that was stopped goes on
where it was, since every block of runs is kept as a line of `benchmarks/results/compare-*.jsonl`.
[How releases are compared](../explanation/compare.md) has the tests themselves.

Everywhere α = .01 and δ = 10⁻⁵, and neighbouring tables differ in one row that is replaced, as in
the paper. Run 1, 2, 3 has the rows and the simulated noise (`simulate=`) of seed 0, 1, 2, whichever
the test, so that tests are compared on the same rows, and a run can be repeated exactly.

## The problems

| problem | columns | P | Q | declared range |
| --- | --- | --- | --- | --- |
| SG | 50 | N(0, I) | the same | −5 to 5 |
| GMD | 100 | N(0, I) | mean 1 in the first column | −5 to 5 |
| GVD | 50 | N(0, I) | variance 2 in the first column | −5 to 5 |
| Blobs | 2 | 4 × 4 Gaussians, 5 apart | each stretched to variance 2 at 45° | −15 to 15 |
| Blobs-null | 2 | the same | the same | −15 to 15 |
| GMDr, GVDr | 100, 50 | N(0, I) | as GMD, GVD, but along (1, …, 1)/√d | −5 to 5 |

The first four are the paper's (§6.1). Its code for Blobs multiplies by the rotation from the wrong
side, where it cancels, so that its Q is stretched along the first column; here Q is turned as its
picture shows. The last two are ours. A sketch that looks at one or two columns at a time is at home
in GMD and GVD, and they would hide what it loses when every column has a little of the difference.
"""

TESTS = """\
## The tests

*Two releases* (`aq.compare`): the owners share a plan and nothing else, and anyone with the two
files can test. *Default plan* is what `aq.sketch` makes by itself, for synthetic rows and
questions, and *mixed Fourier* a sketch by `aq.mixed_fourier`: general releases. From four columns
up, four tenths of its budget go to 24 frequencies of all columns with second moments; how many and
how much was chosen on problems of our own that are not on this page. *NTE* is the
paper's setting of no trusted entity: `aq.me_test` or `aq.scf_test`, five locations or frequencies
with their second moments.

The plans are told one thing, which the owners would have to guess: the standard deviation of a
column for NTE (1 in the range of −5 to 5, 6 in Blobs), and how fine a difference may be for mixed
Fourier (1 in both). Their locations and frequencies are drawn anew in each run.

*No block for all columns* is mixed Fourier with `spread_share=0`. Its runs are from before the sum
over frequencies took half of the level from the largest of them.

*Trusted curator* (`aq.compare_private`): every test with the features that it takes by default, by
the schema alone: Fourier features at three scales for *permutation*, five locations of ME for
*sign-flip*, *TCMC* and *TCS*. Those defaults were settled with GMD, GVD and Blobs in sight.

*Public training* fits the five locations, or frequencies of SCF on Blobs, to 2,500 more rows of
each sample that are declared public, whatever the number of rows that are tested.

*Published* are the paper's TCMC, TCS and NTE, with the sensitivities, the halves of ε and δ and the
null distributions of the paper and its code: places optimised on, or sampled from, rows kept apart.
**They are not private.** Theorem 1, which TCS stands on, is false: with one feature and 10,000
rows, replacing one row moves s/n by 91 where .40 is claimed (1.60 with the paper's own κ), and
eq. 1 has a further factor of 10,000. With SCF, as in Blobs, the noise of TCMC and NTE is √2 too
small for the mean and half or less of what the covariance needs. And in all three, the places are
taken from private rows for nothing. `tests/unit/test_compare_bench.py` holds the counterexamples.

*Without privacy* are ME, and SCF for Blobs, with 5 places from a prior, or optimised.
"""

BARS = """\
## The bars

10,000 rows in each sample, ε = 1.
"""

READING = """\
No test finds everything. Five locations of one kernel, near the middle and as wide as the table, do
not see the fine structure of Blobs, nor do five frequencies that are not fitted to it; the paper
says so of NTE. Counts of one or two columns are at a loss with GVDr, where fifty columns have a
fiftieth of the difference each, and a wide kernel at a few locations is at home; mixed Fourier has
24 frequencies of all columns for that, at a share of the budget. *No scale given* is mixed
Fourier without a length scale, with frequencies at three of them. Public training finds Blobs,
which places from a prior do not. On GVD it is behind them: 2,500 rows are few to fit five places in
fifty columns to.
"""

POWER = """\
## Power against ε

10,000 rows in each sample, as in the top row of the paper's figure 4.
"""

SIZES = """\
## Power against the number of rows

ε = 2.5, as in the bottom row of figure 4.
"""

LEVEL = """\
## How often a difference is invented

SG and Blobs-null, 10,000 rows in each sample, every draw with rows of its own. The nominal level is
.01, and the bar for our tests .02.
"""

SPLITS = """\
### Random halves of real tables

Each draw cuts the training rows of a table into two random halves, where nothing differs. Public
training has a fifth of the rows declared public, and cuts the others.
"""

ADULT = """\
## Two occupations of Adult

Two general releases, each by the default plan at ε = 1, are compared: {first} ({n:,} rows) beside
{second} ({m:,} rows), without the column of occupations; and two random halves of the whole table.
"""

SPEED = """\
## A million rows

Ten columns. Seconds by the clock from tables in memory to the result, on the machine below with
whatever else it was doing: *load* is how many processes wanted its cores. The bar is 10 seconds.
"""


def log_of(part: str) -> Log:
    """Give the results of a part."""
    return Log(RESULTS / f"compare-{part}.jsonl")


def render() -> None:
    """Write the page, with what results there are."""
    logs = {part: log_of(part) for part in PARTS}
    lines = [line for log in logs.values() for line in log.lines().values()]
    power, level, splits = (tables.rates(logs[part]) for part in ("power", "level", "splits"))
    if power:
        power_plots(power, FOLDER)
    made = [
        HEAD,
        TESTS,
        *_power(power),
        *_level(level, splits),
        *_real(logs["adult"], logs["speed"]),
        machine(lines),
    ]
    text = "\n".join(part for part in made if part)
    (FOLDER / "compare.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    print("written: docs/results/compare.md")


def _power(found: tables.Rates) -> list[str]:
    alt = "Power against {} for every test, on GMD, GVD, Blobs, GMDr and GVDr."
    return [
        BARS,
        command("compare.py power"),
        filled(tables.bars(found)),
        tables.missed(found),
        tables.lost(found),
        READING,
        POWER,
        image("compare-epsilon.svg", alt.format("epsilon")),
        filled(tables.against_epsilon(found)),
        SIZES,
        image("compare-rows.svg", alt.format("the number of rows")),
        filled(tables.against_rows(found)),
    ]


def _level(found: tables.Rates, splits: tables.Rates) -> list[str]:
    made = [
        LEVEL,
        command("compare.py level"),
        tables.level_verdict(found),
        filled(tables.level(found)),
    ]
    made += [SPLITS, command("compare.py splits"), tables.level_verdict(splits)]
    return [*made, filled(tables.level(splits))]


def _real(adult: Log, speed: Log) -> list[str]:
    alt = "The columns and pairs of columns in which two occupations differ most."
    return [
        *real.adult(adult, ADULT, command("compare.py adult")),
        image("compare-adult.svg", alt),
        SPEED,
        command("compare.py speed"),
        filled(real.speed(speed)),
    ]
