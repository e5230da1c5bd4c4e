"""The experiments of DP-MERF and DP-HP: eight tables, a mixture of Gaussians, α-way marginals.

`auto`, `dp_merf` and `dp_hp` run at the papers' ε and δ with one setting for all tables. Every plan
is given a public guess of the number of rows, to one significant figure, unless `--no-guess`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from datasets import (
    MARGINALS,
    PUBLISHED,
    Dataset,
    NotHereError,
    discretised,
    load,
    schema_toml,
)
from runs import DELTA, Found, Job, Log, Settings, call, run_all

from aquatint.evaluate import evaluate
from aquatint.evaluate.fidelity import alpha_way
from aquatint.evaluate.likelihood import five_by_five, modes_covered, negative_log_likelihood
from aquatint.evaluate.published import UNDERSAMPLING_OF_DP_HP, alpha_way_error
from aquatint.evaluate.tables import Grid, encode

METHODS = ("auto", "dp_merf", "dp_hp")
MIXTURE_ROWS = 90_000
# The table here holds 4,207 of the 284,315 honest payments. DP-HP keeps 0.2 % of them all.
KEPT = {**UNDERSAMPLING_OF_DP_HP, "credit": UNDERSAMPLING_OF_DP_HP["credit"] * 284_315 / 4_207}
MARGINAL_EPSILONS = (0.3, 0.1)
MOST = 50_000
"""Rows that classifiers learn from, at most."""
FEWER = 20_000
"""The same for large and wide tables, where twelve classifiers take long."""
LARGE = ("census", "epileptic", "isolet", "covtype", "intrusion")


@dataclass(frozen=True, eq=False)
class Files:
    """A table as files, ready for every method."""

    table: Dataset
    train: pd.DataFrame
    test: pd.DataFrame
    folder: Path
    guess: int | None

    def synthesize(self, settings: Settings, *words: Any) -> tuple[Path, Found]:
        """Run one of our methods in a process of its own; give its rows and what it took."""
        epsilon, seed = settings["epsilon"], settings["seed"]
        out = self.folder / f"{settings['method']}_{epsilon:g}_{seed}.csv"
        given = {"train": self.folder / "train.csv", "schema": self.folder / "schema.toml"}
        given |= {name: settings[name] for name in ("method", "epsilon", "delta", "seed")}
        given |= {"out": out} | ({"guess": settings["guess"]} if settings["guess"] else {})
        flat = [word for name, value in given.items() for word in (f"--{name}", value)]
        stats = call("ours.py", *flat, *words, stats=out.with_suffix(".json"))
        parts = ("cpu_sketch_s", "cpu_fit_s", "cpu_sample_s")
        return out, {"cpu_s": sum(stats[part] for part in parts), **stats}


def round_number(rows: int) -> int:
    """Round to one significant figure, as a person would who knows about how many rows there are.

    Examples
    --------
    >>> round_number(39_073)
    40000
    """
    return int(float(f"{rows:.0e}"))


def prepare(asked: argparse.Namespace, table: Dataset) -> Files:
    """Write the files of a table."""
    train, test = (cut(frame, asked.rows) for frame in (table.train, table.test))
    folder = asked.work / asked.part / f"{table.name}{asked.rows or ''}"
    folder.mkdir(parents=True, exist_ok=True)
    train.to_csv(folder / "train.csv", index=False)
    (folder / "schema.toml").write_text(schema_toml(table.schema), encoding="utf-8")
    guess = None if asked.no_guess else round_number(len(train))
    return Files(table, train, test, folder, guess)


def cut(frame: pd.DataFrame, most: int | None) -> pd.DataFrame:
    """Keep at most so many rows: always the same ones."""
    if most is None or len(frame) <= most:
        return frame
    return frame.sample(most, random_state=0).reset_index(drop=True)


def common(asked: argparse.Namespace, files: Files, method: str) -> Settings:
    """Give the settings that all experiments have."""
    real = method == "real"
    return {
        "part": asked.part,
        "table": files.table.name,
        "method": method,
        "epsilon": None if real else 1.0,
        "delta": DELTA,
        "guess": None if real else files.guess,
        **({"rows": asked.rows} if asked.rows else {}),
    }


def papers(asked: argparse.Namespace, log: Log) -> int:
    """Train the papers' twelve classifiers on synthetic rows of each of the eight tables."""
    failed = 0
    for name in asked.tables or PUBLISHED:  # one after the other: the large ones fill memory
        try:
            files = prepare(asked, load(name))
        except NotHereError as absent:
            print(f"{name}: {absent}")
            continue
        jobs = []
        for method in asked.methods:
            for seed in range(1 if method == "real" else asked.runs):
                settings = {**common(asked, files, method), "seed": seed}
                most = asked.train_rows or (FEWER if name in LARGE else MOST)
                settings |= {"most": most, "classifiers": asked.classifiers}
                jobs.append(Job(settings, partial(classify, files, settings)))
        print(f"{name}: {len(files.train):,} + {len(files.test):,} rows", flush=True)
        failed += run_all(log, jobs, ("roc", "prc", "f1", "tv2", "cpu_s"), again=asked.again)
    return failed


