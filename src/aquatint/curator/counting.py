"""Count joint cells without ever writing them down: one pass over the codes for each set.

A row's cell in a set of columns is a number in mixed radix, Σ stride·code. The kernel computes it
and adds one at that place, so nothing is held but the codes of a batch and the counts, however
many sets there are: all pairs of 617 columns take no more memory than their counts do. The counts
of one set stay in the processor's first cache while a tile of rows goes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import torch
from torch import Tensor

from aquatint.curator.fused import compiled, once_undisturbed
from aquatint.errors import DataError
from aquatint.features.algebra import ByLabel, Scaled
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.marginals import Marginals

_TILE = 2**18


@dataclass(frozen=True, eq=False)
class Layout:
    """Which codes make up the cell of each set.

    Attributes
    ----------
    reads, cells
        The columns that are read, each with whether its cells are grouped as the map's are, and how
        many cells each has.
    lines, strides
        For each set the numbers of its columns and what one step of each adds, shape (sets, width);
        a set with fewer columns than the widest reads its first with stride 0 instead.
    widths, starts
        For each set how many columns it has and where its cells begin.
    """

    reads: tuple[tuple[str, bool], ...]
    cells: tuple[int, ...]
    lines: np.ndarray
    strides: np.ndarray
    widths: np.ndarray
    starts: np.ndarray


def counted_marginals(leaf: FeatureMap) -> Marginals | None:
    """Give the map whose cells a leaf counts, perhaps weighted or by class; None for others."""
    # Exact types, as in `grid.is_counting`: a subclass may mean something else by its cells.
    while type(leaf) is Scaled or type(leaf) is ByLabel:
        leaf = leaf.inner
    return leaf if type(leaf) is Marginals else None


def count_cells(leaf: FeatureMap, rows: Rows) -> Tensor:
    """Count the cells of a leaf of `counted_marginals` over rows, shape (dim,)."""
    layout, codes = layout_of(leaf), cell_codes(leaf, rows)
    counts = np.zeros(leaf.dim, dtype=np.int64)
    tile = max(1024, min(2**14, _TILE // max(1, len(codes))))
    with once_undisturbed(count_cells):
        _count(codes, layout.lines, layout.strides, layout.widths, layout.starts, tile, counts)
    return torch.from_numpy(counts)


def cell_codes(leaf: FeatureMap, rows: Rows) -> np.ndarray:
    """Give the codes that a leaf of `counted_marginals` reads, checked, shape (columns, rows)."""
    base = counted_marginals(leaf)
    if base is None:
        msg = f"{leaf.kind} does not count joint cells"
        raise TypeError(msg)
    layout = layout_of(leaf)
    codes = np.empty((len(layout.reads), len(rows)), dtype=np.int32)
    for line, ((name, grouped), cells) in enumerate(zip(layout.reads, layout.cells, strict=True)):
        codes[line] = (base.grouped(rows, name) if grouped else rows.codes[name]).cpu().numpy()
        if len(rows) and not 0 <= codes[line].min() <= codes[line].max() < cells:
            msg = f"column {name!r} was given a cell beyond its {cells}"
            raise DataError(msg)
    return codes


@lru_cache(maxsize=32)
def layout_of(leaf: FeatureMap) -> Layout:
    """Say which codes make up the cells of a leaf of `counted_marginals`."""
    outer: list[tuple[str, int, int]] = []  # label, classes, stride of one class
    while not isinstance(leaf, Marginals):
        if isinstance(leaf, ByLabel):
            outer.append((leaf.label, leaf.classes, leaf.inner.dim))
        leaf = leaf.inner  # type: ignore[attr-defined]  # `counted_marginals` saw to it
    cells = {(name, True): leaf.counted[name] for name in sorted(leaf.reads[0])}
    cells |= {(label, False): classes for label, classes, _ in outer}
    line = {read: number for number, read in enumerate(cells)}
    width = max(map(len, leaf.sets)) + len(outer)
    lines = np.zeros((len(leaf.sets), width), dtype=np.int64)
    strides = np.zeros((len(leaf.sets), width), dtype=np.int64)
    for number, columns in enumerate(leaf.sets):
        sizes = [leaf.counted[name] for name in columns]
        steps = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
        used = [*((name, True) for name in columns), *((label, False) for label, _, _ in outer)]
        lines[number, : len(used)] = [line[read] for read in used]
        strides[number, : len(used)] = [*steps, *(step for _, _, step in outer)]
    widths = np.array([len(columns) + len(outer) for columns in leaf.sets], dtype=np.int64)
    starts = np.array(leaf.offsets, dtype=np.int64)
    return Layout(tuple(cells), tuple(cells.values()), lines, strides, widths, starts)


@compiled
def _count(
    codes: np.ndarray,
    lines: np.ndarray,
    strides: np.ndarray,
    widths: np.ndarray,
    starts: np.ndarray,
    tile: int,
    counts: np.ndarray,
) -> None:
    rows = codes.shape[1]
    for first in range(0, rows, tile):
        last = min(rows, first + tile)
        for s in range(len(starts)):
            start, a, by_a = starts[s], codes[lines[s, 0]], strides[s, 0]
            if widths[s] == 1:
                for i in range(first, last):
                    counts[start + a[i] * by_a] += 1
            elif widths[s] == 2:
                b, by_b = codes[lines[s, 1]], strides[s, 1]
                for i in range(first, last):
                    counts[start + a[i] * by_a + b[i] * by_b] += 1
            else:
                for i in range(first, last):
                    cell = start
                    for k in range(widths[s]):
                        cell += codes[lines[s, k], i] * strides[s, k]
                    counts[cell] += 1
