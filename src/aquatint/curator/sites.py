"""By hand: sum the rows in parts, wherever they are, and spend once for all of them.

Several hospitals with one trusted aggregator, or one curator with a scheduler of their own: each
part gives a `PrivateSum`, `pack` turns it into private bytes for a trusted channel, `merge` adds
the parts up, and `finish` spends the budget and adds the noise, once, on the path that `sketch`
takes. The integers, and hence the noise that they need, are those of one sketch over all the rows.

The aggregator sees exact sums and must be trusted with them. So must the sites be with their parts:
a row that two parts count is counted twice, and the promise to its owner is then half as strong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from aquatint.accounting import Budget
from aquatint.curator import gathering
from aquatint.curator.encode import Notes
from aquatint.curator.finishing import release_once
from aquatint.curator.partials import merge_private, pack_private
from aquatint.curator.sketch import chosen_plan, on_device
from aquatint.curator.sums import PrivateSum, check_room
from aquatint.errors import DataError
from aquatint.planning import Plan
from aquatint.release.model import Release
from aquatint.schema import Schema


def accumulate(
    data: Any,
    schema: Schema,
    plan: Plan,
    *,
    progress: bool = True,
    device: str | None = None,
    workers: int | None = None,
) -> PrivateSum:
    """Sum the plan's blocks exactly over one part of the rows, without noise: the sum is private.

    Parameters
    ----------
    data
        What `sketch` takes: a path, a frame, an Arrow table, an iterator of record batches.
    schema, plan
        The same for every part. There is no default plan: the parts must agree on it, so save it
        once with `Plan.save` and give it to all.
    progress, device, workers
        As for `sketch`.

    Returns
    -------
    PrivateSum
        It shows nothing and cannot be pickled; `pack` it to send it away.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from aquatint.table_plan import plan as make_plan
    >>> schema = Schema.from_dict({
    ...     "name": "people",
    ...     "privacy": {"protects": "add or remove one row"},
    ...     "columns": {"sex": {"kind": "categorical", "categories": ["F", "M"]}},
    ... })
    >>> plan = make_plan(schema)
    >>> here = accumulate(pa.table({"sex": ["F", "M"] * 300}), schema, plan)
    >>> there = accumulate(pa.table({"sex": ["F", "M"] * 200}), schema, plan)
    >>> here
    PrivateSum(2 blocks, not shown: no noise has been added)
    >>> release = finish(merge([here, pack(there)], plan), epsilon=1, delta=1e-6)
    >>> bool(abs(release.count - 1000) < 6 * release.block("count").stderr[0])
    True
    """
    chosen = chosen_plan(schema, plan)
    placed = on_device(chosen, device)
    total = gathering.accumulate(data, placed, progress=progress, workers=workers, device=device)
    return replace(total, plan=chosen)


def pack(private: PrivateSum) -> bytes:
    """Give a part as bytes. They are PRIVATE: exact sums, for a channel that both ends trust.

    They carry the plan's fingerprint, the number of rows and a digest against damage, and no code.
    """
    return pack_private(private)


def merge(
    parts: Iterable[PrivateSum | bytes], plan: Plan, *, persons_apart: bool = False
) -> PrivateSum:
    """Add up the parts, packed or not, of one plan; a part that comes twice is refused.

    Parameters
    ----------
    parts
        What `accumulate` and `pack` gave.
    plan
        The plan that all of them were made by, which is checked.
    persons_apart
        Say that no person has rows in more than one part. Needed when all rows of a person are
        protected: each part holds a person to their share by itself, and one who is in two parts
        would count, and could be seen, twice.
    """
    privacy = plan.schema.privacy
    if privacy.person is not None and not persons_apart:
        msg = (
            f"all rows of one person are protected, and a person with rows in two parts would "
            f"count twice: give each {privacy.person!r} to one part, then say persons_apart=True"
        )
        raise DataError(msg)
    total = merge_private(_packed(parts), plan)
    if not total.rows:
        msg = "the parts have no rows: there is nothing to release"
        raise DataError(msg)
    return total


def _packed(parts: Iterable[PrivateSum | bytes]) -> Iterable[bytes]:
    """Pack what is not packed, once, so that a sum given twice has one name and is noticed."""
    seen: dict[int, tuple[PrivateSum, bytes]] = {}
    for part in parts:
        if isinstance(part, PrivateSum):
            if id(part) not in seen:
                seen[id(part)] = part, pack_private(part)
            yield seen[id(part)][1]
        else:
            yield part


def finish(
    private: PrivateSum,
    *,
    epsilon: float,
    delta: float,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    output: str | Path | None = None,
    simulate: int | None = None,
    notes: Callable[[Notes], None] | None = None,
    progress: bool = True,
) -> Release:
    """Spend a privacy budget once on sums over all parts, and give a release.

    The parameters are those of `sketch`, and so is the path: the loss is reserved in the ledger,
    room for the file is secured, the loss is spent, the noise is added and the file is written.
    """
    check_room(private.plan, private.rows)
    return release_once(
        lambda: private,
        private.plan,
        Budget(epsilon, delta),
        ledger=ledger,
        dataset=dataset,
        output=output,
        simulate=simulate,
        notes=notes,
        progress=progress,
    )
