"""Points that fill a cube evenly rather than by chance: averages over them are far surer."""

from __future__ import annotations

import numpy as np
import torch
from torch.quasirandom import SobolEngine


def evenly(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """Give so many of Sobol's points in the unit cube, scrambled: the same seed, the same points.

    SciPy has them too, but takes half a second to import them.
    """
    drawn = SobolEngine(columns, scramble=True, seed=seed).draw(count, dtype=torch.float64)
    return np.asarray(drawn.numpy())
