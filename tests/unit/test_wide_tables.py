"""A wide table whose classes differ in their extremes: the default has to carry that over."""

import numpy as np
import pandas as pd
import pytest

import aquatint as aq
from aquatint import table_plan
from aquatint.analyst.synthesize.fit import Effort

COLUMNS, ROWS, FAR = 60, 5000, 60.0


@pytest.fixture(scope="module")
def swings():
    """A fifth of the rows swing three times as far as the others, in every column."""
    rng = np.random.default_rng(1)
    loud = rng.random(ROWS) < 0.2
    size = np.where(loud, 45, 15)[:, None]
    values = np.clip(size * rng.normal(size=(ROWS, COLUMNS)), -200, 200)
    table = pd.DataFrame(values, columns=[f"t{i}" for i in range(COLUMNS)])
    table["loud"] = np.where(loud, "yes", "no")
    columns = {name: {"kind": "numeric", "bounds": [-200, 200]} for name in table.columns[:-1]}
    columns["loud"] = {"kind": "categorical", "categories": ["no", "yes"]}
    privacy = {"protects": "add or remove one row"}
    schema = {"name": "swings", "label": "loud", "privacy": privacy, "columns": columns}
    return table, aq.Schema.from_dict(schema)


def far(table):
    """Give the share of values that are far out, in quiet rows and in loud ones."""
    loud = (table["loud"] == "yes").to_numpy()
    out = np.abs(table.drop(columns="loud").to_numpy()) > FAR
    return out[~loud].mean(), out[loud].mean()


def drawn(swings):
    release = aq.sketch(*swings, epsilon=1, delta=1e-5, simulate=2, progress=False)
    effort = Effort(components=40, steps=200, fits=1)
    return aq.synthesize(release, effort=effort, progress=False).sample(ROWS, seed=3)


def test_extremes_stay_with_their_class(swings):
    quiet, loud = far(drawn(swings))
    assert loud > 5 * quiet


def test_coarse_pairs_alone_would_lose_them(swings, monkeypatch):
    monkeypatch.setattr(table_plan, "MANY_COLUMNS", COLUMNS + 2)
    quiet, loud = far(drawn(swings))
    assert loud < 2 * quiet
