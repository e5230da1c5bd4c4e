"""The features of two-sample tests: values, sharp bounds, and the published bounds broken.

The counterexamples are explicit inputs: under them the sensitivities of the paper and its code
(Raj et al. 2019) are exceeded, and ours are not.
"""

from math import pi, sqrt

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import aquatint as aq
from aquatint.curator.sums import leaf_sum
from aquatint.errors import DataError, PlanError
from aquatint.features import Rows, fourier, locations, second_moment, smooth
from aquatint.features.decay import decay
from aquatint.features.grid import grid_of, sensitivity
from aquatint.public_training import _criterion, _Values
from aquatint.schema import Privacy

ADD, REPLACE = (Privacy(protects=p) for p in ("add or remove one row", "replace one row"))
STEPS = 2**20


def rows_of(codes=None, **values):
    places = {n: torch.tensor(np.atleast_1d(v), dtype=torch.float32) for n, v in values.items()}
    cells = {n: torch.tensor(np.atleast_1d(c), dtype=torch.int32) for n, c in (codes or {}).items()}
    return Rows(cells, places, len(next(iter((places | cells).values()))))


def moved(leaf, left, right):
    """How far replacing one row by another moves the integer sum, in units of the feature."""
    apart = leaf_sum(leaf, left) - leaf_sum(leaf, right)
    return float(apart.double().norm()) / grid_of(leaf).steps


def size(leaf, privacy):
    return sqrt(sensitivity(leaf, privacy)[0]) / grid_of(leaf).steps


def test_locations_are_the_centred_kernel():
    made = locations(["a", "b"], [(0.25, 0.5), (1.0, 0.0)], length_scale=(0.5, 0.25))
    found = made(rows_of(a=[0.25, 0.75], b=[0.5, 0.25])).numpy()
    far = np.exp(-(0.5**2) / (2 * 0.5**2) - 0.25**2 / (2 * 0.25**2))
    assert found[0, 0] == 0.5
    assert found[1, 0] == pytest.approx(far - 0.5, abs=1e-6)
    absolute = locations(["a"], [(0.25,)], length_scale=0.5, kernel="laplace")
    assert absolute(rows_of(a=[0.75]))[0, 0] == pytest.approx(np.exp(-1) - 0.5, abs=1e-6)


def test_cells_are_one_range_apart_and_a_missing_number_is_too():
    made = locations(["a"], [(0.5, 1)], cells={"c": 3}, length_scale=0.5)
    away = np.exp(-1 / (2 * 0.25))
    rows = rows_of({"c": [1, 0, 1, 2]}, a=[0.5, 0.5, np.nan, np.nan])
    assert (made(rows)[:, 0] + 0.5).tolist() == pytest.approx([1, away, away, away**2], abs=1e-6)


def test_smooth_features_are_the_bell_times_the_waves():
    made = smooth(["a", "b"], [(1.5, -0.25), (0.5, 2.0)], width=(0.3, 0.6))
    a, b = np.random.default_rng(0).integers(0, STEPS, (2, 50)) / STEPS
    bell = np.exp(-((a - 0.5) ** 2) / (2 * 0.09) - (b - 0.5) ** 2 / (2 * 0.36))
    angle = 2 * pi * np.stack([1.5 * a - 0.25 * b, 0.5 * a + 2 * b], 1)
    wanted = np.hstack([np.cos(angle), np.sin(angle)]) * bell[:, None] * sqrt(1 / 2)
    assert np.abs(made(rows_of(a=a, b=b)).numpy() - wanted).max() < 1e-6


def test_second_moments_rebuild_the_matrix():
    inner = fourier(["a"], 6, seed=1)
    made = second_moment(inner)
    rows = rows_of(a=np.random.default_rng(0).integers(0, STEPS, 400) / STEPS)
    features = inner(rows).double()
    again = made.matrix(made(rows).double().mean(0))
    assert (again - features.T @ features / 400).abs().max() < 1e-6


