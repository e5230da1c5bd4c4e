"""What joint tables have above their noise, with its gradient in closed form.

This is where a fit spends its time: torch's own gradient would take half as many matrix products
again and several more passes over the tables.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def above_floor(squares: Tensor, counts: Tensor) -> Tensor:
    """Sum what the squared residuals of each table, in units of its noise, have above its size."""
    return torch.relu(squares - counts).sum()


class TablesAboveFloor(torch.autograd.Function):
    """`above_floor` of all tables of pairs of columns, for each class of a common column.

    With components' probabilities S of shape (K, D) and class weights M of shape (C, K), the tables
    are the blocks of J_c = Sᵀ diag(M_c) S. Targets are symmetric: every table is there twice, and
    counts half each time. With G_c, the derivative of the loss by J_c, and A_c = 2 S G_c, the
    derivatives are Σ_c diag(M_c) A_c by S, and half the sums over the rows of A_c ∘ S by M_c. Any
    dimensions before these are fits side by side.

    With `alone`, components stand in order of the classes, as many for each, and those of another
    class count for nothing: M_c is zero there, and so is the work.

    `cells`, of shape (columns, columns), has the number of cells of each table, zero where none was
    released; `deviation` is the noise of a cell.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        seen: Tensor,
        mixed: Tensor,
        target: Tensor,
        cells: Tensor,
        deviation: float,
        of_column: Tensor,
        alone: bool = False,  # apply takes no keywords
    ) -> Tensor:
        residuals = []
        for weight, goal, own in zip(mixed.unbind(-2), target, _own(mixed, alone), strict=True):
            some = seen[..., own, :]
            residuals.append(((some * weight[..., own, None]).mT @ some).sub_(goal))
        squares = residuals[0].square()
        for residual in residuals[1:]:
            squares.addcmul_(residual, residual)
        sums = (of_column.T @ squares @ of_column).div_(deviation**2)
        excess = torch.relu(sums - cells).mul_(cells > 0)
        pulls = (excess > 0).to(seen.dtype).mul_(2 / deviation**2)
        twice = of_column @ pulls @ of_column.T
        ctx.alone = alone
        ctx.save_for_backward(seen, mixed, *(residual.mul_(twice) for residual in residuals))
        return excess.sum() / 2

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        seen, mixed, *slopes = ctx.saved_tensors
        by_seen, by_mixed = torch.zeros_like(seen), torch.zeros_like(mixed)
        for line, (slope, own) in enumerate(zip(slopes, _own(mixed, ctx.alone), strict=True)):
            some, weight = seen[..., own, :], mixed[..., line, own]
            along = some @ slope
            by_mixed[..., line, own] = (along * some).sum(-1)
            by_seen[..., own, :].addcmul_(along, weight[..., None])
        return above[0] * by_seen, above[0] / 2 * by_mixed, *[None] * 5


def _own(mixed: Tensor, alone: bool) -> list[slice]:
    """Give the components that count for each class."""
    classes, components = mixed.shape[-2:]
    if not alone:
        return [slice(None)] * classes
    each = components // classes
    return [slice(i * each, (i + 1) * each) for i in range(classes)]
