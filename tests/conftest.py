"""What the tests share: one example of every feature map, random rows, and a search for violations.

Test modules cannot import each other, so all of it is handed out as fixtures. A test that asks for
`example` runs once for every map of `EXAMPLES`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan, sqrt
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

if not torch.cuda.is_available():  # before anything imports Triton: its kernels run as NumPy code
    os.environ.setdefault("TRITON_INTERPRET", "1")

from aquatint.analyst.synthesize import threads
from aquatint.curator.sums import integer_rows
from aquatint.features import (
    Count,
    FeatureMap,
    Rows,
    by_label,
    cosines,
    fourier,
    hermite,
    hermite_combined,
    hermite_product,
    heterogeneous,
    locations,
    marginals,
    onehot,
    pairs,
    race,
    scale,
    second_moment,
    smooth,
    triples,
)
from aquatint.features.algebra import ByLabel
from aquatint.features.grid import grid_of, is_counting
from aquatint.schema import Schema

TINY = 2.0**-20
SCHEMA = {
    "name": "people",
    "label": "sex",
    "privacy": {"protects": "add or remove one row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [17, 90], "bins": 5, "missing": True},
        "height": {"kind": "numeric", "bounds": [0.5, 2.5], "bins": 4, "missing": True},
        "weight": {"kind": "numeric", "bounds": [0, 200], "bins": [0, 50, 75, 100, 200]},
        "sex": {"kind": "categorical", "categories": ["F", "M", "X"]},
        "job": {"kind": "categorical", "categories": ["a", "b"], "other": True, "missing": True},
        "grade": {"kind": "ordered", "categories": ["low", "middle", "high"]},
        "ill": {"kind": "boolean", "missing": True},
    },
}
CELLS = Schema.from_dict(SCHEMA).cells()
ORDERED = ("age", "height", "weight", "grade", "ill")
NUMERIC = ["age", "height", "weight"]


def _some(*names: str) -> dict[str, int]:
    return {name: CELLS[name] for name in names}


def _examples() -> dict[str, FeatureMap]:
    gaussian = fourier(NUMERIC, 10, length_scale=(0.1, 0.3, 0.5), seed=1)
    laplace = fourier(["age", "grade"], 6, kernel="laplace", length_scale=0.2, seed=2)
    sum_kernel = hermite(NUMERIC, 4, length_scale=0.15)
    product_kernel = hermite_product(["age", "weight"], 3, length_scale=0.3)
    hashes = race(NUMERIC, 7, 5, width=0.2, seed=3)
    series = cosines(NUMERIC, 5, pair_order=3, pair_share=0.7)
    numbers = [(0.2, 0.5, 0.9), (1.0, 0.0, 0.3), (0.4, 0.4, -0.2)]
    kernels = locations(NUMERIC, numbers, length_scale=(0.1, 0.3, 0.5))
    mixed_points = [(0.25, 0.5, 1, 3), (0.5, 1.0, 0, 0), (0.0, 0.0, 2, 1), (0.9, 0.5, 1, 1)]
    everything = locations(
        ["age", "grade"],
        mixed_points,
        cells=_some("sex", "job"),
        length_scale=0.7,
        kernel="laplace",
    )
    bell = smooth(["height", "weight"], [(1.5, -0.25), (0.5, 3.0)], width=0.4)
    cats = onehot(_some("sex", "job", "ill"))
    mixed = marginals(CELLS, [("age",), ("job", "ill"), ("sex", "grade", "age"), ("age", "job")])
    plain: dict[str, FeatureMap] = {
        "count": Count(),
        "onehot": onehot(CELLS),
        "pairs": pairs(CELLS),
        "chosen pairs": pairs(CELLS, [("age", "sex"), ("job", "ill")]),
        "triples": triples(CELLS, [("age", "sex", "job"), ("grade", "ill", "sex")]),
        "marginals": marginals(CELLS, [("age",), ("job", "ill"), ("sex", "grade", "age")]),
        "merged cells": mixed.merge({"age": (0, 0, 1, 1, 1, 2), "job": (1, 0, 0, 1)}),
        "all cells merged": mixed.merge({"age": (0,) * 6, "job": (0,) * 4}),
        "fourier gaussian": gaussian,
        "fourier laplace": laplace,
        "fourier narrow": fourier(["height"], 2, length_scale=0.01, seed=4),
        "hermite": sum_kernel,
        "hermite of order 0": hermite(["age"], 0),
        "hermite wide": hermite(["height", "grade"], 12, length_scale=0.02, span=8.0),
        "hermite product": product_kernel,
        "hermite combined": hermite_combined(sum_kernel, product_kernel, 0.7),
        "cosines": series,
        "cosines of columns": cosines(["age"], 4, pair_order=0),
        "cosines of pairs": cosines(["grade", "ill"], 0, pair_order=2),
        "cosines of chosen pairs": cosines(ORDERED, 3, pairs=[("ill", "age"), ("age", "weight")]),
        "fourier mixed": fourier(NUMERIC, 16, kernel="mixed", seed=5),
        "locations": kernels,
        "locations of all columns": everything,
        "one location": locations(["weight"], [(0.5,)], length_scale=0.05),
        "smooth": bell,
        "second moment of locations": second_moment(kernels),
        "second moment of all columns": second_moment(everything),
        "second moment of one location": second_moment(locations(["weight"], [(0.5,)])),
        "second moment of smooth": second_moment(bell),
        "second moment of fourier": second_moment(gaussian),
        "scaled locations": scale(kernels, 3.0),
        "race": hashes,
        "counting times counting": cats * hashes,
        "dense times dense": laplace * hermite(["height"], 3),
        "counting times dense": cats * gaussian,
        "counting times cosines": onehot(_some("sex", "job")) * cosines(["height"], 3),
        "sum": gaussian + hashes + Count(),
        "sum with cosines": scale(series, 1.5) + gaussian,
        "scaled dense": scale(gaussian, 0.3),
        "heavy dense": scale(sum_kernel, 37.5),
        "scaled counting": scale(cats, 1 / sqrt(3)),
        "scaled race": 2.5 * hashes,
        "heterogeneous": heterogeneous(gaussian, cats),
    }
    labelled = {
        f"by label, {name}": by_label(inner, "sex", CELLS["sex"]) for name, inner in plain.items()
    }
    return plain | labelled


EXAMPLES = _examples()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())


def random_rows(count: int, seed: int = 0, missing: float = 0.2) -> Rows:
    """Encoded rows that the schema admits, on the encoder's grid."""
    rng = np.random.default_rng(seed)
    codes = {
        name: torch.from_numpy(rng.integers(0, cells, count).astype(np.int32))
        for name, cells in CELLS.items()
    }
    values = {}
    for name in ORDERED:
        value = rng.integers(0, 2**20 + 1, count) * TINY
        value[rng.random(count) < missing] = nan
        values[name] = torch.from_numpy(value.astype(np.float32))
    return Rows(codes, values, count)


