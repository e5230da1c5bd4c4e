"""Smoothed characteristic functions: the features of the SCF test (Raj et al. 2019, §2.1 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import ClassVar

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.features.decay import decay, distances
from aquatint.features.fourier import cos_sin
from aquatint.features.frequencies import (
    FREQUENCY_LIMIT,
    FREQUENCY_STEPS,
    check_length_scales,
    per_column,
)


@dataclass(frozen=True)
class Smooth(FeatureMap):
    """φ(x) = √(2/J)·g(x)·[cos ω·x, sin ω·x] over J/2 public frequencies, g a Gaussian bell.

    g(x) = exp(−Σ (x−½)²/2w²) lies between 0 and 1 and cos² + sin² = 1, so ‖φ(x)‖₂ = g(x) ≤ 1;
    hence ‖φ‖₁ ≤ √J. Two rows can point in opposite directions, so they are at most 2 apart. In the
    paper's units, without the factor √(2/J), that is √(J/2) for one row and √(2J) for two, where
    the published code has √J, too small by √2. A row that misses a value maps to zero, and g = 0
    there.

    Parameters
    ----------
    columns
        The columns, each by its place in the unit interval of its declared range.
    frequencies
        For each frequency, the turns over the range of every column. Public.
    widths
        w of the bell, one for each column, as a fraction of its range.
    """

    columns: tuple[str, ...]
    frequencies: tuple[tuple[float, ...], ...]
    widths: tuple[float, ...]
    kind: ClassVar[str] = "smooth"

    def __post_init__(self) -> None:
        check_length_scales(self.columns, self.widths, 2 * len(self.frequencies))
        if not self.frequencies or any(len(f) != len(self.columns) for f in self.frequencies):
            msg = f"give frequencies with a number for each of the {len(self.columns)} columns"
            raise PlanError(msg)
        for turns in (t for frequency in self.frequencies for t in frequency):
            if not (isfinite(turns) and abs(turns) <= FREQUENCY_LIMIT):
                msg = f"frequencies are at most {FREQUENCY_LIMIT} turns over a range, got {turns}"
                raise PlanError(msg)
            if turns * FREQUENCY_STEPS != int(turns * FREQUENCY_STEPS):
                msg = f"frequencies are whole multiples of 1/{FREQUENCY_STEPS} turns, got {turns}"
                raise PlanError(msg)

    @cached_property
    def _turns(self) -> tuple[Tensor, Tensor]:
        """The frequencies, shape (columns, J/2), and whole turns that keep phases from below 0."""
        matrix = torch.tensor(self.frequencies, dtype=torch.float64).T.contiguous()
        return matrix, matrix.abs().sum(dim=0).max().ceil()

    @property
    def dim(self) -> int:
        return 2 * len(self.frequencies)

    @property
    def bound(self) -> Bound:
        height = sqrt(2 / self.dim)
        return Bound(dim=self.dim, l1=root(self.dim), l2_squared=1, low=-height, high=height)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset(self.columns)

    def __call__(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns)
        absent = values.isnan()
        filled = values.masked_fill(absent, 0.0)
        matrix, spare = (part.to(values.device) for part in self._turns)
        # Values and frequencies lie on grids on which these sums are exact.
        turns = filled.double() @ matrix + spare
        middle = torch.full((1, len(self.columns)), 0.5, dtype=torch.float64)
        bell = decay(distances(filled, middle, self.widths, squared=True))
        waves = cos_sin(turns, sqrt(2 / self.dim)) * bell.float()
        return waves.masked_fill(absent.any(dim=1)[:, None], 0.0)

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "frequencies": [list(frequency) for frequency in self.frequencies],
            "widths": list(self.widths),
        }


def smooth(
    columns: Sequence[str],
    frequencies: Sequence[Sequence[float]],
    *,
    width: float | tuple[float, ...] = 0.5,
) -> Smooth:
    """Build a smoothed Fourier map; frequencies are put on the grid of exact phases.

    Parameters
    ----------
    columns
        The columns.
    frequencies
        In turns over the range of each column.
    width
        Of the bell; one serves all columns unless one is given for each.

    Examples
    --------
    >>> made = smooth(["age", "pay"], [(1.0, 0.0), (0.5, -0.5)])
    >>> made.dim, made.bound.l2_squared
    (4, 1)
    """
    names = tuple(columns)
    rounded = tuple(
        tuple(round(float(t) * FREQUENCY_STEPS) / FREQUENCY_STEPS for t in frequency)
        for frequency in frequencies
    )
    return Smooth(names, rounded, per_column(width, names))
