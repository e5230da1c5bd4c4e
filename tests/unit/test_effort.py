"""How much a fit follows its tables depends on the noise of the joint counts, which is public."""

import numpy as np
import pandas as pd
import pytest

import aquatint as aq
from aquatint.analyst.synthesize import mixture
from aquatint.analyst.synthesize.descent import MEMORY
from aquatint.analyst.synthesize.effort import (
    CAUTION,
    CLEAR,
    FEWEST_STEPS,
    MANY_CLASSES,
    MODERATE,
    MOST_STEPS,
    NOISE,
    SHORT,
    components_for,
    memory_for,
    steps_for,
)
from aquatint.analyst.synthesize.fit import Effort, fit
from aquatint.table_plan import MANY_COLUMNS


@pytest.mark.parametrize("noise", [0.0, 1e-9, NOISE[0]])
def test_with_little_noise_the_memory_is_short(noise):
    assert memory_for(noise) == pytest.approx(SHORT)


@pytest.mark.parametrize("noise", [NOISE[1], 0.1, 5.0])
def test_with_much_noise_the_memory_is_long(noise):
    assert memory_for(noise) == pytest.approx(MEMORY)


def test_in_between_the_memory_grows_with_the_noise():
    low, high = NOISE
    found = [memory_for(low * (high / low) ** (i / 10)) for i in range(11)]
    assert found == sorted(found)
    assert len(set(found)) == 11


@pytest.mark.parametrize(
    ("noise", "steps"),
    [
        (0.0, MOST_STEPS),
        (CLEAR, MOST_STEPS),
        ((CLEAR * NOISE[0]) ** 0.5, (MOST_STEPS + Effort.steps) // 2),
        (NOISE[0], Effort.steps),
        (NOISE[1], Effort.steps),
        (2 * NOISE[1], Effort.steps // 2),
        (4 * NOISE[1], Effort.steps // 4),
        (10.0, FEWEST_STEPS),
        (1e300, FEWEST_STEPS),
    ],
)
def test_the_stronger_the_noise_the_fewer_the_steps(noise, steps):
    assert steps_for(noise) == steps


def efforts(monkeypatch, epsilon, rows, columns=2):
    """Give the effort that a release of so many made-up rows is fitted with by default."""
    names = [*(f"c{i}" for i in range(columns)), "y"]
    schema = aq.Schema.from_dict(
        {
            "name": "x",
            "label": "y",
            "privacy": {"protects": "add or remove one row"},
            "columns": {name: {"kind": "boolean"} for name in names},
        }
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, len(names))) < 0.5, columns=names)
    release = aq.sketch(frame, schema, epsilon=epsilon, delta=1e-6, simulate=0, progress=False)
    seen = []

    def spy(terms, atoms, shares, effort, *rest):
        seen.append(effort)
        return fit(terms, atoms, shares, Effort(components=2, steps=1, fits=1), *rest)

    monkeypatch.setattr(mixture, "fit", spy)
    mixture.fit_mixture(release, progress=False)
    return seen[0], release


def test_a_release_is_fitted_by_its_own_noise(monkeypatch):
    precise, _ = efforts(monkeypatch, 8.0, 20_000)
    vague, _ = efforts(monkeypatch, 0.1, 300)
    assert precise.steps > Effort.steps
    assert precise.memory == pytest.approx(SHORT)
    assert (vague.steps, vague.memory) == (FEWEST_STEPS, pytest.approx(MEMORY))


def test_in_a_wide_table_steps_go_by_the_noise_of_the_columns_by_label(monkeypatch):
    """They have two thirds of the joint counts' share, and far less noise than 1,225 pairs."""
    effort, release = efforts(monkeypatch, 1.0, 5_000, columns=MANY_COLUMNS)
    noise = {b.name: b.deviations[0] / release.count for b in release.blocks}
    told = CAUTION * noise["columns by label"]
    assert steps_for(noise["pairs by label"]) < effort.steps == steps_for(told)
    assert effort.memory == memory_for(told)


@pytest.mark.parametrize(
    ("noise", "components"),
    [(0.0, 200), (0.99 * MODERATE, 200), (MODERATE, 100), (1.0, 100)],
)
def test_with_little_noise_each_class_has_twice_as_many_components(noise, components):
    assert components_for(noise, 2) == components


def test_so_has_each_of_many_classes():
    assert components_for(1.0, MANY_CLASSES) == 100
    assert components_for(1.0, MANY_CLASSES + 1) == 200
