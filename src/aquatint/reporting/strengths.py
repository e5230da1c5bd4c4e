"""How strongly two columns depend on each other, for every two at once.

The strength is the distance between what was counted and what independent columns would give,
√Σ(p_ab − p_a·p_b)², over its largest possible size √((1 − Σp_a²)(1 − Σp_b²)): like a correlation,
zero for independent columns and at most about one. What noise alone adds to the sum is known and
taken off.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.release.histograms import counting_parts
from aquatint.release.model import Release
from aquatint.reporting.counted import rows_of

SURE = 20.0
"""Gaussian noise alone makes a strength with a chance of at most e to minus this (Laurent and
Massart 2000, Lemma 1): once in five hundred million pairs."""


@dataclass(frozen=True)
class Strength:
    """Two columns, and how strongly they depend on each other."""

    first: str
    second: str
    strength: float


def counted_strengths(release: Release) -> list[Strength]:
    """Give the strength of every two columns that were counted together, strongest first.

    Those that noise alone could have made are zero.
    """
    rows, _ = rows_of(release)
    found: dict[tuple[str, str], float] = {}
    for block in release.blocks:
        for part, counts, deviation in counting_parts(block):
            alike = defaultdict(list)
            for columns, start in zip(part.sets, part.offsets, strict=True):
                if len(columns) == 2:
                    a, b = columns
                    alike[part.counted[a], part.counted[b]].append((a, b, start))
            for (m, n), sets in alike.items():
                starts = np.array([start for _, _, start in sets])
                tables = counts[starts[:, None] + np.arange(m * n)].reshape(-1, m, n) / rows
                strengths = _strengths(tables, deviation / rows)
                named = ((a, b) for a, b, _ in sets)
                found |= dict(zip(named, map(float, strengths), strict=True))
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
    """Give the strength of tables of one shape, (tables, m, n), all with the same noise σ.

    To first order the noise of p_ab − p_a·p_b is E_ab − p_b·ΣE_a· − p_a·ΣE_·b. Its squares add up
    to σ²·(mn·(1 + Σp_a² + Σp_b²) − 2m − 2n + 2) on average, and its largest direction is at most
    1 + √(n·Σp_b²) + √(m·Σp_a²) long, which bounds how far noise can exceed that average.
    """
    _, m, n = tables.shape
    first, second = tables.sum(2), tables.sum(1)
    apart = tables - first[:, :, None] * second[:, None, :]
    a, b = ((np.clip(side, 0, 1) ** 2).sum(1) for side in (first, second))
    trace = np.maximum(m * n * (1 + a + b) - 2 * m - 2 * n + 2, 0.0)
    longest = (1 + np.sqrt(n * b) + np.sqrt(m * a)) ** 2
    above = (apart**2).sum((1, 2)) - noise**2 * trace
    chance = 2 * noise**2 * (np.sqrt(SURE * longest * trace) + SURE * longest)
    most = np.maximum(1 - a, 1e-9) * np.maximum(1 - b, 1e-9)
    return np.asarray(np.where(above > chance, np.sqrt(np.maximum(above, 0) / most), 0.0))


def _sorted(found: dict[tuple[str, str], float]) -> list[Strength]:
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return [Strength(a, b, min(strength, 1.0)) for (a, b), strength in ordered]
