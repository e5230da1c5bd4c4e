"""From exact sums to a release: spend once, add noise once.

`release_once` is the one path on which a budget is spent, wherever the rows were summed: on this
machine, on a cluster, or at several sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from aquatint.accounting import Budget, Noised
from aquatint.curator.checkpoint import Seal
from aquatint.curator.choosing import scores
from aquatint.curator.encode import Notes
from aquatint.curator.ledger import Ledger, Reservation
from aquatint.curator.noise import add_noise, choose, chooser, simulator
from aquatint.curator.spending import look_before, most_loss, possible_noise, uninterrupted
from aquatint.curator.sums import PrivateSum
from aquatint.errors import BudgetError, LedgerError
from aquatint.features import FeatureMap, leaves
from aquatint.features.grid import grid_of
from aquatint.features.marginals import Count, Marginals
from aquatint.grouping import best_sets, merged
from aquatint.planning import Plan, PlannedBlock, noise_of
from aquatint.progress import track
from aquatint.release.archive import reserved, to_bytes
from aquatint.release.model import Block, Release, Statement
from aquatint.schema import Schema
from aquatint.table_plan import rebalanced


def release_once(
    sum_up: Callable[[], PrivateSum],
    plan: Plan,
    budget: Budget,
    *,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    output: str | Path | None = None,
    simulate: int | None = None,
    notes: Callable[[Notes], None] | None = None,
    progress: bool = False,
    seal: Seal | None = None,
) -> Release:
    """Reserve the loss, sum up, secure room for the file, then spend, add noise and write.

    Whatever fails before the spending costs nothing and leaves no file; from there on Ctrl-C waits
    until the release is complete. The options are those of `sketch`.

    With a seal the release is made and locked away first, then paid for, then published: whenever
    the process dies, the next run publishes the same noise and pays for it once.
    """
    possible = possible_noise(plan, budget)
    if simulate is not None and ledger is not None:
        msg = "simulated noise is not private, so there is nothing to account for: drop one of them"
        raise BudgetError(msg)
    kept = _kept(seal, budget, simulated=simulate is not None)
    paid = kept is not None and _is_spent(ledger, dataset, kept[1])
    with nullcontext() if paid else _reservation(ledger, dataset, plan, budget, possible) as hold:
        if kept is not None:
            make: Callable[[], Release] = partial(_again, kept[0])
        else:
            private = sum_up()
            if notes is not None:
                notes(private.notes)
            look_before(private.rows, budget, depth=4)
            make = partial(
                finish, private, budget, noise=possible[0], simulate=simulate, progress=progress
            )
        with ExitStack() as room:
            file = room.enter_context(reserved(output, _size(plan))) if output else None
            with uninterrupted():
                release = make() if paid else _paid_for(make, hold, seal)
                if file is not None:
                    file.write(to_bytes(release))
                room.close()  # the file is in its place before Ctrl-C is heard again
    if seal is not None:
        seal.remove()
    return release


def _again(release: Release) -> Release:
    return release


def _paid_for(make: Callable[[], Release], hold: Reservation | None, seal: Seal | None) -> Release:
    """Spend, then draw the noise; or draw it, lock it away where nobody sees it, then spend."""
    release = None
    if seal is not None:
        release = make()
        seal.keep(release, None if hold is None else hold.token)
    if hold is not None:
        hold.spend()
    return make() if release is None else release


def _kept(
    seal: Seal | None, budget: Budget, *, simulated: bool
) -> tuple[Release, str | None] | None:
    """Give a release that an earlier run finished and did not get to publish."""
    found = None if seal is None else seal.opened()
    if found is None:
        return None
    said = found[0].statement
    if (said.epsilon, said.delta, said.simulated) != (budget.epsilon, budget.delta, simulated):
        msg = (
            f"the checkpoint holds a finished release with epsilon {said.epsilon:g} and delta "
            f"{said.delta:g}: ask for the same to publish it, or remove the checkpoint"
        )
        raise BudgetError(msg)
    return found


def _is_spent(ledger: str | Path | None, dataset: str | None, token: str | None) -> bool:
    if ledger is None or dataset is None or token is None:
        return False
    return Ledger(ledger).is_spent(dataset, token)


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
