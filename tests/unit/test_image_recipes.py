"""Recipes for images: blocks, shares, and noise that is really added."""

from math import sqrt

import numpy as np
import pytest
from tiny_images import (
    digits,
    image_schema,
    some_digits,
    tiny_projection,
    tiny_resnet,
    tiny_vgg,
)

import aquatint as aq
from aquatint.accounting import Budget
from aquatint.curator.sketch import accumulate
from aquatint.errors import PlanError
from aquatint.features import Perceptual, leaves, tones
from aquatint.features.grid import grid_of
from aquatint.image_recipes import dp_mepf, pixel_gaussian
from aquatint.planning import noise_of

pytestmark = pytest.mark.usefixtures("one_thread")
BOTH = ["replace one row", "add or remove one row"]


def deviations(plan, epsilon=1.0):
    noise = noise_of(plan, Budget(epsilon, 1e-5))
    return {
        block.name: parts[0].scale / grid_of(leaves(block.map)[0]).steps
        for block, parts in zip(plan.blocks, noise, strict=True)
    }


@pytest.mark.parametrize("protects", BOTH)
def test_blocks_of_dp_mepf(protects):
    schema = image_schema(protects)
    plan = dp_mepf(schema, tiny_resnet(), moments=(1, 2), stopping=True)
    counted = [] if schema.privacy.replaces else ["count"]
    named = [*counted, "classes", "perceptual", "stopping", "tones"]
    assert [b.name for b in plan.blocks] == named
    main = next(b for b in plan.blocks if b.name == "perceptual").map
    assert main.inner == Perceptual(tiny_resnet(), moments=(1, 2))
    assert main.classes == 10
    validation = plan.blocks[-2].map
    assert validation == Perceptual(
        tiny_resnet(), layers=["blocks.7.relu2"], moments=(1, 2), pool=1
    )
    assert sum(b.share for b in plan.blocks) == pytest.approx(1)
    assert plan.blocks[-1].map == tones("image", schema.images["image"])
    assert plan.blocks[-1].share == 0.02
    plain = dp_mepf(schema, tiny_resnet(), tone_share=0)
    assert [b.name for b in plain.blocks] == [*counted, "classes", "perceptual"]
    with pytest.raises(PlanError, match="must leave something"):
        dp_mepf(schema, tiny_resnet(), tone_share=0.99)


@pytest.mark.parametrize("protects", BOTH)
@pytest.mark.parametrize("ratio", [3.0, 10.0])
def test_the_validation_block_has_noise_so_many_times_wider(protects, ratio):
    schema = image_schema(protects)
    for nonnegative in (True, False):
        plan = dp_mepf(
            schema, tiny_resnet(), nonnegative=nonnegative, stopping=True, stopping_noise=ratio
        )
        found = deviations(plan)
        assert found["stopping"] / found["perceptual"] == pytest.approx(ratio, rel=1e-6)


def test_the_validation_block_costs_a_hundredth():
    schema = image_schema()
    without, with_it = (
        deviations(dp_mepf(schema, tiny_resnet(), stopping=stop))["perceptual"]
        for stop in (None, True)
    )
    assert with_it / without == pytest.approx(sqrt(1.01), rel=1e-3)


def test_noise_of_every_block_is_really_added():
    """Planted: a block that is budgeted and never noised would be off by nothing here."""
    schema = image_schema()
    plan = dp_mepf(schema, tiny_resnet(), layers=["relu"], stopping=True)
    exact = accumulate(some_digits(200), plan)
    release = aq.sketch(some_digits(200), schema, plan=plan, epsilon=1, delta=1e-5)
    for block, total in zip(release.blocks, exact.totals, strict=True):
        noise = (block.integers - total.numpy()) / block.steps
        assert (noise != 0).all()
        spread = np.sqrt(np.mean((noise / block.stderr) ** 2))
        assert abs(spread - 1) < 5 / sqrt(2 * len(noise))  # a false alarm in a million runs


def test_another_network_for_stopping_and_chosen_layers():
    schema = image_schema()
    plan = dp_mepf(
        schema, tiny_resnet(), stopping=["features.1"], stopping_network=tiny_vgg(), labelled=False
    )
    assert [b.name for b in plan.blocks] == ["perceptual", "stopping", "tones"]
    assert plan.blocks[1].map.network == tiny_vgg()
    assert plan.blocks[1].map.layers == ("features.1",)
    one = dp_mepf(schema, tiny_resnet(), stopping="relu")
    assert one.blocks[-2].map.layers == ("relu",)