def test_the_bound_at_locations_is_attained():
    """Locations far apart in cells: kernel values are all but 0 and 1."""
    cells = {f"c{j}": 2 for j in range(5)}
    points = [tuple(float(j == k) for k in range(5)) for j in range(5)]
    made = locations([], points, cells=cells, length_scale=0.1)
    here = rows_of({name: [0] for name in cells})
    assert made(here).abs().sub(0.5).abs().max() < 1e-6
    assert float(made(here).double().norm()) == pytest.approx(sqrt(5) / 2, rel=1e-6)
    assert size(made, ADD) == pytest.approx(sqrt(5) / 2, rel=1e-5)
    moment = second_moment(made)
    assert float(moment(here).double().square().sum()) == pytest.approx(20 / 32 + 5 / 64, rel=1e-5)
    assert size(moment, ADD) == pytest.approx(sqrt(20 / 32 + 5 / 64), rel=1e-5)


def opposite():
    """Two rows whose waves point in opposite directions, where the bell is all but one."""
    made = smooth(["a"], [(8.0,), (24.0,), (40.0,)], width=1e3)
    return made, rows_of(a=0.5), rows_of(a=0.5 + 1 / 16)


def test_the_published_bound_of_smoothed_features_is_broken_and_ours_is_not():
    """E4: one record moves the mean by √(2J)/n in the paper's units; its code allows √J/n."""
    made, left, right = opposite()
    features = made.dim
    units = sqrt(features / 2)  # the paper has no factor √(2/J)
    found = moved(made, left, right) * units
    assert found > 1.4 * sqrt(features)  # the code's κ√J with κ = 1
    assert found == pytest.approx(sqrt(2 * features), rel=1e-5)
    assert found <= size(made, REPLACE) * units * (1 + 1e-6)


def test_the_published_bound_of_the_covariance_is_broken_and_ours_is_not():
    """E5: z = φ(x) − φ(y) of smoothed features: zz' moves by 2J where the code allows J."""
    made, left, right = opposite()
    units = sqrt(made.dim / 2)
    z = (made(left) - made(right)).double()[0] * units
    zero = torch.zeros_like(z)
    change = torch.outer(z, z) - torch.outer(zero, zero)  # x moves on to y's place
    assert float(change.norm()) == pytest.approx(2 * made.dim, rel=1e-5)
    assert float(change.norm()) > 1.9 * made.dim
    # What is released here is the second moment of each side's own rows.
    moment = second_moment(made)
    other = rows_of(a=0.5 + 1 / 32)  # a quarter turn: cosines become sines
    assert moved(moment, left, other) <= size(moment, REPLACE)
    assert size(moment, REPLACE) == pytest.approx(sqrt(2), rel=1e-5)


def test_the_published_sensitivity_of_the_statistic_is_broken():
    """E1, theorem 1: J = 1, n = 10⁴, γ = 10⁻³; one pair moves s/n by 286, claimed is 1.6."""
    count, gamma, kappa = 10_000, 1e-3, 2.0
    z = np.ones(count)
    moved_z = z.copy()
    moved_z[0] = -1.0
    before, after = (w.mean() ** 2 / (w.var(ddof=1) + gamma) for w in (z, moved_z))
    claimed = 4 * kappa**2 / (count * gamma) * (1 + kappa**2 / (count - 1))
    assert claimed == pytest.approx(1.6, abs=0.01)
    assert abs(before - after) > 280


def test_centring_halves_what_a_row_moves():
    """E3: k ≤ 1 gives ‖φ‖ ≤ √J; centred, √J/2."""
    made = locations(["a"], [(0.1,), (0.9,)], length_scale=0.1)
    assert size(made, ADD) == pytest.approx(sqrt(2) / 2, rel=1e-5)
    assert size(made, REPLACE) == pytest.approx(sqrt(2), rel=1e-5)
    assert moved(made, rows_of(a=0.1), rows_of(a=0.9)) > 0.99 * sqrt(2)


