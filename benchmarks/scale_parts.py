"""The measurements of the benchmark of scale; each runs in a process of its own."""

from __future__ import annotations

import hashlib
import resource
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import pi
from os import cpu_count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import torch
from pyarrow import feather
from scale_data import CELLS, COLUMNS, GROUP_ROWS, part, plain, schema

from aquatint.accounting import Budget
from aquatint.analyst.synthesize.threads import one_thread
from aquatint.curator.encode import Notes
from aquatint.curator.gathering import accumulate, encoder_of
from aquatint.curator.noise import add_noise
from aquatint.curator.partials import merge_private, pack_private
from aquatint.curator.read import read
from aquatint.curator.sketch import sketch
from aquatint.curator.sums import sum_rows
from aquatint.features import Count, FeatureMap, fourier, onehot, pairs
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.schema import Schema

Result = dict[str, Any]


def planned(where: Schema, feature_map: FeatureMap) -> Plan:
    return Plan(
        where, (PlannedBlock("count", Count(), 0.01), PlannedBlock("features", feature_map, 0.99))
    )


def pairs_plan() -> Plan:
    cells = dict.fromkeys(COLUMNS, CELLS)
    return planned(schema(), onehot(cells) + pairs(cells))


def peak_mb() -> int:
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def timed(work: Callable[[], Any]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def used(work: Callable[[], Any]) -> float:
    """Give the processor seconds of all threads, which other processes hardly change."""
    begun = process_time()
    work()
    return process_time() - begun


def used_by_each(work: Callable[[], Any], rounds: int = 5) -> float:
    """Give the processor seconds of one round while every core is at the same work."""
    cores = cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        everyone = used(lambda: list(pool.map(lambda _: work(), range(cores * rounds))))
    return everyone / (cores * rounds)


def measure_rows(files: list[Path], workers: int) -> Result:
    """Sketch files end to end, and once more only sum them, for the time without the fixed part."""
    plan = pairs_plan()
    # A folder of links stands for the list, as a user would give it.
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            (Path(folder) / path.name).symlink_to(path)
        whole = timed(
            lambda: sketch(
                folder, plan.schema, epsilon=1, delta=1e-10, plan=plan, workers=workers,
                output=Path(folder) / ".release.aqt", progress=False,
            )
        )  # fmt: skip
        begun, used = perf_counter(), process_time()
        sums = accumulate(folder, plan, workers=workers)
        summed, used = perf_counter() - begun, process_time() - used
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in sums.totals)).hexdigest()
    size = sum(path.stat().st_size for path in files)
    return {
        "rows": sums.rows, "workers": workers, "seconds": whole, "summing_seconds": summed,
        "cpu_seconds": used,
        "bytes": size, "peak_mb": peak_mb(), "digest": digest,
    }  # fmt: skip


def measure_fourier(threads: int, rounds: int = 12) -> Result:
    """Set our exact sums beside the bare product and sine and cosine, turn by turn."""
    torch.set_num_threads(threads)
    features = fourier(COLUMNS, 10_000, length_scale=0.2)
    number = {"kind": "numeric", "bounds": [0, 1], "bins": CELLS}
    where = Schema.from_dict(
        {
            "name": "scale",
            "privacy": {"protects": "add or remove one row"},
            "columns": dict.fromkeys(COLUMNS, number),
        }
    )
    plan = planned(where, features)
    omega = (2 * pi * features.frequencies).float()
    rows = 16_384 * threads
    values = torch.from_numpy(np.random.default_rng(0).random((rows, len(COLUMNS))))
    table = pa.table({name: values[:, i].numpy() for i, name in enumerate(COLUMNS)})
    x = values.float()

    def bare(tile: int) -> None:
        phase, out = torch.empty(tile, omega.shape[1]), torch.empty(tile, omega.shape[1])
        for some in x.split(tile):
            torch.matmul(some, omega, out=phase)
            torch.cos(phase, out=out)
            torch.sin(phase, out=out)

    def ours() -> None:
        accumulate(table, plan, workers=threads)

    ours()
    tiles = {tile: min(timed(lambda t=tile: bare(t)) for _ in range(3)) for tile in (64, 128, 512)}
    best = min(tiles, key=lambda tile: tiles[tile])  # the bare work at its own best tile
    turns = [(timed(ours), timed(lambda: bare(best))) for _ in range(rounds)]
    mine, theirs = (sum(column) for column in zip(*turns, strict=True))
    return {
        "threads": threads, "rows_per_second": rounds * rows / mine,
        "bare_rows_per_second": rounds * rows / theirs, "of_bare_speed": theirs / mine,
        "each": sorted(b / a for a, b in turns), "peak_mb": peak_mb(),
    }  # fmt: skip


def measure_wide(columns: int, rows: int) -> Result:
    """Count all pairs of very many columns."""
    names = [f"c{i}" for i in range(columns)]
    number = {"kind": "integer", "bounds": [0, 3], "bins": 4}
    where = Schema.from_dict(
        {
            "name": "wide",
            "privacy": {"protects": "add or remove one row"},
            "columns": dict.fromkeys(names, number),
        }
    )
    plan = planned(where, pairs(dict.fromkeys(names, 4)))
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, 4, rows, dtype=np.int8) for name in names})
    accumulate(table.slice(0, 100), plan)
    before = peak_mb()
    seconds = timed(lambda: accumulate(table, plan))
    return {
        "columns": columns, "pairs": columns * (columns - 1) // 2, "rows": rows,
        "coordinates": plan.coordinates, "seconds": seconds, "peak_mb": peak_mb(),
        "peak_before_mb": before,
    }  # fmt: skip


