"""The ledger: what has been spent on which dataset, in one SQLite file that processes can share.

A sketch first reserves its loss, which is refused if the ceiling would be passed, and spends it in
the moment before noise is drawn. A process that dies before that has spent nothing: its
reservation lapses. One that dies after it has spent, whether or not a file was written.

Losses add up as in `aquatint.accounting.Loss`. Choosing later releases in the light of earlier ones
is covered: Gaussian mechanisms have a privacy filter in Σρ (Smith & Thakurta 2022), pure ε-DP has
one in Σε, and a mixture of both is accounted under zCDP, which has one too.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from math import isinf
from pathlib import Path
from types import TracebackType
from typing import Self

from aquatint.accounting import Budget, Loss, left
from aquatint.errors import LedgerError

_TABLES = """
create table if not exists datasets (
  name text primary key, protects text not null, epsilon real not null, delta real not null,
  created text not null);
create table if not exists entries (
  id integer primary key, dataset text not null references datasets(name),
  state text not null check (state in ('reserved', 'spent')),
  rho real not null, roughness real not null, pure real not null, pure_rho real not null,
  epsilon real not null, delta real not null, at text not null,
  host text not null, process integer not null, started text not null);
"""


@dataclass(frozen=True, slots=True)
class Account:
    """The state of one dataset, as ε at the ceiling's δ.

    Gaussian losses grow with the square root of their number, so `left`, the largest release that
    still fits, is more than the difference of the others.
    """

    dataset: str
    protects: str
    epsilon: float
    delta: float
    spent: float
    reserved: float
    left: float
    releases: int


class Reservation:
    """A part of the ceiling, held until it is spent or given back."""

    def __init__(self, ledger: Ledger, entry: int) -> None:
        self._ledger, self._entry, self._spent = ledger, entry, False

    def spend(self) -> None:
        """Mark the loss as spent: call this before noise is drawn."""
        with self._ledger._transaction() as db:
            found = db.execute(
                "update entries set state = 'spent', at = ? where id = ? and state = 'reserved'",
                (_now(), self._entry),
            )
            if found.rowcount != 1:
                msg = "the reservation is gone from the ledger: nothing was released, start again"
                raise LedgerError(msg)
        self._spent = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if not self._spent:
            with self._ledger._transaction() as db:
                db.execute(
                    "delete from entries where id = ? and state = 'reserved'", (self._entry,)
                )


class Ledger:
    """An account book of privacy, one file for any number of datasets."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def open_account(self, dataset: str, budget: Budget, protects: str) -> None:
        """Set the ceiling of a dataset; it can be set once."""
        with self._transaction(create=True) as db:
            if db.execute("select 1 from datasets where name = ?", (dataset,)).fetchone():
                msg = f"{self._path} already has a ceiling for {dataset!r}, which cannot be changed"
                raise LedgerError(msg)
            row = (dataset, protects, budget.epsilon, budget.delta, _now())
            db.execute("insert into datasets values (?, ?, ?, ?, ?)", row)

    def reserve(self, dataset: str, loss: Loss, budget: Budget, protects: str) -> Reservation:
        """Hold a loss against the ceiling, or refuse and say what is left."""
        with self._transaction() as db:
            _drop_dead(db)
            account = self._account(db, dataset)
            if account.protects != protects:
                msg = (
                    f"{dataset!r} is accounted for {account.protects!r}, this sketch protects "
                    f"{protects!r}: losses of different units do not add up"
                )
                raise LedgerError(msg)
            total = (_losses(db, dataset) + loss).epsilon(account.delta)
            if isinf(total):
                msg = (
                    f"{dataset!r} has a ceiling with delta = {account.delta:g}, too small for this"
                )
                raise LedgerError(msg)
            if total > account.epsilon * (1 + 1e-9):
                msg = (
                    f"{dataset!r} has epsilon {account.left:.4g} left of {account.epsilon:g} "
                    f"(spent {account.spent:.4g}, reserved {account.reserved:.4g}); "
                    f"this sketch would bring it to {total:.4g}: ask for less"
                )
                raise LedgerError(msg)
            entry = db.execute(
                "insert into entries (dataset, state, rho, roughness, pure, pure_rho, epsilon, "
                "delta, at, host, process, started) "
                "values (?, 'reserved', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    dataset,
                    loss.rho,
                    loss.roughness,
                    loss.pure,
                    loss.pure_rho,
                    budget.epsilon,
                    budget.delta,
                    _now(),
                    socket.gethostname(),
                    os.getpid(),
                    _started(os.getpid()),
                ),
            ).lastrowid
        return Reservation(self, entry or 0)

    def accounts(self) -> list[Account]:
        """Give the state of every dataset."""
        with self._transaction() as db:
            _drop_dead(db)
            names = [name for (name,) in db.execute("select name from datasets order by name")]
            return [self._account(db, name) for name in names]

    def account(self, dataset: str) -> Account:
        """Give the state of one dataset."""
        with self._transaction() as db:
            _drop_dead(db)
            return self._account(db, dataset)

    def after(self, dataset: str, loss: Loss) -> float:
        """Give what would be spent, as ε at the ceiling's δ, if this loss came on top."""
        with self._transaction() as db:
            _drop_dead(db)
            return (_losses(db, dataset) + loss).epsilon(self._account(db, dataset).delta)

    def _account(self, db: sqlite3.Connection, dataset: str) -> Account:
        row = db.execute(
            "select protects, epsilon, delta from datasets where name = ?", (dataset,)
        ).fetchone()
        if row is None:
            msg = (
                f"{self._path} has no ceiling for {dataset!r}: declare one with "
                f"aquatint ledger {self._path} --open {dataset} --epsilon 3 --delta 1e-6 "
                f'--protects "add or remove one row"'
            )
            raise LedgerError(msg)
        protects, epsilon, delta = row
        spent = _losses(db, dataset, "spent").epsilon(delta)
        held = _losses(db, dataset)
        free = left(held, Budget(epsilon, delta))
        (releases,) = db.execute(
            "select count(*) from entries where dataset = ? and state = 'spent'", (dataset,)
        ).fetchone()
        reserved = held.epsilon(delta) - spent
        return Account(dataset, protects, epsilon, delta, spent, reserved, free, releases)

    @contextmanager
    def _transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self._path.exists():
            msg = (
                f"there is no ledger at {self._path}: declare a ceiling first with "
                f"aquatint ledger {self._path} --open NAME --epsilon 3 --delta 1e-6 "
                f'--protects "add or remove one row"'
            )
            raise LedgerError(msg)
        try:
            with closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as db:
                db.executescript("pragma synchronous = full; pragma foreign_keys = on;")
                db.execute("begin immediate")
                try:
                    for statement in _TABLES.split(";"):
                        db.execute(statement)
                    yield db
                except BaseException:
                    db.execute("rollback")
                    raise
                db.execute("commit")
        except sqlite3.Error as error:
            msg = f"the ledger {self._path} cannot be used: {error}"
            raise LedgerError(msg) from None


def _losses(db: sqlite3.Connection, dataset: str, state: str | None = None) -> Loss:
    rows = db.execute(
        "select rho, roughness, pure, pure_rho from entries "
        "where dataset = ? and (? is null or state = ?)",
        (dataset, state, state),
    )
    return reduce(Loss.__add__, (Loss(*row) for row in rows), Loss())


def _drop_dead(db: sqlite3.Connection) -> None:
    """Let reservations lapse whose process is no more; only this machine can tell for its own."""
    held = db.execute(
        "select id, process, started from entries where state = 'reserved' and host = ?",
        (socket.gethostname(),),
    ).fetchall()
    for entry, process, started in held:
        if _started(process) != started:
            db.execute("delete from entries where id = ?", (entry,))


def _started(process: int) -> str:
    """Tell one process from a later one with the same number; empty if there is none."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19]
        )
    except OSError:
        pass
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
