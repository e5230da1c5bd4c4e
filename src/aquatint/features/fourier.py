"""Random Fourier features with unit norm (Rahimi & Recht; DP-MERF eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import ClassVar, Literal

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.features.frequencies import (
    check_length_scales,
    digest,
    gaussian_frequencies,
    laplace_frequencies,
    mixed_frequencies,
    per_column,
)
from aquatint.features.scratch import scratch

Kernel = Literal["gaussian", "laplace", "mixed"]
_DRAW = {
    "gaussian": gaussian_frequencies,
    "laplace": laplace_frequencies,
    "mixed": mixed_frequencies,
}

MANY_COLUMNS = 100
"""Gradients over more columns than these, the pixels of images, are taken in float32. Multiplying
by the frequencies is most of a step of training there, and takes half the time."""

# sin(2πz) on |z| ≤ 1/4 as an odd polynomial; least squares at Chebyshev nodes, error below 4e-9.
SINE = (6.28318516, -41.34165493, 81.60099819, -76.54965682, 39.53581371)


@dataclass(frozen=True)
class Fourier(FeatureMap):
    """φ(x) = √(2/D)·[cos ω·x, sin ω·x] over D/2 public frequencies ω.

    Each pair has cos² + sin² = 1, so ‖φ(x)‖₂ = 1 exactly, for every x; ‖φ‖₁ ≤ √D·‖φ‖₂ = √D by
    Cauchy–Schwarz. Two rows can point in opposite directions, so they are at most 2 apart. A row
    that misses a value of its columns maps to zero.

    Parameters
    ----------
    columns
        The columns, each by its place in the unit interval of its declared range.
    features
        D, an even number.
    length_scales
        One for each column, as a fraction of its range: a public choice, never read off the data.
    kernel
        ``"gaussian"``: exp(−Σ (x−y)²/2l²); ``"laplace"``: exp(−Σ abs(x−y)/l); ``"mixed"``: half
        of the kernel sees one column at a time, a quarter two and a quarter all of them.
    seed
        Public: the frequencies are drawn from it.
    """

    columns: tuple[str, ...]
    features: int
    length_scales: tuple[float, ...]
    kernel: Kernel = "gaussian"
    seed: int = 0
    kind: ClassVar[str] = "fourier"

    def __post_init__(self) -> None:
        check_length_scales(self.columns, self.length_scales, self.features)
        if self.features < 2 or self.features % 2:
            msg = f"the number of Fourier features must be even and at least 2, got {self.features}"
            raise PlanError(msg)
        if self.kernel not in _DRAW:
            msg = f"the kernel must be one of {', '.join(_DRAW)}, got {self.kernel!r}"
            raise PlanError(msg)

    @cached_property
    def frequencies(self) -> Tensor:
        """The frequencies in turns over the unit interval, float64, shape (columns, D/2)."""
        return _DRAW[self.kernel](self.seed, self.features // 2, self.length_scales)

    @cached_property
    def _single(self) -> Tensor:
        """The frequencies in float32, for gradients."""
        return self.frequencies.float()

    @cached_property
    def whole_turns(self) -> Tensor:
        """As many whole turns as a phase can be below zero."""
        return self.frequencies.abs().sum(dim=0).max().ceil()

    @cached_property
    def sine(self) -> Tensor:
        """The coefficients of the sine times √(2/D), in float32 as `cos_sin` takes them."""
        return torch.tensor([coefficient * sqrt(2 / self.features) for coefficient in SINE])

    @property
    def dim(self) -> int:
        return self.features

    @property
    def tile(self) -> int:
        return max(16, 2**19 // self.features)

    @property
    def bound(self) -> Bound:
        height = sqrt(2 / self.features)
        return Bound(dim=self.dim, l1=root(self.dim), l2_squared=1, low=-height, high=height)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset(self.columns)

    def __call__(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns)
        if not values.requires_grad:
            return self._exactly(values, torch.empty(len(rows), self.dim, device=values.device))
        absent = values.isnan()
        many = len(self.columns) > MANY_COLUMNS
        frequencies = (self._single if many else self.frequencies).to(values.device)
        turns = values.masked_fill(absent, 0.0).to(frequencies.dtype) @ frequencies
        out = cos_sin(turns, sqrt(2 / self.features))
        return out.masked_fill(absent.any(dim=1)[:, None], 0.0)

    def borrowed(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns)
        shape = (len(rows), self.dim)
        return self._exactly(values, scratch("fourier", shape, torch.float32, values))

    def _exactly(self, values: Tensor, out: Tensor) -> Tensor:
        """Write the features into `out`, in the same bits for any batch and on any machine."""
        turns, missing = self.turns(values)
        cos_sin(turns, sqrt(2 / self.features), out)
        return out.masked_fill_(missing[:, None], 0.0) if missing.any() else out

    def turns(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Give exact phases in turns, none negative, in a buffer; and which rows miss a value."""
        absent = values.isnan()
        frequencies = self.frequencies.to(values.device)
        turns = scratch("turns", (len(values), frequencies.shape[1]), torch.float64, values)
        # Whole turns are added so that no phase is negative; every sum here is exact.
        filled = values.masked_fill(absent, 0.0).double()
        torch.addmm(self.whole_turns.to(values.device), filled, frequencies, out=turns)
        return turns, absent.any(dim=1)

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "features": self.features,
            "length_scales": list(self.length_scales),
            "kernel": self.kernel,
            "seed": self.seed,
            "digest": digest(self.frequencies),
        }


