"""What joint tables have above their noise, with its gradient in closed form.

This is where a fit spends its time: torch's own gradient would take half as many matrix products
again and several more passes over the tables.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def above_floor(squares: Tensor, counts: Tensor) -> Tensor:
    """Sum what the squared residuals of tables, in units of the noise, have above their floors.

    The noise alone gives a table of n cells a sum of n, give or take √(2n). One standard deviation
    above that is the floor: at n itself, half of all tables would go on to be fitted to their
    noise.
    """
    return torch.relu(squares - floor_of(counts)).sum()


def floor_of(counts: Tensor) -> Tensor:
    """Give the sum of squares, in units of the noise, below which a table pulls no more."""
    return counts + (2 * counts).sqrt()


class TablesAboveFloor(torch.autograd.Function):
    """`above_floor` of all tables of pairs of columns, for each class of a common column.

    With components' probabilities S of shape (K, D) and class weights M of shape (C, K), the tables
    are the blocks of J_c = Sᵀ diag(M_c) S. Targets and precisions are symmetric, so every table is
    there twice, and counts half each time. With G_c, the derivative of the loss by J_c, and
    A_c = 2 S G_c, the derivatives are Σ_c diag(M_c) A_c by S, and half the sums over the
    rows of A_c ∘ S by M_c. Any dimensions before these are fits side by side.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        seen: Tensor,
        mixed: Tensor,
        target: Tensor,
        precision: Tensor,
        of_column: Tensor,
    ) -> Tensor:
        each = seen[..., None, :, :]
        joint = (each * mixed[..., None]).transpose(-1, -2) @ each
        residual = joint.sub_(target).mul_(precision)
        squares = residual[..., 0, :, :].square()
        for one in residual.unbind(-3)[1:]:
            squares.addcmul_(one, one)
        cells = of_column.T @ (precision > 0).to(squares.dtype) @ of_column * len(target)
        sums = of_column.T @ squares @ of_column
        pulls = (sums > floor_of(cells)).to(squares.dtype)
        twice = (of_column @ pulls @ of_column.T).mul_(2 * precision)
        ctx.save_for_backward(seen, mixed, residual.mul_(twice[..., None, :, :]))
        return above_floor(sums, cells) / 2

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        seen, mixed, twice = ctx.saved_tensors
        each = seen[..., None, :, :]
        along = each @ twice
        by_mixed = above[0] * (along * each).sum(-1) / 2
        by_seen = above[0] * (along * mixed[..., None]).sum(-3)
        return by_seen, by_mixed, None, None, None
