"""Real tables, cut into random halves where nothing differs, or by occupation where much does."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from compare_problems import PROTECTS
from query_tables import table

from aquatint.schema import Schema

REAL = {"adult": "Adult", "lifesci": "LifeSci", "occupancy": "Occupancy"}
OCCUPATIONS = ("Exec-managerial", "Prof-specialty")


class Samples(NamedTuple):
    """Two tables, and what is public about them."""

    first: pa.Table
    second: pa.Table
    schema: Schema


@cache
def whole(name: str) -> tuple[pa.Table, Schema]:
    """Give a table and its schema, where a row may be replaced."""
    rows, schema = table(name)
    told = {**schema.to_dict(), "privacy": {"protects": PROTECTS}}
    return pa.Table.from_pandas(rows, preserve_index=False), Schema.from_dict(told)


def halves(name: str, seed: int, part: slice = slice(None)) -> Samples:
    """Cut a table into two random halves of the same size, or a part of its rows."""
    rows, schema = whole(name)
    order = np.random.default_rng(seed).permutation(rows.num_rows)[part]
    half = len(order) // 2
    return Samples(rows.take(order[:half]), rows.take(order[half : 2 * half]), schema)


def fifth(name: str) -> int:
    """Give the number of rows that are declared public where a test trains on such."""
    return whole(name)[0].num_rows // 5


def occupations() -> Samples:
    """Take the rows of two occupations of Adult, without that column."""
    rows, schema = whole("adult")
    jobs = rows["occupation"].to_numpy(zero_copy_only=False)
    told = schema.to_dict()
    del told["columns"]["occupation"]
    first, second = (rows.filter(jobs == job).drop(["occupation"]) for job in OCCUPATIONS)
    return Samples(first, second, Schema.from_dict(told))
