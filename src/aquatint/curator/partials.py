"""Private partials as bytes: a sum without noise, packed to travel between the curator's machines.

**These bytes are private.** They hold exact sums over rows: whoever reads them learns what noise is
there to hide. A `PrivateSum` therefore does not pickle, print or save itself, and packing one is an
act of the curator's own, for a cluster, a trusted aggregator or an encrypted checkpoint.

No pickle and no code: a line that says what this is, a SHA-256 digest of what follows, a small JSON
head, and the integers as safetensors. The digest is against damage, not against forgery: send
partials over a channel that both ends trust.

A head carries the fingerprint of the plan, which covers the integer grid as well. Two ends that
would count on different grids, say because one runs another version, can therefore not mix their
integers: noise that is calibrated for one grid would not protect sums on a coarser one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any, NoReturn

import numpy as np
import safetensors
import torch
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from torch import Tensor

from aquatint.curator.encode import Notes
from aquatint.curator.sums import PrivateSum, check_room
from aquatint.errors import DataError
from aquatint.features.algebra import leaves
from aquatint.features.grid import grid_of
from aquatint.planning import Plan

_MAGIC = b"aquatint private partial 1: exact sums without noise, do not publish\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8
_NAME = 32
_LARGEST_HEAD = 16 << 20


def fingerprint(plan: Plan) -> str:
    """Tell plans apart by what is summed and on which integer grid: SHA-256, in hexadecimal."""
    grids = [[repr(astuple(grid_of(leaf))) for leaf in leaves(b.map)] for b in plan.blocks]
    text = json.dumps({"plan": plan.to_dict(), "grids": grids}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def pack_private(private: PrivateSum) -> bytes:
    """Give a sum without noise as bytes, which are PRIVATE; each packing has a name of its own."""
    head = {
        "name": secrets.token_hex(_NAME // 2),
        "plan": fingerprint(private.plan),
        "rows": private.rows,
        "notes": {each.name: dict(getattr(private.notes, each.name)) for each in fields(Notes)},
    }
    text = json.dumps(head, sort_keys=True).encode()
    arrays = save_arrays({str(i): total.numpy() for i, total in enumerate(private.totals)})
    body = len(text).to_bytes(_LENGTH, "little") + text + arrays
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack_private(packed: bytes, plan: Plan) -> PrivateSum:
    """Read what `pack_private` gave for this plan, or say in one sentence what is wrong with it."""
    return _unpack(packed, plan)[1]


def merge_private(packed: Iterable[bytes], plan: Plan) -> PrivateSum:
    """Add up packed partials of one plan, and refuse one that comes twice.

    Partials are told apart by the name that each packing gets, so that the same bytes are never
    counted twice, while two that happen to hold the same sums both are.
    """
    total, seen = PrivateSum.empty(plan), set[str]()
    for each in packed:
        name, part = _unpack(each, plan)
        if name in seen:
            msg = "the same partial came twice: give each one once, or rows would be counted twice"
            raise DataError(msg)
        seen.add(name)
        total = total.merge(part)
    check_room(plan, total.rows)
    return total


@dataclass(frozen=True, repr=False)
class _Head:
    name: str
    plan: str
    rows: int
    notes: Notes


def _unpack(packed: bytes, plan: Plan) -> tuple[str, PrivateSum]:
    if not packed.startswith(_MAGIC):
        _refuse("it is something else, or of a version that this Aquatint does not know")
    start = len(_MAGIC) + _DIGEST
    body = memoryview(packed)[start:]
    if hashlib.sha256(body).digest() != packed[len(_MAGIC) : start]:
        _refuse("it was damaged or cut short on its way; send it again")
    size = int.from_bytes(body[:_LENGTH], "little")
    if size > min(_LARGEST_HEAD, len(body)):
        _refuse("its head is larger than allowed")
    head = _read_head(bytes(body[_LENGTH : _LENGTH + size]), plan)
    if head.plan != fingerprint(plan):
        msg = (
            "the partial was made by another plan or another version of Aquatint: give every part "
            "the same plan file, and install the same version everywhere"
        )
        raise DataError(msg)
    totals = _read_totals(bytes(body[_LENGTH + size :]), plan, head.rows)
    return head.name, PrivateSum(plan, totals, head.rows, head.notes)


def _read_head(text: bytes, plan: Plan) -> _Head:
    try:
        data = json.loads(text)
        name, made_by, rows, notes = (data[k] for k in ("name", "plan", "rows", "notes"))
        counted = {each.name: _counter(notes[each.name], plan) for each in fields(Notes)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        _refuse("its head is malformed")
    if not isinstance(name, str) or len(name) != _NAME or type(rows) is not int or rows < 0:
        _refuse("its head is malformed")
    return _Head(name, made_by, rows, Notes(**counted))


def _counter(data: Any, plan: Plan) -> Counter[str]:
    if not all(type(n) is int and n > 0 and c in plan.schema.columns for c, n in data.items()):
        raise ValueError
    return Counter(data)


def _read_totals(content: bytes, plan: Plan, rows: int) -> tuple[Tensor, ...]:
    """Read the integers, and hold them to what so many rows can add up to on the plan's grid."""
    try:
        arrays = load_arrays(content)
    except (safetensors.SafetensorError, ValueError, KeyError):
        _refuse("its sums are malformed")
    check_room(plan, rows)
    if sorted(arrays) != sorted(map(str, range(len(plan.blocks)))):
        _refuse("its blocks are not those of the plan")
    totals = [arrays[str(i)] for i in range(len(plan.blocks))]
    for block, total in zip(plan.blocks, totals, strict=True):
        if total.dtype != np.int64 or total.shape != (block.map.dim,):
            _refuse("its blocks are not those of the plan")
        start = 0
        for leaf in leaves(block.map):
            bound, some = grid_of(leaf).bound, total[start : start + leaf.dim]
            least, most = rows * int(bound.low), rows * int(bound.high)
            if leaf.dim and not least <= int(some.min()) <= int(some.max()) <= most:
                _refuse("its sums are larger than its number of rows allows")
            start += leaf.dim
    return tuple(torch.from_numpy(np.array(total)) for total in totals)


def _refuse(why: str) -> NoReturn:
    msg = f"this is not a sound private partial: {why}"
    raise DataError(msg)
