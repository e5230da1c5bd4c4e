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
    squared = start.kernel == "gaussian"
    weights = 0.5 / lengths**2 if squared else 1 / lengths
    values = _Values.of(tables.values(start.columns), weights[:width], squared=squared)
    other = torch.zeros((), dtype=torch.float64)
    for at, (name, _) in enumerate(start.cells_of, start=width):
        other = other + (tables.codes(name)[:, None] != begun[:, at]) * weights[at]

    def kernel() -> Tensor:
        total = values.apart(places) + other
        return torch.exp(-total * torch.exp(stretch * (-2 if squared else -1))) - 0.5

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
    """Values of rows with a zero for what is missing, and what no location has a say in.

    Attributes
    ----------
    filled
        The values.
    weights
        Of each column in a distance, squared or not.
    missing
        Where a value is missing, if any is.
    fixed
        The part of each row's distance that is the same for all locations.
    """

    filled: Tensor
    weights: Tensor
    squared: bool
    missing: Tensor | None
    fixed: Tensor

    @classmethod
    def of(cls, values: Tensor, weights: Tensor, *, squared: bool) -> _Values:
        absent = values.isnan()
        filled, missing = values.masked_fill(absent, 0.0), absent.double()
        fixed = ((filled**2 if squared else 0.0) + missing) @ weights
        some = missing if bool(absent.any()) else None
        return cls(filled, weights, squared, some, fixed[:, None])

    def apart(self, places: Tensor) -> Tensor:
        """Weigh and add up the distances to locations; a missing value is one range away."""
        if not self.squared:
            parts = (self.filled[:, None] - places).abs()
            if self.missing is not None:
                parts = parts * (1 - self.missing[:, None])
            return parts @ self.weights + self.fixed
        scaled = places * self.weights
        found = (places * scaled).sum(dim=1) - self.filled @ (2 * scaled).T
        if self.missing is not None:
            found = found - self.missing @ (places * scaled).T
        return (found + self.fixed).clamp(min=0.0)


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
    apart = (filled - 0.5).square() @ (0.5 / widths**2)[:, None]

    def waves(turns: Tensor) -> Tensor:
        angle = filled @ (2 * pi * turns).T
        bell = torch.exp(-apart * torch.exp(-2 * stretch)) * amplitude
        return torch.cat([angle.cos() * bell, angle.sin() * bell], dim=1)

    trials = [drawn] + [
        drawn
        * torch.exp(torch.randn(len(drawn), 1, generator=dice, dtype=torch.float64))
        * torch.randn(drawn.shape, generator=dice, dtype=torch.float64).sign()
        for _ in range(50)
    ]
    size = len(tables.first)
    best = max(trials, key=lambda turns: _criterion(waves(turns), size)[0])
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


def _criterion(features: Tensor, size: int) -> tuple[float, Tensor]:
    """Give w'(Σ + γI)⁻¹w of two tables, the first of which has so many of the rows; its gradient.

    With v = (Σ + γI)⁻¹w the gradient is 2v for w and −vv' for Σ. A row x of a table with n rows and
    mean m is in w by ±x/n and in Σ by (x − m)(x − m)'/(n − 1), so it gets
    2v·(±1/n − (x − m)·v/(n − 1)).
    """
    tables = features[:size], features[size:]
    means = [table.mean(dim=0) for table in tables]
    centred = [table - mean for table, mean in zip(tables, means, strict=True)]
    covariance = 2 * NOISE * torch.eye(features.shape[1], dtype=torch.float64)
    for table in centred:
        covariance += table.T @ table / (len(table) - 1)
    difference = means[0] - means[1]
    solved = torch.linalg.solve(covariance, difference)
    along = [
        sign / len(table) - table @ solved / (len(table) - 1)
        for sign, table in zip((1, -1), centred, strict=True)
    ]
    return float(difference @ solved), torch.outer(torch.cat(along), 2 * solved)


def _climb(features: Callable[[], Tensor], size: int, parameters: list[Tensor]) -> None:
    for parameter in parameters:
        parameter.requires_grad_()
    steps = torch.optim.Adam(parameters, lr=RATE)
    with track("fitting to public tables", STEPS, show=True) as advance:
        for _ in range(STEPS):
            steps.zero_grad()
            made = features()
            torch.autograd.backward(made, -_criterion(made.detach(), size)[1])
            steps.step()
            advance(1)
    for parameter in parameters:
        parameter.requires_grad_(False)