def raw_table(count: int, seed: int = 0) -> pa.Table:
    """Rows as they come from a file, some outside the bounds or the categories, some missing."""
    rng = np.random.default_rng(seed)

    def holes(values: list, every: float = 0.15) -> list:
        return [
            None if gone else v for v, gone in zip(values, rng.random(count) < every, strict=True)
        ]

    return pa.table(
        {
            "age": pa.array(holes(rng.integers(10, 100, count).tolist()), pa.int64()),
            "height": pa.array(holes(rng.normal(1.7, 0.5, count).round(4).tolist()), pa.float64()),
            "weight": pa.array((rng.random(count) * 220 - 10).round(3)),
            "sex": pa.array(rng.choice(["F", "M", "X"], count).tolist()),
            "job": pa.array(holes(rng.choice(["a", "b", "c", "d e"], count).tolist())),
            "grade": pa.array(rng.choice(["low", "middle", "high"], count).tolist()),
            "ill": pa.array(holes((rng.random(count) < 0.3).tolist()), pa.bool_()),
        }
    )


def restricted(rows: Rows, feature_map: FeatureMap) -> Rows:
    """Rows that hold what the map says it reads, and nothing else."""
    codes, values = feature_map.reads
    return Rows({n: rows.codes[n] for n in codes}, {n: rows.values[n] for n in values}, len(rows))


