"""What runs on the executors of a cluster: private rows in, private partials out, no noise.

A task gives one row of `PART`: a number of its own, the numbers of all the parts that went in, and
either a packed partial or the sentence that says why there is none. A mistake in the data is thus
told once, in a sentence without private values, instead of being retried and printed with a trace.
"""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path

import pyarrow as pa

from aquatint.curator.gathering import accumulate
from aquatint.curator.partials import merge_private, pack_private
from aquatint.curator.source import BATCH_ROWS
from aquatint.curator.sums import PrivateSum
from aquatint.errors import AquatintError, DataError
from aquatint.planning import Plan

PART = pa.schema(
    {"part": pa.int32(), "covers": pa.list_(pa.int32()), "partial": pa.binary(), "error": pa.utf8()}
)
PART_DDL = "part int, covers array<int>, partial binary, error string"


@lru_cache(maxsize=8)
def _plan(text: str) -> Plan:
    return Plan.from_dict(json.loads(text))


def sum_partition(
    text: str, columns: list[str], batches: Iterable[pa.RecordBatch]
) -> pa.RecordBatch:
    """Sum one partition; `text` is the plan as JSON, `columns` the names of what comes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    part = context.partitionId() if context is not None else 0
    named = (batch.rename_columns(columns) for batch in batches)
    return _row(part, [part], lambda: _sum(named, _plan(text)))


def sum_persons_of_group(text: str, columns: list[str], group: int, table: pa.Table) -> pa.Table:
    """Sum all rows of the persons of one group."""
    named = table.rename_columns(columns)
    found = _row(group, [group], lambda: accumulate(named, _plan(text), workers=1, device="cpu"))
    return pa.Table.from_batches([found])


def merge_partials(text: str, group: int, table: pa.Table) -> pa.Table:
    """Add up the partials of one group, and keep count of the parts that went in."""
    covers = covered(table)
    found = _row(group, covers, lambda: merged(table, _plan(text)))
    return pa.Table.from_batches([found])


def covered(table: pa.Table) -> list[int]:
    """Give the numbers of the parts that went into the partials of a table of `PART`."""
    return list(chain.from_iterable(table["covers"].to_pylist()))


def merged(table: pa.Table, plan: Plan) -> PrivateSum:
    """Add up the partials of a table of `PART`, or say what went wrong in the first bad part."""
    said = zip(table["part"].to_pylist(), table["error"].to_pylist(), strict=True)
    wrong = sorted((part, error) for part, error in said if error is not None)
    if wrong:
        raise DataError(wrong[0][1])
    twice = [part for part, times in Counter(covered(table)).items() if times > 1]
    if twice:
        msg = f"the cluster gave part {min(twice)} twice: nothing was released, start again"
        raise DataError(msg)
    return merge_private((each.as_py() for each in table["partial"]), plan)


def _sum(batches: Iterable[pa.RecordBatch], plan: Plan) -> PrivateSum:
    """Sum a stream of batches, of which there may be none."""
    larger = _gathered(batch for batch in batches if batch.num_rows)
    first = next(larger, None)
    if first is None:
        return PrivateSum.empty(plan)
    return accumulate(chain([first], larger), plan, workers=1, device="cpu")


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join the small batches that Spark gives, so that one pass over the cells serves many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= BATCH_ROWS:
            yield pa.Table.from_batches(held).combine_chunks()
            held = []
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _row(part: int, covers: list[int], work: Callable[[], PrivateSum]) -> pa.RecordBatch:
    partial, error = None, None
    try:
        partial = pack_private(work())
    except AquatintError as wrong:
        error = str(wrong)
    except MemoryError:
        raise
    except Exception as wrong:  # its text could hold a private value
        place = traceback.extract_tb(wrong.__traceback__)[-1]
        file = Path(place.filename).name
        msg = f"{type(wrong).__name__} in {file}, line {place.lineno}; its text is not shown"
        raise RuntimeError(msg) from None
    row = {"part": part, "covers": covers, "partial": partial, "error": error}
    return pa.RecordBatch.from_pylist([row], schema=PART)
