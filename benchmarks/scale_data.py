"""Made-up rows for the benchmark of scale: 14 columns in many Parquet files, every row its own.

Seven columns are numbers with three decimals, seven are text out of twenty words. Each file is
drawn from its own seed, so that any part of the table can be made again on its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aquatint.schema import Schema

COLUMNS = [f"c{i}" for i in range(14)]
CELLS = 20
PART_ROWS = 1_000_000
GROUP_ROWS = 250_000
WORDS = [f"value {i}" for i in range(CELLS)]


def schema(**privacy: object) -> Schema:
    """Every other column is a number in 20 bins, the others are categories: 280 cells in all."""
    number = {"kind": "numeric", "bounds": [0, 1], "bins": CELLS}
    category = {"kind": "categorical", "categories": WORDS}
    return Schema.from_dict(
        {
            "name": "scale",
            "privacy": {"protects": "add or remove one row", **privacy},
            "columns": {c: number if i % 2 else category for i, c in enumerate(COLUMNS)},
        }
    )


def part(number: int, rows: int = PART_ROWS) -> pa.Table:
    """Draw one part of the table."""
    rng = np.random.default_rng([2026, number])
    words = pa.array(WORDS)
    steps = pa.array(np.arange(1000) / 1000)
    arrays = {}
    for i, name in enumerate(COLUMNS):
        size, values = (1000, steps) if i % 2 else (CELLS, words)
        codes = pa.array(rng.integers(0, size, rows, dtype=np.int32))
        arrays[name] = pa.DictionaryArray.from_arrays(codes, values)
    return pa.table(arrays)


def plain(table: pa.Table) -> pa.Table:
    """Give the same rows without dictionaries, as most writers hold them."""
    kinds = [pa.float64() if i % 2 else pa.string() for i in range(len(COLUMNS))]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


def write(folder: Path, rows: int) -> list[Path]:
    """Write so many rows in parts, keeping those that are there; give the files in order."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        count = min(PART_ROWS, rows - start)
        whole = f"part-{number:05}" if count == PART_ROWS else f"part-{number:05}-of-{count}"
        path = folder / f"{whole}.parquet"
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            pq.write_table(plain(part(number, count)), unfinished, row_group_size=GROUP_ROWS)
            unfinished.rename(path)
        paths.append(path)
    return paths
