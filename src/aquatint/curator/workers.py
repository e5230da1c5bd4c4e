"""Sums on several cores: one thread reads, the others encode and add, each to sums of its own.

Threads are enough: readers, NumPy, torch and the kernels let go of Python's lock while they work.
What a thread adds up are integers, so the result does not depend on which batch went where.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import reduce
from queue import Queue
from threading import Event

import pyarrow as pa
import torch
from torch import Tensor

from aquatint.analyst.synthesize.threads import one_thread
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.gpu import HERE, Place
from aquatint.curator.source import cut
from aquatint.curator.sums import PrivateSum, sum_rows
from aquatint.errors import PlanError
from aquatint.features.algebra import leaves
from aquatint.features.attaching import networked_maps
from aquatint.features.grid import is_counting
from aquatint.planning import Plan
from aquatint.progress import Advance

_SLOW_ROWS = 8192
_MANY_SETS = 1000


def worker_count(asked: int | None, plan: Plan) -> int:
    """Give the number of threads: as asked, or one for each core; networks bring their own."""
    if asked is not None and asked < 1:
        msg = f"workers must be 1 or more, got {asked}"
        raise PlanError(msg)
    if _networked(plan):
        return 1
    return asked or cores()


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Running:
    """Sums that grow in place."""

    def __init__(self, plan: Plan, encoder: Encoder, place: Place) -> None:
        self.plan, self._encoder, self._place = plan, encoder, place
        self._totals, self._rows, self._notes = PrivateSum.empty(plan).totals, 0, Notes()

    def add(self, batch: pa.RecordBatch) -> None:
        rows = self._encoder(batch, self._notes)
        parts = sum_rows(self.plan, rows, self._place)
        for total, part in zip(self._totals, parts, strict=True):
            total += part  # noqa: PLW2901  # in place
        self._rows += len(rows)

    def done(self) -> PrivateSum:
        return PrivateSum(self.plan, self._totals, self._rows, self._notes)


def sum_batches(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    encoder: Encoder,
    workers: int,
    advance: Advance = lambda _: None,
    place: Place = HERE,
) -> PrivateSum:
    """Sum a plan over record batches; this thread reads them, whoever made them.

    At most two batches for each worker are held at once: one that waits and one that is summed.
    """
    # A GPU is quick with many rows at once.
    small = cut(batches, _SLOW_ROWS) if _is_slow(plan) and place == HERE else batches
    if workers == 1:
        return _alone(small, _Running(plan, encoder, place), advance)
    waiting: Queue[pa.RecordBatch | None] = Queue(workers)
    failures: list[BaseException] = []
    stop = Event()

    def work() -> PrivateSum:
        running = _Running(plan, encoder, place)
        while (batch := waiting.get()) is not None:
            if stop.is_set():
                continue  # the reader may be waiting for room
            try:
                running.add(batch)
            except BaseException as error:  # it is raised again by the reader
                failures.append(error)
                stop.set()
            advance(batch.num_rows)
        return running.done()

    with one_thread(), ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(work) for _ in range(workers)]
        try:
            for batch in small:
                if stop.is_set():
                    break
                waiting.put(batch)
        except BaseException:
            stop.set()
            raise
        finally:
            for _ in parts:
                waiting.put(None)
    if failures:
        raise failures[0]
    return reduce(PrivateSum.merge, (part.result() for part in parts))


def _alone(batches: Iterable[pa.RecordBatch], running: _Running, advance: Advance) -> PrivateSum:
    with nullcontext() if _networked(running.plan) else one_thread():
        for batch in batches:
            running.add(batch)
            advance(batch.num_rows)
    return running.done()


def _networked(plan: Plan) -> bool:
    return any(next(networked_maps(block.map), None) for block in plan.blocks)


def _is_slow(plan: Plan) -> bool:
    """Whether a batch takes long: then smaller ones share the work better, and stop sooner."""
    found = [leaf for block in plan.blocks for leaf in leaves(block.map)]
    return any(not is_counting(leaf) or (leaf.ones or 0) > _MANY_SETS for leaf in found)


def add_up(jobs: Sequence[Callable[[], Tensor]], dim: int, workers: int) -> Tensor:
    """Add the int64 vectors of several jobs, shared out between the workers."""

    def some(first: int) -> Tensor:
        total = torch.zeros(dim, dtype=torch.int64)
        for job in jobs[first::workers]:
            total += job()
        return total

    if workers == 1:
        return some(0)
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        return torch.stack(list(pool.map(some, range(workers)))).sum(dim=0)
