"""The example on Adult, and how long a million rows take."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from compare_cases import ALPHA
from compare_problems import PROTECTS, names, table
from compare_real import OCCUPATIONS, Samples, halves, occupations
from datasets import numeric
from results_pages import FOLDER
from runs import DELTA, Found, Job, Log, run_all
from threadpoolctl import threadpool_limits

import aquatint as aq
from aquatint.schema import Schema

EPSILON = 1.0
KEPT = 20
"""So many differences of the example are kept."""
COLUMNS, MILLION = 10, 1_000_000
LARGE_DELTA = 1e-7
"""Well below one over a million."""
TESTS = ("permutation", "signflip", "tcmc", "tcs")


def adult(asked: argparse.Namespace, log: Log) -> int:
    """Compare two occupations of Adult, and two random halves, by releases of the default plan."""
    made: dict[str, Callable[[], Samples]] = {
        "occupations": occupations,
        "halves": partial(halves, "adult", 0),
    }
    plot = None if asked.quick else FOLDER / "compare-adult.svg"
    jobs = []
    for what, samples in made.items():
        settings = {"part": "adult", "what": what, "method": "default", "epsilon": EPSILON}
        settings |= {"delta": DELTA, "alpha": ALPHA, "seed": 0}
        drawn = plot if what == "occupations" else None
        jobs.append(Job(settings, partial(_example, samples, drawn)))
    return run_all(log, jobs, ("pvalue", "cpu_s"), again=asked.again)


def _example(make: Callable[[], Samples], plot: Any) -> Found:
    first, second, schema = make()
    a, b = (
        aq.sketch(rows, schema, epsilon=EPSILON, delta=DELTA, simulate=seed, progress=False)
        for seed, rows in enumerate((first, second))
    )
    begun = process_time()
    found = aq.compare(a, b, alpha=ALPHA)
    cpu = process_time() - begun
    found.where(plot=plot)
    return {
        "reject": found.reject,
        "pvalue": found.pvalue,
        "statistic": found.statistic,
        "rows": [first.num_rows, second.num_rows],
        "names": list(OCCUPATIONS),
        "method": found.method,
        "differences": found.to_dict()["differences"][:KEPT],
        "cpu_s": cpu,
    }


def speed(asked: argparse.Namespace, log: Log) -> int:
    """Time a million rows: both samples together, and each."""
    sizes = [asked.rows] if asked.rows else [MILLION // 2, MILLION]
    jobs = []
    for rows in sizes:
        for test in (*TESTS, "sketch", "compare"):
            settings = {"part": "speed", "method": test, "rows": rows, "columns": COLUMNS}
            settings |= {"epsilon": EPSILON, "delta": LARGE_DELTA}
            jobs.append(Job(settings, partial(_times, test, rows)))
    return run_all(log, jobs, ("seconds", "cpu_s"), again=asked.again)


def _times(test: str, rows: int) -> Found:
    """Time one test, with as many threads as the machine has cores."""
    first, second, schema = _large(rows)
    torch.set_num_threads(os.cpu_count() or 1)
    try:
        with threadpool_limits(os.cpu_count()):
            seconds, cpu, title = _timed(test, first, second, schema)
    finally:
        torch.set_num_threads(1)
    others = os.getloadavg()[0]
    return {
        "title": title,
        "seconds": seconds,
        "cpu_s": cpu,
        "load": others,
        "cores": os.cpu_count(),
    }


def _timed(
    test: str, first: pa.Table, second: pa.Table, schema: Schema
) -> tuple[float, float, str]:
    quiet = {"epsilon": EPSILON, "delta": LARGE_DELTA, "progress": False}
    sketch = partial(aq.sketch, schema=schema, **quiet)
    if test in TESTS:
        run = partial(aq.compare_private, first, second, schema, test=test, **quiet)
        few = partial(aq.compare_private, first[:999], second[:999], schema, test=test, **quiet)
        few()  # compiles once
        return (*_took(run), f"`aq.compare_private`, {test}")
    sketch(first[:999])
    if test == "sketch":
        return (*_took(lambda: (sketch(first), sketch(second))), "`aq.sketch` twice, default plan")
    a, b = sketch(first), sketch(second)
    return (*_took(lambda: aq.compare(a, b)), "`aq.compare` of these two releases")


def _took(make: Callable[[], Any]) -> tuple[float, float]:
    begun = perf_counter(), process_time()
    make()
    return perf_counter() - begun[0], process_time() - begun[1]


def _large(rows: int) -> Samples:
    """Give two samples of ten normal columns."""
    rng = np.random.default_rng(0)
    columns = {name: numeric(-5, 5) for name in names(COLUMNS)}
    told = {"name": "large", "privacy": {"protects": PROTECTS}, "columns": columns}
    first, second = (table(rng.standard_normal((rows, COLUMNS))) for _ in range(2))
    return Samples(first, second, Schema.from_dict(told))
