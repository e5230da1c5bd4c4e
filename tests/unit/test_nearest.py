"""Distances to the nearest training row: copies are found, and fresh rows are not accused."""

import numpy as np
import pandas as pd
import pytest

from aquatint.evaluate.nearest import nearest
from aquatint.evaluate.tables import Grid, encode
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "add or remove one row"},
        "columns": {
            "a": {"kind": "numeric", "bounds": [0, 1], "missing": True},
            "b": {"kind": "numeric", "bounds": [0, 1]},
            "c": {"kind": "categorical", "categories": ["x", "y"]},
        },
    }
)
GRID = Grid(SCHEMA)


def rows(number, seed):
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(number) < 0.1, np.nan, rng.random(number))
    table = pd.DataFrame({"a": a, "b": rng.random(number), "c": rng.choice(["x", "y"], number)})
    return encode(table, GRID)


@pytest.mark.parametrize("repeated", [0.0, 0.2, 1.0])
def test_repeated_rows_are_found(repeated):
    """Of 1,000 rows, the share nearer to training rows is half and half of what is repeated."""
    train, unseen, fresh = rows(1_000, 1), rows(1_000, 2), rows(1_000, 3)
    copied = round(1_000 * repeated)
    mixed = {
        k: np.concatenate([train.codes[k][:copied], v[copied:]]) for k, v in fresh.codes.items()
    }
    values = {
        k: np.concatenate([train.values[k][:copied], v[copied:]]) for k, v in fresh.values.items()
    }
    synthetic = type(fresh)(mixed, values, 1_000, 0.0)
    found = nearest(train, unseen, synthetic, GRID)
    assert found.copies == pytest.approx(repeated, abs=1e-9)
    assert found.copies_unseen == 0
    assert found.closer == pytest.approx(0.5 + repeated / 2, abs=3 * found.chance)


def test_distances_count_a_category_as_one_and_a_number_by_its_place():
    one = encode(pd.DataFrame({"a": [0.25], "b": [0.5], "c": ["x"]}), GRID)
    other = encode(pd.DataFrame({"a": [0.75], "b": [0.5], "c": ["y"]}), GRID)
    found = nearest(one, other, other, GRID)
    assert found.synthetic[0] == pytest.approx(np.hypot(0.5, 1.0), abs=1e-5)
    assert found.closer == 0
