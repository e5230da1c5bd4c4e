"""How much a fit follows its tables depends on the noise of the joint counts, which is public."""

import numpy as np
import pandas as pd
import pytest

import aquatint as aq
from aquatint.analyst.synthesize import mixture
from aquatint.analyst.synthesize.descent import MEMORY
from aquatint.analyst.synthesize.fit import (
    CLEAR,
    FEWEST_STEPS,
    MODERATE,
    MOST_STEPS,
    NOISE,
    SHORT,
    Effort,
    components_for,
    fit,
    memory_for,
    steps_for,
)


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


def efforts(monkeypatch, epsilon, rows):
    """Give the effort that a release of so many made-up rows is fitted with by default."""
    schema = aq.Schema.from_dict(
        {
            "name": "x",
            "label": "y",
            "privacy": {"protects": "add or remove one row"},
            "columns": {name: {"kind": "boolean"} for name in "aby"},
        }
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, 3)) < 0.5, columns=list("aby"))
    release = aq.sketch(frame, schema, epsilon=epsilon, delta=1e-6, simulate=0, progress=False)
    seen = []

    def spy(terms, atoms, shares, effort, *rest):
        seen.append(effort)
        return fit(terms, atoms, shares, Effort(components=2, steps=1, fits=1), *rest)

    monkeypatch.setattr(mixture, "fit", spy)
    mixture.fit_mixture(release, progress=False)
    return seen


def test_a_release_is_fitted_by_its_own_noise(monkeypatch):
    (precise,) = efforts(monkeypatch, 8.0, 20_000)
    (vague,) = efforts(monkeypatch, 0.1, 300)
    assert precise.steps > Effort.steps
    assert precise.memory == pytest.approx(SHORT)
    assert (vague.steps, vague.memory) == (FEWEST_STEPS, pytest.approx(MEMORY))


@pytest.mark.parametrize(
    ("noise", "components"),
    [(0.0, 200), (0.99 * MODERATE, 200), (MODERATE, 100), (1.0, 100)],
)
def test_with_little_noise_each_class_has_twice_as_many_components(noise, components):
    assert components_for(noise) == components
