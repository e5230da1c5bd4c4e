"""What makes every command quicker."""

from __future__ import annotations

import atexit
import gc


def collect_rarely() -> None:
    """Look for garbage rarely, and at the end not at all: a third of the time of a short command.

    Imports make a million objects that stay, and to look through them again and again is in vain.
    What is there at the end goes with the process.
    """
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)
