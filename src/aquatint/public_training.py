"""Fit test locations and frequencies to two tables that are declared public.

The criterion is the paper's (§6, after Jitkrittum et al. 2016): the difference of the mean features
over their covariance, w'(Σ + γI)⁻¹w, climbed by gradient. Here γ is not a small constant for
stability but about what noise adds to the covariance of 10,000 rows at ε = 1, so that no feature is
chosen for a variance so small that noise will drown it.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def kernel(rows: Rows) -> Tensor:
        length, squared = lengths * stretch.exp(), start.kernel == "gaussian"
        weights = 0.5 / length**2 if squared else 1 / length
        values = rows.matrix(start.columns).double() if width else torch.zeros(len(rows), 0)
        total = _apart(values.double(), places, weights[:width], squared=squared)
        for at, (name, _) in enumerate(start.cells_of, start=width):
            total = total + (rows.codes[name][:, None] != begun[:, at]) * weights[at]
        return torch.exp(-total) - 0.5

    _climb(kernel, tables, [places] if keep_scale else [places, stretch])
    points = torch.cat([places, begun[:, width:]], dim=1).tolist()
    scales = tuple((lengths * stretch.exp()).clamp(min=0.01).tolist())
    return locations_at(
        start.columns,
        points,
        cells=dict(start.cells_of),
        length_scale=scales,
        kernel=start.kernel,
    )


def _apart(values: Tensor, places: Tensor, weights: Tensor, *, squared: bool) -> Tensor:
    """Weigh and add up the distances of rows and locations; a missing value is one range away."""
    absent = values.isnan()
    filled, here = values.masked_fill(absent, 0.0), (~absent).double()
    gone: Tensor = absent.double() @ weights
    if not squared:
        parts = (here[:, None] * (filled[:, None] - places).abs()) @ weights
        return gone[:, None] + parts
    both = filled**2 @ weights[:, None] + here @ (places**2 * weights).T
    return gone[:, None] + (both - 2 * filled @ (places * weights).T).clamp(min=0.0)


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

    def waves(rows: Rows, turns: Tensor) -> Tensor:
        values = rows.matrix(start.columns).double()
        absent = values.isnan()
        filled = values.masked_fill(absent, 0.0)
        angle = 2 * pi * filled @ turns.T
        bell = torch.exp(-((filled - 0.5) / (widths * stretch.exp())).square().sum(dim=1) / 2)
        bell = bell.masked_fill(absent.any(dim=1), 0.0)
        return torch.cat([angle.cos(), angle.sin()], dim=1) * bell[:, None] * sqrt(2 / start.dim)

    trials = [drawn] + [
        drawn
        * torch.exp(torch.randn(len(drawn), 1, generator=dice, dtype=torch.float64))
        * torch.randn(drawn.shape, generator=dice, dtype=torch.float64).sign()
        for _ in range(50)
    ]
    best = max(trials, key=lambda t: float(_criterion(lambda rows: waves(rows, t), tables)))
    turns = best.clone()
    _climb(lambda rows: waves(rows, turns), tables, [turns] if keep_width else [turns, stretch])
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


def _criterion(features: Callable[[Rows], Tensor], tables: PublicTables) -> Tensor:
    """Give w'(Σ + γI)⁻¹w of the two tables."""
    first, second = features(tables.first), features(tables.second)
    difference = first.mean(dim=0) - second.mean(dim=0)
    covariance = first.T.cov() + second.T.cov()
    noisy = covariance.reshape(len(difference), -1) + 2 * NOISE * torch.eye(
        len(difference), dtype=torch.float64
    )
    found: Tensor = difference @ torch.linalg.solve(noisy, difference)
    return found


def _climb(
    features: Callable[[Rows], Tensor], tables: PublicTables, parameters: list[Tensor]
) -> None:
    for parameter in parameters:
        parameter.requires_grad_()
    steps = torch.optim.Adam(parameters, lr=RATE)
    with track("fitting to public tables", STEPS, show=True) as advance:
        for _ in range(STEPS):
            steps.zero_grad()
            (-_criterion(features, tables)).backward()  # type: ignore[no-untyped-call]
            steps.step()
            advance(1)
    for parameter in parameters:
        parameter.requires_grad_(False)
