"""Aquatint beside AIM and MST, on Adult, on the development tables and on unseen ones.

All get the same rows and the same cells: the bins that the default plan settles on without a guess
of the number of rows, 32 at most. The peers get them as declared edges.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from datasets import NotHereError, data_file, evaluation_json, load, schema_toml
from development import TABLES, Table
from runs import DELTA, Found, Job, Log, RunError, Settings, call, read_stats, run_all
from scoring import Scorer, find_scorer, without_bins
from unseen import UNSEEN

from aquatint.schema import Schema
from aquatint.table_plan import plan

PEERS = ("aim", "mst")
SHOW = ("tv2", "tv3", "auc", "ap", "cpu_s", "peak_mb")
ADULT_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DEVELOPMENT_EPSILONS = (0.3, 1.0)


@dataclass(frozen=True)
class Bench:
    """One table as files, ready for every method."""

    name: str
    folder: Path
    schema: Schema
    rows: int
    scorer: Scorer

    @property
    def settled(self) -> Schema:
        """The schema with the bins of the default plan."""
        return plan(self.schema).schema

    def file(self, method: str, epsilon: float | None, seed: int) -> Path:
        """Where the rows of a run go."""
        if epsilon is None:
            return self.folder / "train.csv"
        return self.folder / f"{method}_{epsilon:g}_{seed}.csv"


def prepare(
    asked: argparse.Namespace,
    name: str,
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    numeric: dict[str, object] | None = None,
) -> Bench:
    """Write the files of a table: rows, the schema as declared, and with the plan's bins."""
    if asked.rows:
        train, test = (f.head(asked.rows).reset_index(drop=True) for f in (train, test))
    folder = asked.work / asked.part / f"{name}{asked.rows or ''}"
    folder.mkdir(parents=True, exist_ok=True)
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    scoring = numeric or evaluation_json(schema, aligned=False)
    paths = folder / "train.csv", folder / "test.csv"
    scorer = Scorer(find_scorer(asked.scorer), *paths, schema, scoring)
    bench = Bench(name, folder, schema, len(train), scorer)
    (folder / "schema.toml").write_text(schema_toml(schema), encoding="utf-8")
    (folder / "settled.toml").write_text(schema_toml(bench.settled), encoding="utf-8")
    return bench


def jobs(asked: argparse.Namespace, bench: Bench, part: str, peers: Path | None) -> list[Job]:
    """List the runs of one table: the real rows once, and every method at every ε."""
    found = []
    if peers is not None and peers.exists():
        check_bins(bench, peers)
    common = {"part": part, "table": bench.name, "delta": DELTA, "scorer": bench.scorer.name}
    common |= {"rows": asked.rows} if asked.rows else {}
    if "real" in asked.methods:
        settings = {**common, "method": "real", "epsilon": None, "seed": 0}
        found.append(Job(settings, partial(real, bench)))
    for method in (m for m in asked.methods if m != "real"):
        for epsilon in asked.epsilon:
            for seed in range(asked.runs):
                settings = {**common, "method": method, "epsilon": epsilon, "seed": seed}
                if method == "aim":
                    settings["rounds"] = asked.rounds
                if method not in PEERS:
                    make = partial(ours, bench, settings)
                elif peers is None:
                    make = partial(peer, bench, settings, asked)
                elif (peers / bench.file(method, epsilon, seed).with_suffix(".json").name).exists():
                    make = partial(imported, bench, settings, peers)
                else:
                    continue
                found.append(Job(settings, make))
    return found


def check_bins(bench: Bench, folder: Path) -> None:
    """Refuse a peer's files if the schema beside them has other cells than ours.

    Bins that do not line up with the scorer's cost a peer dearly: MST's rows of Adult at ε = 1,
    made on such bins, score .070 on pairs, and .038 by a scorer whose bins are theirs.
    """
    path = folder / "schema.toml"
    if not path.exists():
        print(f"{bench.name}: no schema.toml beside the peers' files, so their bins are trusted")
    elif Schema.from_toml(path).columns != bench.settled.columns:
        msg = f"{bench.name}: the peers' schema.toml has other cells than the default plan"
        raise SystemExit(msg)


