"""How many threads linear algebra may use, and what it does with tiny numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # has no types


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch and NumPy to one core: the matrices are small, and a second thread mostly waits.

    On a busy machine it waits long: questions then took three times as long with it.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Let this thread take numbers below 10⁻³⁸ for zero, where the processor can.

    Their arithmetic is a hundred times slower. Where there is little noise, most probabilities of a
    fit end among them: it took three times as long.
    """
    before = not (torch.tensor([1e-40]) * 1.0).any()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(bool(before))


@cache
def _libraries() -> Any:
    """Find NumPy's linear algebra, once: to look for it takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
