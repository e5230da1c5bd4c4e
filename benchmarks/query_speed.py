"""How long questions take on Adult, and how long it takes to refuse hostile ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from query_sql import EPSILON, SEED, adult
from query_tables import released, table
from questions import Asked
from runs import DELTA, Found, Job, Log, run_all

import aquatint as aq

FIRSTS = 3
SHOW = ("first_s", "first_cpu_s", "median_cpu_ms", "p95_cpu_ms")
HOSTILE = {
    "deep parentheses": "select avg(age) from data where " + "(" * 500 + "age > 1" + ")" * 500,
    "deeper parentheses": "select " + "(" * 100_000 + "1" + ")" * 100_000 + " from data",
    "3,000 conditions": "select avg(age) from data where " + " and ".join(["age > 1"] * 3000),
    "3,000 alternatives": "select count(*) from data where " + " or ".join(["age = 1"] * 3000),
    "nested not": "select count(*) from data where " + "not " * 5000 + "age = 1",
    "nested case": "select avg(" + "case when age > 1 then " * 300 + "1" + " end" * 300
    + ") from data",
    "9,000 in a list": "select avg(age) from data where age in ("
    + ",".join(map(str, range(9000))) + ")",
    "a million in a list": "select avg(age) from data where age in (" + "1," * 1_000_000 + "1)",
    "2,000 minus signs": "select avg(" + "- " * 2000 + "age) from data",
    "a product of 12": "select sum(" + "*".join(['(age + "fnlwgt" + 1)'] * 12) + ") from data",
    "a product of 1,000": "select sum(" + "*".join(["age"] * 1000) + ") from data",
    "grouped by everything": "select count(*) from data group by workclass, \"marital-status\", "
    'occupation, relationship, race, sex, "native-country", income',
    "alternatives over columns": "select count(*) from data where " + " or ".join(
        f"(age > {i} and \"hours-per-week\" < {i} and \"education-num\" > {i % 16} and "
        f"\"capital-gain\" > {i} and sex = 'Male')" for i in range(40)
    ),
    "right-to-left override": "select avg(\u00e4ge\u202e) from data",
    "homoglyph": "select avg(\u0430ge) from data",
    "null byte": "select avg(age\x00) from data",
    "emoji": "select \U0001f600 from data",
    "second statement": "select avg(age) from data; drop table data",
    "comment": "select avg(age) from data -- where sex = 'Male'\n; delete from data",
    "union": "select avg(age) from data union select password from users",
    "subquery": "select avg(age) from data where sex in (select sex from data)",
    "files": "select load_extension('x') from data",
    "sleep": "select pg_sleep(10) from data",
    "pragma": "pragma table_info(data)",
    "attach": "attach database 'x' as y",
    "unknown column": "select avg(salary) from data",
    "unknown category": "select count(*) from data where sex = 'x'' or ''1''=''1'",
    "rows themselves": "select * from data",
    "least": "select min(age) from data",
    "infinite": "select avg(1e999 * age) from data",
    "like with many wildcards": "select count(*) from data where occupation like '"
    + "%a" * 5000 + "'",
    "a megabyte of blanks": "select avg(age) from data where" + " " * 1_000_000,
    "nothing": "",
    "just within limits: groups": "select avg(age), stddev(fnlwgt) from data where age > 30 and "
    '"capital-gain" > 10 group by occupation, "native-country"',
    "just within limits: groups sorted by what is not there": "select occupation, "
    '"native-country", median(age) from data group by occupation, "native-country" order by x',
    "just within limits: wildcards": "select count(*) from data where "
    "\"native-country\" like '" + "%_" * 14 + "q'",
    "just within limits: 1,000 in a list": "select avg(age) from data where fnlwgt in ("
    + ",".join(str(20_000 + 37 * i) for i in range(1000)) + ")",
}  # fmt: skip


def speed(asked: argparse.Namespace, log: Log) -> int:
    """Time the first question and the others."""
    settings = {"part": "speed", "table": "adult", "method": "query", "epsilon": EPSILON}
    settings |= {"delta": DELTA, "seed": 0, "questions": asked.questions, "drawn": SEED}
    job = Job(settings, partial(_times, asked.questions))
    return run_all(log, [job], SHOW, again=asked.again)


def _times(count: int) -> Found:
    made = adult(count)
    release = released(made.rows, made.schema, "default", EPSILON, DELTA, 0)
    first = [_took(partial(_first, release, made.questions[0][0])) for _ in range(FIRSTS)]
    query = _first(release, made.questions[0][0])
    rest = [asked for asked, _ in made.questions[1:]]
    times = np.array([_took(partial(query.sql, asked.text)) for asked in rest])
    found: Found = {
        "first_s": float(np.median([wall for wall, _ in first])),
        "first_cpu_s": float(np.median([cpu for _, cpu in first])),
        "slowest": rest[int(np.argmax(times[:, 1]))].text,
    }
    for place, name in enumerate(("", "cpu_")):
        for level, word in ((0.5, "median"), (0.95, "p95"), (1.0, "most")):
            found[f"{word}_{name}ms"] = 1e3 * float(np.quantile(times[:, place], level))
    kinds = np.array([asked.kind for asked in rest])
    found["kinds_cpu_ms"] = {
        str(kind): 1e3 * float(np.median(times[kinds == kind, 1])) for kind in np.unique(kinds)
    }
    return found


def _first(release: aq.Release, asked: Asked) -> aq.Query:
    query = aq.Query(release, progress=False)
    query.sql(asked.text)
    return query


def _took(make: Callable[[], Any]) -> tuple[float, float]:
    """Give seconds by the clock, and of the processor: other work slows the first only."""
    begun = perf_counter(), process_time()
    make()
    return perf_counter() - begun[0], process_time() - begun[1]


def hostile(asked: argparse.Namespace, log: Log) -> int:
    """Time how hostile questions are refused, by a query that was never asked before."""
    rows, schema = table("adult")
    release = released(rows, schema, "default", EPSILON, DELTA, 0)
    jobs = []
    for name, text in HOSTILE.items():
        settings = {"part": "hostile", "table": "adult", "method": name, "epsilon": EPSILON}
        jobs.append(Job(settings, partial(_refusal, release, text)))
    return run_all(log, jobs, ("seconds", "cpu_s"), again=asked.again)


def _refusal(release: aq.Release, text: str) -> Found:
    said = ""

    def ask() -> None:
        nonlocal said
        try:
            aq.Query(release, progress=False).sql(text)
        except aq.AquatintError as refusal:
            said = f"refused: {refusal}"
        except BaseException as error:  # a bare fault is what is looked for
            said = f"{type(error).__name__}: {error}"
        else:
            said = "answered"

    seconds, cpu = _took(ask)
    return {"seconds": seconds, "cpu_s": cpu, "said": said[:300], "length": len(text)}
