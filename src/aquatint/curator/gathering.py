"""Private data to exact sums: open the source, share the work out, keep checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import reduce
from time import monotonic
from typing import Any

import pyarrow as pa

from aquatint.curator import checkpoint as checkpoints
from aquatint.curator.checkpoint import Checkpoint
from aquatint.curator.encode import Encoder
from aquatint.curator.gpu import Place, place_of
from aquatint.curator.parts import Files, Position
from aquatint.curator.persons import passes, sum_persons
from aquatint.curator.read import read
from aquatint.curator.source import Source
from aquatint.curator.sums import PrivateSum, check_room
from aquatint.curator.workers import sum_batches, worker_count
from aquatint.errors import DataError
from aquatint.planning import Plan
from aquatint.progress import Advance, track


def accumulate(
    data: Any,
    plan: Plan,
    *,
    progress: bool = False,
    workers: int | None = None,
    checkpoint: Checkpoint | None = None,
    device: str | None = None,
) -> PrivateSum:
    """Sum the plan's blocks exactly over private data, without noise: the result is private.

    Parameters
    ----------
    data, plan
        What to read, and what to sum.
    progress
        Show progress on a terminal.
    workers
        How many threads add up; by default one for each core. The integers are the same.
    checkpoint
        Where to keep how far it came, for data in files with rows as the unit.
    device
        Where dense features and counts are summed: "cpu" or "cuda"; by default a GPU if there is
        one and the batches are worth it. The integers are the same.
    """
    place = place_of(device)
    encoder = encoder_of(plan)
    source = read(data, plan.schema, encoder.columns)
    threads = worker_count(workers, plan)
    with (
        closing(source),
        track("reading rows", None, show=progress, share=source.share) as advance,
    ):
        if plan.schema.privacy.person is not None:
            total = _by_person(source, plan, encoder, threads, advance, place)
        elif checkpoint is not None:
            files = resumable(source, plan)
            total = _in_legs(files, plan, encoder, threads, advance, checkpoint, place)
        else:
            total = sum_batches(source.open(), plan, encoder, threads, advance, place)
    if not total.rows:
        msg = "the data has no rows: there is nothing to sketch"
        raise DataError(msg)
    check_room(plan, total.rows)
    return total


def encoder_of(plan: Plan) -> Encoder:
    """Encode what the maps of a plan read, and nothing else."""
    codes, values = (
        frozenset[str]().union(*r) for r in zip(*(b.map.reads for b in plan.blocks), strict=True)
    )
    return Encoder(plan.schema, codes, values)


def resumable(source: Source, plan: Plan) -> Files:
    """Give the files of a source that can be taken up again where a run broke off."""
    if source.files is None or plan.schema.privacy.person is not None:
        msg = (
            "a checkpoint needs files, and rows as the unit: a query has no order to go on in, and "
            "the rows of a person are gathered first; leave the checkpoint out, a run that is "
            "interrupted spends nothing and starts again"
        )
        raise DataError(msg)
    return source.files


def seal_of(data: Any, plan: Plan, checkpoint: Checkpoint) -> checkpoints.Seal:
    """Give the place where a finished release waits for its entry in the ledger."""
    source = read(data, plan.schema, encoder_of(plan).columns)
    return checkpoints.Seal(checkpoint, resumable(source, plan), plan)


def _by_person(
    source: Source, plan: Plan, encoder: Encoder, workers: int, advance: Advance, place: Place
) -> PrivateSum:
    def parts() -> Iterator[PrivateSum]:
        most = plan.schema.privacy.rows_per_unit
        for rows, persons, notes in passes(source.open, encoder, repeatable=source.repeatable):
            if len(rows):
                totals = sum_persons(plan, rows, persons, most, workers, place)
                advance(len(rows))
                yield PrivateSum(plan, totals, len(rows), notes)

    return reduce(PrivateSum.merge, parts(), PrivateSum.empty(plan))


def _in_legs(
    files: Files,
    plan: Plan,
    encoder: Encoder,
    workers: int,
    advance: Advance,
    checkpoint: Checkpoint,
    place: Place,
) -> PrivateSum:
    """Sum for a while, save, and go on; start where the last run was saved."""
    saved = checkpoints.load(checkpoint, files, plan)
    position, total = saved.position, saved.private
    walk = files.walk(position)
    more = True

    def leg() -> Iterator[pa.RecordBatch]:
        nonlocal position, more
        begun = monotonic()
        for reached, batch in walk:
            position = Position(*reached)
            yield batch
            if monotonic() - begun > checkpoint.every:
                return
        more = False

    while more:
        total = total.merge(sum_batches(leg(), plan, encoder, workers, advance, place))
        checkpoints.save(checkpoint, files, checkpoints.Progress(position, total))
    return total
