"""Ctrl-C at moments when it must not be heard at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[list[bool]]:
    """Hold Ctrl-C back; the list that is given is empty unless it came."""
    asked: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def delayed() -> Iterator[None]:
    """Hear Ctrl-C only afterwards, around code that would swallow it."""
    with held_back() as asked:
        yield
    if asked:
        raise KeyboardInterrupt
