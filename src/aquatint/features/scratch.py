"""Buffers that are used again and again, for temporaries that never leave the function.

Large temporaries that are allocated anew cost a page fault for every 4 KB, several times as much as
the arithmetic on them.
"""

from __future__ import annotations

import threading
from math import prod

import torch
from torch import Tensor


class _Pool(threading.local):
    def __init__(self) -> None:
        self.held: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}


_POOL = _Pool()


def scratch(name: str, shape: tuple[int, ...], dtype: torch.dtype, like: Tensor) -> Tensor:
    """Give a buffer with arbitrary contents; the next call by this name and thread reuses it."""
    key = (name, dtype, like.device)
    size = prod(shape)
    held = _POOL.held.get(key)
    if held is None or held.numel() < size:
        held = _POOL.held[key] = torch.empty(size, dtype=dtype, device=like.device)
    return held[:size].view(shape)