@settings(max_examples=200, deadline=None)
@given(
    features=st.lists(st.floats(-1, 1), min_size=1, max_size=8),
    other=st.lists(st.floats(-1, 1), min_size=8, max_size=8),
)
def test_the_bound_of_second_moments_holds_for_any_features(features, other):
    """The inequality itself: any φ with abs(φ_j) ≤ h and ‖φ‖ ≤ r, here h = 1/2, r² = J/4."""
    first = np.array(features) / 2
    second = np.array(other[: len(first)]) / 2
    count = len(first)

    def triangle(phi):
        places = np.triu_indices(count)
        return np.outer(phi, phi)[places] - (places[0] == places[1]) / 8

    points = [tuple(float(j == k) for k in range(count)) for j in range(count)]
    bound = second_moment(locations([], points, cells={f"c{j}": 2 for j in range(count)})).bound
    for phi in (first, second):
        assert np.square(triangle(phi)).sum() <= bound.l2_squared * (1 + 1e-12)
        assert np.abs(triangle(phi)).sum() <= bound.l1 * (1 + 1e-12)
    apart = np.square(triangle(first) - triangle(second)).sum()
    assert apart <= bound.replace_l2_squared * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 800))
def test_decay_is_the_exponential_and_never_above_one(t):
    found = float(decay(torch.tensor([t], dtype=torch.float64))[0])
    assert found == pytest.approx(np.exp(-t), abs=1e-11, rel=1e-11)
    assert 0 <= found <= 1


def test_mixed_frequencies_see_one_two_and_all_columns():
    turns = fourier([f"x{i}" for i in range(10)], 80, kernel="mixed", length_scale=0.1).frequencies
    seen = (turns != 0).sum(dim=0)
    assert (seen[:20] == 1).all()
    assert (seen[20:30] == 2).all()
    assert (seen[30:] == 10).all()
    assert (turns[:, :20] != 0).sum(dim=1).tolist() == [2] * 10  # no column is left out
    lengths = (2 * pi * 0.1 * turns).norm(dim=0)
    assert lengths.min() > 0.1
    assert sorted(lengths[:20].tolist())[0] == pytest.approx(sqrt(-2 * np.log(0.75)), rel=1e-2)
    alone = fourier(["x"], 8, kernel="mixed", length_scale=0.1).frequencies
    assert (alone != 0).all()


# --- recipes ------------------------------------------------------------------------------------


def schema_of(protects="add or remove one row"):
    return aq.Schema.from_dict(
        {
            "name": "things",
            "privacy": {"protects": protects},
            "columns": {
                "x": {"kind": "numeric", "bounds": [-5, 5], "missing": True},
                "y": {"kind": "integer", "bounds": [0, 9]},
                "kind": {"kind": "categorical", "categories": ["a", "b", "c"]},
            },
        }
    )


def table(count, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(count) < 0.05, np.nan, rng.normal(shift, 1, count))
    return pd.DataFrame(
        {"x": x, "y": rng.integers(0, 10, count), "kind": rng.choice(["a", "b", "c"], count)}
    )


@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("recipe", [aq.me_test, aq.scf_test, aq.mixed_fourier])
def test_a_recipe_is_a_plan_that_can_be_shared_sketched_and_saved(recipe, protects, tmp_path):
    schema = schema_of(protects)
    plan = recipe(schema, seed=3)
    plan.save(tmp_path / "plan.json")
    assert aq.Plan.load(tmp_path / "plan.json") == plan
    assert plan == recipe(schema, seed=3) != recipe(schema, seed=4)
    made = aq.sketch(table(500, 0), schema, epsilon=1, delta=1e-6, plan=plan)
    made.save(tmp_path / "made.aqt")
    again = aq.load(tmp_path / "made.aqt")
    assert [b.map for b in again.blocks] == [b.map for b in made.blocks]


def test_the_mean_has_four_fifths_of_what_the_count_leaves():
    shares = {b.name: b.share for b in aq.me_test(schema_of()).blocks}
    assert shares == pytest.approx({"count": 0.1, "mean": 0.72, "second moment": 0.18})


