"""Kernel values at a few public locations: the features of the ME test (Raj et al. 2019, §2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, isfinite
from typing import ClassVar, Literal

import torch
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, one_hot
from aquatint.features.decay import decay, distances
from aquatint.features.frequencies import check_length_scales, per_column

MOST_LOCATIONS = 10_000


@dataclass(frozen=True)
class Locations(FeatureMap):
    """ψ_j(x) = k(x, t_j) − 1/2 at J public locations t_j.

    The kernel lies between 0 and 1, so −1/2 ≤ ψ_j ≤ 1/2, hence ‖ψ‖₂ ≤ √J/2 and ‖ψ‖₁ ≤ J/2; two
    rows are at most √J apart, each coordinate at most 1. A row at t_j, far from the other
    locations, comes as close to it as the kernel's width allows. Without the 1/2 the norm would be
    √J: centring halves what adding or removing a row can move, and a difference of two means does
    not see it.

    A column with an order enters by its place in the unit interval, where a missing value is one
    whole range away from every location. A column without one enters by its one-hot cell, scaled so
    that two different cells are one range apart; there, missing is a cell like any other.

    Parameters
    ----------
    columns
        The columns with an order.
    cells_of
        The columns without one, with their numbers of cells.
    points
        For each location, its place in every column with an order, then its cell in every column
        without one. Public: never taken from private rows.
    length_scales
        One for each column, those with an order first, as a fraction of the column's range.
    kernel
        ``"gaussian"``: exp(−Σ (x−t)²/2l²); ``"laplace"``: exp(−Σ abs(x−t)/l).
    """

    columns: tuple[str, ...]
    cells_of: tuple[tuple[str, int], ...]
    points: tuple[tuple[float, ...], ...]
    length_scales: tuple[float, ...]
    kernel: Literal["gaussian", "laplace"] = "gaussian"
    kind: ClassVar[str] = "locations"

    def __post_init__(self) -> None:
        names = (*self.columns, *dict(self.cells_of))
        check_length_scales(names, self.length_scales, len(self.points))
        if self.kernel not in {"gaussian", "laplace"}:
            msg = f"the kernel must be gaussian or laplace, got {self.kernel!r}"
            raise PlanError(msg)
        if not 1 <= len(self.points) <= MOST_LOCATIONS:
            msg = f"give 1 to {MOST_LOCATIONS:,} locations, got {len(self.points)}"
            raise PlanError(msg)
        sizes = [size for _, size in self.cells_of]
        for point in self.points:
            numbers, chosen = point[: len(self.columns)], point[len(self.columns) :]
            if len(chosen) != len(sizes) or not all(isfinite(t) and abs(t) <= 1e6 for t in numbers):
                msg = f"each location needs a finite number for each of the {len(names)} columns"
                raise PlanError(msg)
            if not all(
                c == int(c) and 0 <= c < size for c, size in zip(chosen, sizes, strict=True)
            ):
                msg = "in a column without an order a location is one of its cells, by number"
                raise PlanError(msg)

    @property
    def dim(self) -> int:
        return len(self.points)

    @property
    def bound(self) -> Bound:
        return Bound(dim=self.dim, l1=self.dim / 2, l2_squared=self.dim / 4, low=-0.5, high=0.5)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(dict(self.cells_of)), frozenset(self.columns)

    @cached_property
    def _places(self) -> Tensor:
        width = len(self.columns)
        return torch.tensor([p[:width] for p in self.points], dtype=torch.float64)

    @cached_property
    def _factors(self) -> dict[str, Tensor]:
        """For each column without an order, the kernel between cells and locations."""
        made = {}
        for place, (name, size) in enumerate(self.cells_of, start=len(self.columns)):
            scale = self.length_scales[place]
            apart = exp(-0.5 / scale**2 if self.kernel == "gaussian" else -1 / scale)
            table = torch.full((size, self.dim), apart, dtype=torch.float64)
            table[[int(p[place]) for p in self.points], range(self.dim)] = 1.0
            made[name] = table
        return made

    def __call__(self, rows: Rows) -> Tensor:
        values = rows.matrix(self.columns) if self.columns else torch.zeros(len(rows), 0)
        scales = self.length_scales[: len(self.columns)]
        squared = self.kernel == "gaussian"
        found = decay(distances(values, self._places, scales, squared=squared))
        for name, size in self.cells_of:
            table = self._factors[name].to(found.device)
            found = found * self._looked_up(rows, name, size, table)
        return (found - 0.5).float()

    def _looked_up(self, rows: Rows, name: str, size: int, table: Tensor) -> Tensor:
        code = rows.codes[name]
        if code.dim() == 2:
            return one_hot(rows, name, size).double() @ table
        return table[code.long()]

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "cells": [list(pair) for pair in self.cells_of],
            "points": [list(point) for point in self.points],
            "length_scales": list(self.length_scales),
            "kernel": self.kernel,
        }


def locations(
    columns: Sequence[str],
    points: Sequence[Sequence[float]],
    *,
    cells: Mapping[str, int] | None = None,
    length_scale: float | tuple[float, ...] = 0.2,
    kernel: Literal["gaussian", "laplace"] = "gaussian",
) -> Locations:
    """Build a map of kernel values; one length scale serves all columns unless each has its own.

    Examples
    --------
    >>> made = locations(["age", "pay"], [(0.2, 0.5), (0.7, 0.1)])
    >>> made.dim, made.bound.l2_squared
    (2, 0.5)
    """
    counted = tuple((cells or {}).items())
    names = (*columns, *dict(counted))
    given = tuple(tuple(float(t) for t in point) for point in points)
    return Locations(tuple(columns), counted, given, per_column(length_scale, names), kernel)
