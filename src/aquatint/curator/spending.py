"""What surrounds every spending of a budget: warnings before it, and no interruption in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple

from aquatint.accounting import Budget, Loss, Noised, gaussian_loss, laplace_loss
from aquatint.curator.encode import Notes
from aquatint.curator.interrupts import held_back
from aquatint.planning import Plan, noise_of
from aquatint.table_plan import extremes


class PrivacyWarning(UserWarning):
    """Something is allowed but weakens what people will understand by the promise."""


def look_before(rows: int, budget: Budget, depth: int = 3) -> None:
    """Warn the curator, before anything is spent, where the promise would mean little.

    The warning names the line `depth` calls up.
    """
    if budget.delta * rows >= 1:
        warnings.warn(
            f"delta = {budget.delta:g} is not below one over the number of rows: "
            "publishing one random row would satisfy it; choose a far smaller delta",
            PrivacyWarning,
            stacklevel=depth,
        )
    if budget.epsilon > 10:
        warnings.warn(
            f"epsilon = {budget.epsilon:g} promises very little: most releases use 0.1 to 5",
            PrivacyWarning,
            stacklevel=depth,
        )


def possible_noise(plan: Plan, budget: Budget) -> list[tuple[tuple[Noised, ...], ...]]:
    """Give the noise that a plan calls for, however its shares are settled on the way."""
    return [noise_of(each, budget) for each in (plan, *extremes(plan))]


def most_loss(budget: Budget, possible: Sequence[tuple[tuple[Noised, ...], ...]]) -> Loss:
    """Give the loss that covers a release, whichever of the possible noises it gets."""
    measure = laplace_loss if budget.pure else gaussian_loss
    losses = [measure([part for parts in noise for part in parts]) for noise in possible]
    return Loss(*(max(values) for values in zip(*map(astuple, losses), strict=True)))


def in_words(notes: Notes) -> list[str]:
    """Say what had to be clipped or sent to "other": exact, and for the curator's eyes only."""
    kinds = (
        ("outside the bounds, clipped", notes.clipped),
        ('not among the categories, sent to "other"', notes.other),
    )
    return [f"{name}: {count:,} values {what}" for what, n in kinds for name, count in n.items()]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back between spending and writing, so that what is paid for is not lost."""
    with held_back() as asked:
        yield
    if asked:
        warnings.warn(
            "Ctrl-C came after the budget was spent, so the release was completed first",
            PrivacyWarning,
            stacklevel=3,
        )