def test_the_papers_locations_can_be_expressed():
    """N(0, I) locations and a kernel of squared width d, on bounds of [−5, 5]."""
    number = {"kind": "numeric", "bounds": [-5, 5]}
    columns = {f"x{i}": number for i in range(50)}
    privacy = {"protects": "replace one row"}
    schema = aq.Schema.from_dict({"name": "n", "privacy": privacy, "columns": columns})
    made = aq.me_test(schema, locations=200, spread=0.1).blocks[0].map
    assert made.length_scales[0] * 10 == pytest.approx(sqrt(50))
    drawn = 10 * (np.array(made.points) - 0.5)
    assert abs(drawn.mean()) < 0.05
    assert drawn.std() == pytest.approx(1, abs=0.05)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("recipe", [aq.me_test, aq.scf_test])
def test_public_tables_move_the_features_to_where_they_differ(recipe):
    schema = schema_of("replace one row")
    public = table(1500, 1), table(1500, 2, shift=0.7)
    drawn, fitted = recipe(schema), recipe(schema, public_train=public)
    assert fitted == recipe(schema, public_train=public)
    assert fitted.blocks[0].map != drawn.blocks[0].map

    def apart(plan):
        private = table(4000, 3), table(4000, 4, shift=0.7)
        noise = {"epsilon": 1, "delta": 1e-6, "plan": plan}
        one, two = (aq.sketch(t, schema, simulate=s, **noise) for s, t in enumerate(private))
        return aq.compare(one, two).pvalue

    assert apart(fitted) < 1e-6
    assert apart(fitted) <= apart(drawn)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_distances_to_locations_are_those_of_the_map(squared, missing):
    rng = np.random.default_rng(0)
    values, places, weights = rng.random((40, 3)), rng.random((2, 3)), rng.random(3)
    values[rng.random(values.shape) < missing] = np.nan
    apart = np.abs(values[:, None] - places)
    expected = np.where(np.isnan(apart), 1.0, apart**2 if squared else apart) @ weights
    known, at, by = (torch.from_numpy(each) for each in (values, places, weights))
    made = _Values.of(known, by, squared=squared).apart(at)
    np.testing.assert_allclose(made.numpy(), expected, atol=1e-12)


def test_the_gradient_of_what_public_training_climbs_is_right():
    dice = torch.Generator().manual_seed(0)
    features = torch.rand(11, 3, generator=dice, dtype=torch.float64)
    value, gradient = _criterion(features, 4)
    for place in np.ndindex(11, 3):
        moved = features.clone()
        moved[place] += 1e-6
        assert (_criterion(moved, 4)[0] - value) / 1e-6 == pytest.approx(
            float(gradient[place]), rel=1e-3, abs=1e-5
        )


def test_public_tables_must_fit_the_schema():
    good = table(100, 1)
    for bad, said in (
        (good.drop(columns="y"), "lacks column 'y'"),
        (good.head(1), "fewer than two rows"),
        (good.assign(kind="z"), "does not declare"),
        (good.assign(y="many"), "cannot be read"),
    ):
        with pytest.raises(DataError, match=said):
            aq.me_test(schema_of(), public_train=(good, bad))


@pytest.mark.parametrize(
    "build",
    [
        lambda s: aq.me_test(s, locations=0),
        lambda s: aq.me_test(s, spread=0),
        lambda s: aq.me_test(s, mean_share=1),
        lambda s: aq.me_test(s, length_scale=1e-9),
        lambda s: aq.scf_test(s, frequencies=0),
        lambda s: aq.mixed_fourier(s, length_scale=0),
        lambda s: aq.mixed_fourier(s, frequencies=50),
        lambda s: aq.mixed_fourier(s, spread_share=1),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(build):
    with pytest.raises(PlanError, match=r".{20,}"):
        build(schema_of())


def test_no_frequencies_without_an_order():
    listed = {"kind": "categorical", "categories": ["a", "b"]}
    data = {"name": "n", "privacy": {"protects": "replace one row"}, "columns": {"c": listed}}
    schema = aq.Schema.from_dict(data)
    with pytest.raises(PlanError, match="no column has an order"):
        aq.scf_test(schema)
    assert aq.me_test(schema).blocks[0].map.dim == 5
