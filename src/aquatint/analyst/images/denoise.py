"""Take noise off the released means of a convolution's layers, by what they say themselves.

The mean of thousands of activations is a smooth map: its cosine transform has its energy in few
frequencies, and few channels tell classes apart. Noise is the same everywhere, and known. So in the
transform, which leaves the noise as it is, each coefficient is shrunk by signal/(signal + noise)
(Wiener 1949). The signal's variance is modelled as a channel's times a frequency's share, each the
average energy there less the noise; classes share it, about their common mean, which is shrunk in
the same way. All of this reads the release alone.
"""

from __future__ import annotations

from functools import cache
from math import pi

import torch
from torch import Tensor

Shape = tuple[int, ...]


def denoised(mean: Tensor, spread: Tensor, shapes: list[Shape]) -> tuple[Tensor, Tensor]:
    """Give the means without most of their noise, and the squared error that is left in each line.

    Parameters
    ----------
    mean
        The noisy means, shape (lines, features): the layers one after the other.
    spread
        The standard deviation of the noise of each line.
    shapes
        The layers' shapes: (channels, height, width), or (features,) without an order in space.

    Returns
    -------
    tuple
        The means, shape (lines, features), and the expected squared error, shape (lines,).
    """
    sizes = [int(torch.Size(shape).numel()) for shape in shapes]
    parts, left = [], torch.zeros(len(mean), device=mean.device)
    for part, shape in zip(torch.split(mean, sizes, dim=1), shapes, strict=True):
        channels, height, width = shape if len(shape) == 3 else (shape[0], 1, 1)
        rows, columns = _cosines(height, part), _cosines(width, part)
        turned = rows @ part.view(-1, channels, height, width) @ columns.T
        found, error = _shrunk(turned, spread.square())
        parts.append((rows.T @ found @ columns).reshape(part.shape))
        left += error
    return torch.cat(parts, dim=1), left


def _shrunk(lines: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Shrink the common mean of all lines, and what each differs from it."""
    common_noise = 1 / (1 / noise).sum()
    share = (common_noise / noise).view(-1, 1, 1, 1)
    common = (share * lines).sum(dim=0, keepdim=True)
    kept = _wiener(common, common_noise.view(1))
    found, left = kept * common, (kept * common_noise).sum().expand(len(lines))
    if len(lines) == 1:
        return found, left
    own = noise - common_noise  # the variance of a line less the mean that weighs by precision
    apart = lines - common
    kept = _wiener(apart, own)
    return found + kept * apart, left + (kept * own.view(-1, 1, 1, 1)).sum(dim=(1, 2, 3))


def _wiener(values: Tensor, noise: Tensor) -> Tensor:
    """Give signal/(signal + noise) for every line, channel and frequency.

    Frequencies are averaged along diagonals, on which they are about as fine.
    """
    wide = noise.view(-1, 1, 1, 1)
    excess = values.square() - wide
    height, width = values.shape[2:]
    channels = excess.mean(dim=(0, 2, 3)).clamp(min=0)
    bands = (torch.arange(height)[:, None] + torch.arange(width)).flatten().to(values.device)
    size = torch.bincount(bands)
    total = excess.new_zeros(len(size)).index_add(0, bands, excess.mean(dim=(0, 1)).flatten())
    frequencies = (total / size).clamp(min=0)[bands].view(height, width)
    scale = channels.mean().clamp(min=torch.finfo(values.dtype).tiny)
    signal = channels.view(1, -1, 1, 1) * frequencies / scale
    return signal / (signal + wide)


@cache
def _table(side: int) -> Tensor:
    """Give the orthonormal cosine transform (type II) of a side, as a matrix."""
    place = torch.arange(side, dtype=torch.float64)
    table: Tensor = torch.cos(pi / side * (place[None] + 0.5) * place[:, None]) * (2 / side) ** 0.5
    table[0] /= 2**0.5
    return table


def _cosines(side: int, like: Tensor) -> Tensor:
    return _table(side).to(like)
