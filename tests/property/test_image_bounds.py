"""A search for images, networks and neighbouring sets that break a stated bound."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tiny_images import (
    CLASSES,
    digits,
    image_schema,
    random_images,
    some_digits,
    tiny_projection,
    tiny_resnet,
)

from aquatint.curator.sketch import accumulate
from aquatint.curator.sums import integer_rows, leaf_sum
from aquatint.errors import DataError
from aquatint.features import Perceptual, by_label, image_rows
from aquatint.features.base import FeatureMap
from aquatint.features.grid import grid_of, sensitivity
from aquatint.features.projected import CROSS, SQUARE, UNIT, ProjectedMoments
from aquatint.features.tones import Tones
from aquatint.image_files import ImageBatch
from aquatint.image_recipes import dp_mepf, pixel_gaussian
from aquatint.networks import PublicNetwork
from aquatint.recipes import dp_hp, dp_merf

pytestmark = pytest.mark.usefixtures("one_thread")


class Scaling(torch.nn.Module):
    """A network that does to its pixels whatever a search asks for."""

    def __init__(self, weight, bias):
        super().__init__()
        self.register_buffer("weight", torch.tensor(weight))
        self.register_buffer("bias", torch.tensor(bias))

    def forward(self, images):
        return images.flatten(1) * self.weight + self.bias


whole = st.integers(0, 255)
images = hnp.arrays(np.uint8, (4, 1, 2, 2), elements=st.one_of(st.sampled_from([0, 255]), whole))
sizes = st.sampled_from([0.0, 1e-30, 1e-12, 1e-3, 1.0, -1.0, 37.5, -1e4, 1e12, 1e18])


@settings(max_examples=150, deadline=None)
@given(
    images,
    sizes,
    sizes,
    st.sampled_from([(1,), (2,), (1, 2)]),
    st.sampled_from(["rows", "layers"]),
    st.sampled_from([{"nonnegative": False}, {"nonnegative": True}, {"split": True}]),
)
def test_no_network_and_no_image_exceeds_the_bound(pixels, weight, bias, moments, balance, signs):
    sighted = Perceptual(
        PublicNetwork.of(Scaling(weight, bias), input_size=2, channels=1),
        layers=[""],
        moments=moments,
        balance=balance,
        **signs,
    )
    rows = image_rows("image", torch.from_numpy(pixels))
    found, bound, slack = sighted(rows).double(), sighted.bound, 1 + 1e-6
    assert found.isfinite().all()
    assert found.norm(dim=1).max() <= slack
    assert found.min() >= float(bound.low) * slack
    apart = torch.cdist(found, found, compute_mode="donot_use_mm_for_euclid_dist")
    assert apart.max() <= float(bound.replace_l2_squared) ** 0.5 * slack
    check_integers(sighted, rows)


def check_integers(leaf: FeatureMap, rows) -> None:
    """Every limit on the very integers that are summed, exactly."""
    bound = grid_of(leaf).bound
    kept = [whole.clone() for _, whole in integer_rows(leaf, rows)]
    exact = [[int(v) for v in row] for row in torch.cat(kept).tolist()]
    for row in exact:
        assert sum(v * v for v in row) <= int(bound.l2_squared)
        assert sum(map(abs, row)) <= int(bound.l1)
        assert int(bound.low) <= min(row)
        assert max(row) <= int(bound.high)
    for one in exact:
        for other in exact:
            distance = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
            assert distance <= int(bound.replace_l2_squared)


@settings(max_examples=150, deadline=None)
@given(hnp.arrays(np.uint8, (4, 3, 2, 2), elements=st.one_of(st.sampled_from([0, 255]), whole)))
def test_no_image_has_more_tones_than_pixels(pixels):
    for some in (pixels, pixels[:, :1]):
        counted = Tones("image", some.shape[1], 4)
        rows = image_rows("image", torch.from_numpy(some))
        found = counted(rows).double()
        assert torch.allclose(found.sum(dim=1), torch.tensor(float(some.shape[1])).sqrt().double())
        assert found.square().sum(dim=1).max() <= float(counted.bound.l2_squared) * (1 + 1e-6)
        for image, shares in zip(some, found, strict=True):
            for channel, part in zip(image, shares.view(some.shape[1], -1), strict=True):
                black = part[0] * some.shape[1] ** 0.5
                assert float(black) == pytest.approx(float((channel == 0).mean()), abs=1e-6)
        check_integers(counted, rows)


def test_black_and_white_are_as_far_apart_as_tones_can_be():
    rows = image_rows("image", torch.tensor([[0], [255]], dtype=torch.uint8).view(2, 1, 1, 1))
    counted = Tones("image", 1, 1)
    one, other = counted(rows)
    assert float((one - other).square().sum()) == counted.bound.replace_l2_squared == 2


@pytest.mark.parametrize("fill", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("moments", [(1,), (2,), (1, 2)])
def test_a_network_that_gives_what_is_not_finite_is_refused(fill, moments):
    network = PublicNetwork.of(Scaling(1.0, fill), input_size=8, channels=1)
    sighted = Perceptual(network, layers=[""], moments=moments)
    with pytest.raises(DataError, match="not finite"):
        leaf_sum(sighted, image_rows("image", random_images(3)))


def test_a_wrong_map_is_clipped_as_integers():
    class Liar(Perceptual):
        def features_of(self, images, *, precision=None):
            return super().features_of(images, precision=precision) * 7 - 0.5

    sighted = Liar(tiny_resnet(), layers=["relu"])
    assert sighted.features_of(random_images(4)).norm(dim=1).min() > 2
    check_integers(sighted, image_rows("image", random_images(4)))


whole_numbers = hnp.arrays(
    np.int64,
    (2, 3),
    elements=st.one_of(st.sampled_from([0, UNIT, -UNIT]), st.integers(-UNIT, UNIT)),
)


@settings(max_examples=300, deadline=None)
@given(whole_numbers, st.sampled_from([0.01, 0.3, 0.75, 1.4, 4.0]))
def test_the_joint_bound_holds_in_whole_numbers(q, mean_weight):
    sighted = ProjectedMoments(tiny_projection(3), 3, mean_weight=mean_weight)
    for row in q:  # onto the ball, as whole numbers
        while sum(int(v) ** 2 for v in row) > UNIT**2:
            row[:] = np.trunc(row * 0.999)
    pair = sighted.expand(torch.from_numpy(q).double()).tolist()
    one, other = ([int(v) for v in row] for row in pair)
    bound = sighted.whole_bound
    for row in (one, other):
        assert sum(v * v for v in row) <= bound.l2_squared
        assert sum(map(abs, row)) <= bound.l1
        assert bound.low <= min(row)
        assert max(row) <= bound.high
    distance = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    assert distance <= bound.pairwise
    assert bound.pairwise == 2 * bound.l2_squared


def test_the_joint_bound_is_nearly_attained_and_needs_its_count():
    """Opposite rows come close; with a smaller count the stated distance would be wrong."""
    sighted = ProjectedMoments(tiny_projection(3), 3, mean_weight=1.0)
    _, mean = sighted.weights
    across = np.array([[UNIT, 0, 0], [-UNIT // 2, int(UNIT * 0.866), 0]])  # t = −B²/(2C²)
    one, other = sighted.expand(torch.from_numpy(across).double())
    distance = float((one - other).square().sum())
    assert distance > 0.95 * sighted.whole_bound.pairwise - 2 * sighted.weights[0] ** 2
    least = Fraction(mean**4, 2 * SQUARE**2)
    assert 2 * sighted.weights[0] ** 2 >= least > 2 * (sighted.weights[0] - 1) ** 2
    assert CROSS**2 <= 2 * SQUARE**2 < (CROSS + 1) ** 2


def test_every_projection_is_clipped_even_a_wrong_one():
    module = tiny_projection(3).require()
    network = PublicNetwork.of(
        torch.nn.Sequential(module, torch.nn.Hardshrink(0.0)), input_size=8, channels=1
    )
    wrong = PublicNetwork("projection", network.sha256, (8, 8), 1, _Longer(module))
    check_integers(ProjectedMoments(wrong, 3), image_rows("image", random_images(6)))


class _Longer(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.inner = module

    def forward(self, images):
        return self.inner(images) * 5


PLANS = {
    "mepf": lambda schema: dp_mepf(schema, tiny_resnet(), moments=(1, 2), stopping=True),
    "gaussian": lambda schema: pixel_gaussian(schema, tiny_projection()),
    "merf": lambda schema: dp_merf(schema, features=40),
    "hp": lambda schema: dp_hp(schema, order=4, product_order=2, draws=3),
}
HOSTILE = [(np.zeros((8, 8, 1), np.uint8), "0"), (np.full((8, 8, 1), 255, np.uint8), "9")]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
def test_neighbouring_sets_are_no_further_apart_than_stated(name, protects):
    schema = image_schema(protects)
    plan = PLANS[name](schema)
    base = some_digits(12)
    before = accumulate(base, plan)
    rng = np.random.default_rng(3)
    for pixels, label in [*HOSTILE, (digits().pixels[500], CLASSES[4])]:
        place = int(rng.integers(12))
        if schema.privacy.replaces:  # the image and its class both change
            changed = (base.pixels.copy(), base.labels.copy())
            changed[0][place], changed[1][place] = pixels, label
        else:
            keep = np.arange(12) != place
            changed = base.pixels[keep], base.labels[keep]
        after = accumulate(ImageBatch(*changed), plan)
        for block, one, other in zip(plan.blocks, before.totals, after.totals, strict=True):
            start = 0
            for leaf in leaves_of(block.map):
                l2_squared, l1 = sensitivity(leaf, schema.privacy)
                moved = [int(v) for v in (one - other)[start : start + leaf.dim]]
                assert sum(v * v for v in moved) <= l2_squared
                assert sum(map(abs, moved)) <= l1
                start += leaf.dim


def leaves_of(feature_map):
    from aquatint.features import leaves

    return leaves(feature_map)


def test_opposite_features_without_signs_would_break_the_smaller_bound():
    """The √2 is for non-negative features alone: signed ones do come further apart."""
    signs = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1, bias=True))
    torch.nn.init.constant_(signs[1].weight, 1.0)
    torch.nn.init.constant_(signs[1].bias, -32.0)
    network = PublicNetwork.of(signs, input_size=8, channels=1)
    ends = torch.stack([torch.zeros(1, 8, 8), torch.ones(1, 8, 8)])
    signed = Perceptual(network, layers=[""])
    assert signed.bound.replace_l2_squared == 4
    one, other = signed.features_of(ends)
    assert (one - other).norm() == 2
    clamped = Perceptual(network, layers=[""], nonnegative=True)
    assert clamped.bound.replace_l2_squared <= 2
    one, other = clamped.features_of(ends)
    assert (one - other).norm() <= 2**0.5


def test_by_class_the_distance_is_that_of_two_classes():
    inner = Perceptual(tiny_resnet())
    labelled = by_label(inner, "label", 10)
    images = torch.stack([random_images(5)[4]] * 2)
    rows = image_rows("image", images, {"label": torch.tensor([1, 7])})
    one, other = labelled(rows).double()
    assert (one - other).norm() == pytest.approx(2**0.5, rel=1e-6)
    assert labelled.bound.replace_l2_squared == 2