def real(bench: Bench) -> Found:
    """Score the training rows themselves."""
    return bench.scorer.score(bench.folder / "train.csv")


def ours(bench: Bench, settings: Settings) -> Found:
    """Run one of our methods and score its rows."""
    out = bench.file(settings["method"], settings["epsilon"], settings["seed"])
    words = _words(bench, settings, "schema.toml", out)
    stats = call("ours.py", *words, stats=out.with_suffix(".json"))
    parts = ("cpu_sketch_s", "cpu_fit_s", "cpu_sample_s")
    return {**bench.scorer.score(out), "cpu_s": sum(stats[p] for p in parts), **stats}


def peer(bench: Bench, settings: Settings, asked: argparse.Namespace) -> Found:
    """Run AIM or MST, unless an earlier call got that far, and score its rows."""
    out = bench.file(settings["method"], settings["epsilon"], settings["seed"])
    words = _words(bench, settings, "settled.toml", out)
    if settings.get("rounds"):
        words += ["--rounds", settings["rounds"]]
    stats = out.with_suffix(".json")
    if asked.again or not stats.exists():
        call("peers.py", *words, python=asked.peers_python, stats=stats)
    return imported(bench, settings, bench.folder)


def imported(bench: Bench, settings: Settings, folder: Path) -> Found:
    """Score rows that a peer made, here or by hand, once it is clear that they are the ones."""
    out = folder / bench.file(settings["method"], settings["epsilon"], settings["seed"]).name
    stats = read_stats(out.with_suffix(".json"))
    expected = {
        **{k: settings[k] for k in ("method", "epsilon", "delta", "seed")},
        "rounds": settings.get("rounds"),
        "rows": bench.rows,
        "cells": sum(bench.settled.cells().values()),
    }
    wrong = [name for name, value in expected.items() if stats[name] != value]
    if wrong:
        said = ", ".join(f"{n} = {stats[n]} (wanted {expected[n]})" for n in wrong)
        msg = f"{out.name} was made with other settings: {said}"
        raise RunError(msg)
    kept = ("cpu_fit_s", "cpu_sample_s", "peak_mb", "synthetic_rows", "marginals", "max_size_mb")
    more = {name: stats[name] for name in (*kept, "oneway_split", "versions")}
    cpu = stats["cpu_fit_s"] + stats["cpu_sample_s"]
    return {**bench.scorer.score(out), "cpu_s": cpu, **more}


def _words(bench: Bench, settings: Settings, schema: str, out: Path) -> list[object]:
    words: list[object] = ["--train", bench.folder / "train.csv"]
    words += ["--schema", bench.folder / schema, "-o", out]
    for name in ("method", "epsilon", "delta", "seed"):
        words += [f"--{name}", settings[name]]
    return words


def adult(asked: argparse.Namespace, log: Log) -> int:
    """Compare on the fixed split of Adult."""
    table = load("adult")
    path = data_file("anchors", "adult", "adult_schema.json")
    numeric = json.loads(path.read_text(encoding="utf-8"))
    bench = prepare(asked, "adult", table.train, table.test, table.schema, numeric)
    return run_all(log, jobs(asked, bench, "adult", asked.import_peers), SHOW, again=asked.again)


def development(asked: argparse.Namespace, log: Log) -> int:
    """Compare on the tables that the defaults were chosen on."""
    return _several(asked, log, TABLES)


def unseen(asked: argparse.Namespace, log: Log) -> int:
    """Compare on tables that had no say in any default."""
    return _several(asked, log, UNSEEN)


def _several(asked: argparse.Namespace, log: Log, tables: Mapping[str, Callable[[], Table]]) -> int:
    found = []
    for name in asked.tables or tables:
        try:
            table = tables[name]()
        except NotHereError as absent:
            print(f"{name}: {absent}")
            continue
        bench = prepare(asked, name, table.train, table.test, without_bins(table.schema))
        peers = None if asked.import_peers is None else asked.import_peers / name
        found += jobs(asked, bench, asked.part, peers)
    return run_all(log, found, SHOW, again=asked.again)
