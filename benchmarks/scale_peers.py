"""All pairs of 14 columns, counted by others on one core, beside ours on the same rows.

    python benchmarks/scale_peers.py run --data /tmp/scale     # about five minutes on a quiet core
    python benchmarks/scale_peers.py run --only mbi            # one of them
    python benchmarks/scale.py render                          # write the page of the docs again

Each runs in a process of its own that is held to one core, ours first and last. Ours reads raw
rows; the others are given the cells as whole numbers, so that encoding costs them nothing. OpenDP
and mbi run in `.venv-peers`, SmartNoise, which wants an older OpenDP, in `.venv-smartnoise`.

OpenDP and SmartNoise ask one query for each pair, which takes seconds. They are timed on four
pairs, and the time is multiplied by 91/4.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from itertools import combinations
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "scale_peers.jsonl"
COLUMNS = [f"c{i}" for i in range(14)]
CELLS = 20
PAIRS = list(combinations(COLUMNS, 2))
SOME = PAIRS[:4]
EPSILON, DELTA, RHO = 1.0, 1e-6, 0.02
ONE_CORE = dict.fromkeys(
    ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
) | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
Result = dict[str, Any]


class Clock:
    """Seconds of the clock and of the processor; on one core they differ by what others took."""

    def __init__(self) -> None:
        self._begun = perf_counter(), process_time()

    def __call__(self, times: float = 1) -> Result:
        """Give the time since the start, so many times over."""
        clock, processor = perf_counter() - self._begun[0], process_time() - self._begun[1]
        return {"seconds": clock * times, "cpu_seconds": processor * times}


def prepare(folder: Path, rows: int) -> tuple[Path, Path]:
    """Give the raw rows, and the same rows as cells, as our encoder has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from scale_data import write
    from scale_parts import pairs_plan

    from aquatint.curator.encode import Notes
    from aquatint.curator.gathering import encoder_of

    (raw,) = write(folder, rows)
    cells = folder / f"cells-{rows}.parquet"
    if not cells.exists():
        encode = encoder_of(pairs_plan())
        batches = pq.ParquetFile(raw).iter_batches(columns=COLUMNS)
        coded = [encode(batch, Notes()).codes for batch in batches]
        arrays = {c: pa.chunked_array([part[c].numpy() for part in coded]) for c in COLUMNS}
        pq.write_table(pa.table(arrays), cells)
    return raw, cells


def ours(raw: Path, _cells: Path) -> list[Result]:
    from scale_parts import pairs_plan

    from aquatint.curator.gathering import accumulate
    from aquatint.curator.sketch import sketch

    plan = pairs_plan()
    few = next(iter_batches(raw))
    accumulate(few, plan, workers=1)  # compile what is compiled once
    clock = Clock()
    accumulate(str(raw), plan, workers=1)
    counted, clock = clock(), Clock()
    sketch(str(raw), plan.schema, plan=plan, epsilon=EPSILON, delta=DELTA, workers=1)
    return [
        {"job": "count", **counted, "given": "raw rows"},
        {"job": "release", **clock(), "given": "raw rows"},
    ]