def measure_noise(coordinates: int) -> Result:
    """Draw noise for many coordinates on one thread and on all."""
    from aquatint.curator import noise

    plan = pairs_plan()
    noised = noise_of(plan, Budget(1.0, 1e-6))[1][1]
    sums = np.zeros(coordinates, dtype=np.int64)
    asked = type(noised)(coordinates, noised.scale, noised.l2_squared, noised.l1)
    found: Result = {"coordinates": coordinates}
    for threads in (1, cpu_count() or 1):
        noise.cpu_count = lambda threads=threads: threads  # type: ignore[attr-defined]
        found[f"seconds_{threads}"] = timed(lambda: add_noise(sums, asked, "discrete gaussian"))
    return found


def measure_costs(files: list[Path]) -> Result:
    """Measure the constants of the model apart from each other, on all cores at once.

    Cores that work side by side share caches and memory, and each is slower than one alone. What is
    handed over is let go of at once, as in a run, and memory is asked for anew.
    """
    plan = pairs_plan()
    encoder = encoder_of(plan)
    source = read(files[0], plan.schema, encoder.columns)
    with one_thread():
        batches = list(source.open())
        rows = sum(batch.num_rows for batch in batches)
        encoded = [encoder(batch, Notes()) for batch in batches]
        sum_rows(plan, encoded[0])
        fourier_plan = planned(
            schema(), fourier([c for i, c in enumerate(COLUMNS) if i % 2], 10_000)
        )
        numbers = encoder_of(fourier_plan)(batches[0].slice(0, 8192), Notes())
        sum_rows(fourier_plan, numbers.slice(0, 256))
        reading = used_by_each(lambda: sum(b.num_rows for b in source.open()))
        encoding = used_by_each(lambda: sum(len(encoder(b, Notes())) for b in batches))
        counting = used_by_each(lambda: sum(len(sum_rows(plan, r)) for r in encoded))
        dense = used_by_each(lambda: sum_rows(fourier_plan, numbers))
    private = accumulate(files[0], plan)
    packed = [pack_private(private) for _ in range(50)]
    merging = used(lambda: merge_private(packed, plan))
    drawing = used(lambda: measure_noise(1 << 16)) / (2 << 16)  # on one thread, then on all
    return {
        "read": reading / rows / len(COLUMNS),
        "encode": encoding / rows / len(COLUMNS),
        "count": counting / rows / 105,
        "dense": dense / 8192 / 10_000,
        "noise": drawing,
        "merge": merging / 50 / plan.coordinates,
        "partial_bytes": len(packed[0]),
        "peak_mb": peak_mb(),
    }


def sources(folder: Path, rows: int) -> Iterator[tuple[str, Any, str | None]]:
    """Write the same rows in every form that can be read, and give each with its query."""
    table = plain(part(0, rows))
    pq.write_table(table, folder / "x.parquet", row_group_size=GROUP_ROWS)
    pq.write_table(table, folder / "z.parquet", row_group_size=GROUP_ROWS, compression="zstd")
    feather.write_feather(table, folder / "x.feather", compression="uncompressed")
    pacsv.write_csv(table, folder / "x.csv")
    with pa.output_stream(str(folder / "x.csv.gz"), compression="gzip") as stream:
        pacsv.write_csv(table, stream)
    for name in ("x.parquet", "z.parquet", "x.feather", "x.csv", "x.csv.gz"):
        yield name, folder / name, None
    yield "DuckDB over x.parquet", str(folder / "x.parquet"), "select * from data"
    yield "an Arrow table in memory", table, None


def measure_sources(rows: int) -> list[Result]:
    """Sum the same rows from every source."""
    from aquatint.curator.databases import Query

    plan = pairs_plan()
    found: list[Result] = []

    def one(name: str, data: Any) -> None:
        begun = perf_counter()
        sums = accumulate(data, plan)
        digest = hashlib.sha256(sums.totals[1].numpy().tobytes()).hexdigest()
        taken = perf_counter() - begun
        found.append({"source": name, "rows": rows, "seconds": taken, "digest": digest})

    with tempfile.TemporaryDirectory() as folder:
        accumulate(plain(part(0, 1000)), plan)
        for name, data, sql in sources(Path(folder), rows):
            one(name, data if sql is None else Query(data, sql))
    address = _postgres_with(plain(part(0, rows)))
    with address as where:
        one("PostgreSQL", Query(where, "select * from people"))
    return found


def _postgres_with(table: pa.Table) -> Any:
    """Start the tests' PostgreSQL with a table in it."""
    import sys
    from contextlib import contextmanager

    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from adbc_driver_postgresql import dbapi
    from postgres import running_postgres

    @contextmanager
    def running() -> Iterator[str]:
        with running_postgres() as address:
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest("people", table, mode="create")
                connection.commit()
            yield address

    return running()
