"""The tasks of M2M's figure 3 and table 1: five kinds of question on two tables, at many ε."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from time import process_time

import numpy as np
import pandas as pd
from query_tables import LAPLACE, PLANS, released, unit_cube
from runs import DELTA, Found, Job, Log, Settings, run_all

import aquatint as aq
from aquatint.schema import Schema

EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
LEAST_NOISE = EPSILONS[-1]
"""The largest ε that a release can have; beside ε = ∞ in table 1."""
TABLES = ("lifesci", "random10")
KINDS = ("mean", "moment", "cdf", "covariance", "count")
POINTS = (np.arange(1, 11) / 11).tolist()
"""The ten equidistant points of the distribution function (§4.1)."""


def tasks(asked: argparse.Namespace, log: Log) -> int:
    """Run every sketch at every ε."""
    jobs = [job for name in asked.tables or TABLES for job in _jobs(asked, name)]
    return run_all(log, jobs, (*KINDS, "cpu_s"), again=asked.again)


def _jobs(asked: argparse.Namespace, name: str) -> Iterator[Job]:
    rows, schema = unit_cube(name)
    for epsilon in asked.epsilon or EPSILONS:
        for plan in asked.plans or PLANS:
            for seed in range(asked.runs):
                settings = {"part": "tasks", "table": name, "method": plan, "epsilon": epsilon}
                settings |= {"delta": 0.0 if plan in LAPLACE else DELTA, "seed": seed}
                settings |= {"counts": asked.counts}
                yield Job(settings, partial(_one, rows, schema, settings))


@dataclass
class Held:
    """How often an interval held the truth, by kind of question."""

    of: dict[str, list[int]] = field(default_factory=dict)

    def error(self, kind: str, found: aq.Answer, truth: float) -> float:
        """Note whether the interval holds the truth, and give the answer's error."""
        counts = self.of.setdefault(kind, [0, 0])
        counts[0] += int(found.low <= truth <= found.high)
        counts[1] += 1
        return abs(found.value - truth)


def _one(rows: pd.DataFrame, schema: Schema, settings: Settings) -> Found:
    """Ask everything of one release."""
    plan, epsilon, seed = (settings[name] for name in ("method", "epsilon", "seed"))
    release = released(rows, schema, plan, epsilon, DELTA, seed)
    begun = process_time()
    query, held = aq.Query(release, progress=False), Held()
    found = {
        **_single(query, rows, held),
        "covariance": _covariance(query, rows, held),
        "count": _counts(query, rows, held, settings["counts"], np.random.default_rng(seed)),
    }
    return {**found, "held": held.of, "cpu_s": process_time() - begun}


def _single(query: aq.Query, rows: pd.DataFrame, held: Held) -> dict[str, float]:
    """Ask about columns in isolation (§4.1): relative errors, and that of the CDF as it is."""
    wrong: dict[str, list[float]] = {"mean": [], "moment": [], "cdf": []}
    for name in rows:
        x = rows[name].to_numpy(float)
        truth = x.mean()
        wrong["mean"].append(held.error("mean", query.mean(name), truth) / truth)
        truth = (x**2).mean()
        wrong["moment"].append(held.error("moment", query.moment(name, 2), truth) / truth)
        for at in POINTS:
            wrong["cdf"].append(held.error("cdf", query.cdf(name, at), (x <= at).mean()))
    return {kind: float(np.mean(errors)) for kind, errors in wrong.items()}


def _covariance(query: aq.Query, rows: pd.DataFrame, held: Held) -> float:
    """Give the Frobenius norm of the covariance matrix's error (§4.2)."""
    truth, names = np.cov(rows.to_numpy(float).T, bias=True), list(rows)
    off = np.zeros_like(truth)
    for line in query.covariance().to_dict("records"):
        i, j = names.index(line.pop("first")), names.index(line.pop("second"))
        off[i, j] = off[j, i] = held.error("covariance", aq.Answer(**line), truth[i, j])
    return float(np.linalg.norm(off))


def _counts(
    query: aq.Query, rows: pd.DataFrame, held: Held, count: int, rng: np.random.Generator
) -> float:
    """Ask for counts under X ≤ u or X ≥ l in three columns (§4.2), u and l uniform in [0, 1]."""
    wrong = []
    for _ in range(count):
        words, kept = [], np.ones(len(rows), bool)
        for place in rng.choice(rows.shape[1], 3, replace=False):
            name, at, below = str(rows.columns[place]), float(rng.random()), rng.random() < 0.5
            words.append(f'"{name}" {"<=" if below else ">="} {at!r}')
            x = rows[name].to_numpy(float)
            kept &= x <= at if below else x >= at
        found = query.count(" and ".join(words))
        wrong.append(held.error("count", found, float(kept.sum())) / len(rows))
    return float(np.mean(wrong))
