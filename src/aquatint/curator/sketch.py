"""The front door: `sketch` is the only line of a program that sees private rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from aquatint.accounting import Budget
from aquatint.curator.checkpoint import Checkpoint, checkpoint_at
from aquatint.curator.databases import asked
from aquatint.curator.encode import Notes
from aquatint.curator.finishing import release_once
from aquatint.curator.gathering import accumulate, seal_of
from aquatint.curator.sums import PrivateSum
from aquatint.errors import PlanError
from aquatint.features.attaching import moved, networked_maps
from aquatint.planning import Plan
from aquatint.release.model import Release
from aquatint.schema import Schema
from aquatint.table_plan import plan as default_plan


def sketch(
    data: Any,
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
    device: str | None = None,
    sql: str | None = None,
    workers: int | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Release:
    """Spend a privacy budget once and give a release.

    Parameters
    ----------
    data
        A path, a folder, a pattern such as ``part-*.parquet`` or an address such as ``s3://…``
        (CSV, Parquet, Arrow or Feather; for images also a folder, .npz or idx file), a database
        (with `sql`), a pandas or polars frame, an Arrow table, an iterator of record batches, or
        an `ImageBatch`.
    schema
        What is public about the data and what is protected.
    epsilon, delta
        The promise. ``delta=0`` asks for pure ε-DP, with Laplace noise.
    plan
        The blocks to release; by default chosen from the schema.
    ledger, dataset
        Account for the loss in this ledger, under this name.
    output
        Also write the release there; the room is secured before the budget is spent.
    simulate
        A seed for pseudo-random noise, for benchmarks. The release is then NOT private and says so.
    notes
        Is given what had to be clipped or sent to "other", by column, before anything is spent.
        Private: for the curator's eyes only.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    device
        Where sums are made and public networks run: "cpu" or "cuda"; by default a GPU if there is
        one and it is worth it. Sums of tables are the same integers on either.
    sql
        A select whose rows are sketched. `data` is then ``postgresql://…``, a DuckDB database, or
        CSV or Parquet files, which the query calls ``data``. What is protected are rows of the
        result.
    workers
        How many threads add up; by default one for each core. The integers are the same.
    checkpoint
        A file that keeps how far a run over files came, encrypted, so that it can go on after an
        interruption. The key is taken from AQUATINT_CHECKPOINT_KEY; with `checkpoint_at` of
        `aquatint.curator.checkpoint` from a file.

    Returns
    -------
    Release
        Public: no row and no exact sum is in it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> schema = Schema.from_dict({
    ...     "name": "people",
    ...     "privacy": {"protects": "add or remove one row"},
    ...     "columns": {"sex": {"kind": "categorical", "categories": ["F", "M"]}},
    ... })
    >>> release = sketch(pa.table({"sex": ["F", "M"] * 500}), schema, epsilon=1, delta=1e-6)
    >>> bool(abs(release.count - 1000) < 6 * release.block("count").stderr[0])
    True
    """
    budget = Budget(epsilon, delta)
    chosen = chosen_plan(schema, plan)
    placed = on_device(chosen, device)
    source = asked(data, sql)
    kept = checkpoint_at(checkpoint) if isinstance(checkpoint, (str, Path)) else checkpoint

    def sum_up() -> PrivateSum:
        found = accumulate(
            source, placed, progress=progress, workers=workers, checkpoint=kept, device=device
        )
        return replace(found, plan=chosen)

    return release_once(
        sum_up,
        chosen,
        budget,
        seal=None if kept is None else seal_of(source, placed, kept),
        ledger=ledger,
        dataset=dataset,
        output=output,
        simulate=simulate,
        notes=notes,
        progress=progress,
    )


def chosen_plan(schema: Schema, plan: Plan | None) -> Plan:
    """Give the plan, the default one if there is none, and refuse one made for another schema."""
    chosen = plan if plan is not None else default_plan(schema)
    if chosen.schema != schema.with_bins(_bins(chosen.schema)):
        msg = "the plan was made for another schema: plan again with this one"
        raise PlanError(msg)
    return chosen


def on_device(plan: Plan, device: str | None = None) -> Plan:
    """Put copies of the public networks of a plan where they are to run; others stay as they are.

    The plan itself, and with it the release, keeps its networks where they were.
    """
    if not any(next(networked_maps(block.map), None) for block in plan.blocks):
        return plan
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        blocks = [replace(block, map=moved(block.map, place)) for block in plan.blocks]
    except (RuntimeError, AssertionError):
        msg = f"there is no device {place!r} here for the public network: leave it out, or say cpu"
        raise PlanError(msg) from None
    return replace(plan, blocks=tuple(blocks))


def _bins(schema: Schema) -> dict[str, Any]:
    return {name: getattr(column, "bins", None) for name, column in schema.columns.items()}
