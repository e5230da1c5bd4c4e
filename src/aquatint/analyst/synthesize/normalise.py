"""Probabilities from logits, column by column, in two matrix products.

A softmax for each column is a call for each column, and torch's runs slowly along short rows: it
was most of the time of a fit. Here all columns are divided by their sums at once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def normalise(logits: Tensor, of_column: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Give the softmax within each column, and the levels at which each column's sum is 1.

    Parameters
    ----------
    logits
        Shape (…, atoms).
    of_column
        One-hot: which column each atom belongs to, shape (atoms, columns).
    levels
        What is taken off first, so that nothing overflows, shape (…, columns). Any numbers near the
        columns' largest logits will do, such as the levels that a step before gave.
    """
    found: tuple[Tensor, Tensor] = _Normalise.apply(  # type: ignore[no-untyped-call]
        logits, of_column, levels
    )
    return found


class _Normalise(torch.autograd.Function):
    """exp(logits − level) over its sum by column, with its gradient p·(g − Σ p·g)."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, of_column: Tensor, levels: Tensor
    ) -> tuple[Tensor, Tensor]:
        found = (logits - levels @ of_column.T).exp_()
        sums = found @ of_column
        found.mul_(sums.reciprocal() @ of_column.T)
        after = levels + sums.log()
        ctx.save_for_backward(found, of_column)
        ctx.mark_non_differentiable(after)
        return found, after

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        found, of_column = ctx.saved_tensors
        slopes = found * above[0]
        return slopes.sub_(found * (slopes @ of_column @ of_column.T)), None, None
