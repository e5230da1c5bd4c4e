"""Kernels for a GPU, in Triton: the operations of the processor's kernels, to the same integers.

Every sum here is of whole numbers, and every rounding is that of `features.fourier`,
`features.hermite` and `integers.quantise`: phases are exact in float64, whatever their order; sine,
cosine and the recursion are float32 additions and multiplications, one after the other, which the
compiler is told not to join; a feature times the steps is truncated toward zero. Nothing of the
size rows × features is written to memory.

This module needs torch and Triton alone. Triton comes with torch's builds for CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

_EXACTLY = {"enable_fp_fusion": False}
"""A multiplication and an addition that were joined would round once, not twice."""
_TOGETHER = 32
"""Up to so many columns are multiplied in one go; more of them in blocks of half as many."""


@dataclass(frozen=True)
class Shape:
    """How the Fourier kernel cuts its work.

    Attributes
    ----------
    rows, frequencies
        The tile that is held in registers.
    tiles
        How many tiles of rows one program adds up: few enough for an int32 to hold their sum.
    warps
        How many warps share a tile.
    """

    rows: int = 4
    frequencies: int = 128
    tiles: int = 32
    warps: int = 1


SHAPE = Shape()
_HERMITE_ROWS = 256
"""Rows that are added up in an int32: coordinates have up to 22 bits, hence 30 in all."""
_COUNT_ROWS, _COUNT_TILES = 1024, 8


@dataclass(frozen=True)
class Summed:
    """What a kernel found.

    Attributes
    ----------
    total
        The int64 sums, shape (dim,).
    squared
        The squared norm of each row, int64, shape (n,): meaningless if `peak` is out of range.
    peak
        The largest size of any coordinate, before truncation; a tensor of one number.
    """

    total: Tensor
    squared: Tensor
    peak: Tensor


def kept(
    run: Callable[[Tensor], Summed], steps: Tensor, l2_squared: int, high: int
) -> tuple[Tensor, Tensor]:
    """Sum the rows that keep to their limits; give the sums and the numbers of those left out.

    Parameters
    ----------
    run
        A kernel that lacks its steps.
    steps
        For each row the steps of the grid, float32; set to zero for those left out.
    l2_squared, high
        The limits: on the squared norm of a row, and on the size of a coordinate.
    """
    found = run(steps)
    over = (found.squared > l2_squared) | (found.peak >= high + 1)
    doubtful = torch.nonzero(over).flatten()
    if len(doubtful):
        steps[doubtful] = 0.0
        found = run(steps)
    return found.total.cpu(), doubtful.cpu()


def without_missing(values: Tensor, steps: Tensor) -> Tensor:
    """Give values in float64, and no step to rows that miss one."""
    absent = values.isnan()
    steps.masked_fill_(absent.any(dim=1), 0.0)
    return values.masked_fill(absent, 0.0).double()


def fourier_sum(
    values: Tensor,
    frequencies: Tensor,
    turns: float,
    sine: Tensor,
    steps: Tensor,
    shape: Shape | None = None,
) -> Summed:
    """Sum Fourier features over rows.

    Parameters
    ----------
    values
        Shape (n, columns), float64, none missing.
    frequencies
        In turns, float64, shape (columns, D/2).
    turns
        Whole turns that are added to each phase so that none is negative.
    sine
        The five coefficients of the sine times the amplitude, float32.
    steps
        For each row the steps of the grid, float32; zero for one that does not count.
    shape
        How to cut the work; by default `SHAPE`.
    """
    shape = SHAPE if shape is None else shape
    count, columns = values.shape
    width = frequencies.shape[1]
    together = columns if columns <= _TOGETHER else _TOGETHER // 2
    # Filled up with zeros, no load of the kernel has to look where the rows and columns end.
    known = _filled(values, shape.rows * shape.tiles, together)
    waves = _filled(frequencies, together, shape.frequencies)
    blocks = waves.shape[1] // shape.frequencies
    parts = len(known) // (shape.rows * shape.tiles)
    total = torch.zeros(2 * width, dtype=torch.int64, device=values.device)
    squared = torch.zeros(blocks, len(known), dtype=torch.int64, device=values.device)
    peak = torch.zeros(blocks, max(1, parts), dtype=torch.float32, device=values.device)
    base = torch.full((1,), turns, dtype=torch.float64, device=values.device)
    if count:
        _fourier[(blocks, parts)](
            known, waves, base, sine, _filled(steps[:, None], shape.rows * shape.tiles, 1),
            total, squared, peak, len(known), width, waves.shape[1],
            columns=known.shape[1], together=together, row_tile=shape.rows,
            wave_tile=shape.frequencies, tiles=shape.tiles, num_warps=shape.warps, **_EXACTLY,
        )  # fmt: skip
    return Summed(total, squared.sum(dim=0)[:count], peak.amax())


def _filled(matrix: Tensor, rows: int, columns: int) -> Tensor:
    """Fill a matrix up with zeros to whole multiples of so many rows and columns."""
    below, right = -len(matrix) % rows, -matrix.shape[1] % columns
    return torch.nn.functional.pad(matrix, (0, right, 0, below)).contiguous()


# Were the frequencies known to be aligned, the compiler would load two at a time, into lanes that
# do not need them, and shuffle.
@triton.jit(do_not_specialize_on_alignment=["frequencies", "total"])
def _fourier(
    values, frequencies, base, sine, steps, total, squared, peak, count, width, stride,
    columns: tl.constexpr, together: tl.constexpr, row_tile: tl.constexpr,
    wave_tile: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    block, part = tl.program_id(0), tl.program_id(1)
    wave = block * wave_tile + tl.arange(0, wave_tile)
    there = wave < width
    s0, s1, s2 = tl.load(sine), tl.load(sine + 1), tl.load(sine + 2)
    s3, s4 = tl.load(sine + 3), tl.load(sine + 4)
    turns = tl.load(base)
    one = there.to(tl.float32)
    cosines = tl.zeros((row_tile, wave_tile), tl.int32)
    sines = tl.zeros((row_tile, wave_tile), tl.int32)
    largest = tl.zeros((row_tile, wave_tile), tl.float32)
    for tile in range(tiles):
        row = (part * tiles + tile) * row_tile + tl.arange(0, row_tile)
        phase = tl.zeros((row_tile, wave_tile), tl.float64) + turns
        for first in range(0, columns, together):
            for near in tl.static_range(together):
                column = first + near
                value = tl.load(values + row.to(tl.int64) * columns + column)
                turn = tl.load(frequencies + column * stride + wave)
                phase = tl.fma(value[:, None], turn[None, :], phase)
        fraction = (phase - tl.floor(phase)).to(tl.float32)
        step = tl.load(steps + row)[:, None] * one[None, :]
        z = tl.abs(fraction - 0.5) - 0.25
        square = z * z
        cosine = ((((square * s4 + s3) * square + s2) * square + s1) * square + s0) * z * step
        z = tl.abs(tl.abs(fraction - 0.25) - 0.5) - 0.25
        square = z * z
        height = ((((square * s4 + s3) * square + s2) * square + s1) * square + s0) * z * step
        largest = tl.maximum(largest, tl.maximum(tl.abs(cosine), tl.abs(height)))
        a, b = cosine.to(tl.int32), height.to(tl.int32)
        cosines += a
        sines += b
        a, b = a.to(tl.int64), b.to(tl.int64)
        tl.store(squared + block.to(tl.int64) * count + row, tl.sum(a * a + b * b, axis=1))
    where = total + wave
    tl.atomic_add(where, tl.sum(cosines.to(tl.int64), axis=0), there, sem="relaxed")
    tl.atomic_add(where + width, tl.sum(sines.to(tl.int64), axis=0), there, sem="relaxed")
    tl.store(peak + block * tl.num_programs(1) + part, tl.max(tl.max(largest, axis=1), axis=0))


def hermite_sum(x: Tensor, first: Tensor, factors: Tensor, steps: Tensor) -> Summed:
    """Sum Hermite features over rows.

    Parameters
    ----------
    x, first
        What `Hermite.start` gives, shape (n, columns), float32.
    factors
        The factors of the recursion, float32, shape (2, order).
    steps
        For each row the steps of the grid, float32; zero for one that does not count.
    """
    count, columns = x.shape
    order = factors.shape[1]
    # Column by column, so that neighbouring rows lie side by side.
    across, start = (_filled(each.T, 1, _HERMITE_ROWS) for each in (x, first))
    stride = across.shape[1]
    total = torch.zeros(order + 1, columns, dtype=torch.int64, device=x.device)
    squared = torch.zeros(columns, stride, dtype=torch.int64, device=x.device)
    parts = stride // _HERMITE_ROWS
    peak = torch.zeros(columns, max(1, parts), dtype=torch.float32, device=x.device)
    if count:
        _hermite[(columns, parts)](
            across, start, factors.contiguous(), _filled(steps[None], 1, _HERMITE_ROWS),
            total, squared, peak, stride,
            order=order, row_tile=_HERMITE_ROWS, num_warps=1, **_EXACTLY,
        )  # fmt: skip
    return Summed(total.flatten(), squared.sum(dim=0)[:count], peak.amax())


@triton.jit
def _hermite(
    x, first, factors, steps, total, squared, peak, stride,
    order: tl.constexpr, row_tile: tl.constexpr,
):  # fmt: skip
    column, part = tl.program_id(0), tl.program_id(1)
    columns = tl.num_programs(0)
    row = part * row_tile + tl.arange(0, row_tile)
    place = column.to(tl.int64) * stride + row
    here, now = tl.load(x + place), tl.load(first + place)
    step = tl.load(steps + row)
    before = tl.zeros((row_tile,), tl.float32)
    height = now * step
    largest = tl.abs(height)
    whole = height.to(tl.int32)
    tl.atomic_add(total + column, tl.sum(whole, axis=0).to(tl.int64), sem="relaxed")
    norms = whole.to(tl.int64) * whole.to(tl.int64)
    for c in range(order):
        later = (now * here) * tl.load(factors + c) - before * tl.load(factors + order + c)
        before, now = now, later
        height = now * step
        largest = tl.maximum(largest, tl.abs(height))
        whole = height.to(tl.int32)
        added = tl.sum(whole, axis=0).to(tl.int64)
        tl.atomic_add(total + (c + 1) * columns + column, added, sem="relaxed")
        norms += whole.to(tl.int64) * whole.to(tl.int64)
    tl.store(squared + place, norms)
    tl.store(peak + column * tl.num_programs(1) + part, tl.max(largest, axis=0))


def count_sets(codes: Tensor, lines: Tensor, strides: Tensor, starts: Tensor, dim: int) -> Tensor:
    """Count the cells of sets of columns, shape (dim,), int64.

    Parameters
    ----------
    codes
        The cell of each row in each column, int32, shape (columns, n), checked to be in range.
    lines, strides, starts, dim
        As `counting.Layout` has them, and the number of cells of all sets.
    """
    counts = torch.zeros(dim, dtype=torch.int64, device=codes.device)
    sets, width = lines.shape
    count = codes.shape[1]
    if count:
        _count[(sets, triton.cdiv(count, _COUNT_ROWS * _COUNT_TILES))](
            codes, lines, strides, starts, counts, count,
            width=width, row_tile=_COUNT_ROWS, tiles=_COUNT_TILES, num_warps=4,
        )  # fmt: skip
    return counts


@triton.jit
def _count(
    codes, lines, strides, starts, counts, count,
    width: tl.constexpr, row_tile: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    number, part = tl.program_id(0), tl.program_id(1)
    start = tl.load(starts + number)
    for tile in range(tiles):
        row = (part * tiles + tile) * row_tile + tl.arange(0, row_tile)
        inside = row < count
        cell = tl.zeros((row_tile,), tl.int64) + start
        for place in tl.static_range(width):
            line = tl.load(lines + number * width + place)
            code = tl.load(codes + line * count + row, inside, 0)
            cell += code.to(tl.int64) * tl.load(strides + number * width + place)
        tl.atomic_add(counts + cell, 1, inside, sem="relaxed")
