"""A price on dependence: of two mixtures that fit a release alike, the simpler one is taken.

Joint counts say nothing of most interactions, and fits from random starts fill that gap with
structure of their own, which classifiers then learn. The price is the information that a row's
component gives about its cells, Σ_k w_k·KL(p_k ‖ p̄) over all columns: none if all components are
alike, and never below what the columns of a row tell of each other (their total correlation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aquatint.analyst.synthesize.terms import Term

PRICE, MOST = 30.0, 60.0
"""In units of the squared noise, for each nat; docs/results/notes.md has the trials."""
MANY_COLUMNS = 50
"""From here on the price rises with the number of columns, up to `MOST`: the more of them, the more
noise there is to take for structure."""
TINY = 1e-9


@dataclass(frozen=True)
class Dependence(Term):
    """The price of a mixture's dependence."""

    price: float = PRICE

    def __call__(  # noqa: D102
        self,
        weights: Tensor,
        probabilities: Tensor,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        nats: Tensor = _Information.apply(weights, probabilities)  # type: ignore[no-untyped-call]
        return self.price * nats


def dependence(columns: int) -> Dependence:
    """Give the price for a table of so many columns."""
    return Dependence(min(PRICE * max(columns / MANY_COLUMNS, 1.0), MOST))


class _Information(torch.autograd.Function):
    """Σ_k w_k Σ_a p_ka·log(p_ka/m_a) with m = Σ_k w_k·p_k, and its gradient in closed form.

    By p_ka it is w_k·log(p_ka/m_a); by w_k it is Σ_a p_ka·log(p_ka/m_a) less Σ_a p_ka.
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, probabilities: Tensor) -> Tensor:
        mean = weights[..., None, :] @ probabilities
        logs = (probabilities + TINY).log_().sub_((mean + TINY).log_())
        each: Tensor = (probabilities * logs).sum(-1)
        ctx.save_for_backward(weights, logs, each, probabilities.sum(-1))
        return (weights * each).sum()

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor, Tensor]:
        weights, logs, each, sums = ctx.saved_tensors
        return above[0] * (each - sums), above[0] * weights[..., None] * logs