def test_unlabelled_images_are_one_embedding():
    schema = image_schema(label=False)
    (block,) = dp_mepf(schema, tiny_resnet(), tone_share=0).blocks
    assert isinstance(block.map, Perceptual)
    assert [b.name for b in pixel_gaussian(schema, tiny_projection()).blocks] == ["gaussian"]
    release = aq.sketch(
        some_digits(30), schema, plan=dp_mepf(schema, tiny_resnet()), epsilon=1, delta=1e-5
    )
    assert release.rows == 30


@pytest.mark.parametrize("protects", BOTH)
def test_the_gaussian_recovers_each_class(protects):
    schema = image_schema(protects)
    plan = pixel_gaussian(schema, tiny_projection(8))
    assert plan.blocks[-1].name == "gaussian"
    inner = plan.blocks[-1].map.inner
    release = aq.sketch(digits(), schema, plan=plan, epsilon=10, delta=1e-5)
    import torch

    block = release.block("gaussian")
    counts, first, second = inner.unpack(torch.from_numpy(block.sum).view(10, -1))
    images = torch.from_numpy(digits().pixels.transpose(0, 3, 1, 2).copy())
    y = inner.coordinates(images).double()
    for digit in range(10):
        mine = torch.from_numpy(digits().labels == str(digit))
        assert float(counts[digit]) == pytest.approx(int(mine.sum()), abs=16)
        assert torch.allclose(first[digit] / mine.sum(), y[mine].mean(dim=0), atol=0.04)
        assert torch.allclose(
            second[digit] / mine.sum(), y[mine].T @ y[mine] / mine.sum(), atol=0.04
        )
        assert torch.equal(second[digit], second[digit].T)


@pytest.mark.parametrize("recipe", [aq.dp_merf, aq.dp_hp])
@pytest.mark.parametrize("protects", BOTH)
def test_the_papers_recipes_take_pixels_as_numbers(recipe, protects):
    schema = image_schema(protects)
    plan = recipe(schema)
    inner = leaves(plan.blocks[-1].map)[0].inner
    assert plan.blocks[-1].map.reads[0] == {"label"}
    assert {name.partition("[")[0] for name in plan.blocks[-1].map.reads[1]} == {"image"}
    if recipe is aq.dp_merf:
        assert (inner.features, inner.kernel, len(inner.columns)) == (10_000, "gaussian", 64)
        assert inner.length_scales[0] == pytest.approx(sqrt(0.15 * 64))
    else:
        names = {b.name: b.map for b in plan.blocks}
        assert leaves(names["sum"])[0].inner.order == 20
        shares = {block.name: block.share for block in plan.blocks}
        assert shares["products"] == pytest.approx(shares["sum"] / 20)
        assert len(leaves(names["products"])) == 10
    assert aq.sketch(some_digits(20), schema, plan=plan, epsilon=1, delta=1e-5, simulate=0)


def test_sizes_on_mnist_and_cifar_are_bearable():
    mnist, cifar = image_schema(size=(28, 28)), image_schema(size=(32, 32), channels=3)
    assert aq.dp_merf(mnist).coordinates == 100_010
    assert aq.dp_hp(mnist).coordinates < 1_000_000
    assert aq.dp_merf(cifar).coordinates == 100_010
    assert aq.dp_hp(cifar).coordinates < 1_100_000
    with pytest.raises(PlanError, match=r"columns or pixels|too many"):
        aq.dp_merf(image_schema(size=(224, 224), channels=3))


@pytest.mark.parametrize(
    "build",
    [
        lambda s: dp_mepf(s, tiny_resnet(), class_share=1.0),
        lambda s: dp_mepf(s, tiny_resnet(), stopping=True, stopping_noise=0),
        lambda s: dp_mepf(s, tiny_resnet(), stopping=["nowhere"]),
        lambda s: dp_mepf(image_schema(label=False), tiny_resnet(), labelled=True),
        lambda s: pixel_gaussian(s, tiny_resnet()),
        lambda s: pixel_gaussian(image_schema(size=(9, 9)), tiny_projection()),
        lambda s: dp_mepf(
            aq.Schema.from_dict(
                {**s.to_dict(), "columns": {"label": s.to_dict()["columns"]["label"]}}
            ),
            tiny_resnet(),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(build):
    with pytest.raises(PlanError, match=r".{20,}"):
        build(image_schema())