def fourier(
    columns: tuple[str, ...] | list[str],
    features: int,
    *,
    length_scale: float | tuple[float, ...] = 0.2,
    kernel: Kernel = "gaussian",
    seed: int = 0,
) -> Fourier:
    """Build a Fourier map; one length scale serves all columns unless one is given for each."""
    names = tuple(columns)
    return Fourier(names, features, per_column(length_scale, names), kernel, seed)


def cos_sin(turns: Tensor, amplitude: float, out: Tensor | None = None) -> Tensor:
    """Give amplitude·[cos 2πt, sin 2πt], shape (n, 2k), in float32.

    Where no gradient is wanted this uses IEEE additions and multiplications alone, which round in
    the same way on every processor, so the curator's sums are the same bits everywhere.

    Parameters
    ----------
    turns
        Phases in turns, float64. Without a gradient they must not be negative, and are overwritten.
    amplitude
        The factor √(2/D).
    out
        Where to write, without a gradient; by default new memory.
    """
    if turns.requires_grad:
        angle = (2 * pi * (turns - turns.detach().round())).float()
        return amplitude * torch.cat([angle.cos(), angle.sin()], dim=1)
    count, width = turns.shape
    out = torch.empty(count, 2 * width, device=turns.device) if out is None else out
    fraction = scratch("fraction", (count, width), torch.float32, turns).copy_(turns.frac_())
    z = scratch("z", (count, 2 * width), torch.float32, turns)
    # cos 2πt = sin 2πz with z = |t − 1/2| − 1/4 for 0 ≤ t < 1; sin 2πt is cos 2π|t − 1/4|.
    torch.sub(fraction, 0.5, out=z[:, :width]).abs_().sub_(0.25)
    torch.sub(fraction, 0.25, out=z[:, width:]).abs_().sub_(0.5).abs_().sub_(0.25)
    return sine(z, amplitude, out)


def sine(z: Tensor, amplitude: float, out: Tensor) -> Tensor:
    """Write amplitude·sin 2πz for |z| ≤ 1/4 into `out`, by IEEE additions and multiplications."""
    square = torch.mul(z, z, out=scratch("square", tuple(z.shape), torch.float32, z))
    torch.mul(square, SINE[4] * amplitude, out=out)
    for coefficient in SINE[3:0:-1]:
        out.add_(coefficient * amplitude).mul_(square)
    return out.add_(SINE[0] * amplitude).mul_(z)