def iter_batches(raw: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(raw).iter_batches(batch_size=1000)


def mbi(_raw: Path, cells: Path) -> list[Result]:
    """Count as AIM and MST do: mbi's Dataset.project, then the vector of its counts."""
    import numpy as np
    import pyarrow.parquet as pq
    from mbi import Dataset, Domain

    domain = Domain(COLUMNS, [CELLS] * len(COLUMNS))
    few = Dataset({name: np.zeros(1000, np.int32) for name in COLUMNS}, domain)
    few.project(PAIRS[0]).datavector()  # whatever the first use costs
    clock = Clock()
    table = pq.read_table(cells)
    codes = {name: table[name].to_numpy() for name in COLUMNS}
    data = Dataset(codes, domain)
    total = sum(int(data.project(pair).datavector().sum()) for pair in PAIRS)
    assert total == len(PAIRS) * table.num_rows
    return [{"job": "count", **clock(), "given": "cells"}]


def opendp(_raw: Path, cells: Path) -> list[Result]:
    """OpenDP's Polars queries with public keys, discrete Gaussian noise under zCDP."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    clock = Clock()
    context = dp.Context.compositor(
        data=pl.scan_parquet(cells),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=RHO),
        split_evenly_over=len(SOME),
    )
    counting = {"seconds": 0.0, "cpu_seconds": 0.0}
    for pair in SOME:
        both = [(i, j) for i in range(CELLS) for j in range(CELLS)]
        keys = pl.DataFrame(both, schema=dict.fromkeys(pair, pl.Int32), orient="row").lazy()
        query = context.query().group_by(*pair).agg(dp.len()).with_keys(keys)
        released = query.release()
        running = Clock()
        assert released.collect().height == CELLS**2
        counting = {name: counting[name] + more for name, more in running().items()}
    times = len(PAIRS) / len(SOME)
    given = f"cells; {len(SOME)} of {len(PAIRS)} pairs, times {times:g}"
    return [
        {"job": "release", **clock(times), "given": given},
        {
            "job": "run prepared queries",
            **{name: spent * times for name, spent in counting.items()},
            "given": given,
        },
    ]


def smartnoise(_raw: Path, cells: Path) -> list[Result]:
    """SmartNoise SQL over a pandas frame, which it first loads into SQLite, once."""
    import pandas as pd
    from snsql import Privacy, from_df

    clock = Clock()
    frame = pd.read_parquet(cells)
    column = {"type": "int", "lower": 0, "upper": CELLS - 1}
    table = {"row_privacy": True, "censor_dims": False, "rows": len(frame)}
    metadata = {"": {"db": {"t": {**table, **dict.fromkeys(COLUMNS, column)}}}}
    privacy = Privacy(epsilon=EPSILON / len(SOME), delta=DELTA)
    reader = from_df(frame, privacy=privacy, metadata=metadata)
    loaded, clock = clock(), Clock()
    for one, other in SOME:
        both = f"{one}, {other}"
        found = reader.execute(f"SELECT {both}, COUNT(*) AS n FROM db.t GROUP BY {both}")
        assert len(found) == 1 + CELLS**2
    times = len(PAIRS) / len(SOME)
    given = f"cells; {len(SOME)} of {len(PAIRS)} pairs, times {times:g}"
    spent = {name: loaded[name] + queries for name, queries in clock(times).items()}
    return [{"job": "release", **spent, "given": given}]


WHO = {
    "ours": (ours, "", ["aquatint", "numba"]),
    "mbi": (mbi, ".venv-peers", ["mbi", "numpy"]),
    "opendp": (opendp, ".venv-peers", ["opendp", "polars"]),
    "smartnoise": (smartnoise, ".venv-smartnoise", ["smartnoise-sql", "opendp"]),
}


def one(name: str, raw: Path, cells: Path, rows: int) -> None:
    """Measure one of them in this process, on one core."""
    from importlib.metadata import version

    warnings.simplefilter("ignore")
    work, _, packages = WHO[name]
    versions = {package: version(package) for package in packages}
    for found in work(raw, cells):
        print(json.dumps({"who": name, "rows": rows, **found, "versions": versions}))


def run(folder: Path, rows: int, only: list[str]) -> None:
    """Measure all of them, and write down what was found; of ours, the slower of two runs."""
    raw, cells = prepare(folder, rows)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    kept = [x for x in map(json.loads, lines) if x["who"] not in only]
    for name in [*only, "ours"] if "ours" in only and len(only) > 1 else only:
        where = WHO[name][1]
        python = str(ROOT / where / "bin" / "python") if where else sys.executable
        words = [python, __file__, "one", "--who", name, "--raw", raw, "--cells", cells]
        command = ["taskset", "--cpu-list", "0", *map(str, words), "--rows", str(rows)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_CORE
        )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                kept.append(json.loads(line))
                print(line, flush=True)
    slowest: dict[tuple[str, str], Result] = {}
    for found in kept:
        key = found["who"], found["job"]
        if key not in slowest or found["cpu_seconds"] > slowest[key]["cpu_seconds"]:
            slowest[key] = found
    RESULTS.write_text("".join(json.dumps(found) + "\n" for found in slowest.values()))


NAMES = {
    "ours": "Aquatint",
    "mbi": "mbi, as AIM and MST count",
    "opendp": "OpenDP, Polars queries",
    "smartnoise": "SmartNoise SQL, pandas",
}


def section() -> list[str]:
    """Give the lines of the page, none if nothing was measured."""
    if not RESULTS.exists():
        return []
    runs = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    count = max(each["rows"] for each in runs)
    jobs = {"count": "exact counts", "release": "noisy counts"}
    lines = [
        "## Others on the same rows",
        "",
        f"All {len(PAIRS)} pairs of 14 columns of 20 cells, {count:,} rows in one Parquet file, on",
        "one core, one after another; ours runs twice, of which the slower counts. Ours reads",
        "raw text and numbers, counts the 14 single columns besides and checks every row; the",
        "others are given cells as whole numbers. mbi counts, and leaves noise to others. OpenDP",
        "and SmartNoise ask a query for each pair, and are timed on 4 of the 91, times 91/4;",
        "what SmartNoise takes to load the rows into SQLite, once, is added. What",
        "OpenDP takes to prepare a query does not depend on the number of rows, so the running of",
        "its prepared queries, which is where rows are read, has a line of its own. Other",
        "processes shared the machine: compare the seconds of the processor.",
        "",
        "| who | what | rows | clock, s | processor, s | rows per processor second |",
        "|---|---|---|---|---|---|",
    ]
    for each in sorted(runs, key=lambda x: (x["job"], x["cpu_seconds"] / x["rows"])):
        versions = ", ".join(f"{k} {v}" for k, v in each["versions"].items())
        lines.append(
            f"| {NAMES[each['who']]} ({versions}) | {jobs.get(each['job'], each['job'])} | "
            f"{each['rows']:,} | {each['seconds']:.1f} | {each['cpu_seconds']:.1f} | "
            f"{each['rows'] / each['cpu_seconds']:,.0f} |"
        )
    return [*lines, ""]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "one"])
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "scale-data")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", choices=list(WHO), default=list(WHO))
    parser.add_argument("--who", choices=list(WHO))
    parser.add_argument("--raw", type=Path)
    parser.add_argument("--cells", type=Path)
    asked = parser.parse_args()
    if asked.what == "one":
        one(asked.who, asked.raw, asked.cells, asked.rows)
    else:
        run(asked.data, asked.rows, asked.only)


if __name__ == "__main__":
    main()
