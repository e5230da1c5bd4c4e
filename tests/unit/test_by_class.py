"""Components of one class each: what they hold, how they begin, and when there are any."""

import numpy as np
import pandas as pd
import pytest
import torch

import aquatint as aq
from aquatint.analyst.synthesize import mixture
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.effort import MANY_CLASSES, MOST_CLASSES
from aquatint.analyst.synthesize.fit import Effort, _held, fit
from aquatint.features import pairs
from aquatint.planning import Plan, PlannedBlock

ROUGH = Effort(components=12, steps=30, fits=2, by_class=True)
COLUMNS = {
    "a": {"kind": "categorical", "categories": ["p", "q", "r"]},
    "b": {"kind": "boolean"},
    "y": {"kind": "categorical", "categories": ["no", "yes", "often"]},
}
SCHEMA = aq.Schema.from_dict(
    {
        "name": "x",
        "label": "y",
        "privacy": {"protects": "replace one row"},
        "columns": COLUMNS,
    }
)


def rows(count=3000):
    rng = np.random.default_rng(0)
    label = rng.choice(["no", "yes", "often"], count, p=[0.7, 0.25, 0.05])
    first = np.where(rng.random(count) < 0.8, np.where(label == "no", "p", "q"), "r")
    return pd.DataFrame({"a": first, "b": rng.random(count) < 0.3, "y": label})


def released(schema=SCHEMA, plan=None):
    return aq.sketch(rows(), schema, epsilon=5, delta=1e-6, plan=plan, simulate=0, progress=False)


def fitted(release, effort=ROUGH):
    return mixture.fit_mixture(release, effort=effort, progress=False)


def of_label(model):
    return model.probabilities[:, model.atoms.slices["y"]]


@pytest.fixture(scope="module")
def release():
    return released()


def test_every_component_holds_one_class_and_each_class_as_many_of_them(release):
    held = of_label(fitted(release))
    np.testing.assert_allclose(held.max(1), 1, atol=1e-6)
    assert np.bincount(held.argmax(1)).tolist() == [8, 8, 8]


def test_the_classes_keep_their_shares_and_what_goes_with_them(release):
    model = fitted(release, Effort(components=12, steps=150, fits=2, by_class=True))
    np.testing.assert_allclose(model.histogram("y"), [0.7, 0.25, 0.05], atol=0.02)
    table = model.sample(3000, seed=1)
    assert (table["a"][table["y"] == "no"] == "p").mean() == pytest.approx(0.8, abs=0.05)
    assert (table["a"][table["y"] == "yes"] == "q").mean() == pytest.approx(0.8, abs=0.05)
    assert (model.sample(200, where="y = 'often'", seed=2)["y"] == "often").all()


def test_the_default_is_by_class_and_an_effort_of_ones_own_is_not(release, monkeypatch):
    seen = []

    def spy(terms, atoms, shares, effort, seed, ordered, label, advance):
        seen.append(label)
        return fit(terms, atoms, shares, Effort(2, 1, 1), seed, ordered, label, advance)

    monkeypatch.setattr(mixture, "fit", spy)
    mixture.fit_mixture(release, progress=False)
    mixture.fit_mixture(release, effort=Effort(2, 1, 1), progress=False)
    assert seen == ["y", None]


def test_without_counts_by_class_no_component_is_bound_to_one():
    plain = SCHEMA.model_copy(update={"label": None})
    together = Plan(SCHEMA, (PlannedBlock("pairs", pairs(SCHEMA.cells()), 1.0),))
    assert of_label(fitted(released(plain))).max() < 0.999
    assert of_label(fitted(released(plan=together))).max() < 0.999


def test_members_of_a_family_begin_alike_but_for_their_class():
    sizes = {"a": 4, "y": 3, "b": 2}
    cells = {name: np.arange(size) for name, size in sizes.items()}
    atoms = Atoms(cells, {name: np.ones(size) for name, size in sizes.items()})
    shares = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.2, 0.6, 0.4])
    weights, found = fit((), atoms, shares, Effort(6, 0, 2), 0, ("a",), "y")
    families = found.reshape(2, 3, 2, 9).swapaxes(1, 2)
    for name in "ab":
        of_column = families[..., atoms.slices[name]]
        assert (of_column == of_column[:, :, :1]).all()
        assert not np.allclose(of_column[:, 0], of_column[:, 1])
    held = families[..., atoms.slices["y"]]
    np.testing.assert_allclose(held, np.broadcast_to(np.eye(3), held.shape), atol=1e-20)
    wanted = np.repeat([0.125, 0.075, 0.05], 2)
    np.testing.assert_allclose(weights.reshape(2, 6), [wanted, wanted], rtol=1e-6)


def test_a_label_of_more_classes_than_components_has_one_for_each():
    atoms = Atoms({"y": np.arange(5)}, {"y": np.ones(5)})
    weights, found = fit((), atoms, np.full(5, 0.2), Effort(3, 0, 1), 0, (), "y")
    np.testing.assert_allclose(found, np.eye(5), atol=1e-20)
    np.testing.assert_allclose(weights, 0.2, rtol=1e-6)


def many(classes, rows=4000):
    """Give a release of a label with so many classes, each of which has a value of its own."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, rows)
    columns = {"a": {"kind": "integer", "bounds": [0, classes - 1]}, "b": {"kind": "boolean"}}
    columns["y"] = {"kind": "categorical", "categories": [f"k{i}" for i in range(classes)]}
    protects = {"protects": "replace one row"}
    schema = aq.Schema.from_dict(
        {"name": "x", "label": "y", "privacy": protects, "columns": columns}
    )
    frame = pd.DataFrame({"a": label, "b": label % 2 == 0, "y": [f"k{i}" for i in label]})
    return aq.sketch(frame, schema, epsilon=8, delta=1e-6, simulate=0, progress=False)


def test_many_classes_are_told_apart_by_the_columns_counted_with_the_label_alone():
    release = many(MANY_CLASSES + 4)
    assert [b.name for b in release.blocks] == ["columns", "columns by label", "pairs"]
    model = mixture.fit_mixture(release, progress=False)
    held = of_label(model)
    np.testing.assert_allclose(held.max(1), 1, atol=1e-6)
    assert len(held) == 8 * (200 // (MANY_CLASSES + 4)) * (MANY_CLASSES + 4)
    drawn = model.sample(2000, seed=0)
    assert np.mean("k" + drawn["a"].astype(str) == drawn["y"]) > 0.9


def test_more_classes_than_there_could_be_families_for_share_components():
    held = of_label(mixture.fit_mixture(many(MOST_CLASSES + 1), progress=False))
    assert len(held) == 800
    assert held.max(1).min() < 0.99, "some component has rows of several classes"


def test_a_rare_class_goes_more_slowly_from_its_family():
    share = torch.log(torch.tensor([[0.8], [0.15], [0.05]]))
    expected = [1.0, (3 * 0.15) ** 0.5, (3 * 0.05) ** 0.5]
    assert _held(share).flatten().tolist() == pytest.approx(expected)
