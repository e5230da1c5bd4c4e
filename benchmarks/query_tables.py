"""The tables that questions are asked about."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from datasets import load
from development import TABLES, numeric
from made_up import MADE_UP
from scoring import without_bins

import aquatint as aq
from aquatint.schema import Schema

PLANS = ("default", "m2m", "hist", "rff", "race")
LAPLACE = ("hist", "rff", "race")
"""The paper's sketches, with the paper's noise: δ = 0."""


def table(name: str) -> tuple[pd.DataFrame, Schema]:
    """Give the training rows of a table, and its schema without bins; of a made-up one, all."""
    if name in MADE_UP:
        return MADE_UP[name]()
    found: Any = TABLES[name]() if name in TABLES else load(name)
    rows = found.train
    return rows, without_bins(found.schema)


def unit_cube(name: str) -> tuple[pd.DataFrame, Schema]:
    """Give LifeSci scaled to [0, 1], or Random10: uniform numbers of the same shape.

    The ends of the scale are those of the rows, as in the paper, and cost no budget there or here:
    a fault that this benchmark repeats, and no release should.
    """
    made = TABLES["lifesci"]()
    rows = pd.concat([made.train, made.test], ignore_index=True).drop(columns="active")
    rows = (rows - rows.min()) / (rows.max() - rows.min())
    if name == "random10":
        uniform = np.random.default_rng(0).random(rows.shape)
        rows = pd.DataFrame(uniform, columns=[f"x{i}" for i in range(1, rows.shape[1] + 1)])
    columns = {column: numeric(0, 1) for column in rows}
    privacy = {"protects": "add or remove one row"}
    return rows, Schema.from_dict({"name": name, "privacy": privacy, "columns": columns})


def released(
    rows: pd.DataFrame, schema: Schema, plan: str, epsilon: float, delta: float, seed: int
) -> aq.Release:
    """Sketch rows by a named plan, with simulated noise."""
    makers = {"m2m": aq.m2m, "hist": aq.m2m_hist, "rff": aq.m2m_rff, "race": aq.m2m_race}
    planned = makers[plan](schema) if plan in makers else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a large ε is meant here
        return aq.sketch(
            rows,
            planned.schema if planned else schema,
            epsilon=epsilon,
            delta=0.0 if plan in LAPLACE else delta,
            plan=planned,
            simulate=seed,
            progress=False,
        )
