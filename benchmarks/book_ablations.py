"""DP-HP's settings, one at a time, on discretised Adult (its tables 5 and 8).

    python benchmarks/book_ablations.py gamma       # the weight of the product kernels, ε = 0.3
    python benchmarks/book_ablations.py product     # the columns of a product kernel, ε = 1

Every run is a line of benchmarks/results/book-PART.jsonl, known by its settings, and is made once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache, partial
from time import process_time

import torch
from book_papers import GAMMA
from datasets import Dataset, discretised
from papers import round_number
from runs import DELTA, Found, Job, Log, Settings, run_all, words

import aquatint as aq
from aquatint.evaluate.fidelity import alpha_way
from aquatint.evaluate.published import alpha_way_error
from aquatint.evaluate.tables import Grid, encode

ALPHAS, SUBSETS = (3, 4), 1000
DRAWS = {2: None, 5: 10}
"""Product kernels on so many columns, each on a set that is drawn; None: all that noise bears.

Seven columns of this table have at least 113,400 joint cells, more than there are rows to fill them
and than a plan takes.
"""


@cache
def adult() -> Dataset:
    """Load the discretised table once."""
    return discretised("adult")


def gamma(asked: argparse.Namespace) -> Iterator[Job]:
    """Vary γ."""
    for seed in range(asked.runs):
        for weight in GAMMA:
            settings = {"part": "gamma", "gamma": weight, "columns": 2, "epsilon": 0.3}
            settings |= {"delta": DELTA, "subsets": SUBSETS, "seed": seed}
            yield Job(settings, partial(_run, settings))


def products(asked: argparse.Namespace) -> Iterator[Job]:
    """Vary the columns of a product kernel."""
    for seed in range(asked.runs):
        for columns in DRAWS:
            settings = {"part": "product", "gamma": 1.0, "columns": columns, "epsilon": 1.0}
            settings |= {"delta": DELTA, "subsets": SUBSETS, "seed": seed}
            yield Job(settings, partial(_run, settings))


def _run(settings: Settings) -> Found:
    """Make synthetic rows by `dp_hp` with one setting changed; give the error of marginals."""
    table, seed, columns = adult(), settings["seed"], settings["columns"]
    begun = process_time()
    plan = aq.dp_hp(
        table.schema,
        gamma=settings["gamma"],
        product_columns=columns,
        draws=DRAWS[columns],
        rows=round_number(len(table.train)),
        epsilon=settings["epsilon"],
        seed=seed,
    )
    budget = {"epsilon": settings["epsilon"], "delta": settings["delta"]}
    release = aq.sketch(
        table.train, table.schema, plan=plan, simulate=seed, progress=False, **budget
    )
    model = aq.synthesize(release, "network", seed=seed, progress=False)
    drawn = model.sample(max(1, round(release.count)), seed=seed)
    took = process_time() - begun
    grid = Grid(table.schema)
    pair = encode(table.train, grid, what="real", strict=True), encode(drawn, grid)
    return {
        "published": {str(a): alpha_way_error(*pair, grid, a, limit=SUBSETS) for a in ALPHAS},
        "right": {str(a): alpha_way(*pair, grid, a, limit=SUBSETS) for a in ALPHAS},
        "cpu_s": took,
    }


PARTS = {"gamma": gamma, "product": products}


def main() -> None:
    """Run one part."""
    parser = words(__doc__, runs=1)
    parser.add_argument("part", choices=PARTS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    log = Log(asked.results / f"book-{asked.part}.jsonl")
    jobs = list(PARTS[asked.part](asked))
    raise SystemExit(bool(run_all(log, jobs, ("cpu_s",), again=asked.again)))


if __name__ == "__main__":
    main()
