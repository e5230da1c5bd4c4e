"""Two made-up tables of numbers, for what the real development tables have little of.

With them it was found out how rows below the noise should be doubted (docs/results/notes.md):

    python benchmarks/queries.py coverage --tables factors sensor --plans default --quick
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from datasets import categorical, declare, numeric

from aquatint.schema import Schema

ZERO_ONE = ("0", "1")


def factors() -> tuple[pd.DataFrame, Schema]:
    """Give nine columns with heavy tails that share three factors, in four clusters."""
    rng, rows = np.random.default_rng(5), 20_000
    cluster, centres = rng.integers(0, 4, rows), rng.normal(0, 1.5, (4, 3))
    factor = centres[cluster] + rng.normal(size=(rows, 3)) * rng.gamma(2, 0.5, (rows, 1))
    values = factor @ rng.normal(size=(3, 9)) + 0.6 * rng.standard_t(3, size=(rows, 9))
    frame = pd.DataFrame(values, columns=[f"f{i}" for i in range(9)]).clip(-20, 20)
    columns = {name: numeric(-20, 20) for name in frame} | {"hit": categorical(*ZERO_ONE)}
    frame["hit"] = np.where(factor[:, 0] + rng.normal(size=rows) > 1, "1", "0")
    return frame, declare("factors", "hit", columns)


def sensor() -> tuple[pd.DataFrame, Schema]:
    """Give 15,000 minutes of an office: five columns that follow from the time and each other."""
    rng, rows = np.random.default_rng(5), 15_000
    minute = np.arange(rows)
    day = np.sin(2 * np.pi * minute / 1440) + 0.3 * np.sin(2 * np.pi * minute / 10080)
    warm = np.clip(20 + 3 * day + 0.5 * np.cumsum(rng.normal(0, 0.02, rows)), 10, 35)
    there = day + 0.5 * rng.normal(size=rows) > 0.6
    lamp, sun = 400 + 60 * rng.normal(size=rows), 150 * day + 10 * rng.normal(size=rows)
    damp = 35 + 8 * np.cos(2 * np.pi * minute / 4000) - 0.5 * (warm - 20)
    damp = np.clip(damp + 0.3 * rng.normal(size=rows), 10, 70)
    fading = np.exp(-np.arange(200) / 60) / 60
    breath = 900 * np.convolve(there, fading)[:rows] + 5 * rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "temp": warm.round(2),
            "hum": damp.round(2),
            "light": np.clip(np.where(there, lamp, np.maximum(0, sun)), 0, 1500).round(),
            "co2": np.clip(420 + breath, 300, 2500).round(),
            "ratio": np.clip(damp / 100 * np.exp(0.06 * warm) * 0.004, 0, 0.02).round(5),
            "hit": np.where(there, "1", "0"),
        }
    )
    columns = {
        "temp": numeric(10, 35),
        "hum": numeric(10, 70),
        "light": numeric(0, 1500),
        "co2": numeric(300, 2500),
        "ratio": numeric(0, 0.02),
        "hit": categorical(*ZERO_ONE),
    }
    return frame, declare("sensor", "hit", columns)


MADE_UP = {"factors": factors, "sensor": sensor}
