"""Rows to integers, with the bound enforced on the integers themselves.

A dense row φ is multiplied by the grid's steps and truncated toward zero. Its norm is then checked
on the very integers that will be summed, so any rounding error or mistake upstream is absorbed
here: rows within the limits pass untouched, others are scaled down until they are within.
"""

from __future__ import annotations

from math import isqrt

import torch
from torch import Tensor

from aquatint.errors import DataError
from aquatint.features.base import Bound
from aquatint.features.grid import Grid
from aquatint.features.scratch import scratch

_CERTAIN = 1 - 2.0**-30
"""Below the limit times this, a row is certainly within, whatever rounding did to its norm.

A float64 sum of n terms that are not negative errs by at most (n − 1)·2**-53 relative, in any
order, and each square by 2**-53. Norms are summed over chunks of 2**20 coordinates, whose square
roots and squares add four roundings more, and then over the k chunks: at most
(2**20 + 4 + k)·2**-53 in all, to first order, which is below 2**-31 as long as k is below 2**21.
That is the case up to 2**41 coordinates, a thousand times more than a map may have."""
_CHUNK = 2**20


def quantise(features: Tensor, grid: Grid) -> Tensor:
    """Give whole numbers, held in float64, whose rows keep to the grid's limits exactly.

    The result is a buffer that the next call overwrites.

    Parameters
    ----------
    features
        Shape (n, dim), any floating type.
    grid
        The grid of the leaf, with its limits in steps.
    """
    shape = tuple(features.shape)
    steps = scratch("steps", shape, torch.float32, features)
    torch.mul(features.to(torch.float32), grid.steps, out=steps)
    truncated = scratch("truncated", shape, torch.int32, features).copy_(steps)
    whole = scratch("whole", shape, torch.float64, features).copy_(truncated)
    certain = _certainly_within(whole, grid.bound)
    if features.device.type != "cpu":  # there a conversion to integers may hide what is not finite
        certain &= features.isfinite().all(dim=1)
    low, high = truncated.aminmax() if truncated.numel() else (0, 0)
    if low < int(grid.bound.low) or high > int(grid.bound.high):
        certain &= (whole.amin(dim=1) >= int(grid.bound.low)) & (
            whole.amax(dim=1) <= int(grid.bound.high)
        )
    if not bool(certain.all()):
        doubtful = ~certain
        whole[doubtful] = quantise_exactly(features[doubtful], grid).to(whole.device)
    return whole


def _certainly_within(whole: Tensor, bound: Bound) -> Tensor:
    """Say which rows keep both norms beyond any rounding of this very check."""
    chunks = whole.split(_CHUNK, dim=1)  # type: ignore[no-untyped-call]
    squared = sum(torch.linalg.vector_norm(chunk, dim=1).square() for chunk in chunks)
    certain: Tensor = squared <= int(bound.l2_squared) * _CERTAIN
    if not l1_follows(bound):
        total = sum(chunk.abs().sum(dim=1) for chunk in chunks)
        certain &= total <= int(bound.l1) * _CERTAIN
    return certain


def l1_follows(bound: Bound) -> bool:
    """Whether ‖q‖₁ ≤ √dim·‖q‖₂ already implies the L1 limit."""
    return int(bound.l1) ** 2 >= bound.dim * int(bound.l2_squared)


def norm_fits(bound: Bound) -> bool:
    """Whether no row within its range can overflow a squared norm of 64 bits."""
    largest = max(int(bound.high), -int(bound.low))
    return bound.dim * largest**2 < 2**62


def quantise_exactly(features: Tensor, grid: Grid) -> Tensor:
    """Do the same in unbounded integers, clipping what is over; for the few rows in doubt."""
    steps = features.to(torch.float64) * grid.steps
    if not bool(steps.isfinite().all()):
        msg = (
            "the feature map gave a value that is not finite: "
            "mend the map, or the values it cannot take"
        )
        raise DataError(msg)
    rows = [clip([int(value) for value in row], grid.bound) for row in steps.tolist()]
    return torch.tensor(rows, dtype=torch.float64).reshape(features.shape)


def clip(row: list[int], bound: Bound) -> list[int]:
    """Shrink one integer row until every limit holds.

    Scaling by L/⌈‖q‖⌉ with division toward zero gives a norm of at most L·‖q‖/⌈‖q‖⌉ ≤ L, and
    never moves a coordinate away from zero, so the range and earlier limits stay kept.
    """
    low, high = int(bound.low), int(bound.high)
    row = [min(max(value, low), high) for value in row]
    squared = sum(value * value for value in row)
    if squared > int(bound.l2_squared):
        norm = isqrt(squared - 1) + 1
        row = [_toward_zero(value * isqrt(int(bound.l2_squared)), norm) for value in row]
    total = sum(map(abs, row))
    if total > int(bound.l1):
        row = [_toward_zero(value * int(bound.l1), total) for value in row]
    return row


def _toward_zero(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
