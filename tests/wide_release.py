"""A made-up release of a very wide table, built from its numbers: no row is sketched for it."""

import numpy as np

import aquatint as aq
from aquatint.features import Count, onehot, pairs
from aquatint.features.grid import grid_of
from aquatint.release.model import Block, Release, Statement

NOISE = 30.0


def wide_schema(columns, bins=20):
    """Declare numbers and categories by turns."""
    named = {}
    for i in range(columns):
        if i % 2:
            named[f"number {i}"] = {"kind": "numeric", "bounds": [-4, 4], "bins": bins}
        else:
            kinds = [f"kind {k}" for k in range(3 + i % 8)]
            named[f"category {i}"] = {"kind": "categorical", "categories": kinds}
    privacy = {"protects": "add or remove one row"}
    return aq.Schema.from_dict({"name": "wide", "privacy": privacy, "columns": named})


def wide_release(columns=300, rows=5_000, noise=NOISE, seed=0, bins=20):
    """Count single columns and all pairs of random rows that depend on a few hidden numbers."""
    rng = np.random.default_rng(seed)
    schema = wide_schema(columns, bins)
    hidden = rng.normal(size=(rows, 6))
    hot = []
    for cells in schema.cells().values():
        value = hidden @ rng.normal(size=6) / 2.5 + 0.4 * rng.normal(size=rows)
        code = np.clip((value + 4) / 8 * cells, 0, cells - 1).astype(int)
        hot.append(np.eye(cells, dtype=np.float32)[code])
    return released(schema, np.concatenate(hot, axis=1), noise, rng)


def released(schema, hot, noise, rng):
    """Turn one-hot rows into a release of single columns and all pairs, with simulated noise."""
    cells = schema.cells()
    ends = np.cumsum([0, *cells.values()])
    place = {name: slice(a, b) for name, a, b in zip(cells, ends, ends[1:], strict=False)}
    joint = hot.T @ hot

    def block(name, feature_map, sums):
        steps = grid_of(feature_map).steps
        noisy = np.rint(np.asarray(sums) * steps + rng.normal(0, noise * steps, len(sums)))
        scales = (noise * steps,)
        return Block(name, feature_map, noisy.astype(np.int64), scales, "discrete gaussian")

    counted = pairs(cells)
    together = [joint[place[a], place[b]].ravel() for a, b in counted.sets]
    blocks = (
        block("count", Count(), [len(hot)]),
        block("columns", onehot(cells), np.diag(joint)),
        block("pairs", counted, np.concatenate(together)),
    )
    statement = Statement(1e4, 1e-6, simulated=True)
    return Release(schema, blocks, statement, None, "2026-11-18", {"aquatint": "test"})
