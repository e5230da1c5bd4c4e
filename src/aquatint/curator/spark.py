"""The same sums on a cluster: `sketch_spark` reads a PySpark DataFrame where its rows are.

Each task sums its partition with the code that `sketch` runs, and gives one private partial
(`aquatint.curator.partials`). The partials are added up and the noise is drawn once, on the driver,
on the path on which `sketch` spends. The integers are those of `sketch` over the same rows, however
they are partitioned. Only DataFrame operations are used, so Spark Connect serves as well.

Why retries and speculative tasks cannot count a row twice
-----------------------------------------------------------
A task changes nothing outside itself: no accumulator, no file, no message. What it found is the row
that it returns, and Spark takes the rows of one attempt for each partition. A result stage marks a
partition as finished by the first attempt that succeeds and drops what later ones bring; a shuffle
keeps the output of one attempt for each map task. So an attempt that fails, is killed with its
executor or loses a race leaves nothing behind, and one that is repeated replaces, and never adds.

This is checked, and not only argued. A partial carries the number of its partition, and what is
merged carries the numbers of all that went in. The driver wants each of 0, 1, 2, … exactly once; a
number that is there twice, or not at all, is an error before anything is spent. Partials are told
apart by name as well, so that one that were delivered twice would be noticed whatever its number.

One thing is left to the curator: the DataFrame must mean the same rows whenever it is computed. If
an executor is lost, Spark computes some partitions again, and a query such as ``sample()`` without
a seed, or ``limit()`` without an order, then shuffled, could give a row to two of them. Write such
a result to a table first, and sketch the table.

Persons
-------
When all rows of a person are protected, rows are first grouped by a hash of the person's name, so
that all rows of one person meet in one task (``applyInArrow``), and each person is held to their
share there. Spark writes the rows that it shuffles to the executors' disks: turn
``spark.io.encryption.enabled`` on if these are not to hold private rows in the clear.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from aquatint.accounting import Budget
from aquatint.curator.encode import Notes
from aquatint.curator.finishing import release_once
from aquatint.curator.gathering import encoder_of
from aquatint.curator.sketch import chosen_plan
from aquatint.curator.source import require
from aquatint.curator.spark_tasks import (
    PART_DDL,
    covered,
    merge_partials,
    merged,
    sum_partition,
    sum_persons_of_group,
)
from aquatint.curator.sums import PrivateSum
from aquatint.errors import AquatintError, DataError, PlanError
from aquatint.extras import need
from aquatint.planning import Plan
from aquatint.release.model import Release
from aquatint.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PERSON_GROUPS = 200
_PARTITIONS = 10_000
"""Merging is laid out for so many partitions; more of them only make the driver's part larger."""
_DRIVER_BYTES = 256 << 20
_TASK_BYTES = 1 << 30
_FAN_IN = 32


def sketch_spark(
    data: DataFrame,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    plan: Plan | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    output: str | Path | None = None,
    simulate: int | None = None,
    notes: Callable[[Notes], None] | None = None,
    progress: bool = True,
    person_groups: int = _PERSON_GROUPS,
) -> Release:
    """Spend a privacy budget once on the rows of a Spark DataFrame, and give a release.

    Parameters
    ----------
    data
        A DataFrame of PySpark 4 or newer, classic or Spark Connect. Aquatint must be installed on
        the executors. It is read once, and only the columns that the plan needs.
    schema, epsilon, delta, plan, ledger, dataset, output, simulate, notes, progress
        As for `sketch`. Ledger and output are files of the driver.
    person_groups
        When all rows of a person are protected: into how many groups the persons are hashed. The
        rows of a group are held in the memory of one task.

    Returns
    -------
    Release
        What `sketch` would have made of the rows, but for the drawing of the noise.
    """
    budget = Budget(epsilon, delta)
    chosen = chosen_plan(schema, plan)
    return release_once(
        lambda: accumulate_spark(data, chosen, person_groups=person_groups),
        chosen,
        budget,
        ledger=ledger,
        dataset=dataset,
        output=output,
        simulate=simulate,
        notes=notes,
        progress=progress,
    )


