"""The problems of the two-sample tests: two samples by a number of rows and a seed.

SG, GMD, GVD and Blobs are those of the paper (§6.1, table 2). Blobs-null has P twice. GMDr and GVDr
are GMD and GVD turned, so that the difference lies along (1, …, 1)/√d and every column has a little
of it.

The paper's code for Blobs multiplies by its rotation from the wrong side, so that the rotation
cancels and its Q is stretched along the first column, whatever the angle. Here Q is turned by 45°,
as in the paper's picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from datasets import numeric

from aquatint.schema import Schema

GRID, DISTANCE, STRETCH, ANGLE = 4, 5.0, 2.0, pi / 4
"""Blobs: 4 × 4 of them, 5 apart; Q has twice the variance along one axis, turned by 45°."""
PROTECTS = "replace one row"
"""The relation of the paper: both numbers of rows are public."""

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Pair(NamedTuple):
    """Two samples, and what is public about them."""

    first: np.ndarray
    second: np.ndarray
    schema: Schema

    @property
    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both samples as tables."""
        return table(self.first), table(self.second)


@dataclass(frozen=True)
class Problem:
    """Two distributions.

    Attributes
    ----------
    title
        What plots and tables call it.
    columns
        d.
    bounds
        The range that the schema declares for every column.
    same
        Whether nothing differs.
    first, second
        Draw rows of P and of Q.
    smooth
        Whether the paper takes SCF in place of ME.
    """

    title: str
    columns: int
    bounds: tuple[float, float]
    same: bool
    first: Draw
    second: Draw
    smooth: bool = False

    @property
    def schema(self) -> Schema:
        """What is public: the names and ranges of the columns."""
        columns = {name: numeric(*self.bounds) for name in names(self.columns)}
        told = {"name": self.title, "privacy": {"protects": PROTECTS}, "columns": columns}
        return Schema.from_dict(told)


def names(columns: int) -> list[str]:
    """Name columns x1, x2 and so on."""
    return [f"x{i}" for i in range(1, columns + 1)]


def table(rows: np.ndarray) -> pa.Table:
    """Give rows as a table."""
    turned = np.ascontiguousarray(rows.T)
    return pa.table(dict(zip(names(len(turned)), map(pa.array, turned), strict=True)))


def normal(columns: int) -> Draw:
    """Draw from N(0, I)."""
    return lambda rng, rows: rng.standard_normal((rows, columns))


def along(direction: np.ndarray, *, mean: float = 0.0, variance: float = 1.0) -> Draw:
    """Draw from a normal law with another mean and variance along a unit vector."""

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        made = rng.standard_normal((rows, len(direction)))
        part = made @ direction
        return made + np.outer((sqrt(variance) - 1) * part + mean, direction)

    return draw


def axis(columns: int) -> np.ndarray:
    """Give the first unit vector."""
    return np.eye(columns)[0]


def diagonal(columns: int) -> np.ndarray:
    """Give (1, …, 1)/√d."""
    return np.full(columns, 1 / sqrt(columns))


def blobs(stretch: float = 1.0, angle: float = 0.0) -> Draw:
    """Draw from a grid of Gaussians in the plane, with covariance R diag(stretch, 1) Rᵀ each."""
    turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])
    shape = turn @ np.diag([sqrt(stretch), 1.0])

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        centre = DISTANCE * (rng.integers(GRID, size=(rows, 2)) - (GRID - 1) / 2)
        return centre + rng.standard_normal((rows, 2)) @ shape.T

    return draw


def _gaussian(title: str, second: Draw, columns: int, *, same: bool = False) -> Problem:
    return Problem(title, columns, (-5.0, 5.0), same, normal(columns), second)


def _blobs(title: str, second: Draw, *, same: bool = False) -> Problem:
    return Problem(title, 2, (-15.0, 15.0), same, blobs(), second, smooth=True)


PROBLEMS = {
    "sg": _gaussian("SG", normal(50), 50, same=True),
    "gmd": _gaussian("GMD", along(axis(100), mean=1.0), 100),
    "gvd": _gaussian("GVD", along(axis(50), variance=2.0), 50),
    "blobs": _blobs("Blobs", blobs(STRETCH, ANGLE)),
    "blobs_null": _blobs("Blobs-null", blobs(), same=True),
    "gmdr": _gaussian("GMDr", along(diagonal(100), mean=1.0), 100),
    "gvdr": _gaussian("GVDr", along(diagonal(50), variance=2.0), 50),
}
TRAINING = 4
"""For four rows to test with there is one more to train on: 20 % of all, as in the paper."""


def draw(name: str, rows: int, seed: int, *, training: bool = False) -> Pair:
    """Draw both samples of a problem, or the part that the paper keeps apart for training."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([list(PROBLEMS).index(name), rows, seed, training])
    size = rows // TRAINING if training else rows
    return Pair(problem.first(rng, size), problem.second(rng, size), problem.schema)
