"""Two groups of real people, by the ages of the two-sample paper's figure 3.

    python benchmarks/book_ages.py [--runs 100]

Adult's rows under 25 against those from 25 to 35, without the column of ages, 2,500 rows each; and
two samples of those under 25, where nothing differs. Every block of runs is a line of
benchmarks/results/book-ages.jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache, partial
from time import process_time

import numpy as np
import pyarrow as pa
import torch
from compare_cases import ALPHA
from compare_ours import by_releases, default, me
from compare_real import whole
from runs import DELTA, Found, Job, Log, Settings, run_all, words

import aquatint as aq
from aquatint.curator.gathering import accumulate
from aquatint.schema import Schema

ROWS, BLOCK = 2500, 50
EPSILONS = (0.1, 0.3, 0.5, 0.7)
DIFFERENT, SAME = "under 25 against 25 to 35", "under 25 only"
METHODS = ("tcmc", "tcs", "nte_me", "permutation", "default")


@cache
def groups() -> tuple[pa.Table, pa.Table, Schema]:
    """Give both groups without their ages, and what is public about them."""
    rows, schema = whole("adult")
    ages = rows["age"].to_numpy(zero_copy_only=False)
    told = schema.to_dict()
    del told["columns"]["age"]
    young, older = (
        rows.filter(kept).drop(["age"]) for kept in (ages < 25, (ages >= 25) & (ages < 35))
    )
    return young, older, Schema.from_dict(told)


def samples(what: str, seed: int) -> tuple[pa.Table, pa.Table, Schema]:
    """Draw 2,500 rows of each group, or of one group twice, without replacement."""
    young, older, schema = groups()
    rng = np.random.default_rng(seed)
    order = rng.permutation(young.num_rows)
    first = young.take(order[:ROWS])
    if what == SAME:
        return first, young.take(order[ROWS : 2 * ROWS]), schema
    return first, older.take(rng.permutation(older.num_rows)[:ROWS]), schema


def jobs(asked: argparse.Namespace) -> Iterator[Job]:
    """Give blocks of runs."""
    for what in (DIFFERENT, SAME):
        for method in METHODS:
            for epsilon in EPSILONS:
                for first in range(0, asked.runs, BLOCK):
                    settings = {"part": "ages", "what": what, "method": method, "rows": ROWS}
                    settings |= {"epsilon": epsilon, "delta": DELTA, "alpha": ALPHA}
                    settings |= {"first": first, "runs": min(BLOCK, asked.runs - first)}
                    yield Job(settings, partial(_block, settings))


def _block(settings: Settings) -> Found:
    begun = process_time()
    seeds = range(settings["first"], settings["first"] + settings["runs"])
    decided = [_rejects(settings, seed) for seed in seeds]
    return {"rejected": sum(decided), "runs": len(decided), "cpu_s": process_time() - begun}


def _rejects(settings: Settings, seed: int) -> bool:
    first, second, schema = samples(settings["what"], seed)
    method, epsilon = settings["method"], settings["epsilon"]
    if method in {"nte_me", "default"}:
        plan = (me if method == "nte_me" else default)(schema, seed)
        return by_releases((accumulate(first, plan), accumulate(second, plan)), epsilon, seed)
    return aq.compare_private(
        first,
        second,
        schema,
        epsilon=epsilon,
        delta=DELTA,
        alpha=ALPHA,
        test=method,
        simulate=seed,
        progress=False,
    ).reject


def main() -> None:
    """Run what is missing."""
    asked = words(__doc__, runs=100).parse_args()
    torch.set_num_threads(1)
    log = Log(asked.results / "book-ages.jsonl")
    show = ("rejected", "runs", "cpu_s")
    raise SystemExit(bool(run_all(log, list(jobs(asked)), show, again=asked.again)))


if __name__ == "__main__":
    main()