def accumulate_spark(
    data: DataFrame, plan: Plan, *, person_groups: int = _PERSON_GROUPS
) -> PrivateSum:
    """Sum the plan's blocks exactly over a Spark DataFrame, without noise: the result is private.

    Partials that would be too large for the driver together are merged on the cluster first, in
    groups of up to 32, as often as it takes.
    """
    need("pyspark.sql", extra="spark")
    columns, person = _columns(plan), plan.schema.privacy.person
    groups = None if person is None else _checked(person_groups)
    if not (hasattr(data, "mapInArrow") and hasattr(data, "toArrow")):
        msg = f"this is a {type(data).__name__}: give a DataFrame of PySpark 4 or newer"
        raise DataError(msg)
    with _one_sentence():
        if person is None or groups is None:
            partials = _by_partition(data, plan, columns)
        else:
            partials = _by_person(data, plan, [*columns, person], groups)
        fan_in, levels = _tree(8 * plan.coordinates, groups or _PARTITIONS)
        for _ in range(levels):
            partials = _merged_in_groups(partials, plan, fan_in)
        found = partials.toArrow()
    total = merged(found, plan)
    _check_complete(covered(found), groups)
    if not total.rows:
        msg = "the data has no rows: there is nothing to sketch"
        raise DataError(msg)
    return total


def _columns(plan: Plan) -> list[str]:
    """Give the columns to read; a cluster is for tables."""
    encoder = encoder_of(plan)
    if encoder.images:
        name = min(encoder.images)
        msg = f"column {name!r} holds images, which are not sketched on a cluster: use sketch"
        raise PlanError(msg)
    return encoder.columns


def _checked(person_groups: int) -> int:
    if not 1 <= person_groups <= 1_000_000:
        msg = "person_groups must be between 1 and 1,000,000"
        raise PlanError(msg)
    return person_groups


def _by_partition(data: DataFrame, plan: Plan, columns: list[str]) -> DataFrame:
    from pyspark.sql import functions

    text = _text(plan)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield sum_partition(text, columns or ["row"], batches)

    # A plan that only counts rows reads no column, but a row needs one to be there.
    chosen = _numbered(data, columns) or [functions.lit(1).alias("row")]
    return data.select(chosen).mapInArrow(task, PART_DDL)


def _by_person(data: DataFrame, plan: Plan, columns: list[str], groups: int) -> DataFrame:
    """Bring all rows of a person into one task: equal names have equal hashes."""
    from pyspark.sql import functions

    text = _text(plan)

    def task(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return sum_persons_of_group(text, columns, key[0].as_py(), table)

    numbered = data.select(_numbered(data, columns))
    person = functions.xxhash64(f"c{len(columns) - 1}")
    place = functions.pmod(person, functions.lit(groups)).cast("int")
    return numbered.groupBy(place).applyInArrow(task, PART_DDL)


def _merged_in_groups(partials: DataFrame, plan: Plan, fan_in: int) -> DataFrame:
    """Merge by the numbers of the parts: a part that is computed again goes to the same group."""
    from pyspark.sql import functions

    text = _text(plan)

    def task(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return merge_partials(text, key[0].as_py(), table)

    place = functions.floor(functions.col("part") / fan_in).cast("int")
    return partials.groupBy(place).applyInArrow(task, PART_DDL)


def _tree(size: int, parts: int) -> tuple[int, int]:
    """Choose how many partials of this size a task merges at once, and how many times over."""
    if size > _TASK_BYTES:
        msg = f"a sum of {size // 8:,} numbers is too large for a task: make a smaller plan"
        raise PlanError(msg)
    fan_in, levels = max(2, min(_FAN_IN, _TASK_BYTES // max(1, size))), 0
    while parts > 1 and parts * size > _DRIVER_BYTES:
        parts, levels = ceil(parts / fan_in), levels + 1
    return fan_in, levels


def _check_complete(covers: list[int], groups: int | None) -> None:
    """Want every partition exactly once; of persons some groups may be empty, and have no part."""
    whole = len(covers) if groups is None else groups
    if len(set(covers)) < len(covers) or not set(covers) <= set(range(whole)):
        msg = "the cluster lost or repeated a part of the rows: nothing was released, start again"
        raise DataError(msg)


def _text(plan: Plan) -> str:
    return json.dumps(plan.to_dict(), allow_nan=False)


def _numbered(data: DataFrame, columns: list[str]) -> list[Column]:
    """Choose columns and call them c0, c1, …: PySpark trips over dots in names."""
    from pyspark.sql import functions

    require(data.columns, columns)
    quoted = ["`" + name.replace("`", "``") + "`" for name in columns]
    return [functions.col(name).alias(f"c{i}") for i, name in enumerate(quoted)]


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Say what a failed job is about, without its text: Spark puts values into its messages."""
    try:
        yield
    except AquatintError:
        raise
    except Exception as error:  # its text may hold a private value
        if "No module named 'aquatint'" in str(error):
            msg = "Aquatint is not installed on the executors: install the same version there"
            raise DataError(msg) from None
        condition = getattr(error, "getCondition", lambda: None)()
        kind = type(error).__name__ + (f", {condition}" if condition else "")
        msg = (
            f"the Spark job failed ({kind}) and nothing was spent: the log of Spark says more, "
            "and may show private values"
        )
        raise DataError(msg) from None
