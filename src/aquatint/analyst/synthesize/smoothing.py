"""Dividing a noisy total among cells: the more of the unevenness can be noise, the less is kept."""

from __future__ import annotations

import numpy as np


def believed(differences: np.ndarray, variances: np.ndarray) -> float:
    """Give the share of noisy differences to keep: James and Stein's rule, positive part."""
    energy = float((differences**2 / np.maximum(variances, 1e-200)).sum())
    return max(0.0, 1 - max(len(differences) - 2, 1) / energy) if energy > 0 else 0.0


def even(counts: np.ndarray, deviation: float, widths: np.ndarray) -> np.ndarray:
    """Shrink noisy counts of cells without an order towards counts in proportion to the widths."""
    flat = counts.sum() * widths / widths.sum()
    uneven = counts - flat
    kept = believed(uneven, np.full(len(counts), deviation**2))
    return np.asarray(flat + kept * uneven)


def smooth(counts: np.ndarray, deviation: float, widths: np.ndarray) -> np.ndarray:
    """Shrink noisy counts of neighbouring cells, scale by scale.

    The run of cells is halved again and again, as in Haar's wavelets. Between two halves stands one
    number, how far the left one is above its share of the width; those of one scale are shrunk
    together. So a slope survives where single cells are lost in the noise.
    """
    total = np.concatenate([[0.0], np.cumsum(counts)])
    width = np.concatenate([[0.0], np.cumsum(widths)])
    out = np.array([counts.sum()])
    ends = np.array([0, len(counts)])
    while len(ends) <= len(counts):
        left, right = ends[:-1], ends[1:]
        middle = (left + right + 1) // 2
        share = (width[middle] - width[left]) / (width[right] - width[left])
        above = total[middle] - total[left] - share * (total[right] - total[left])
        cells, first = right - left, middle - left
        variance = deviation**2 * ((1 - share) ** 2 * first + share**2 * (cells - first))
        split = cells > 1
        kept = believed(above[split], variance[split])
        lower = share * out + kept * above
        halves = np.stack([lower, out - lower], 1)
        out = halves.flatten()[np.stack([np.ones_like(split), split], 1).flatten()]
        ends = np.append(np.unique(np.concatenate([left, middle])), len(counts))
    return out


def falling(widths: np.ndarray, width_before: float, ratio: float) -> np.ndarray:
    """Share a tail among its cells, the nearest first, as if it fell exponentially.

    An exponential tail with scale ℓ holds exp(h/ℓ) − 1 times as much in the stretch of width h
    before it as in itself: that ratio gives ℓ.
    """
    scale = width_before / np.log1p(ratio)
    ends = np.concatenate([[0.0], np.cumsum(widths)]) / scale
    held = np.maximum(np.exp(-ends[:-1]) - np.exp(-ends[1:]), 1e-12)
    return np.asarray(held / held.sum())
