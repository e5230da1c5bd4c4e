"""Six wide development tables: pictures as rows of numbers, and two of many columns.

The pictures are training images of MNIST and FashionMNIST (see image_data.py for where they come
from), 14 × 14 means of grey, or 178 random directions of 28 × 28: columns that all tell a little.
Two classes stand against the other eight. The other tables come as those of development_dense.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import pandas as pd
from datasets import binned, categorical, declare, numeric, shape
from development_dense import Cut, complete_rows, keel, quartered
from image_data import load

TEST = slice(50_000, 52_500)
TURNED = 178


def _pictures(
    name: str, images: str, classes: Collection[int], *, rows: int, turned: bool = False
) -> Cut:
    """Make a table of pictures: the first so many to train, 2,500 others to test."""
    found = load(images)
    kept = np.r_[:rows, TEST]
    grey = found.x_train[kept, ..., 0].astype(float)
    if turned:
        flat = grey.reshape(len(kept), -1)
        dice = np.random.default_rng(TURNED).normal(size=(flat.shape[1], TURNED))
        values = ((flat - flat.mean()) / 255 @ np.linalg.qr(dice)[0]).round(4)
    else:
        values = grey.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(len(kept), -1)
    bounds = (-4, 4) if turned else (0, 256)
    frame = pd.DataFrame(values, columns=[f"c{i}" for i in range(values.shape[1])])
    columns = {column: numeric(*bounds) for column in frame}
    frame["y"] = np.where(np.isin(found.y_train[kept], list(classes)), "k1", "k0")
    schema = declare(name, "y", columns | {"y": categorical("k0", "k1")})
    shaped = shape(frame, schema)
    train, test = shaped.iloc[:rows], shaped.iloc[rows:]
    return train.reset_index(drop=True), test.reset_index(drop=True), binned(schema)


def _caravan() -> pd.DataFrame:
    without = ["rownames"]
    return complete_rows("Caravan", "Purchase", package="ISLR", without=without)


WIDE: dict[str, Callable[[], Cut]] = {
    "digits_coarse": partial(_pictures, "digits_coarse", "mnist", (3, 8), rows=7_000),
    "digits_turned": partial(_pictures, "digits_turned", "mnist", (3, 8), rows=8_000, turned=True),
    "clothes_coarse": partial(_pictures, "clothes_coarse", "fashion", (2, 6), rows=7_000),
    "clothes_turned": partial(
        _pictures, "clothes_turned", "fashion", (2, 6), rows=8_000, turned=True
    ),
    "optdigits": partial(quartered, "optdigits", partial(keel, "optdigits")),
    "caravan": partial(quartered, "caravan", _caravan),
}
