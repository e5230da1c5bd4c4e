"""Who pays for a private comparison, and how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path

from aquatint.accounting import Budget, Loss, gaussian_loss, laplace_loss
from aquatint.curator.compare.choice import Choice
from aquatint.curator.compare.trial import Trial
from aquatint.curator.ledger import Ledger, Reservation
from aquatint.errors import LedgerError
from aquatint.schema import Schema


def account_names(ledger: str | Path | None, dataset: str | Sequence[str] | None) -> list[str]:
    """Give the accounts to charge: a row is in one dataset, so one that holds both pays once."""
    names = [dataset] if isinstance(dataset, str) else list(dataset or [])
    if (ledger is None) is not (not names) or len(names) > 2:
        msg = "a ledger needs the name of the dataset, or of both, and names need a ledger"
        raise LedgerError(msg)
    return list(dict.fromkeys(names))


def loss_of(trials: Sequence[Trial], choice: Choice | None, spent: Budget) -> Loss:
    """Give what a row loses at most: by the choice or by one of the trials, never by both.

    A row is either among those to choose by or among those to test: see `splitting`.
    """
    if not spent.pure:
        return _largest([gaussian_loss(trial.noised) for trial in trials])
    # What is accounted for is one statistic against a threshold: see `ranks`.
    found = [
        laplace_loss(replace(part, coordinates=1) for part in trial.noised) for trial in trials
    ]
    if choice is not None:
        found.append(laplace_loss([choice.noised]))
    return _largest(found)


def _largest(losses: list[Loss]) -> Loss:
    return Loss(*(max(values) for values in zip(*map(astuple, losses), strict=True)))


def reserve(
    ledger: str | Path | None, names: list[str], loss: Loss, spent: Budget, schema: Schema
) -> Iterator[Reservation]:
    """Reserve the loss in every account; without a ledger there is none."""
    if ledger is None:
        return
    for name in names:
        yield Ledger(ledger).reserve(name, loss, spent, schema.privacy.protects)
