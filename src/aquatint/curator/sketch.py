"""The front door: `sketch` is the only line of a program that sees private rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aquatint.accounting import Budget, Noised
from aquatint.curator.accumulate import PrivateSum, check_room, sum_rows
from aquatint.curator.choosing import scores
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.ledger import Ledger
from aquatint.curator.noise import add_noise, choose, chooser, simulator
from aquatint.curator.persons import passes, sum_persons
from aquatint.curator.read import Source, read
from aquatint.curator.spending import look_before, most_loss, possible_noise, uninterrupted
from aquatint.errors import BudgetError, DataError, LedgerError, PlanError
from aquatint.features import FeatureMap, leaves
from aquatint.features.attaching import moved, networked_maps
from aquatint.features.grid import grid_of
from aquatint.features.marginals import Count, Marginals
from aquatint.grouping import best_sets, merged
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.progress import track
from aquatint.release.archive import reserved, to_bytes
from aquatint.release.model import Block, Release, Statement
from aquatint.schema import Schema
from aquatint.table_plan import plan as default_plan
from aquatint.table_plan import rebalanced


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
) -> Release:
    """Spend a privacy budget once and give a release.

    Parameters
    ----------
    data
        A path (CSV, Parquet, Arrow or Feather; for images also a folder, .npz or idx file), a
        pandas or polars frame, an Arrow table, an iterator of record batches, or an `ImageBatch`.
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
        Where the public networks of perceptual features run: "cpu" or "cuda"; by default a GPU if
        there is one.

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
    chosen = plan if plan is not None else default_plan(schema)
    if chosen.schema != schema.with_bins(_bins(chosen.schema)):
        msg = "the plan was made for another schema: plan again with this one"
        raise PlanError(msg)
    placed = on_device(chosen, device)
    possible = possible_noise(chosen, budget)
    if simulate is not None and ledger is not None:
        msg = "simulated noise is not private, so there is nothing to account for: drop one of them"
        raise BudgetError(msg)
    with _reservation(ledger, dataset, chosen, budget, possible) as hold:
        private = replace(accumulate(data, placed, progress=progress), plan=chosen)
        if notes is not None:
            notes(private.notes)
        look_before(private.rows, budget)
        with ExitStack() as room:
            file = room.enter_context(reserved(output, _size(chosen))) if output else None
            with uninterrupted():
                if hold is not None:
                    hold.spend()
                release = finish(
                    private, budget, noise=possible[0], simulate=simulate, progress=progress
                )
                if file is not None:
                    file.write(to_bytes(release))
                room.close()  # the file is in its place before Ctrl-C is heard again
    return release


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


def accumulate(data: Any, plan: Plan, *, progress: bool = False) -> PrivateSum:
    """Sum the plan's blocks exactly over private data, without noise: the result is private."""
    codes, values = (
        frozenset[str]().union(*r) for r in zip(*(b.map.reads for b in plan.blocks), strict=True)
    )
    encoder = Encoder(plan.schema, codes, values)
    source = read(data, plan.schema, encoder.columns)
    total = PrivateSum.empty(plan)
    with track("reading rows", None, show=progress) as advance:
        for part in _partials(source, plan, encoder):
            total = total.merge(part)
            advance(part.rows)
    if not total.rows:
        msg = "the data has no rows: there is nothing to sketch"
        raise DataError(msg)
    check_room(plan, total.rows)
    return total


def _partials(source: Source, plan: Plan, encoder: Encoder) -> Iterator[PrivateSum]:
    privacy = plan.schema.privacy
    if privacy.person is not None:
        for rows, persons, notes in passes(source.open, encoder, repeatable=source.repeatable):
            if len(rows):
                totals = sum_persons(plan, rows, persons, privacy.rows_per_unit)
                yield PrivateSum(plan, totals, len(rows), notes)
        return
    for batch in source.open():
        rows = encoder(batch, notes := Notes())
        yield PrivateSum(plan, sum_rows(plan, rows), len(rows), notes)


