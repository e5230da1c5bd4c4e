"""One release in the making: what has been declared so far, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from aquatint.accounting import Budget, Loss
from aquatint.curator.ledger import Ledger
from aquatint.curator.spending import most_loss, possible_noise
from aquatint.errors import DataError
from aquatint.planning import Plan
from aquatint.schema import Schema
from aquatint.table_plan import plan
from aquatint.web.jobs import Job
from aquatint.web.steps.drafting import ColumnDraft
from aquatint.web.steps.folder import Folder

LOCKED = (
    "This release is made, and its page is locked: any change is a new release, which costs again."
)


@dataclass(frozen=True)
class Spending:
    """What is to be spent, and where it is written down."""

    rows: int
    budget: Budget
    output: str
    ledger: str = ""
    dataset: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of it: the files, the loss, and notes for the curator's eyes only."""

    files: dict[str, Path]
    loss: Loss
    notes: list[str]
    promise: str


@dataclass
class Session:
    """The studio's state. One person, one release at a time."""

    folder: Folder
    data: Path | None = None
    columns: list[ColumnDraft] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=lambda: {"privacy": {}})
    schema: Schema | None = None
    plan: Plan | None = None
    typed: dict[str, str] = field(default_factory=dict)
    spending: Spending | None = None
    work: Job[Outcome] | None = None
    report: Job[Path] | None = None
    lock: Lock = field(default_factory=Lock)

    @property
    def locked(self) -> bool:
        """Whether a release was made, or is being made."""
        return self.work is not None and self.work.problem is None

    def open(self) -> None:
        """Refuse to change anything once it is locked."""
        if self.locked:
            raise DataError(LOCKED)

    def declare(self, schema: Schema) -> None:
        """Keep a schema, and make its plan; no row is read for either."""
        self.schema, self.plan = schema, plan(schema)

    def loss(self, budget: Budget) -> Loss:
        """Give the loss that spending a budget would be."""
        if self.plan is None:
            msg = "declare the schema first"
            raise DataError(msg)
        return most_loss(budget, possible_noise(self.plan, budget))

    def book(self) -> Ledger | None:
        """Open the ledger that was chosen, if any."""
        if self.spending is None or not self.spending.ledger:
            return None
        return Ledger(self.folder.inside(self.spending.ledger))

    def begin(self, work: Job[Outcome]) -> None:
        """Start the work that spends: once, however often and fast the button is pressed."""
        with self.lock:
            self.open()
            self.work = work.start()

    def close(self) -> None:
        """End what can be ended, and wait for what cannot: a release that is being made."""
        if self.report is not None:
            self.report.stop()
        for job in (self.work, self.report):
            if job is not None:
                job.wait()

    def again(self) -> None:
        """Begin another release with the same schema; the spending is to be chosen anew."""
        self.work, self.report, self.spending, self.typed = None, None, None, {}
