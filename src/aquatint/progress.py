"""Progress on standard error for whatever takes longer than two seconds, and silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

PATIENCE = 2.0
"""Seconds before a bar appears."""

Advance = Callable[[int], None]
Tell = Callable[[str, int, int | None], None]
_LISTENER: ContextVar[Tell | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(tell: Tell) -> Iterator[None]:
    """Tell a function of progress instead of a terminal: what, how much of it, and of how much."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def _told(tell: Tell, label: str, total: int | None) -> Iterator[Advance]:
    """Tell a listener of this work, and of none that it is made of."""
    done = 0

    def advance(amount: int) -> None:
        nonlocal done
        done += amount
        tell(label, done, total)

    token = _LISTENER.set(None)
    tell(label, 0, total)
    try:
        yield advance
    finally:
        _LISTENER.reset(token)


@contextmanager
def track(label: str, total: int | None, *, show: bool = True) -> Iterator[Advance]:
    """Give a function to call with the amount done since the last call."""
    if (listener := _LISTENER.get()) is not None:
        with _told(listener, label, total) as advance:
            yield advance
        return
    if not (show and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[speed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=total, speed="")
    begun = monotonic()
    done = 0

    def show_more(amount: int) -> None:
        nonlocal done
        done += amount
        waited = monotonic() - begun
        if waited > PATIENCE:
            bar.start()
            bar.update(task, completed=done, speed=f"({done / waited:,.0f}/s)")

    try:
        yield show_more
    finally:
        bar.stop()
