"""How strongly two columns depend on each other, for every two at once.

Like a correlation, the strength is zero for independent columns and one for equal ones. Its square
is Σ(p_ab − p_a·p_b)² over the geometric mean of the same for each column with itself: the
Hilbert–Schmidt independence criterion of the cells, scaled. What noise alone adds to the sum is
known and taken off.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.release.histograms import counting_parts
from aquatint.release.model import Release

SURE = 20.0
"""Gaussian noise alone makes a strength with a chance of at most e to minus this (Laurent and
Massart 2000, Lemma 1): once in five hundred million pairs."""

ROWS = 5.0
"""A table that adds up to fewer rows than so many deviations of its noise says nothing."""


class Strength(NamedTuple):
    """Two columns, and how strongly they depend on each other."""

    first: str
    second: str
    strength: float


def counted_strengths(release: Release) -> list[Strength]:
    """Give the strength of every two columns that were counted together, strongest first.

    Those that noise alone could have made are zero.
    """
    found: dict[tuple[str, str], float] = {}
    for block in release.blocks:
        for part, counts, deviation in counting_parts(block):
            alike = defaultdict(list)
            for columns, start in zip(part.sets, part.offsets, strict=True):
                if len(columns) == 2:
                    a, b = columns
                    alike[part.counted[a], part.counted[b]].append((a, b, start))
            for (m, n), sets in alike.items():
                starts = [start for _, _, start in sets]
                tables = sliding_window_view(counts, m * n)[starts].reshape(-1, m, n)
                named = ((a, b) for a, b, _ in sets)
                found |= zip(named, _strengths(tables, deviation).tolist(), strict=True)
    return _sorted(found)


def modelled_strengths(model: Mixture) -> list[Strength]:
    """Give the strength of every two columns of a model, strongest first."""
    cells = {name: model.cells(name) for name in model.schema.columns}
    found = {}
    for a, b in combinations(cells, 2):
        joint = (model.weights[:, None] * cells[a]).T @ cells[b]
        found[a, b] = float(_strengths(joint[None], 0.0)[0])
    return _sorted(found)


def _strengths(tables: np.ndarray, noise: float) -> np.ndarray:
    """Give the strength of tables of counts of one shape, (tables, m, n), all with the same noise.

    To first order the noise E of the counts moves p_ab − p_a·p_b by (I − p_a·1ᵀ)·E·(I − 1·p_bᵀ)
    over the total. Its squares add up to σ²·(m − 2 + m·Σp_a²)·(n − 2 + n·Σp_b²) on average, and its
    largest direction is √(m·Σp_a²·n·Σp_b²) long, which bounds how far chance exceeds the average.
    """
    _, m, n = tables.shape
    totals = tables.sum((1, 2))
    known = totals > ROWS * noise * np.sqrt(m * n)
    totals = np.where(known, totals, 1.0)
    variance = (noise / totals) ** 2
    first, second = tables.sum(2) / totals[:, None], tables.sum(1) / totals[:, None]
    a, b = (first**2).sum(1), (second**2).sum(1)
    # Σ(p_ab − p_a·p_b)², multiplied out: no other table of this size is made for it.
    squares = np.einsum("kab,kab->k", tables, tables) / totals**2
    crossed = ((first[:, None, :] @ tables)[:, 0] * second).sum(1) / totals
    above = squares - 2 * crossed + a * b
    trace, longest = (m - 2 + m * a) * (n - 2 + n * b), m * a * n * b
    above = above - variance * trace
    chance = 2 * variance * (np.sqrt(SURE * longest * trace) + SURE * longest)
    most = np.sqrt(np.maximum(_alone(first) * _alone(second), 1e-18))
    found = np.sqrt(np.maximum(above, 0.0) / most)
    return np.asarray(np.where(known & (above > chance), np.minimum(found, 1.0), 0.0))


def _alone(shares: np.ndarray) -> np.ndarray:
    """Give Σ(p_ab − p_a·p_b)² of columns with themselves: Σp² − 2Σp³ + (Σp²)²."""
    squares = (shares**2).sum(1)
    return np.asarray(squares - 2 * (shares**3).sum(1) + squares**2)


def _sorted(found: dict[tuple[str, str], float]) -> list[Strength]:
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return [Strength(a, b, strength) for (a, b), strength in ordered]
