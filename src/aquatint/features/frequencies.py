"""Public randomness and exact phases.

Frequencies and offsets are drawn from a seed that the release publishes. They are rounded to a
fixed grid, and so are the values that the encoder gives, so that a phase ω·x is a sum of whole
numbers that float64 holds exactly: the same on every machine, for any batch and any order.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from aquatint.errors import PlanError
from aquatint.features.stacking import PIXEL_STEPS, pixel_of

VALUE_STEPS = 2**20
"""The encoder puts values of the unit interval on a grid of this many steps."""
FREQUENCY_STEPS = 2**14
"""Frequencies, in turns over the unit interval, are whole multiples of 1/FREQUENCY_STEPS."""
FREQUENCY_LIMIT = 2**9
"""No frequency is larger: 20 + 14 + 9 bits and 1,024 columns stay below 2**53."""
COLUMN_LIMIT = 2**10
PIXEL_LIMIT = COLUMN_LIMIT * VALUE_STEPS // PIXEL_STEPS
"""Pixels are on a coarser grid, so that there may be as many times more of them."""


def uniforms(seed: int, shape: tuple[int, ...], stream: str) -> np.ndarray:
    """Draw public uniforms in (0, 1); Philox's raw stream is the same on every platform."""
    words = hashlib.sha256(f"aquatint:{stream}:{seed}".encode()).digest()
    bits = np.random.Philox(key=np.frombuffer(words[:16], dtype="<u8").astype(np.uint64))
    raw = bits.random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(12)).astype(np.float64) + 0.5).reshape(shape) / 2.0**52


def gaussian_frequencies(seed: int, count: int, length_scales: tuple[float, ...]) -> Tensor:
    """Draw frequencies of the kernel exp(−Σ (x−y)²/2l²), in turns, shape (columns, count)."""
    normal = ndtri(uniforms(seed, (len(length_scales), count), "fourier"))
    return _on_grid(normal, length_scales)


def laplace_frequencies(seed: int, count: int, length_scales: tuple[float, ...]) -> Tensor:
    """Draw frequencies of the kernel exp(−Σ |x−y|/l), in turns, shape (columns, count)."""
    cauchy = np.tan(np.pi * (uniforms(seed, (len(length_scales), count), "fourier") - 0.5))
    return _on_grid(cauchy, length_scales)


def mixed_frequencies(seed: int, count: int, length_scales: tuple[float, ...]) -> Tensor:
    """Draw frequencies of which half see one column, a quarter two and a quarter all of them.

    A frequency points in a random direction over its columns, with a length whose law is that of a
    Gaussian kernel on two columns (Rayleigh's), spread evenly over its quantiles: no column is left
    to a frequency that happens to be near zero. In turns, shape (columns, count).
    """
    columns = len(length_scales)
    single = count - count // 2
    double = count // 4
    normal = ndtri(uniforms(seed, (columns, count), "mixed"))
    order = np.argsort(uniforms(seed, (columns + count,), "mixed order"), kind="stable")
    shuffled, sorting = order[order < columns], order[order >= columns] - columns
    seen = np.ones((columns, count), dtype=bool)
    quantile = np.empty(count)
    for place in range(single):
        seen[:, place] = np.arange(columns) == place % columns
        rounds = -(-(single - place % columns) // columns)
        quantile[place] = (place // columns + 0.5) / rounds
    if columns > 1:
        for number, place in enumerate(range(single, single + double)):
            step = 1 + number // columns % (columns - 1)
            chosen = shuffled[[number % columns, (number % columns + step) % columns]]
            seen[:, place] = np.isin(np.arange(columns), chosen)
    for first, stop in ((single, single + double), (single + double, count)):
        ranks = np.argsort(sorting[(sorting >= first) & (sorting < stop)], kind="stable")
        quantile[first:stop] = (ranks + 0.5) / max(1, stop - first)
    direction = np.where(seen, normal, 0.0)
    direction /= np.linalg.norm(direction, axis=0)
    return _on_grid(direction * np.sqrt(-2 * np.log1p(-quantile)), length_scales)


def _on_grid(radians: np.ndarray, length_scales: tuple[float, ...]) -> Tensor:
    turns = radians / (2 * np.pi * np.asarray(length_scales)[:, None])
    limited = np.clip(turns, -FREQUENCY_LIMIT, FREQUENCY_LIMIT)
    return torch.from_numpy(np.rint(limited * FREQUENCY_STEPS) / FREQUENCY_STEPS)


def check_length_scales(
    columns: tuple[str, ...], length_scales: tuple[float, ...], count: int
) -> None:
    """Refuse what the exact phases do not cover, or what would not fit in memory."""
    if len(columns) * count > 2**28:
        msg = f"{count:,} random directions over {len(columns)} columns are too many to hold"
        raise PlanError(msg)
    limit = PIXEL_LIMIT if all(map(pixel_of, columns)) else COLUMN_LIMIT
    if not 0 < len(columns) <= limit or len(set(columns)) < len(columns):
        msg = f"name between 1 and {limit} different columns or pixels, got {len(columns)}"
        raise PlanError(msg)
    if len(length_scales) != len(columns):
        msg = f"{len(columns)} columns need as many length scales, got {len(length_scales)}"
        raise PlanError(msg)
    if not all(0.01 <= scale < 1e6 for scale in length_scales):
        msg = (
            "length scales are fractions of a column's declared range, from 0.01 up: "
            f"got {min(length_scales)}"
        )
        raise PlanError(msg)


def per_column(
    length_scale: float | tuple[float, ...], columns: tuple[str, ...]
) -> tuple[float, ...]:
    """Spread one length scale over the columns, or take one for each."""
    if isinstance(length_scale, (int, float)):
        return (float(length_scale),) * len(columns)
    return tuple(float(scale) for scale in length_scale)


def digest(array: Tensor) -> str:
    """Give a short fingerprint of public numbers, to notice if they are ever drawn differently."""
    return hashlib.sha256(array.numpy().tobytes()).hexdigest()[:16]
