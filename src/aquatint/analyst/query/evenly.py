"""Points that fill a cube evenly rather than by chance: averages over them are far surer."""

from __future__ import annotations

import numpy as np
import torch
from torch.quasirandom import SobolEngine


def evenly(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """Give so many of Sobol's points in the unit cube, scrambled: the same seed, the same points.

    SciPy has them too, but takes half a second to import them.
    """
    sobol = SobolEngine(columns, scramble=True, seed=seed)  # type: ignore[no-untyped-call]  # torch
    return np.asarray(sobol.draw(count, dtype=torch.float64).numpy())