def integers_of(leaf: FeatureMap, rows: Rows) -> Tensor:
    """The very integers that are summed, one row each, in float64 (exact below 2**53)."""
    out = torch.zeros(len(rows), leaf.dim, dtype=torch.float64)
    if is_counting(leaf):
        value = torch.tensor(float(grid_of(leaf).bound.high), dtype=torch.float64)
        cells = leaf.cells(rows).long()
        return out.scatter_add_(1, cells, value.expand(cells.shape))
    done = 0
    for part, whole in integer_rows(leaf, rows):
        target = out[done : done + len(part)]
        if isinstance(leaf, ByLabel):
            spread = target.view(len(part), leaf.classes, leaf.inner.dim)
            spread[torch.arange(len(part)), part.codes[leaf.label].long()] = whole
        else:
            target.copy_(whole)
        done += len(part)
    return out


@dataclass(frozen=True)
class Extremes:
    """The largest norms and distances that a search has found, and the rows that attain them."""

    l2_squared: float
    l1: float
    apart_l2_squared: float
    apart_l1: float
    longest: Rows
    farthest: tuple[Rows, Rows]


Vectors = Callable[[Rows], Tensor]


def search(
    vectors: Vectors,
    reads: tuple[frozenset[str], frozenset[str]],
    cells: Mapping[str, int] = CELLS,
    *,
    restarts: int = 16,
    sweeps: int = 2,
    seed: int = 0,
) -> Extremes:
    """Look for the longest row and the farthest pair: random restarts, then coordinate ascent.

    Every column in turn is set to each of its candidates (all codes; for values the ends, next to
    the ends, the middle, missing, and random places), and each restart keeps what is best for it.
    """
    start = _restarts(reads, cells, restarts, seed)
    rng = np.random.default_rng(seed + 1)

    def longest(power: int) -> tuple[float, Rows]:
        def goal(rows: Rows) -> Tensor:
            return _norm(vectors(rows), power)

        return _ascend(goal, start, reads, cells, sweeps, rng)

    def farthest(power: int) -> tuple[float, tuple[Rows, Rows]]:
        left, right, best = (
            start,
            start.take(torch.randperm(len(start), generator=_dice(seed))),
            0.0,
        )
        for _ in range(sweeps):
            for side in (0, 1):
                fixed = vectors(right if side == 0 else left).clone()

                def goal(rows: Rows, fixed: Tensor = fixed) -> Tensor:
                    return _norm(vectors(rows) - fixed, power)

                moved = left if side == 0 else right
                best, _, moved = _climb(goal, moved, reads, cells, 1, rng)
                left, right = (moved, right) if side == 0 else (left, moved)
        place = int(_norm(vectors(left).clone() - vectors(right), power).argmax())
        return best, (left.slice(place, place + 1), right.slice(place, place + 1))

    (l2, row), (l1, _) = longest(2), longest(1)
    (apart_l2, pair), (apart_l1, _) = farthest(2), farthest(1)
    return Extremes(l2, l1, apart_l2, apart_l1, row, pair)


def _restarts(
    reads: tuple[frozenset[str], frozenset[str]], cells: Mapping[str, int], count: int, seed: int
) -> Rows:
    rng = np.random.default_rng(seed)
    codes, values = {}, {}
    for name in sorted(reads[0]):
        code = rng.integers(0, cells[name], count)
        code[0], code[1] = 0, cells[name] - 1
        codes[name] = torch.from_numpy(code.astype(np.int32))
    for name in sorted(reads[1]):
        value = rng.integers(0, 2**20 + 1, count) * TINY
        value[:6] = [0, 1, TINY, 1 - TINY, nan, 0.5]
        values[name] = torch.from_numpy(value.astype(np.float32))
    return Rows(codes, values, count)