def classify(files: Files, settings: Settings) -> Found:
    """Make a table, train on it, and score on the real test rows: rightly, and as published."""
    stats: Found = {}
    synthetic: Any = cut(files.train, settings["most"])
    if settings["method"] != "real":
        synthetic, stats = files.synthesize(settings, "--most", settings["most"])
    found = evaluate(
        files.train,
        files.test,
        synthetic,
        files.table.schema,
        classifiers=settings["classifiers"],
        as_published=True,
        undersampling=KEPT[files.table.name],
        progress=False,
    ).to_dict()
    used = found["utility"]
    right, published = used["mean"], used["as_published"]["mean"]
    return {
        "roc": right.get("roc_auc"),
        "prc": right.get("average_precision"),
        "f1": right.get("f1_weighted"),
        "f1_macro": right.get("f1_macro"),
        "as_published": published,
        **{name: found["closeness"][name] for name in ("tv1", "tv2", "tv3")},
        "classifiers": used["classifiers"],
        "classifiers_as_published": used["as_published"]["classifiers"],
        **stats,
    }


def mixture(asked: argparse.Namespace, log: Log) -> int:
    """Score samples under the true mixture of Gaussians, and count its modes."""
    files = prepare(asked, load("mixture"))
    jobs = []
    for method in asked.methods:
        for seed in range(1 if method == "real" else asked.runs):
            settings = {**common(asked, files, method), "seed": seed}
            jobs.append(Job(settings, partial(likelihood, files, settings)))
    failed = run_all(log, jobs, ("nll_published", "nll", "modes", "cpu_s"), again=asked.again)
    from results_plots import mixture_plot

    mixture_plot(files.train, files.folder, asked.plots)
    return failed


def likelihood(files: Files, settings: Settings) -> Found:
    """Draw as many rows as the papers and give their likelihood under the truth."""
    rows, stats = files.train, {}
    if settings["method"] != "real":
        out, stats = files.synthesize(settings, "--rows", min(MIXTURE_ROWS, len(files.train)))
        rows = pd.read_csv(out)
    truth = five_by_five()
    points, labels = rows[["x1", "x2"]].to_numpy(), rows["label"].to_numpy(dtype=np.int64)
    per_row = negative_log_likelihood(points, labels, truth, as_published=True)
    return {
        "rows_drawn": len(rows),
        "nll_published": per_row * len(rows),
        "nll": negative_log_likelihood(points, labels, truth),
        "modes": modes_covered(points, truth, labels),
        **stats,
    }


def marginals(asked: argparse.Namespace, log: Log) -> int:
    """Compare α-way marginals of the discretised tables: the published way, and the right way."""
    failed = 0
    for name in asked.tables or dict.fromkeys(name for name, _ in MARGINALS):
        files = prepare(asked, discretised(name))
        jobs = []
        methods = [m for m in asked.methods if m != "real"]
        for method, epsilon, seed in product(methods, asked.epsilon, range(asked.runs)):
            settings = {**common(asked, files, method), "epsilon": epsilon, "seed": seed}
            settings |= {"subsets": asked.subsets, "table": name}
            jobs.append(Job(settings, partial(compare, files, settings)))
        print(f"{name}, discretised: {len(files.train):,} rows", flush=True)
        failed += run_all(log, jobs, ("brief", "cpu_s"), again=asked.again)
    return failed


def compare(files: Files, settings: Settings) -> Found:
    """Give the error of α-way marginals, for the α that the paper has."""
    out, stats = files.synthesize(settings)
    grid = Grid(files.table.schema)
    pair = encode(files.train, grid, what="real", strict=True), encode(out, grid)
    alphas = [alpha for name, alpha in MARGINALS if name == settings["table"]]
    limit = settings["subsets"]
    published = {str(a): alpha_way_error(*pair, grid, a, limit=limit) for a in alphas}
    right = {str(a): alpha_way(*pair, grid, a, limit=limit) for a in alphas}
    return {"published": published, "right": right, "brief": published[str(alphas[0])], **stats}
