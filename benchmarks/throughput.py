"""How fast rows become sums, as a ratio to the plain float32 path in the same run.

Each case runs in a process of its own on one core, so that its peak memory is its own. For every
batch that is timed, the plain torch path (no integers, no checks, encoded input for free) is timed
on the same rows just before, so that whatever else the machine does hits both alike.

    python benchmarks/throughput.py            # 1 and 10 million rows, about 20 minutes
    python benchmarks/throughput.py --quick    # 200,000 rows, for a look
    python benchmarks/throughput.py --render   # write the page of the docs from the results again
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from runs import processor
from torch import Tensor

from aquatint.curator.sketch import accumulate
from aquatint.features import Count, FeatureMap, fourier, hermite, onehot, pairs
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema

COLUMNS = [f"c{i}" for i in range(14)]
CELLS = 20
BATCH = 65_536
RESULTS = Path(__file__).parent / "results" / "throughput.json"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "throughput.md"
NAMES = {
    "pairs": "one-hot columns and all pairs, 280 cells",
    "fourier": "10,000 Fourier features",
    "hermite": "Hermite features to order 100",
}


@dataclass(frozen=True)
class Result:
    """One case: our rate, the plain path's, and what the machine could do at most."""

    case: str
    rows: int
    rows_per_second: float
    plain_rows_per_second: float
    times_plain: float
    limit: str
    times_limit: float
    peak_mb: int


def schema() -> Schema:
    """Half of the columns are numbers in 20 bins, half are categories: 280 cells in all."""
    number = {"kind": "numeric", "bounds": [0, 1], "bins": CELLS}
    category = {"kind": "categorical", "categories": [f"value {i}" for i in range(CELLS)]}
    return Schema.from_dict(
        {
            "name": "throughput",
            "privacy": {"protects": "add or remove one row"},
            "columns": {c: number if i % 2 else category for i, c in enumerate(COLUMNS)},
        }
    )


def numeric_schema() -> Schema:
    """All columns are numbers."""
    number = {"kind": "numeric", "bounds": [0, 1], "bins": CELLS}
    return Schema.from_dict(
        {
            "name": "throughput",
            "privacy": {"protects": "add or remove one row"},
            "columns": dict.fromkeys(COLUMNS, number),
        }
    )


@dataclass(frozen=True)
class Case:
    """What to sum, and the plain way to do it."""

    plan: Plan
    plain: Callable[[Tensor], Tensor]
    limit: str
    bare: Callable[[Tensor], object]
    every: int


def planned(where: Schema, feature_map: FeatureMap) -> Plan:
    return Plan(
        where,
        (PlannedBlock("count", Count(), 0.01), PlannedBlock("features", feature_map, 0.99)),
    )


def pairs_case() -> Case:
    cells = dict.fromkeys(COLUMNS, CELLS)
    offsets = torch.arange(len(COLUMNS)) * CELLS

    def plain(values: Tensor) -> Tensor:
        codes = (values * CELLS).long().clamp_(max=CELLS - 1) + offsets
        total = torch.zeros(len(COLUMNS) * CELLS, len(COLUMNS) * CELLS)
        for part in codes.split(4096):
            hot = torch.zeros(len(part), len(COLUMNS) * CELLS).scatter_(1, part, 1.0)
            total += hot.T @ hot
        return total

    def bare(values: Tensor) -> object:
        codes = (values * CELLS).int().clamp_(max=CELLS - 1)
        cells = torch.cat([codes[:, i] * CELLS + codes[:, j] for i in range(14) for j in range(i)])
        begun = perf_counter()
        torch.bincount(cells, minlength=CELLS * CELLS)
        return perf_counter() - begun

    return Case(
        planned(schema(), onehot(cells) + pairs(cells)), plain, "one bincount of 91 cells", bare, 1
    )


def fourier_case() -> Case:
    features = fourier(COLUMNS, 10_000, length_scale=0.2)
    omega = (2 * torch.pi * features.frequencies).float()

    def plain(values: Tensor) -> Tensor:
        total = torch.zeros(10_000)
        for part in values.split(128):
            phase = part @ omega
            total += torch.cat([phase.cos(), phase.sin()], dim=1).mul_(sqrt(2 / 10_000)).sum(dim=0)
        return total

    def bare(values: Tensor) -> object:
        begun = perf_counter()
        for part in values.split(128):
            part @ omega
        return perf_counter() - begun

    return Case(planned(numeric_schema(), features), plain, "the matrix product alone", bare, 8)


