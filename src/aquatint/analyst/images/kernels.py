"""Means by class of a layer's activations in Triton: each pass reads the layer once.

The operations are those of `matching.ClassMeans`, which writes powers, parts and products out; a
GPU is as slow as its memory there. A layer x of shape (n, features) gives |x|^power, split into the
part of positive and of negative activations if asked to, divided by the row's norm, and averaged by
class. With G the gradient of a class's mean, r the row's norm, c = scale/(n·r) and s the sign of x,
a row's gradient is power·|x|^(power−1)·s·(c·G − ⟨c·G, f⟩ f/r²) with f = |x|^power.

Triton comes with torch's builds for CUDA.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK, _WARPS = 1024, 4
_LONG = 4096


@triton.jit
def _raised(x, POWER: tl.constexpr):
    size = tl.abs(x)
    return size * size if POWER == 2 else size


@triton.jit
def _squares_kernel(x, out, features: tl.constexpr, POWER: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the squares of one row's powers."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, features, BLOCK):
        at = start + tl.arange(0, BLOCK)
        f = _raised(tl.load(x + row * features + at, at < features, 0).to(tl.float32), POWER)
        total += f * f
    tl.store(out + row, tl.sum(total))


@triton.jit
def _means_kernel(
    x,
    weight,
    out,
    features: tl.constexpr,
    each: tl.constexpr,
    POWER: tl.constexpr,
    SPLIT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Average some features over the rows of one class."""
    place, line = tl.program_id(0), tl.program_id(1).to(tl.int64)
    at = place * BLOCK + tl.arange(0, BLOCK)
    there = at < features
    above = tl.zeros((BLOCK,), tl.float32)
    below = tl.zeros((BLOCK,), tl.float32)
    for k in range(each):
        row = line * each + k
        v = tl.load(x + row * features + at, there, 0).to(tl.float32)
        f = _raised(v, POWER) * tl.load(weight + row)
        if SPLIT:
            above += tl.where(v > 0, f, 0.0)
            below += tl.where(v < 0, f, 0.0)
        else:
            above += f
    width = 2 * features if SPLIT else features
    tl.store(out + line * width + at, above, there)
    if SPLIT:
        tl.store(out + line * width + features + at, below, there)


@triton.jit
def _pull(g, line, features, at, there, v, SPLIT: tl.constexpr):
    """Give the gradient of the mean for each feature: that of the part in which it is."""
    if SPLIT:
        start = g + line * 2 * features + at
        return tl.load(start + tl.where(v < 0, features, 0), there, 0)
    return tl.load(g + line * features + at, there, 0)


@triton.jit
def _along_kernel(
    x,
    g,
    out,
    features: tl.constexpr,
    each: tl.constexpr,
    POWER: tl.constexpr,
    SPLIT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add up one row's powers times the gradient of its class's mean."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, features, BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < features
        v = tl.load(x + row * features + at, there, 0).to(tl.float32)
        total += _raised(v, POWER) * _pull(g, row // each, features, at, there, v, SPLIT)
    tl.store(out + row, tl.sum(total))


@triton.jit
def _gradient_kernel(
    x,
    g,
    weight,
    back,
    out,
    features: tl.constexpr,
    each: tl.constexpr,
    POWER: tl.constexpr,
    SPLIT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradient of some features of one row."""
    place, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    at = place * BLOCK + tl.arange(0, BLOCK)
    there = at < features
    v = tl.load(x + row * features + at, there, 0).to(tl.float32)
    pull = _pull(g, row // each, features, at, there, v, SPLIT)
    inner = tl.load(weight + row) * pull + tl.load(back + row) * _raised(v, POWER)
    # a power that is not differentiated at zero has no pull there, as a ReLU has none
    sign = tl.where(v > 0, 1.0, tl.where(v < 0, -1.0, 0.0))
    slope = 2 * v if POWER == 2 else sign
    tl.store(out + row * features + at, (slope * inner).to(out.dtype.element_ty), there)


def squares(x: Tensor, power: int) -> Tensor:
    """Give each row's squared norm, shape (n,)."""
    out = torch.empty(len(x), device=x.device)
    _squares_kernel[(len(x),)](x, out, x.shape[1], power, _LONG, num_warps=_WARPS)
    return out


def means(x: Tensor, weight: Tensor, classes: int, power: int, split: bool) -> Tensor:
    """Give the weighted sums by class, shape (classes, features), or twice as many if split."""
    features = x.shape[1]
    out = torch.empty(classes, features * (1 + split), device=x.device)
    grid = (triton.cdiv(features, _BLOCK), classes)
    each = len(x) // classes
    _means_kernel[grid](x, weight, out, features, each, power, split, _BLOCK, num_warps=_WARPS)
    return out


def along(x: Tensor, pull: Tensor, classes: int, power: int, split: bool) -> Tensor:
    """Give each row's product with the gradient of its class, shape (n,)."""
    out = torch.empty(len(x), device=x.device)
    each = len(x) // classes
    _along_kernel[(len(x),)](x, pull, out, x.shape[1], each, power, split, _LONG, num_warps=_WARPS)
    return out


def gradient(
    x: Tensor, pull: Tensor, weight: Tensor, back: Tensor, classes: int, power: int, split: bool
) -> Tensor:
    """Give each row's gradient, of the type of the layer."""
    out, features = torch.empty_like(x), x.shape[1]
    grid = (triton.cdiv(features, _BLOCK), len(x))
    each = len(x) // classes
    _gradient_kernel[grid](
        x, pull, weight, back, out, features, each, power, split, _BLOCK, num_warps=_WARPS
    )
    return out