def finish(
    private: PrivateSum,
    budget: Budget,
    *,
    noise: tuple[tuple[Noised, ...], ...] | None = None,
    simulate: int | None = None,
    progress: bool = False,
) -> Release:
    """Add the noise, once, and give what may leave the curator's hands."""
    plan = private.plan
    statement = Statement(budget.epsilon, budget.delta, simulated=simulate is not None)
    simulated = simulator(simulate) if simulate is not None else None
    pick = chooser(simulate) if simulate is not None else choose
    blocks: list[Block] = []
    settled = noise or noise_of(plan, budget)
    with track("adding noise", plan.coordinates, show=progress) as advance:
        for place, total in enumerate(private.totals):
            if plan.rebalance and (count := _published_rows(private, blocks)) is not None:
                plan = rebalanced(plan, budget, count)
                settled = settled[:place] + _a_hair_wider(noise_of(plan, budget)[place:])
            block, planned = plan.blocks[place], settled[place]
            released, sums, parts = _settle(
                block, total.numpy(), planned, blocks, plan.schema, pure=budget.pure
            )
            choice = None
            if block.select is not None and isinstance(released, Marginals):
                choice, parts = parts[-1], parts[:-1]
                rows = _published_rows(private, blocks) or 1.0
                found = scores(released, sums, blocks, rows, parts[0].scale)
                kept = pick(found, choice, block.select, statement.noise)
                released, sums = released.keep(sums, kept)
                parts = (replace(parts[0], coordinates=released.dim),)
            start, noisy = 0, []
            for part in parts:
                exact = sums[start : start + part.coordinates]
                if simulated is None:
                    noisy.append(add_noise(exact, part, statement.noise, advance))
                else:
                    noisy.append(simulated(exact, part, statement.noise))
                start += part.coordinates
            integers = np.concatenate(noisy)
            integers.setflags(write=False)
            scales = tuple(part.scale for part in parts)
            chosen = choice.scale if choice is not None else None
            blocks.append(Block(block.name, released, integers, scales, statement.noise, chosen))
    return Release(
        schema=plan.schema,
        blocks=tuple(blocks),
        statement=statement,
        rows=private.rows if plan.schema.privacy.replaces else None,
        created=datetime.now(UTC).date().isoformat(),
        versions={name: version(name) for name in ("aquatint", "opendp", "torch")},
    )


def _a_hair_wider(noise: tuple[tuple[Noised, ...], ...]) -> tuple[tuple[Noised, ...], ...]:
    """Make up for rounding between the calibration before and after the shares were settled."""
    return tuple(
        tuple(replace(part, scale=part.scale * (1 + 1e-12)) for part in parts) for parts in noise
    )


def _published_rows(private: PrivateSum, before: list[Block]) -> float | None:
    """Give the number of rows as far as it is public: exactly, with noise, or not yet."""
    if private.plan.schema.privacy.replaces:
        return float(private.rows)
    return next((float(b.sum[0]) for b in before if isinstance(b.map, Count)), None)


def _settle(
    block: PlannedBlock,
    sums: np.ndarray,
    parts: tuple[Noised, ...],
    before: list[Block],
    schema: Schema,
    *,
    pure: bool,
) -> tuple[FeatureMap, np.ndarray, tuple[Noised, ...]]:
    """Merge the cells of a block that asks for it, by the noisy blocks before it.

    The choice is made from published numbers and the sets, hence the sensitivity and the noise,
    stay as planned: adaptive composition of Gaussian mechanisms costs no more than the plan did.
    """
    if not block.adaptive or not isinstance(block.map, Marginals):
        return block.map, sums, parts
    if block.best is not None:
        chosen = best_sets(block.map, before, block.best)
        fine, kept = block.map.keep(sums, [block.map.sets.index(s) for s in chosen.sets])
        return chosen, fine.add_up(kept, chosen), (replace(parts[0], coordinates=chosen.dim),)
    if block.merge is None:
        return block.map, sums, parts
    spread = sqrt(2.0) if pure else 1.0
    least = block.merge * spread * parts[0].scale / grid_of(block.map).steps
    coarse = merged(block.map, before, schema, least)
    counted = replace(parts[0], coordinates=coarse.dim)
    return coarse, block.map.add_up(sums, coarse), (counted, *parts[1:])


@contextmanager
def _reservation(
    ledger: str | Path | None,
    dataset: str | None,
    plan: Plan,
    budget: Budget,
    possible: list[tuple[tuple[Noised, ...], ...]],
) -> Iterator[Any]:
    if (ledger is None) is not (dataset is None):
        msg = "a ledger needs the name of the dataset, and the name needs a ledger: give both"
        raise LedgerError(msg)
    if ledger is None or dataset is None:
        yield None
        return
    loss = most_loss(budget, possible)
    protects = plan.schema.privacy.protects
    with Ledger(ledger).reserve(dataset, loss, budget, protects) as hold:
        yield hold


def _size(plan: Plan) -> int:
    """Bound the size of the release file from above, before it is made."""
    specs = len(str(plan.to_dict()).encode())
    parts = sum(len(leaves(block.map)) for block in plan.blocks)
    groups = sum(plan.schema.cells().values()) * sum(block.adaptive for block in plan.blocks)
    return 8 * plan.coordinates + 2 * specs + 1000 * parts + 16 * groups + (1 << 16)


def _bins(schema: Schema) -> dict[str, Any]:
    return {name: getattr(column, "bins", None) for name, column in schema.columns.items()}
