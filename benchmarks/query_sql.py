"""Adult at ε = 1: the same questions asked of the release, of AIM's rows and of our own rows."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
from datasets import schema_toml
from query_tables import released, table
from questions import Asked, Chance, Truths, database, truths
from runs import DELTA, Found, Job, Log, RunError, Settings, call, read_stats, run_all

import aquatint as aq
from aquatint.schema import Schema

EPSILON = 1.0
QUESTIONS = 500
SEED = 2024
"""Of the questions."""
FEWEST = 0.01
"""Averages and shares are asked of at least this share of the rows, and counted in such groups."""
METHODS = ("query", "query_full", "sample", "aim")


@dataclass(frozen=True)
class Adult:
    """The rows, the schema, the questions and their true answers."""

    rows: pd.DataFrame
    schema: Schema
    questions: list[tuple[Asked, Truths]]


def adult(count: int = QUESTIONS) -> Adult:
    """Draw the questions: those that make sense, by SQLite."""
    rows, schema = table("adult")
    with database(rows) as connection:

        def fit() -> Iterator[tuple[Asked, Truths]]:
            seen = set()
            for asked in Chance(rows, schema, SEED).mixed():
                if asked.text in seen:
                    continue
                seen.add(asked.text)
                found = _large(connection.execute, asked, truths(connection, asked), len(rows))
                if found:
                    yield asked, found

        return Adult(rows, schema, list(islice(fit(), count)))


def _large(execute: Callable[..., Any], asked: Asked, found: Truths, rows: int) -> Truths:
    """Leave averages of few rows out: they say little of any method."""
    if asked.kind.startswith("count"):
        return found
    names, rest = asked.text.split(" from data", 1)
    keys = names.removeprefix("select ").rsplit(", ", 1)[0] + ", " if asked.keys else ""
    text = f"select {keys}count(*) from data{rest}"
    lines = {tuple(map(str, line[:-1])): line[-1] for line in execute(text)}
    return {key: value for key, value in found.items() if lines[key] >= FEWEST * rows}


def sql(asked: argparse.Namespace, log: Log) -> int:
    """Ask every method."""
    made = adult(asked.questions)
    folder = asked.work / "queries" / "adult"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for method in asked.methods or METHODS:
        for seed in range(asked.runs):
            settings = {"part": "sql", "table": "adult", "method": method, "epsilon": EPSILON}
            settings |= {"delta": DELTA, "seed": seed}
            settings |= {"questions": asked.questions, "drawn": SEED}
            if method == "aim":
                settings["rounds"] = asked.rounds
            make = {"sample": _sample, "aim": partial(_aim, asked)}.get(method, _query)
            jobs.append(Job(settings, partial(make, made, folder, settings)))
    return run_all(log, jobs, ("error", "coverage"), again=asked.again)


def _query(made: Adult, _: Path, settings: Settings) -> Found:
    """Ask the release, by the quick model of a query or by the one that `aq.sample` fits."""
    seed = settings["seed"]
    release = released(made.rows, made.schema, "default", EPSILON, DELTA, seed)
    full = settings["method"] == "query_full"
    model: Any = aq.synthesize(release, seed=seed, progress=False) if full else None
    query = aq.Query(release, model=model, progress=False)
    lines = []
    for asked, true in made.questions:
        found = query.sql(asked.text)
        keys = map(tuple, found[list(asked.keys)].astype(str).to_numpy())
        by_key = dict(zip(keys, found.to_dict("records"), strict=True))
        for key, truth in true.items():
            line = by_key[key]
            held = line["low"] <= truth <= line["high"]
            error = abs(line["value"] - truth) / asked.unit
            lines.append({"kind": asked.kind, "text": asked.text, "error": error, "held": held})
    return _summary(pd.DataFrame(lines))


def _rows(made: Adult, synthetic: pd.DataFrame) -> Found:
    """Ask synthetic rows by SQLite.

    They are as many as the release says there are. Where an average has no rows at all, that of the
    whole synthetic column stands in.
    """
    lines = []
    with database(synthetic) as connection:
        for asked, true in made.questions:
            found = truths(connection, asked)
            for key, truth in true.items():
                value = found.get(key, math.nan)
                if math.isnan(value):
                    value = _instead(asked, synthetic)
                error = abs(value - truth) / asked.unit
                lines.append({"kind": asked.kind, "text": asked.text, "error": error})
    return _summary(pd.DataFrame(lines))


def _instead(asked: Asked, synthetic: pd.DataFrame) -> float:
    """Answer where no synthetic row satisfies the condition."""
    column = asked.text.split('("')[-1].split('")')[0]
    if asked.kind.startswith("average"):
        return float(synthetic[column].astype(float).mean())
    return float(synthetic[column].astype(float).std()) if asked.kind == "deviation" else 0.0


def _sample(made: Adult, _: Path, settings: Settings) -> Found:
    """Draw our own rows from the same release, as many as it says there are, and ask them."""
    seed = settings["seed"]
    release = released(made.rows, made.schema, "default", EPSILON, DELTA, seed)
    drawn = aq.sample(release, round(release.count), seed=seed, progress=False)
    return _rows(made, drawn)


def _aim(words: argparse.Namespace, made: Adult, _: Path, settings: Settings) -> Found:
    """Ask AIM's rows: those that ``tables.py adult`` made, or else they are made for both."""
    folder = words.work / "adult" / "adult"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"aim_{EPSILON:g}_{settings['seed']}.csv"
    stats = out.with_suffix(".json")
    if words.again or not stats.exists():
        made.rows.to_csv(folder / "train.csv", index=False)
        settled = schema_toml(aq.plan(made.schema).schema)
        (folder / "settled.toml").write_text(settled, encoding="utf-8")
        asked: list[object] = ["--train", folder / "train.csv"]
        asked += ["--schema", folder / "settled.toml", "-o", out]
        for name in ("method", "epsilon", "delta", "seed", "rounds"):
            asked += [f"--{name}", settings[name]]
        call("peers.py", *asked, python=words.peers_python, stats=stats)
    found = read_stats(stats)
    if found["rounds"] != settings["rounds"]:
        msg = f"{out.name} has {found['rounds']} rounds, not {settings['rounds']}: take it away"
        raise RunError(msg)
    return _rows(made, pd.read_csv(out, keep_default_na=False))


def _summary(lines: pd.DataFrame) -> Found:
    """Average over the answers to a question first, then over questions."""
    kinds = {}
    for kind, part in lines.groupby("kind"):
        kinds[str(kind)] = {"error": _mean(part), "questions": int(part["text"].nunique())}
        if "held" in part:
            kinds[str(kind)] |= {"held": int(part["held"].sum()), "answers": len(part)}
    found: Found = {"error": _mean(lines), "kinds": kinds, "answers": len(lines)}
    if "held" in lines:
        found["coverage"] = float(lines["held"].mean())
    return found


def _mean(lines: pd.DataFrame) -> float:
    return float(lines.groupby("text")["error"].mean().mean())
