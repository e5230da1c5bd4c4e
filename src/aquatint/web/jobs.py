"""Work that takes longer than a page may: done in a thread, with its progress to be asked for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from typing import Generic, TypeVar

from aquatint.errors import AquatintError
from aquatint.progress import heard_by

T = TypeVar("T")


class _Stopped(Exception):  # noqa: N818  # a way out of the work, not an error
    """The work is not wanted any more."""


class Job(Generic[T]):
    """One piece of work.

    Parameters
    ----------
    what
        The work in a word or two, for people.
    work
        What to do; its progress bars are heard here.
    must_end
        Whether it cannot be stopped, as for work that spends a budget.

    The program waits for its jobs before it ends: those that can be stopped stop at the next sign
    of progress.
    """

    def __init__(self, what: str, work: Callable[[], T], *, must_end: bool = False) -> None:
        self.what, self._work = what, work
        self.label, self.done = what, 0
        self.total: int | None = None
        self.problem: str | None = None
        self._result: list[T] = []
        self._begun = monotonic()
        self._seconds: float | None = None
        self._must_end, self._stopped = must_end, Event()
        self._thread = Thread(target=self._run, name=f"aquatint {what}")

    def start(self) -> Job[T]:
        """Begin."""
        self._begun = monotonic()
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ask it to end early, if it can."""
        if not self._must_end:
            self._stopped.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is over; say whether it is."""
        self._thread.join(seconds)
        return self.over

    @property
    def over(self) -> bool:
        """Whether there is a result, or a problem."""
        return self.ready or self.problem is not None

    @property
    def going(self) -> bool:
        """Whether it has begun, and has not ended."""
        return self._thread.is_alive()

    @property
    def ready(self) -> bool:
        """Whether there is a result."""
        return bool(self._result)

    @property
    def result(self) -> T:
        """What came of it."""
        return self._result[0]

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return monotonic() - self._begun if self._seconds is None else self._seconds

    @property
    def share(self) -> float | None:
        """How much of the present part is done; None where nobody knows."""
        return min(1.0, self.done / self.total) if self.total else None

    def _run(self) -> None:
        try:
            with heard_by(self._hear):
                found = self._work()
        except _Stopped:
            self.problem = "The page was closed before this was done."
        except AquatintError as error:
            self.problem = str(error)
        except Exception as error:  # a page has to say that its work failed
            self.problem = f"This failed in a way that we did not foresee ({type(error).__name__})."
        else:
            self._result.append(found)
        self._seconds = monotonic() - self._begun

    def _hear(self, label: str, done: int, total: int | None) -> None:
        if self._stopped.is_set():
            raise _Stopped
        self.label, self.done, self.total = label, done, total
