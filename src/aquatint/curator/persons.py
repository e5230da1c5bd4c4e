"""The unit "all rows of one person": group a person's rows before they are summed.

A person with m rows counts for at most k = max_rows of them. If m ≤ k the rows are summed as they
are; otherwise the sum of their integer rows is multiplied by k/m and truncated toward zero, so
nothing is dropped and order does not matter. Each integer row has norm at most L, the sum of m of
them at most mL, hence the person's contribution at most kL: k times the sensitivity of one row.

No private row is written to disk. When a person's rows would not fit in memory with everyone
else's, the source is read several times, each time for the persons of one bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.encode_categories import undo_layout
from aquatint.curator.gpu import HERE, Place
from aquatint.curator.sums import integer_rows, leaf_sum, tiles
from aquatint.curator.workers import add_up
from aquatint.errors import DataError
from aquatint.features.algebra import ByLabel, leaves
from aquatint.features.base import Columns, FeatureMap, Rows
from aquatint.features.grid import grid_of, is_counting
from aquatint.planning import Plan

RESIDENT_ROWS = 4_000_000
RESIDENT_BYTES = 1 << 31
_CROWD = 2**16


class TooManyRowsError(DataError):
    """One bucket of persons has more rows than may be held in memory."""


def resident_rows(encoder: Encoder) -> int:
    """Give how many rows may be held in memory: fewer where they hold images."""
    pixels = sum(encoder.schema.images[name].pixels for name in encoder.images)
    return min(RESIDENT_ROWS, RESIDENT_BYTES // max(1, pixels))


def collect(
    batches: Iterator[pa.RecordBatch],
    encoder: Encoder,
    bucket: tuple[int, int],
    notes: Notes,
    limit: int = RESIDENT_ROWS,
) -> tuple[Rows, np.ndarray]:
    """Encode the rows of the persons in one bucket (number, of how many), with person numbers."""
    person = encoder.schema.privacy.person or ""
    kept: list[Rows] = []
    names: list[pa.Array] = []
    held = 0
    for batch in batches:
        column = pc.cast(_names(batch.column(person), person), pa.large_binary())
        chosen = _bucket(column, bucket)
        if not len(chosen):
            continue
        everyone = len(chosen) == batch.num_rows
        kept.append(encoder(batch if everyone else batch.take(chosen), notes))
        names.append(column if everyone else column.take(chosen))
        held += len(chosen)
        if held > limit:
            msg = f"more than {limit:,} rows belong to a few persons: check the person column"
            raise TooManyRowsError(msg)
    if not kept:
        return Rows({}, {}, 0), np.empty(0, np.int64)
    joined = pa.chunked_array(names).combine_chunks().dictionary_encode()
    return _join(kept), np.asarray(joined.indices, dtype=np.int64)


def _names(column: pa.Array, person: str) -> pa.Array:
    """Give the identifiers as text; rows without one would be protected by nobody's name."""
    try:
        plain = undo_layout(column)
        missing = pc.any(pc.is_null(plain, nan_is_null=True)).as_py()
        names = pc.cast(plain, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        msg = f"column {person!r} cannot name persons: it needs numbers or text"
        raise DataError(msg) from None
    if missing:
        msg = (
            f"column {person!r} names the person and is missing in some rows: "
            "fill it in or remove those rows, otherwise they would not be protected"
        )
        raise DataError(msg)
    return names


def _bucket(names: pa.Array, bucket: tuple[int, int]) -> np.ndarray:
    number, of = bucket
    if of == 1:
        return np.arange(len(names))
    text = np.asarray(names.to_pylist(), dtype=np.bytes_)
    letters = text.view(np.uint8).reshape(len(names), -1).astype(np.uint64)
    powers = np.cumprod(np.full(letters.shape[1], 1_099_511_628_211, np.uint64))
    mixed = ((letters + np.uint64(1)) * powers).sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.flatnonzero(mixed % np.uint64(of) == np.uint64(number))


def _join(parts: list[Rows]) -> Rows:
    first = parts[0]
    names = tuple(first.values)
    codes = {name: torch.cat([p.codes[name] for p in parts]) for name in first.codes}
    count = sum(p.count for p in parts)
    if not isinstance(first.values, Columns):
        held = {name: torch.cat([p.values[name] for p in parts]) for name in names}
        return Rows(codes, held, count)
    values = torch.cat([p.matrix(names) for p in parts]) if names else torch.empty(count, 0)
    return Rows(codes, Columns(names, values), count)


def sum_persons(
    plan: Plan,
    rows: Rows,
    persons: np.ndarray,
    max_rows: int,
    workers: int = 1,
    place: Place = HERE,
) -> tuple[Tensor, ...]:
    """Sum every block over persons, each counting for at most max_rows rows."""
    sizes = np.bincount(persons)
    light = torch.from_numpy(np.flatnonzero(sizes[persons] <= max_rows))
    heavy = np.flatnonzero(sizes[persons] > max_rows)
    heavy = heavy[np.argsort(persons[heavy], kind="stable")]
    few, many = rows.take(light), rows.take(torch.from_numpy(heavy))
    runs = _runs(persons[heavy])

    def one(leaf: FeatureMap) -> Tensor:
        weigh = _weigh_counts if is_counting(leaf) else _weigh_dense
        jobs = [partial(leaf_sum, leaf, tile, place) for tile in tiles(few, _CROWD)] + [
            partial(weigh, leaf, many.slice(start, stop), inside, max_rows)
            for start, stop, inside in _crowds(runs)
        ]
        return add_up(jobs, leaf.dim, workers)

    return tuple(torch.cat([one(leaf) for leaf in leaves(block.map)]) for block in plan.blocks)


def _runs(sorted_persons: np.ndarray) -> np.ndarray:
    """Give the lengths of the runs of equal person numbers."""
    if not len(sorted_persons):
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.r_[True, sorted_persons[1:] != sorted_persons[:-1]])
    return np.diff(np.r_[starts, len(sorted_persons)])


