"""The labels of drawn rows: the law is Bayes' rule, counts come out as it has them, chances stay.

Seeds are fixed. The law of a model is computed by enumerating every row. Counts that vary by chance
are given six standard deviations, which fail an honest run in 1e-8.
"""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from aquatint.analyst.synthesize import labels, mixture
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.labels import balanced, law_of_label
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.schema import Schema

pytestmark = pytest.mark.usefixtures("one_thread")


def schema(label="y"):
    columns = {name: {"kind": "categorical", "categories": ["0", "1", "2"]} for name in "abc"}
    columns["y"] = {"kind": "categorical", "categories": ["no", "yes"]}
    told = {"name": "t", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    return Schema.from_dict(told | ({"label": label} if label else {}))


# --- counts -------------------------------------------------------------------------------------


def table(count=6000, columns=5, seed=0, classes=2):
    """Draw columns that depend on each other, and a law of the label that depends on all."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=count)
    codes = {
        f"c{i}": np.digitize(common + rng.normal(size=count), [-1, 0, 1]) for i in range(columns)
    }
    slopes = rng.normal(size=(columns, classes)) / columns**0.5
    logits = np.stack(list(codes.values()), 1) @ slopes + rng.normal(size=(count, classes))
    law = np.exp(2 * logits)
    return law / law.sum(1, keepdims=True), codes


def off(law, codes, found, size=2):
    """Give how far the counts by label are from the law: in the deviations of independent draws."""
    wrong = np.eye(law.shape[1])[found] - law
    ratios = []
    for names in combinations(codes, size):
        cell = np.ravel_multi_index([codes[name] for name in names], [4] * size)
        for label in range(law.shape[1]):
            spread = np.bincount(cell, law[:, label] * (1 - law[:, label]))
            ratio = np.bincount(cell, wrong[:, label]) / np.sqrt(np.maximum(spread, 1))
            ratios += list(ratio[spread > 5])
    return np.sqrt(np.mean(np.square(ratios)))


def independent(law, rng):
    return (rng.random(len(law))[:, None] >= np.cumsum(law, 1)).sum(1)


@pytest.mark.parametrize("classes", [2, 4])
def test_counts_by_label_are_those_of_the_law(classes):
    """Single columns are off by less than a third of chance, pairs by less than half of it."""
    law, codes = table(classes=classes)
    rng = np.random.default_rng(1)
    found = balanced(law, codes, rng)
    assert off(law, codes, found, 1) < 0.33
    assert off(law, codes, found, 2) < 0.5
    assert off(law, codes, found, 3) < 0.8
    assert off(law, codes, independent(law, rng), 2) > 0.8


def test_rows_with_like_chances_get_their_share():
    """The label depends on something that no column shows."""
    law, _ = table(columns=1)
    rng, nothing = np.random.default_rng(0), {"nothing": np.zeros(len(law), int)}
    group = np.argsort(np.argsort(law[:, 1])) * 4 // len(law)
    assert off(law, {"group": group}, balanced(law, nothing, rng), 1) < 0.33


def test_the_chances_of_single_rows_stay():
    law, codes = table(count=30, columns=2, classes=3)
    rng, times = np.random.default_rng(0), 3000
    found = sum(np.eye(3)[balanced(law, codes, rng)] for _ in range(times)) / times
    assert np.abs(found - law).max() < 6 * np.sqrt(0.25 / times)


def test_no_label_without_a_chance():
    law, codes = table(classes=3)
    never = np.random.default_rng(0).integers(0, 3, len(law))
    law[np.arange(len(law)), never] = 0
    law /= law.sum(1, keepdims=True)
    assert not (balanced(law, codes, np.random.default_rng(1)) == never).any()


def test_turns_of_many_rows_and_few_sets(monkeypatch):
    """Rows that are labelled at once, and pairs without room: single columns still come out."""
    monkeypatch.setattr(labels, "MOST_TURNS", 500)
    monkeypatch.setattr(labels, "MOST_SETS", 3)
    law, codes = table()
    assert off(law, codes, balanced(law, codes, np.random.default_rng(0)), 1) < 0.33
    monkeypatch.setattr(labels, "MOST_SETS", 300)
    monkeypatch.setattr(labels, "MOST_CELLS", 50)
    sets = labels._sets(list(codes.values()), 2, np.random.default_rng(0))
    assert len(sets.first) == 5 + 1
    assert sets.cells == 5 * 4 + 16


# --- the law of a mixture -----------------------------------------------------------------------

ATOMS = Atoms(
    {"a": np.array([0, 1, 1]), "b": np.arange(3), "c": np.zeros(3, int), "y": np.array([1, 0])},
    {"a": np.array([1, 0.5, 0.5]), "b": np.ones(3), "c": np.full(3, 1 / 3), "y": np.ones(2)},
)
MODEL = Mixture(
    schema(),
    ATOMS,
    np.array([0.4, 0.6]),
    np.array([[0.2, 0.8, 0.5, 0.3, 0.2, 1, 0.7, 0.3], [0.6, 0.4, 0.1, 0.1, 0.8, 1, 0.2, 0.8]]),
)
EVERY = np.array(list(product(range(2), range(3), range(1), range(2))))
"""Every row, as atoms of a, b, c and y."""


def law_of_rows():
    """Give the probability of every row, by the definition."""
    tables = np.split(MODEL.probabilities, [2, 5, 6], axis=1)
    parts = [part[:, atom] for part, atom in zip(tables, EVERY.T, strict=True)]
    return MODEL.weights @ np.prod(parts, axis=0)


def test_the_law_of_the_label_is_bayes_rule():
    own = law_of_rows().reshape(-1, 2)
    seen = dict(zip("abcy", EVERY[::2].T, strict=True))
    tables = {n: MODEL.probabilities[:, place] for n, place in ATOMS.slices.items()}
    found = law_of_label(MODEL.weights, tables, seen, "y")
    assert np.allclose(found, own / own.sum(1, keepdims=True), atol=1e-6)
    tables["y"] = np.stack([np.zeros(2), [1e-300, 1e-300]], 1)
    seen["y"] = np.ones(len(own), int)
    assert (law_of_label(MODEL.weights, tables, seen, "y") == [0, 1]).all()


@pytest.mark.parametrize(
    "where",
    [None, {"b": "2"}, {"y": "yes"}, {"a": ["1"], "b": ["0", "2"]}, {"y": ["no", "yes"]}],
)
def test_rows_are_drawn_by_the_models_own_law(where):
    count = 30_000
    drawn = MODEL.sample(count, where=where, seed=3)
    wanted = law_of_rows()
    if where and "b" in where:
        wanted = wanted * np.isin(EVERY[:, 1].astype(str), where["b"])
    if where and "a" in where:
        wanted = wanted * (EVERY[:, 0] == 1)
    if where and where.get("y") == "yes":
        wanted = wanted * (EVERY[:, 3] == 0)  # the first atom is the second category
    atom = [ATOMS.of_cell[n][drawn[n].astype(int)] for n in "abc"] + [drawn["y"] == "no"]
    found = np.bincount(np.ravel_multi_index([*map(np.asarray, atom)], (2, 3, 1, 2)), minlength=12)
    wanted = count * wanted / wanted.sum()
    assert not found[wanted == 0].any()
    assert (np.abs(found - wanted) <= 8 + 6 * np.sqrt(wanted)).all()


def test_seeds_few_rows_and_tables_without_a_label(monkeypatch):
    pd.testing.assert_frame_equal(MODEL.sample(500, seed=4), MODEL.sample(500, seed=4))
    assert [len(MODEL.sample(n, where=w, seed=0)) for n in (0, 1) for w in (None, {"y": "no"})] == [
        0,
        0,
        1,
        1,
    ]

    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(mixture, "balanced", refused)
    assert len(replace(MODEL, schema=schema(None)).sample(100, seed=0)) == 100
    monkeypatch.setattr(mixture, "MOST_VALUES", 100)
    assert len(MODEL.sample(100, seed=0)) == 100
