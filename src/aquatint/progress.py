"""Progress on standard error for whatever takes longer than two seconds, and silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

PATIENCE = 2.0
"""Seconds before a bar appears."""

Advance = Callable[[int], None]


@contextmanager
def track(label: str, total: int | None, *, show: bool = True) -> Iterator[Advance]:
    """Give a function to call with the amount done since the last call."""
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

    def advance(amount: int) -> None:
        nonlocal done
        done += amount
        waited = monotonic() - begun
        if waited > PATIENCE:
            bar.start()
            bar.update(task, completed=done, speed=f"({done / waited:,.0f}/s)")

    try:
        yield advance
    finally:
        bar.stop()
