"""Fit test locations and frequencies to two tables that are declared public.

The criterion is the paper's (§6, after Jitkrittum et al. 2016): the difference of the mean features
over their covariance, w'(Σ + γI)⁻¹w, climbed by gradient. Here γ is not a small constant for
stability but about what noise adds to the covariance of 10,000 rows at ε = 1, so that no feature is
chosen for a variance so small that noise will drown it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import torch
from torch import Tensor

from aquatint.features.base import Rows
from aquatint.features.locations import Locations
from aquatint.features.locations import locations as locations_at
from aquatint.features.smooth import Smooth, smooth
from aquatint.progress import track
from aquatint.public_tables import PublicTables

NOISE = 0.01
"""γ: the variance of noise on a mean times the number of rows, as in the text above."""
STEPS, RATE = 200, 0.03


def fitted_locations(
    start: Locations, tables: PublicTables, seed: int, *, keep_scale: bool
) -> Locations:
    """Move locations, and unless told to keep it scale all lengths, to tell the tables apart.

    They begin at public rows, half from each table; cells of columns without an order stay there.
    """
    rows, width = _some_rows(tables, start.dim, seed), len(start.columns)
    numbers = rows.matrix(start.columns).double().nan_to_num(0.5).unbind(1) if width else ()
    chosen = [rows.codes[name].double() for name, _ in start.cells_of]
    begun = torch.stack([*numbers, *chosen], dim=1)
    places, stretch = begun[:, :width].clone(), torch.zeros(1, dtype=torch.float64)
    lengths = torch.tensor(start.length_scales, dtype=torch.float64)
    values, squared = _Values.of(tables.values(start.columns)), start.kernel == "gaussian"
    other = [
        (tables.codes(name)[:, None] != begun[:, at]).double()
        for at, (name, _) in enumerate(start.cells_of, start=width)
    ]

    def kernel() -> Tensor:
        length = lengths * stretch.exp()
        weights = 0.5 / length**2 if squared else 1 / length
        total = values.apart(places, weights[:width], squared=squared)
        for weight, unlike in zip(weights[width:], other, strict=True):
            total = total + unlike * weight
        return torch.exp(-total) - 0.5

    _climb(kernel, len(tables.first), [places] if keep_scale else [places, stretch])
    points = torch.cat([places, begun[:, width:]], dim=1).tolist()
    scales = tuple((lengths * stretch.exp()).clamp(min=0.01).tolist())
    return locations_at(
        start.columns,
        points,
        cells=dict(start.cells_of),
        length_scale=scales,
        kernel=start.kernel,
    )


@dataclass(frozen=True)
class _Values:
    """Values of rows with a zero for what is missing, their squares, and what is missing if any."""

    filled: Tensor
    squares: Tensor
    absent: Tensor | None

    @classmethod
    def of(cls, values: Tensor) -> _Values:
        absent = values.isnan()
        filled = values.masked_fill(absent, 0.0)
        return cls(filled, filled**2, absent.double() if bool(absent.any()) else None)

    def apart(self, places: Tensor, weights: Tensor, *, squared: bool) -> Tensor:
        """Weigh and add up the distances to locations; a missing value is one range away."""
        if not squared:
            parts = (self.filled[:, None] - places).abs()
            if self.absent is None:
                return parts @ weights
            return torch.where(self.absent[:, None] > 0, 1.0, parts) @ weights
        scaled = places * weights
        lengths = (places * scaled).sum(dim=1)
        found = self.squares @ weights[:, None] - 2 * self.filled @ scaled.T + lengths
        if self.absent is None:
            return found.clamp(min=0.0)
        found = found - self.absent @ (places * scaled).T
        return found.clamp(min=0.0) + (self.absent @ weights)[:, None]


def fitted_frequencies(
    start: Smooth, tables: PublicTables, seed: int, *, keep_width: bool
) -> Smooth:
    """Move frequencies, and unless told to keep it the bell's width, to tell the tables apart.

    The criterion has many local maxima, so the best of several beginnings is climbed from.
    """
    widths = torch.tensor(start.widths, dtype=torch.float64)
    stretch = torch.zeros(1, dtype=torch.float64)
    drawn = torch.tensor(start.frequencies, dtype=torch.float64)
    dice = torch.Generator().manual_seed(seed)
    values = tables.values(start.columns)
    absent = values.isnan()
    filled = values.masked_fill(absent, 0.0)
    amplitude = (~absent.any(dim=1)).double()[:, None] * sqrt(2 / start.dim)
    apart = (filled - 0.5).square()

    def waves(turns: Tensor) -> Tensor:
        angle = 2 * pi * filled @ turns.T
        bell = torch.exp(-(apart @ (widths * stretch.exp()) ** -2)[:, None] / 2) * amplitude
        return torch.cat([angle.cos(), angle.sin()], dim=1) * bell

    trials = [drawn] + [
        drawn
        * torch.exp(torch.randn(len(drawn), 1, generator=dice, dtype=torch.float64))
        * torch.randn(drawn.shape, generator=dice, dtype=torch.float64).sign()
        for _ in range(50)
    ]
    size = len(tables.first)
    best = max(trials, key=lambda turns: float(_criterion(waves(turns), size)))
    turns = best.clone()
    _climb(lambda: waves(turns), size, [turns] if keep_width else [turns, stretch])
    wide = tuple((widths * stretch.exp()).clamp(min=0.01).tolist())
    return smooth(start.columns, turns.clamp(-512, 512).tolist(), width=wide)


def _some_rows(tables: PublicTables, count: int, seed: int) -> Rows:
    dice = torch.Generator().manual_seed(seed)
    half = count // 2
    parts = [
        rows.take(torch.randperm(len(rows), generator=dice)[torch.arange(size) % len(rows)])
        for rows, size in ((tables.first, count - half), (tables.second, half))
    ]
    (codes, values), (more_codes, more_values) = ((part.codes, part.values) for part in parts)
    return Rows(
        {name: torch.cat([code, more_codes[name]]) for name, code in codes.items()},
        {name: torch.cat([value, more_values[name]]) for name, value in values.items()},
        count,
    )


def _criterion(features: Tensor, size: int) -> Tensor:
    """Give w'(Σ + γI)⁻¹w of two tables, the first of which has so many of the rows."""
    means, covariance = [], 2 * NOISE * torch.eye(features.shape[1], dtype=torch.float64)
    for part in (features[:size], features[size:]):
        means.append(part.mean(dim=0))
        centred = part - means[-1]
        covariance = covariance + centred.T @ centred / (len(part) - 1)
    difference = means[0] - means[1]
    found: Tensor = difference @ torch.linalg.solve(covariance, difference)
    return found


def _climb(features: Callable[[], Tensor], size: int, parameters: list[Tensor]) -> None:
    for parameter in parameters:
        parameter.requires_grad_()
    steps = torch.optim.Adam(parameters, lr=RATE)
    with track("fitting to public tables", STEPS, show=True) as advance:
        for _ in range(STEPS):
            steps.zero_grad()
            (-_criterion(features(), size)).backward()  # type: ignore[no-untyped-call]
            steps.step()
            advance(1)
    for parameter in parameters:
        parameter.requires_grad_(False)