def _crowds(runs: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Cut the persons into crowds of about _CROWD rows, whole persons only."""
    ends = np.cumsum(runs)
    first = 0
    while first < len(runs):
        start = int(ends[first] - runs[first])
        last = max(first + 1, int(np.searchsorted(ends, start + _CROWD, side="right")))
        yield start, int(ends[last - 1]), runs[first:last]
        first = last


def _weigh_dense(leaf: FeatureMap, rows: Rows, runs: np.ndarray, max_rows: int) -> Tensor:
    """Sum integer rows by person, weigh each person's sum, and sum over the persons."""
    width = leaf.inner.dim if isinstance(leaf, ByLabel) else leaf.dim
    classes = leaf.classes if isinstance(leaf, ByLabel) else 1
    total = torch.zeros(leaf.dim, dtype=torch.int64)
    start = 0
    step = max(1, 2**22 // (width * classes))
    for first in range(0, len(runs), step):
        inside = torch.from_numpy(runs[first : first + step])
        stop = start + int(inside.sum())
        owner = torch.repeat_interleave(torch.arange(len(inside)), inside)
        sums = torch.zeros(len(inside) * classes, width, dtype=torch.float64)
        done = 0
        for tile in tiles(rows.slice(start, stop), leaf.tile):
            for part, whole in integer_rows(leaf, tile):
                place = owner[done : done + len(part)] * classes
                if isinstance(leaf, ByLabel):
                    place = place + part.codes[leaf.label]
                sums.index_add_(0, place, whole.cpu())
                done += len(part)
        whole_sums = sums.to(torch.int64).reshape(len(inside), leaf.dim) * max_rows
        total += torch.div(whole_sums, inside[:, None], rounding_mode="trunc").sum(dim=0)
        start = stop
    return total


def _weigh_counts(leaf: FeatureMap, rows: Rows, runs: np.ndarray, max_rows: int) -> Tensor:
    """Count by (person, cell), weigh each count, and sum over the persons."""
    value = int(grid_of(leaf).bound.high)
    total = torch.zeros(leaf.dim, dtype=torch.int64)
    sizes = torch.from_numpy(runs)
    if len(runs) == 1 and len(rows) > _CROWD:
        counts = leaf_sum(leaf, rows) * max_rows
        return torch.div(counts, int(runs[0]), rounding_mode="trunc")
    owner = torch.repeat_interleave(torch.arange(len(runs)), sizes)
    done = 0
    keys: list[Tensor] = []
    for tile in tiles(rows, leaf.tile):
        cells = leaf.cells(tile).long()
        keys.append((owner[done : done + len(tile), None] * leaf.dim + cells).reshape(-1))
        done += len(tile)
    found, counts = torch.unique(torch.cat(keys), return_counts=True)
    weighed = torch.div(
        counts * (value * max_rows), sizes[found // leaf.dim], rounding_mode="trunc"
    )
    return total.index_add_(0, found % leaf.dim, weighed)


def passes(
    reopen: Callable[[], Iterator[pa.RecordBatch]],
    encoder: Encoder,
    *,
    repeatable: bool,
    limit: int | None = None,
) -> Iterator[tuple[Rows, np.ndarray, Notes]]:
    """Read the source once if its rows fit in memory, otherwise once for each bucket of persons."""
    limit = resident_rows(encoder) if limit is None else limit
    of = 1
    while True:
        try:
            first = collect(reopen(), encoder, (0, of), notes := Notes(), limit)
        except TooManyRowsError:
            if not repeatable:
                msg = (
                    f"more than {limit:,} rows by person from a source that can be read only "
                    "once: give a path or a table instead"
                )
                raise DataError(msg) from None
            if of >= 4096:
                raise
            of *= 2
            continue
        yield *first, notes
        break
    for number in range(1, of):
        rows, persons = collect(reopen(), encoder, (number, of), notes := Notes(), 4 * limit)
        yield rows, persons, notes