def _ascend(
    goal: Callable[[Rows], Tensor],
    start: Rows,
    reads: tuple[frozenset[str], frozenset[str]],
    cells: Mapping[str, int],
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[float, Rows]:
    best, place, rows = _climb(goal, start, reads, cells, sweeps, rng)
    return best, rows.slice(place, place + 1)


def _climb(
    goal: Callable[[Rows], Tensor],
    rows: Rows,
    reads: tuple[frozenset[str], frozenset[str]],
    cells: Mapping[str, int],
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[float, int, Rows]:
    best = goal(rows)
    for _ in range(sweeps):
        for trial in _moves(rows, reads, cells, rng):
            reached = goal(trial)
            better = reached > best
            if better.any():
                best = torch.where(better, reached, best)
                rows = _choose(better, trial, rows)
    return float(best.max()), int(best.argmax()), rows


def _moves(
    rows: Rows,
    reads: tuple[frozenset[str], frozenset[str]],
    cells: Mapping[str, int],
    rng: np.random.Generator,
) -> Iterator[Rows]:
    for name in sorted(reads[0]):
        for code in range(cells[name]):
            column = torch.full((len(rows),), code, dtype=torch.int32)
            yield Rows({**rows.codes, name: column}, rows.values, len(rows))
    for name in sorted(reads[1]):
        places = [0, 1, TINY, 1 - TINY, 0.5, nan, *(rng.integers(0, 2**20, 4) * TINY)]
        for value in places:
            column = torch.full((len(rows),), float(value))
            yield Rows(rows.codes, {**rows.values, name: column}, len(rows))


def _choose(better: Tensor, new: Rows, old: Rows) -> Rows:
    return Rows(
        {n: torch.where(better, new.codes[n], old.codes[n]) for n in old.codes},
        {n: torch.where(better, new.values[n], old.values[n]) for n in old.values},
        len(old),
    )


def _norm(vectors: Tensor, power: int) -> Tensor:
    sizes = vectors.double().abs().nan_to_num(nan=inf)
    return sizes.square().sum(dim=1) if power == 2 else sizes.sum(dim=1)


def _dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def violations(
    feature_map: FeatureMap, cells: Mapping[str, int] = CELLS, slack: float = 1e-6
) -> list[str]:
    """Say which declared bounds of a map the search can break; slack is for rounding in float32."""
    found = search(feature_map, feature_map.reads, cells)
    bound = feature_map.bound
    checks = [
        ("L2 norm", sqrt(found.l2_squared), sqrt(bound.l2_squared)),
        ("L1 norm", found.l1, bound.l1),
        ("L2 distance", sqrt(found.apart_l2_squared), sqrt(bound.replace_l2_squared)),
        ("L1 distance", found.apart_l1, bound.replace_l1),
    ]
    return [
        f"{name} {reached:.6g} is above the declared {float(limit):.6g}"
        for name, reached, limit in checks
        if reached > float(limit) * (1 + slack)
    ]


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The functions above, for modules that cannot import them."""
    return SimpleNamespace(
        examples=EXAMPLES,
        cells=CELLS,
        random_rows=random_rows,
        raw_table=raw_table,
        restricted=restricted,
        integers_of=integers_of,
        search=search,
        violations=violations,
    )


@pytest.fixture
def schema_dict() -> dict:
    """Plain data of a schema with every sort of column a map can read."""
    return {**SCHEMA, "columns": {name: dict(c) for name, c in SCHEMA["columns"].items()}}


@pytest.fixture
def schema(schema_dict: dict) -> Schema:
    return Schema.from_dict(schema_dict)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: two workers share two cores."""
    with threads.one_thread():
        yield
