"""How often the 95 % intervals hold the truth, on tables that no constant was chosen on."""

from __future__ import annotations

import argparse
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from time import process_time

import numpy as np
import pandas as pd
from datasets import NotHereError
from query_tables import released, table
from questions import Asked, Chance, database, truths
from runs import DELTA, Found, Job, Log, Settings, run_all

import aquatint as aq
from aquatint.schema import Schema

TABLES = {
    "adult": ("default",),
    "lifesci": ("default", "m2m"),
    "occupancy": ("default", "m2m"),
    "diamonds": ("default",),
}
"""Tables and the plans they are sketched by; none had a say in the constants of the intervals."""
EPSILONS = (0.1, 1.0)
PLAIN = ("mean", "second moment", "cdf", "covariance")
PREDICATES = (1, 2, 3)


def coverage(asked: argparse.Namespace, log: Log) -> int:
    """Ask every table under many draws of the noise."""
    jobs: list[Job] = []
    for name in asked.tables or TABLES:
        try:
            rows, schema = table(name)
        except NotHereError as absent:
            print(f"{name}: {absent}")
            continue
        for plan in asked.plans or TABLES[name]:
            jobs += _jobs(asked, name, plan, rows, schema)
    return run_all(log, jobs, ("held", "asked", "cpu_s"), again=asked.again)


def _jobs(
    asked: argparse.Namespace, name: str, plan: str, rows: pd.DataFrame, schema: Schema
) -> Iterator[Job]:
    for seed in range(asked.runs):
        for epsilon in asked.epsilon or EPSILONS:
            settings = {"part": "coverage", "table": name, "method": plan, "epsilon": epsilon}
            settings |= {"delta": DELTA, "seed": seed, "each": asked.each}
            yield Job(settings, partial(_one, rows, schema, settings))


def asked_of(rows: pd.DataFrame, schema: Schema, seed: int, each: int) -> list[Asked]:
    """Draw at most so many questions of each kind, none of them twice."""
    chance = Chance(rows, schema, seed)
    found = [asked for kind in PLAIN for asked in islice(chance.plain(kind), each)]
    found += [chance.count(predicates) for predicates in PREDICATES for _ in range(each)]
    return list(dict.fromkeys(found))


def _one(rows: pd.DataFrame, schema: Schema, settings: Settings) -> Found:
    """Ask one release, and count by kind."""
    plan, epsilon, seed = (settings[name] for name in ("method", "epsilon", "seed"))
    release = released(rows, schema, plan, epsilon, DELTA, seed)
    begun = process_time()
    query = aq.Query(release, progress=False)
    with database(rows) as connection:
        lines = [
            _line(query, connection, asked)
            for asked in asked_of(rows, schema, seed, settings["each"])
        ]
    found = pd.DataFrame([line for line in lines if line is not None])
    kinds = {str(kind): _summary(part) for kind, part in found.groupby("kind", sort=False)}
    return {
        "kinds": kinds,
        "held": int(found["held"].sum()),
        "asked": len(found),
        "cpu_s": process_time() - begun,
    }


def _line(
    query: aq.Query, connection: sqlite3.Connection, asked: Asked
) -> dict[str, object] | None:
    (truth,) = truths(connection, asked).values()
    if math.isnan(truth):
        return None
    found = query.sql(asked.text).iloc[0]
    return {
        "kind": asked.kind,
        "held": bool(found["low"] <= truth <= found["high"]),
        "width": float(found["high"] - found["low"]) / asked.unit,
        "error": abs(float(found["value"]) - truth) / asked.unit,
        "pull": abs(float(found["value"]) - truth) / max(float(found["stderr"]), 1e-300),
        "mostly": found["mostly"],
        "how": found["how"],
    }


def _summary(part: pd.DataFrame) -> Found:
    return {
        "asked": len(part),
        "held": int(part["held"].sum()),
        "width": float(part["width"].mean()),
        "error": float(part["error"].mean()),
        "pull": float(np.sqrt((np.minimum(part["pull"], 10) ** 2).mean())),
        "mostly": dict(Counter(part["mostly"])),
        "how": dict(Counter(part["how"])),
    }
