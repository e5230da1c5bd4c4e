"""How often each test says that two samples differ: power where they do, level where they do not.

A job is a block of runs of one method on one problem at one ε. Run i has the rows of seed i and the
noise of seed i, whichever method it is, so that methods are compared on the same rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import product
from time import process_time
from typing import Any

from compare_cases import ALPHA, PLAIN, Case
from compare_methods import METHODS
from compare_problems import PROBLEMS
from compare_real import REAL, whole
from datasets import NotHereError
from runs import DELTA, Found, Job, Log, Settings, run_all

EPSILONS = (1.0, 0.5, 2.5, 0.1, 5.0, 0.25)
"""ε of the curve at 10,000 rows; the bars are at the first."""
ROWS = 10_000
SIZES = (1000, 2500, 5000, 15_000)
"""Rows of the curve at ε = 2.5, besides 10,000."""
SIZES_EPSILON = 2.5
BLOCK = 50
DIFFERENT = tuple(name for name, problem in PROBLEMS.items() if not problem.same)
SAME = tuple(name for name, problem in PROBLEMS.items() if problem.same)
LEVEL_EPSILONS = (1.0, 0.1, 5.0)
SPLITS_EPSILONS = (1.0,)
Group = tuple[str, str, int, tuple[float, ...]]
"""A problem, a method, a number of rows, and what ε to run it at."""
SHOW = ("rejected", "runs", "cpu_s")


def power(asked: argparse.Namespace, log: Log) -> int:
    """Run every method where something differs: first the bars, then the two curves."""
    wanted, rows = list(_wanted(asked, DIFFERENT)), asked.rows or ROWS
    first, *rest = asked.epsilon or EPSILONS
    groups = [(*pair, rows, (first,)) for pair in wanted]
    groups += [(*pair, rows, tuple(rest)) for pair in wanted]
    if asked.epsilon is None and asked.rows is None:
        groups += [(*pair, size, (SIZES_EPSILON,)) for size in SIZES for pair in wanted]
    return run_all(log, list(jobs("power", groups, asked.runs)), SHOW, again=asked.again)


def level(asked: argparse.Namespace, log: Log) -> int:
    """Run every method where nothing differs."""
    epsilons = tuple(asked.epsilon or LEVEL_EPSILONS)
    groups = [(*pair, asked.rows or ROWS, epsilons) for pair in _wanted(asked, SAME)]
    return run_all(log, list(jobs("level", groups, asked.runs)), SHOW, again=asked.again)


def splits(asked: argparse.Namespace, log: Log) -> int:
    """Run every method of ours on random halves of real tables, where nothing differs."""
    epsilons = tuple(asked.epsilon or SPLITS_EPSILONS)
    groups: list[Group] = []
    for pair in _wanted(asked, REAL):
        try:
            whole(pair[0])
        except NotHereError as absent:
            print(f"{pair[0]}: {absent}")
            continue
        groups.append((*pair, 0, epsilons))
    return run_all(log, list(jobs("splits", groups, asked.runs)), SHOW, again=asked.again)


def budget(asked: argparse.Namespace, log: Log) -> int:
    """Measure one run of each method on each problem, and say how long everything would take."""
    del log
    total = 0.0
    for name, method in _wanted(asked, tuple(PROBLEMS)):
        epsilons = LEVEL_EPSILONS if PROBLEMS[name].same else EPSILONS
        runs = 1000 if PROBLEMS[name].same else 100
        first, other = (_cost(method, name, seed) for seed in (0, 1))
        once, again = min(first[0], other[0]), min(first[1], other[1])
        hours = runs * (once + len(epsilons) * again) / 3600
        hours += 0 if PROBLEMS[name].same else 2.4 * runs * (once + again) / 3600
        total += hours
        print(f"{name:10} {method:24} {once:7.3f} s + {again:7.3f} s for each ε: {hours:6.2f} h")
    print(f"{total:.1f} hours in all")
    return 0


def _cost(method: str, name: str, seed: int) -> tuple[float, float]:
    test = METHODS[method]
    begun = process_time()
    made = test.prepare(Case(name, ROWS, seed))
    prepared = process_time()
    test.rejects(made, 1.0, seed)
    return prepared - begun, process_time() - prepared


def _wanted(asked: argparse.Namespace, problems: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give problems and methods, as far as they were asked for and go together."""
    for name, method in product(problems, METHODS):
        if name not in METHODS[method].problems:
            continue
        if name in (asked.problems or (*PROBLEMS, *REAL)) and method in (asked.methods or METHODS):
            yield name, method


def jobs(part: str, groups: Iterable[Group], runs: int) -> Iterator[Job]:
    """Give blocks of runs; the ε of a block come one after the other, since they share work."""
    seen = set()
    for name, method, rows, epsilons in groups:
        private = METHODS[method].group != PLAIN
        for first, epsilon in product(range(0, runs, BLOCK), epsilons):
            settings = {"part": part, "problem": name, "method": method, "rows": rows}
            settings |= {"epsilon": epsilon if private else None, "delta": DELTA, "alpha": ALPHA}
            settings |= {"first": first, "runs": min(BLOCK, runs - first)}
            if (told := tuple(settings.values())) not in seen:
                seen.add(told)
                yield Job(settings, partial(_block, settings))


@lru_cache(maxsize=BLOCK)
def _prepared(method: str, case: Case) -> Any:
    return METHODS[method].prepare(case)


def _block(settings: Settings) -> Found:
    """Make a block of runs."""
    begun = process_time()
    method, epsilon = settings["method"], settings["epsilon"]
    seeds = range(settings["first"], settings["first"] + settings["runs"])
    decided = []
    for seed in seeds:
        made = _prepared(method, Case(settings["problem"], settings["rows"], seed))
        decided.append(METHODS[method].rejects(made, epsilon, seed))
    return {
        "rejected": sum(decided),
        "runs": len(decided),
        "decisions": "".join(str(int(d)) for d in decided),
        "cpu_s": process_time() - begun,
    }
