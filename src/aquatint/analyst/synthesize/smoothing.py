"""Dividing a noisy total among cells: the more of the unevenness can be noise, the less is kept."""

from __future__ import annotations

import numpy as np

CUTS = 0.5 + np.linspace(-7, 7, 8) / 32
"""Where a run of cells is cut in two, as shares of its cells: the results are averaged."""
UNEVEN = np.concatenate([[0.0], np.geomspace(0.02, 1.5, 16)])
"""How uneven the parts of a run may be: deviations of their difference, as shares of its rows."""


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
    """Shrink noisy counts of neighbouring cells towards their widths, scale by scale.

    The run of cells is cut in two again and again, as in Haar's wavelets. Between two parts stands
    one number, how far the left one is above its share of the width. It is shrunk by what noise it
    has and by how uneven parts of that scale seem to be, in proportion to the rows that they hold:
    so a thin tail is smoothed where a heavy middle is left alone. Where the cuts lie is arbitrary,
    and what several ways to cut agree in is least disturbed by noise: they are averaged. No cell is
    left below zero, if the total is not.
    """
    if not counts.sum() > 0:
        return np.asarray(counts.sum() * widths / widths.sum())
    return np.asarray(np.mean([_cut(counts, deviation, widths, cut) for cut in CUTS], axis=0))


def _cut(counts: np.ndarray, deviation: float, widths: np.ndarray, cut: float) -> np.ndarray:
    """Do so for one place of the cuts, as a share of each run's cells."""
    total = np.concatenate([[0.0], np.cumsum(counts)])
    width = np.concatenate([[0.0], np.cumsum(widths)])
    out = np.array([counts.sum()])
    ends = np.array([0, len(counts)])
    while len(ends) <= len(counts):
        left, right = ends[:-1], ends[1:]
        cells = right - left
        split = cells > 1
        inside = np.rint(left + cut * cells).astype(np.int64)
        middle = np.where(split, np.clip(inside, left + 1, right - 1), right)
        share = (width[middle] - width[left]) / (width[right] - width[left])
        above = total[middle] - total[left] - share * (total[right] - total[left])
        first = middle - left
        variance = deviation**2 * ((1 - share) ** 2 * first + share**2 * (cells - first))
        held = 2 * out * np.sqrt(first * (cells - first)) / cells
        kept = np.zeros(len(cells))
        kept[split] = _kept(above[split], variance[split], held[split])
        lower = np.clip(share * out + kept * above, 0.0, out)
        halves = np.stack([lower, out - lower], 1)
        out = halves.flatten()[np.stack([np.ones_like(split), split], 1).flatten()]
        ends = np.append(np.unique(np.concatenate([left, middle[split]])), len(counts))
    return out


def _kept(above: np.ndarray, variances: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Give the share of each noisy difference to keep, by how uneven all of them seem to be.

    A difference has mean zero and the standard deviation u·held before noise is added. What u is,
    the differences themselves tell: its values are weighed by their likelihood (empirical Bayes).
    """
    noise = np.maximum(variances, 1e-200)
    before = (UNEVEN[:, None] * held) ** 2
    fit = -(np.log(before + noise) + above**2 / (before + noise)).sum(1) / 2
    weight = np.exp(fit - fit.max())
    return np.asarray(weight / weight.sum() @ (before / (before + noise)))


def falling(widths: np.ndarray, width_before: float, ratio: float) -> np.ndarray:
    """Share a tail among its cells, the nearest first, as if it fell exponentially.

    An exponential tail with scale ℓ holds exp(h/ℓ) − 1 times as much in the stretch of width h
    before it as in itself: that ratio gives ℓ.
    """
    scale = width_before / np.log1p(ratio)
    ends = np.concatenate([[0.0], np.cumsum(widths)]) / scale
    held = np.maximum(np.exp(-ends[:-1]) - np.exp(-ends[1:]), 1e-12)
    return np.asarray(held / held.sum())
