"""Exact sums: partial → merge → finish, the same integers for any order, batch or partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor

from aquatint.curator.counting import count_cells, counted_marginals
from aquatint.curator.encode import Notes
from aquatint.curator.gpu import HERE, Place, sum_there
from aquatint.curator.integers import norm_fits, quantise
from aquatint.errors import DataError, PlanError
from aquatint.features.algebra import ByLabel, leaves
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.fourier import Fourier
from aquatint.features.grid import Grid, grid_of, is_counting
from aquatint.features.hermite import Hermite
from aquatint.features.moments import SecondMoment
from aquatint.features.projected import UNIT, ProjectedMoments
from aquatint.planning import Plan

_ROOM = 2**62
_EXACT = 2**53
_FUSED_ROWS = 128


@dataclass(frozen=True, repr=False)
class PrivateSum:
    """Sums without noise: private, so they show nothing, and cannot be saved or pickled.

    Attributes
    ----------
    plan
        What is summed.
    totals
        For each block, the int64 sums of its leaves side by side.
    rows
        The number of rows.
    notes
        What the encoder changed, for the curator's eyes only.
    """

    plan: Plan
    totals: tuple[Tensor, ...]
    rows: int
    notes: Notes

    @classmethod
    def empty(cls, plan: Plan) -> PrivateSum:
        """Start at zero."""
        zeros = tuple(torch.zeros(b.map.dim, dtype=torch.int64) for b in plan.blocks)
        return cls(plan, zeros, 0, Notes())

    def merge(self, other: PrivateSum) -> PrivateSum:
        """Add the sums of two parts of the data."""
        if other.plan != self.plan:
            msg = "only sums of the same plan can be merged"
            raise PlanError(msg)
        totals = tuple(a + b for a, b in zip(self.totals, other.totals, strict=True))
        return PrivateSum(self.plan, totals, self.rows + other.rows, self.notes.merge(other.notes))

    def __repr__(self) -> str:
        return f"PrivateSum({len(self.totals)} blocks, not shown: no noise has been added)"

    def __reduce__(self) -> NoReturn:
        msg = "sums without noise cannot be pickled: finish them into a release first"
        raise TypeError(msg)


def sum_rows(plan: Plan, rows: Rows, place: Place = HERE) -> tuple[Tensor, ...]:
    """Sum every block of the plan over encoded rows; a map that serves twice is summed once."""
    sums: dict[FeatureMap, Tensor] = {}
    for block in plan.blocks:
        if block.map not in sums:
            sums[block.map] = torch.cat([leaf_sum(leaf, rows, place) for leaf in leaves(block.map)])
    return tuple(sums[block.map] for block in plan.blocks)


def leaf_sum(leaf: FeatureMap, rows: Rows, place: Place = HERE) -> Tensor:
    """Sum one leaf over rows in exact integers, shape (dim,): the same wherever it is done."""
    found = sum_there(leaf, rows, place, _sum_here)
    if found is None:
        return _sum_here(leaf, rows)
    total, doubtful = found
    return total + _sum_dense(leaf, rows.take(doubtful)) if len(doubtful) else total


def _sum_here(leaf: FeatureMap, rows: Rows) -> Tensor:
    if is_counting(leaf):
        if counted_marginals(leaf) is not None:
            return count_cells(leaf, rows) * int(grid_of(leaf).bound.high)
        counts = torch.zeros(leaf.dim, dtype=torch.int64)
        for tile in tiles(rows, leaf.tile):
            counts += _count(leaf, tile)
        return counts * int(grid_of(leaf).bound.high)
    inner = leaf.inner if isinstance(leaf, ByLabel) else leaf
    if (
        type(inner) is Fourier or type(inner) is Hermite or type(inner) is SecondMoment
    ) and _fits_kernel(inner, rows):
        return _sum_fused(leaf, inner, rows)
    return _sum_dense(leaf, rows)


def _fits_kernel(inner: FeatureMap, rows: Rows) -> bool:
    """Whether the compiled kernel can take rows: those on a GPU it cannot reach."""
    here = all(value.device.type == "cpu" for value in rows.values.values())
    return here and norm_fits(grid_of(inner).bound)


def _sum_dense(leaf: FeatureMap, rows: Rows) -> Tensor:
    """Add integer rows in place, where they were computed, and give the sums as int64.

    They are held in float64, which adds whole numbers without rounding below 2**53: what is there
    is moved to int64 before so many rows have come that a sum could be larger.
    """
    lines, width = (leaf.classes, leaf.inner.dim) if isinstance(leaf, ByLabel) else (1, leaf.dim)
    total = torch.zeros(leaf.dim, dtype=torch.int64)
    sums: Tensor | None = None
    bound, held = grid_of(leaf).bound, 0
    room = _EXACT // max(int(bound.high), -int(bound.low), 1)
    for tile in tiles(rows, min(leaf.tile, room)):
        for part, whole in integer_rows(leaf, tile):
            if sums is None:
                sums = torch.zeros(lines, width, dtype=torch.float64, device=whole.device)
            elif held + len(part) > room:
                total += sums.flatten().cpu().to(torch.int64)
                sums.zero_()
                held = 0
            _add_to(sums, leaf, part, whole)
            held += len(part)
    return total if sums is None else total + sums.flatten().cpu().to(torch.int64)


def _sum_fused(leaf: FeatureMap, inner: Fourier | Hermite | SecondMoment, rows: Rows) -> Tensor:
    """Sum with the fused kernel; rows that it leaves out go the exact way."""
    from aquatint.curator.fused import fused_sum

    lines = leaf.classes if isinstance(leaf, ByLabel) else 1
    total = torch.zeros(lines, inner.dim, dtype=torch.int64)
    left = [torch.zeros(0, dtype=torch.int64)]
    step = _FUSED_ROWS * (8 if isinstance(inner, SecondMoment) else 1)
    for start in range(0, len(rows), step):
        tile = rows.slice(start, start + step)
        place = tile.codes[leaf.label] if isinstance(leaf, ByLabel) else torch.zeros(len(tile))
        values = _kernel_input(inner, tile)
        out = fused_sum(inner, values, place.long().numpy(), total.numpy(), grid_of(inner))
        left.append(torch.from_numpy(out) + start)
    doubtful = torch.cat(left)
    return total.flatten() + _sum_dense(leaf, rows.take(doubtful))


def _kernel_input(inner: Fourier | Hermite | SecondMoment, rows: Rows) -> Tensor:
    """Give what the fused kernel reads: values, or the features that products are taken of."""
    if not isinstance(inner, SecondMoment):
        return rows.matrix(inner.columns)
    features = inner.inner.borrowed(rows)
    _check_shape(inner.inner, features, len(rows), inner.inner.dim)
    return features.float()


def integer_rows(leaf: FeatureMap, rows: Rows) -> Iterator[tuple[Rows, Tensor]]:
    """Give a dense leaf's rows as checked integers in float64, in slices that stay in cache."""
    inner = leaf.inner if isinstance(leaf, ByLabel) else leaf
    # An exact type, as for maps that count: this one's integers are computed from others.
    if type(inner) is ProjectedMoments:
        yield rows, _expanded(inner, rows)
        return
    grid = grid_of(inner)
    features = inner.borrowed(rows)
    _check_shape(inner, features, len(rows), inner.dim)
    step = max(16, (2**19 if features.device.type == "cpu" else 2**26) // inner.dim)
    for start in range(0, len(rows), step):
        yield rows.slice(start, start + step), quantise(features[start : start + step], grid)


def _expanded(inner: ProjectedMoments, rows: Rows) -> Tensor:
    """Clip the coordinates as integers, and compute the row from them in whole numbers."""
    y = inner.borrowed_coordinates(rows)
    _check_shape(inner, y, len(rows), inner.components)
    return inner.expand(quantise(y, Grid(UNIT, inner.coordinate_bound)))


def _check_shape(inner: FeatureMap, features: Tensor, rows: int, width: int) -> None:
    if features.shape != (rows, width):
        msg = (
            f"the feature map {inner.kind!r} gave shape {tuple(features.shape)} "
            f"for {rows} rows of {width} features"
        )
        raise DataError(msg)


def _add_to(sums: Tensor, leaf: FeatureMap, rows: Rows, whole: Tensor) -> None:
    if isinstance(leaf, ByLabel):
        sums.index_add_(0, rows.codes[leaf.label].long().to(sums.device), whole)
    else:
        sums += whole.new_ones(1, len(rows)) @ whole


def _count(leaf: FeatureMap, rows: Rows) -> Tensor:
    cells = leaf.cells(rows)
    counted = torch.bincount(cells.T.reshape(-1), minlength=leaf.dim)
    if len(counted) != leaf.dim:
        msg = f"the feature map {leaf.kind!r} named a cell beyond its {leaf.dim}"
        raise DataError(msg)
    return counted


def tiles(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut rows into tiles."""
    for start in range(0, len(rows), size):
        yield rows.slice(start, start + size)


def check_room(plan: Plan, rows: int) -> None:
    """Refuse more rows than an int64 sum can hold."""
    for block in plan.blocks:
        for leaf in leaves(block.map):
            bound = grid_of(leaf).bound
            if rows * max(int(bound.high), -int(bound.low)) >= _ROOM:
                msg = f"{rows:,} rows are more than an exact sum of {block.name!r} can hold"
                raise DataError(msg)