def hermite_case() -> Case:
    features = hermite(COLUMNS, 100, length_scale=0.2)
    rho, span = features.rho, features.span

    def plain(values: Tensor) -> Tensor:
        total = torch.zeros(features.dim)
        for part in values.split(1024):
            x = span * (2 * part - 1)
            out = [torch.exp(-rho / (1 + rho) * x * x) * ((1 - rho**2) ** 0.25 / sqrt(14))]
            out.append(sqrt(2 * rho) * x * out[0])
            for c in range(1, 100):
                grown = sqrt(2 * rho / (c + 1)) * x * out[c]
                out.append(grown - rho * sqrt(c / (c + 1)) * out[c - 1])
            total += torch.stack(out, dim=-1).reshape(len(part), -1).sum(dim=0)
        return total

    def bare(values: Tensor) -> object:
        written = torch.empty(1024, features.dim)
        begun = perf_counter()
        for _ in range(len(values) // 1024):
            written.fill_(1.0)
        return perf_counter() - begun

    return Case(planned(numeric_schema(), features), plain, "writing the features once", bare, 4)


CASES = {"pairs": pairs_case, "fourier": fourier_case, "hermite": hermite_case}


def batches(where: Schema) -> list[tuple[pa.RecordBatch, Tensor]]:
    """Make a few batches of synthetic rows, with the same rows encoded for the plain path."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(4):
        values = rng.random((BATCH, len(COLUMNS)))
        arrays = []
        for i, name in enumerate(COLUMNS):
            if where.columns[name].kind == "numeric":
                arrays.append(pa.array(values[:, i]))
            else:
                codes = np.minimum(values[:, i] * CELLS, CELLS - 1).astype(np.int32)
                words = pa.array([f"value {k}" for k in range(CELLS)])
                arrays.append(words.take(pa.array(codes)))
        batch = pa.RecordBatch.from_arrays(arrays, names=COLUMNS)
        made.append((batch, torch.from_numpy(values).float()))
    return made


def measure(name: str, rows: int) -> Result:
    """Time one case, alternating with the plain path."""
    torch.set_num_threads(1)
    case = CASES[name]()
    pool = batches(case.plan.schema)
    spent = {"plain": 0.0, "bare": 0.0, "aside": 0.0, "compared": 0.0}

    def stream() -> Iterator[pa.RecordBatch]:
        left, number = rows, 0
        while left > 0:
            batch, values = pool[number % len(pool)]
            count = min(left, BATCH)
            if number % case.every == 0 and count == BATCH:
                begun = perf_counter()
                case.plain(values)
                between = perf_counter()
                spent["plain"] += between - begun
                spent["bare"] += float(str(case.bare(values)))
                spent["aside"] += perf_counter() - begun
                spent["compared"] += count
            yield batch.slice(0, count)
            left -= count
            number += 1

    begun = perf_counter()
    accumulate(stream(), case.plan, workers=1)  # more would work while the plain path is timed
    ours = (perf_counter() - begun - spent["aside"]) / rows
    plain, bare = spent["plain"] / spent["compared"], spent["bare"] / spent["compared"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Result(name, rows, 1 / ours, 1 / plain, ours / plain, case.limit, ours / bare, int(peak))


def main() -> None:
    """Run every case in a process of its own and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--rows", type=int)
    asked = parser.parse_args()
    if asked.render:
        render()
        return
    if asked.case and asked.rows:
        print(json.dumps(asdict(measure(asked.case, asked.rows))))
        return
    found = []
    for rows in [200_000] if asked.quick else [1_000_000, 10_000_000]:
        for name in CASES:
            words = [sys.executable, __file__, "--case", name, "--rows", str(rows)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            result = json.loads(done.stdout)
            found.append(result)
            print(
                f"{name:8} {rows:>11,} rows  {result['rows_per_second']:>10,.0f} rows/s  "
                f"{result['times_plain']:.2f} x plain  {result['times_limit']:.1f} x "
                f"{result['limit']}  {result['peak_mb']} MB",
                flush=True,
            )
    if not asked.quick:
        about = {
            "machine": platform.machine(),
            "processor": processor(),
            "torch": version("torch"),
            "aquatint": version("aquatint"),
            "command": "make bench",
        }
        RESULTS.write_text(json.dumps({"about": about, "results": found}, indent=2) + "\n")
        render()


def _line(result: dict[str, Any]) -> str:
    return (
        f"| {NAMES[result['case']]} | {result['rows']:,} | {result['rows_per_second']:,.0f} | "
        f"{result['times_plain']:.2f} × | {result['times_limit']:.1f} × {result['limit']} | "
        f"{result['peak_mb']} MB |"
    )


def render() -> None:
    """Write the results as a page of the documentation."""
    saved = json.loads(RESULTS.read_text())
    about = saved["about"]
    lines = [
        "# Throughput",
        "",
        "How fast rows become exact sums on one core, made by `make bench`. *Plain* is the",
        "obvious torch code for the same sums in float32, without integers or checks, timed on the",
        "same rows in the same run. *Limit* is a part of the work that nothing can avoid. All",
        "tables have 14 columns.",
        "",
        "| features | rows | rows/s | time against plain | time against the limit | peak memory |",
        "|---|---|---|---|---|---|",
        *map(_line, saved["results"]),
        "",
        f"Processor: {about['processor']}, one thread.",
        f"Software: aquatint {about['aquatint']}, torch {about['torch']}.",
        "",
    ]
    PAGE.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
