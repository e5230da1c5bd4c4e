"""Fused kernels: map, round and add one row at a time, with nothing written to memory in between.

They do the very operations of the feature maps and of `integers.quantise`, in the same order and
precision, so the integers are the same bit for bit; the tests compare them. A row that exceeds a
limit is left out and reported, and goes through the exact path instead. Norms are exact here too:
they are summed as 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import sqrt
from typing import Any, TypeVar, cast

import numba
import numpy as np
from torch import Tensor

from aquatint.curator.interrupts import delayed
from aquatint.features.base import Bound
from aquatint.features.fourier import Fourier
from aquatint.features.grid import Grid
from aquatint.features.hermite import Hermite
from aquatint.features.moments import SecondMoment

Fused = Fourier | Hermite | SecondMoment
"""The maps that have a kernel of their own."""
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_READY: set[object] = set()
_HALF, _QUARTER = np.float32(0.5), np.float32(0.25)


def fused_sum(
    inner: Fused, values: Tensor, place: np.ndarray, total: np.ndarray, grid: Grid
) -> np.ndarray:
    """Add rows to `total`, each at its line, and give the numbers of the rows that were left out.

    Parameters
    ----------
    inner
        The map.
    values
        The values of its columns, shape (n, columns); for second moments, the features that they
        are taken of.
    place
        For each row the line of `total` that it is added to.
    total
        The sums so far, int64, shape (lines, dim); changed in place.
    grid
        The map's grid.
    """
    with once_undisturbed(type(inner)):
        return _run(inner, values, place, total, grid)


@contextmanager
def once_undisturbed(kernel: object) -> Iterator[None]:
    """Delay Ctrl-C the first time: the first call compiles, and the compiler may swallow it."""
    with nullcontext() if kernel in _READY else delayed():
        yield
    _READY.add(kernel)


def _run(
    inner: Fused, values: Tensor, place: np.ndarray, total: np.ndarray, grid: Grid
) -> np.ndarray:
    limits = _limits(grid.bound)
    out = np.zeros(len(values), dtype=np.bool_)
    steps = np.float32(grid.steps)
    if isinstance(inner, Fourier):
        turns, missing = inner.turns(values)
        sine = inner.sine.numpy()
        _fourier(turns.numpy(), missing.numpy(), sine, steps, limits, place, total, out)
    elif isinstance(inner, SecondMoment):
        half, most = np.float32(inner.height / 2), np.float32(sqrt(inner.height) * (1 + 2.0**-10))
        _products(values.numpy(), half, most, steps, limits, place, total, out)
    else:
        x, first = inner.start(values)
        factors = inner.factors.numpy()
        _hermite(x.numpy(), first.numpy(), factors, steps, limits, place, total, out)
    return np.flatnonzero(out)


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel, and keep the result on disk where there is a place for it."""
    try:
        return cast(Kernel, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # neither this package nor the home folder can be written to
        return cast(Kernel, numba.njit(nogil=True)(function))


def _limits(bound: Bound) -> np.ndarray:
    return np.array([bound.l2_squared, bound.l1, bound.low, bound.high], dtype=np.int64)


@compiled
def _added(row: np.ndarray, line: np.ndarray, limits: np.ndarray) -> bool:
    """Add an integer row to a line of sums if it is within its limits, exactly.

    The caller sees to it that a row within its range cannot overflow `squared`; one that is not
    within is refused by the range, whatever `squared` has become.
    """
    squared, total = np.int64(0), np.int64(0)
    low, high = np.int32(0), np.int32(0)
    for j in range(len(row)):
        value = np.int64(row[j])
        squared += value * value
        total += abs(value)
    for j in range(len(row)):
        low, high = min(low, row[j]), max(high, row[j])
    if squared > limits[0] or total > limits[1] or low < limits[2] or high > limits[3]:
        return False
    for j in range(len(row)):
        line[j] += row[j]
    return True


@compiled
def _fourier(
    turns: np.ndarray,
    missing: np.ndarray,
    sine: np.ndarray,
    steps: np.float32,
    limits: np.ndarray,
    place: np.ndarray,
    total: np.ndarray,
    out: np.ndarray,
) -> None:
    width = turns.shape[1]
    z = np.empty(2 * width, np.float32)
    row = np.empty(2 * width, np.int32)
    s0, s1, s2, s3, s4 = sine[0], sine[1], sine[2], sine[3], sine[4]
    for i in range(len(turns)):
        if missing[i]:
            continue
        for j in range(width):
            fraction = np.float32(turns[i, j] - np.floor(turns[i, j]))
            z[j] = abs(fraction - _HALF) - _QUARTER
            z[width + j] = abs(abs(fraction - _QUARTER) - _HALF) - _QUARTER
        for j in range(2 * width):
            square = z[j] * z[j]
            wave = (((square * s4 + s3) * square + s2) * square + s1) * square + s0
            row[j] = np.int32((wave * z[j]) * steps)
        out[i] = not _added(row, total[place[i]], limits)


@compiled
def _hermite(
    x: np.ndarray,
    first: np.ndarray,
    factors: np.ndarray,
    steps: np.float32,
    limits: np.ndarray,
    place: np.ndarray,
    total: np.ndarray,
    out: np.ndarray,
) -> None:
    columns, order = x.shape[1], factors.shape[1]
    row = np.empty((order + 1) * columns, np.int32)
    now, before = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for i in range(len(x)):
        for j in range(columns):
            now[j], before[j] = first[i, j], np.float32(0)
            row[j] = np.int32(now[j] * steps)
        for c in range(order):
            grow, fall = factors[0, c], factors[1, c]
            for j in range(columns):
                later = (now[j] * x[i, j]) * grow - before[j] * fall
                before[j], now[j] = now[j], later
                row[(c + 1) * columns + j] = np.int32(later * steps)
        out[i] = not _added(row, total[place[i]], limits)


@compiled
def _products(
    features: np.ndarray,
    half: np.float32,
    most: np.float32,
    steps: np.float32,
    limits: np.ndarray,
    place: np.ndarray,
    total: np.ndarray,
    out: np.ndarray,
) -> None:
    """Multiply every two features; a row with one that is too large, or no number, is left out."""
    width = features.shape[1]
    row = np.empty(width * (width + 1) // 2, np.int32)
    for i in range(len(features)):
        line, inside, start = features[i], True, 0
        for j in range(width):
            inside &= abs(line[j]) <= most
        if not inside:
            out[i] = True
            continue
        for j in range(width):
            one, some = line[j], row[start : start + width - j]
            some[0] = np.int32((one * one - half) * steps)
            for k in range(1, width - j):
                some[k] = np.int32((one * line[j + k]) * steps)
            start += width - j
        out[i] = not _added(row, total[place[i]], limits)
