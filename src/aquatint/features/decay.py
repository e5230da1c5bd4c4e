"""exp(−t) in the same bits for any batch and on any machine, and the sums of squares before it.

Libraries compute exponentials in vectors of several lanes, and the last bits of a result may depend
on the lane. Here it is IEEE additions and multiplications alone, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# 2^(−f) on 0 ≤ f < 1: the Taylor series of exp(−f·log 2), error below 1e-12.
_SERIES = (
    1.0,
    -0.6931471805599453,
    0.2402265069591007,
    -0.055504108664821576,
    0.009618129107628477,
    -0.0013333558146428441,
    0.00015403530393381606,
    -1.5252733804059838e-05,
    1.3215486790144305e-06,
    -1.0178086009239696e-07,
    7.054911620801121e-09,
    -4.44553827187081e-10,
    2.5678435993488196e-11,
    -1.3691488853904124e-12,
)
_PER_HALVING = 1.4426950408889634  # 1/log 2
_MOST_HALVINGS = 200  # below 2⁻²⁰⁰ is zero on every grid


def decay(exponent: Tensor) -> Tensor:
    """Give exp(−t) for t ≥ 0, float64, never above 1; with a gradient, by torch.

    >>> [round(v, 9) for v in decay(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()]
    [1.0, 0.367879441]
    """
    if exponent.requires_grad:
        return torch.exp(-exponent)
    halvings = (exponent * _PER_HALVING).clamp(max=float(_MOST_HALVINGS))
    whole = halvings.floor()
    fraction = halvings - whole
    found = torch.full_like(fraction, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        found = found.mul_(fraction).add_(coefficient)
    powers = torch.tensor([0.5**k for k in range(_MOST_HALVINGS + 1)], dtype=torch.float64)
    return (found * powers.to(exponent.device)[whole.long()]).clamp_(max=1.0)


def distances(values: Tensor, points: Tensor, scales: Sequence[float], *, squared: bool) -> Tensor:
    """Add up over the columns (x − t)²/2l², or with ``squared=False`` abs(x − t)/l.

    A missing value is one whole range away from every point.

    Parameters
    ----------
    values
        Places in the unit interval, NaN where missing, shape (n, columns).
    points
        The points t, float64, shape (points, columns).
    scales
        The length scale l of every column.

    Returns
    -------
    Tensor
        Float64, shape (n, points).
    """
    total = torch.zeros(len(values), len(points), dtype=torch.float64, device=values.device)
    for place, scale in enumerate(scales):
        column = values[:, place].double()
        absent = column.isnan()
        apart = column.masked_fill(absent, 0.0)[:, None] - points[:, place].to(values.device)
        apart = apart.square() if squared else apart.abs()
        apart = apart.masked_fill(absent[:, None], 1.0)
        total = total + apart * (0.5 / scale**2 if squared else 1 / scale)
    return total
