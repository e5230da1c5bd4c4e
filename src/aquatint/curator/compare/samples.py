"""Two private samples as streams of small whole numbers, read as often as it takes.

A rank among permuted statistics stays exact for any fixed map of a row, so the features are put on
a coarse grid. Then sums over a tile of rows are exact in float32, in any order of the additions,
and a matrix product over permutations and rows is as exact as it is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np
import torch

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.integers import quantise
from aquatint.curator.read import read
from aquatint.curator.source import Source
from aquatint.errors import DataError
from aquatint.features.algebra import leaves
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.grid import HEADROOM, Grid
from aquatint.recipe_parts import settled_bins
from aquatint.schema import Schema

BITS = 11
"""A coordinate is a whole number up to 2**BITS."""
TILE = 2 ** (24 - BITS)
"""Sums over so many rows stay within 2**24, below which float32 holds every whole number."""
MOST_NUMBERS = 2**24
"""So many features of a tile are in memory at once."""


@dataclass(frozen=True)
class CoarseMap:
    """A feature map whose values are counted in whole steps, the same for all its leaves."""

    map: FeatureMap

    @cached_property
    def steps(self) -> int | float:
        """Whole steps to one unit of the features."""
        bounds = [leaf.bound for leaf in leaves(self.map)]
        height = max(max(-bound.low, bound.high) for bound in bounds)
        return 2.0 ** (BITS - ceil(log2(height)))

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The limits that the integer rows of each leaf are held to."""
        return tuple(
            Grid(self.steps * HEADROOM, leaf.bound.on_grid(self.steps)) for leaf in leaves(self.map)
        )

    @property
    def distance_squared(self) -> int:
        """The largest squared L2 distance of two integer rows, in steps.

        Each leaf's integers are held to its own limits, and squared distances add up over leaves.
        """
        return sum(int(grid.bound.replace_l2_squared) for grid in self.grids)

    def integers(self, rows: Rows) -> np.ndarray:
        """Give the integer rows, held in float32, shape (n, dim)."""
        out = np.empty((len(rows), self.map.dim), dtype=np.float32)
        place = 0
        for leaf, grid in zip(leaves(self.map), self.grids, strict=True):
            for start in range(0, len(rows), leaf.tile):
                some = rows.slice(start, start + leaf.tile)
                features = leaf.borrowed(some)
                if features.shape != (len(some), leaf.dim):
                    msg = f"the feature map {leaf.kind!r} gave the shape {tuple(features.shape)}"
                    raise DataError(msg)
                whole = quantise(features, grid).numpy()
                out[start : start + leaf.tile, place : place + leaf.dim] = whole
            place += leaf.dim
        return out


@dataclass(frozen=True, repr=False)
class Samples:
    """Two private datasets that were counted; what they hold is not shown.

    Attributes
    ----------
    schema, coarse, sources
        What is public, the features to take, and where the rows are read.
    sizes
        How many rows either side has, of those that are kept.
    kept
        Which rows of either side these are; None for all.
    """

    schema: Schema
    coarse: CoarseMap
    sources: tuple[Source, Source]
    sizes: tuple[int, int]
    kept: tuple[np.ndarray, np.ndarray] | None = None

    def __repr__(self) -> str:
        return "Samples(private)"

    def only(self, kept: tuple[np.ndarray, np.ndarray]) -> Samples:
        """Keep the rows that are marked, one mark for each row of a side; perhaps none."""
        first, second = (int(marks.sum()) for marks in kept)
        return replace(self, sizes=(first, second), kept=kept)

    def seen_by(self, feature_map: FeatureMap) -> Samples:
        """Give the same rows with other features, which read no other columns."""
        return replace(self, coarse=CoarseMap(feature_map))

    def rows(self, side: int) -> Iterator[Rows]:
        """Give the encoded rows of one side, at most TILE at a time, in the order they are in.

        Rows that are not kept are encoded too, so that a bad one is found by whoever reads first.
        """
        encoder, found = _encoder(self.schema, self.coarse.map), 0
        tile = min(TILE, max(64, MOST_NUMBERS // self.coarse.map.dim))
        marks = self.kept[side] if self.kept is not None else None
        for batch in self.sources[side].open():
            for start in range(0, batch.num_rows, tile):
                rows = encoder(batch.slice(start, tile), Notes())
                before, found = found, found + len(rows)
                if marks is not None:
                    some = np.flatnonzero(marks[before:found])
                    rows = rows.take(torch.from_numpy(some))
                if len(rows):
                    yield rows
        if found != (self.sizes[side] if marks is None else len(marks)):
            msg = "the data changed while they were read: start again with data that stay still"
            raise DataError(msg)


def open_samples(data: tuple[Any, Any], schema: Schema, feature_map: FeatureMap) -> Samples:
    """Open two datasets and count their rows; both have to be readable twice."""
    settled = settled_bins(schema)
    wanted = _encoder(settled, feature_map).columns
    first, second = (read(each, settled, wanted) for each in data)
    if not (first.repeatable and second.repeatable):
        msg = "a comparison reads the rows twice: give a path, a frame or a table"
        raise DataError(msg)
    sizes = tuple(sum(b.num_rows for b in source.open()) for source in (first, second))
    if not all(sizes):
        msg = "one of the two datasets has no rows: there is nothing to compare"
        raise DataError(msg)
    return Samples(settled, CoarseMap(feature_map), (first, second), (sizes[0], sizes[1]))


def _encoder(schema: Schema, feature_map: FeatureMap) -> Encoder:
    return Encoder(schema, *feature_map.reads)
