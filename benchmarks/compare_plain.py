"""The tests of the paper without privacy: mean embeddings (ME), smooth characteristic functions.

Written plainly here, as a yardstick. Test places are drawn from a public prior, or optimised on
rows kept apart, as the paper does (§6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch
from compare_problems import PROBLEMS, Pair, draw
from scipy.stats import chi2
from torch import Tensor

PLACES = 5
"""J of the paper, for ME; for SCF the number of frequencies, each a cosine and a sine."""
REGULAR = 1e-5
"""γ of eq. 1, where the paper names none: that of its code."""
STARTS, STEPS, RATE = 24, 120, 0.02
"""The optimiser's: draws to begin with the best of, for SCF, and then steps."""
SCALES = (1.0, 2.0, 4.0, 8.0)
"""Frequencies to begin with are taken this many times as high, in turn."""
PLACES_SEED = 1_000_003


@dataclass(frozen=True, eq=False)
class Features:
    """Features of rows: k(x, t) at places t, or g(x)·[cos t·x, sin t·x] at frequencies t (§2.1).

    Attributes
    ----------
    places
        Test locations or frequencies, shape (places, columns).
    width
        θ of the Gaussian kernel, or of the smoothing g(x) = exp(−‖x‖²/2θ²).
    smooth
        SCF in place of ME.
    """

    places: Tensor
    width: Tensor
    smooth: bool

    def __call__(self, rows: Tensor) -> Tensor:
        """Give the features of rows, shape (rows, features), with a gradient."""
        square = 2 * self.width**2
        if not self.smooth:
            return torch.exp(-(torch.cdist(rows, self.places) ** 2) / square)
        angle = rows @ self.places.T
        height = torch.exp(-(rows**2).sum(dim=1, keepdim=True) / square)
        return height * torch.cat([angle.cos(), angle.sin()], dim=1)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Give the features of rows without one."""
        with torch.no_grad():
            return self(torch.from_numpy(rows)).numpy()


def sampled(name: str, seed: int) -> Features:
    """Draw places from a prior that needs no rows: N(0, I) and θ² = d, or its like for Blobs.

    For Blobs θ = 8, near the median distance of two rows, and frequencies are N(0, I/θ²).
    """
    problem = PROBLEMS[name]
    rng = np.random.default_rng([PLACES_SEED, seed])
    drawn = rng.standard_normal((PLACES, problem.columns))
    width = 8.0 if problem.smooth else sqrt(problem.columns)
    places = drawn / width if problem.smooth else drawn
    return Features(torch.from_numpy(places), torch.tensor(width).double(), problem.smooth)


def rows_of(training: Pair, smooth: bool, seed: int) -> Features:
    """Take rows of a sample as places, and the median distance as θ: **not private** (§6).

    SCF has frequencies N(0, I/θ²).
    """
    rng = np.random.default_rng([PLACES_SEED, seed])
    pooled = np.concatenate([training.first, training.second])
    width = median_distance(pooled, rng)
    drawn = rng.standard_normal((PLACES, pooled.shape[1])) / width
    places = drawn if smooth else pooled[rng.choice(len(pooled), PLACES, replace=False)]
    return Features(torch.from_numpy(places), torch.tensor(width).double(), smooth)


def median_distance(rows: np.ndarray, rng: np.random.Generator, most: int = 1000) -> float:
    """Give the median distance of two rows, of a thousand of them."""
    some = torch.from_numpy(rows[rng.choice(len(rows), min(most, len(rows)), replace=False)])
    return float(torch.pdist(some).median())


def optimised(training: Pair, smooth: bool, seed: int) -> Features:
    """Choose places and θ that separate two samples best: w'(Σ + γI)⁻¹w, by gradient (§6)."""
    first, second = (torch.from_numpy(rows) for rows in training[:2])
    starts = [rows_of(training, smooth, STARTS * seed + i) for i in range(STARTS if smooth else 1)]
    if smooth:
        scales = [SCALES[i % len(SCALES)] for i in range(STARTS)]
        starts = [replace(f, places=f.places * c) for f, c in zip(starts, scales, strict=True)]
    with torch.no_grad():
        begun = max(starts, key=lambda made: float(_separation(made, first, second)))
    places = begun.places.clone().requires_grad_()
    log_width = begun.width.log().requires_grad_()
    optimiser = torch.optim.Adam([places, log_width], lr=RATE)
    best, kept = -float("inf"), begun
    for _ in range(STEPS):
        made = Features(places, log_width.exp(), smooth)
        found = _separation(made, first, second)
        if float(found.detach()) > best:
            best = float(found.detach())
            kept = Features(places.detach().clone(), made.width.detach().clone(), smooth)
        optimiser.zero_grad()
        (-found).backward()
        optimiser.step()
    return kept


def _separation(features: Features, first: Tensor, second: Tensor) -> Tensor:
    differences = features(first) - features(second)
    mean = differences.mean(dim=0)
    spread = torch.cov(differences.T) + 1e-3 * torch.eye(len(mean)).double()
    return mean @ torch.linalg.solve(spread, mean)


def statistic(differences: np.ndarray, regular: float = REGULAR) -> float:
    """Give s = n·w'(Σ + γI)⁻¹w (eq. 1)."""
    rows, size = differences.shape
    mean = differences.mean(axis=0)
    spread = np.cov(differences.T) + regular * np.eye(size)
    return float(rows * mean @ np.linalg.solve(spread, mean))


def plain_pvalue(features: Features, pair: Pair) -> float:
    """Test without privacy, against χ² with as many degrees of freedom as there are features."""
    differences = features.of(pair.first) - features.of(pair.second)
    return float(chi2.sf(statistic(differences), differences.shape[1]))


def places_for(name: str, rows: int, seed: int, how: str) -> Features:
    """Give the places of a run: from the prior, from rows kept apart, or optimised on these."""
    if how == "prior":
        return sampled(name, seed)
    make = {"rows": rows_of, "optimised": optimised}[how]
    return make(draw(name, rows, seed, training=True), PROBLEMS[name].smooth, seed)
