"""A copy of a network whose sums are exact: a row's bits are the same beside any other rows.

A GPU may add up the products of a convolution in another order for another place in a block, and
rounds otherwise then. Here nothing is rounded while adding. Weights, and each row's inputs by its
own largest value, are whole multiples of a power of two, of so few bits that float64 holds every
sum of their products. Whatever the order, the result is the same; rows do not meet elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import ceil, log2, prod
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

MANTISSA = 53


class _Exact(nn.Module):
    """A layer over again, in exact sums. With K terms of a and b bits, a + b + log₂K ≤ 53."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, layer: nn.Conv2d | nn.Linear) -> None:
        super().__init__()
        self.bits = (MANTISSA - ceil(log2(max(2, prod(layer.weight.shape[1:]))))) // 2
        weight = layer.weight.detach().double()
        self.register_buffer("weight", _rounded(weight[None], self.bits)[0])
        bias = None if layer.bias is None else layer.bias.detach().double()
        self.register_buffer("bias", bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Round the rows, add up, and add the bias, which is rounded once."""
        out = self.summed(_rounded(rows.double(), self.bits))
        if self.bias is None:
            return out
        return out + self.bias.view(-1, *(1,) * (out.dim() - 2))

    def summed(self, rows: Tensor) -> Tensor:
        """Give the sums of products."""
        raise NotImplementedError


class ExactLinear(_Exact):
    """A linear layer."""

    def summed(self, rows: Tensor) -> Tensor:
        """Multiply matrices in float64."""
        if rows.dim() != 2:
            return functional.linear(rows, self.weight)
        return rows @ self.weight.T


class ExactConv2d(_Exact):
    """A convolution: patches times weights, for which a GPU has quick float64 products."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__(layer)
        plain = isinstance(layer.padding, tuple) and layer.padding_mode == "zeros"
        self.patches = plain and layer.groups == 1
        self.settings = {
            "kernel_size": layer.kernel_size,
            "dilation": layer.dilation,
            "padding": layer.padding,
            "stride": layer.stride,
        }
        self.other: Callable[[Tensor, Tensor, None], Tensor] = layer._conv_forward

    def summed(self, rows: Tensor) -> Tensor:
        """Multiply matrices in float64, or convolve in it where patches are not to be had."""
        if not self.patches:
            return self.other(rows, self.weight, None)
        sides = (
            (side + 2 * pad - far * (kernel - 1) - 1) // step + 1
            for side, pad, far, kernel, step in zip(
                rows.shape[2:],
                *(self.settings[n] for n in ("padding", "dilation", "kernel_size", "stride")),
                strict=True,
            )
        )
        found = self.weight.flatten(1) @ functional.unfold(rows, **self.settings)  # type: ignore[arg-type]
        return found.view(len(rows), -1, *sides)


_MADE: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()


def exact(module: nn.Module) -> nn.Module:
    """Give a copy in float64 in which convolutions and linear layers add up exactly."""
    if module not in _MADE:
        _MADE[module] = _exact(module)
    return _MADE[module]


def _exact(module: nn.Module) -> nn.Module:
    made = copy.deepcopy(module).double()
    if isinstance(made, nn.Conv2d | nn.Linear):
        return _replaced(made)
    for part in list(made.modules()):
        for name, layer in list(part.named_children()):
            if isinstance(layer, nn.Conv2d | nn.Linear):
                setattr(part, name, _replaced(layer))
    return made.eval()


def _replaced(layer: nn.Conv2d | nn.Linear) -> nn.Module:
    return ExactConv2d(layer) if isinstance(layer, nn.Conv2d) else ExactLinear(layer)


def _rounded(rows: Tensor, bits: int) -> Tensor:
    """Round each row to whole multiples of 2**-bits of the power of two above its largest value."""
    largest = rows.abs().flatten(1).amax(dim=1) if rows.numel() else rows.new_ones(len(rows))
    _, exponent = torch.frexp(largest)
    shape = (len(rows), *(1,) * (rows.dim() - 1))
    up = (bits - exponent).view(shape)
    return torch.ldexp(torch.ldexp(rows, up).round(), -up)
