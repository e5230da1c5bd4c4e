"""A generator and a Gaussian by class out of one release."""

import copy
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_images import image_schema, some_digits, tiny_projection, tiny_resnet

import aquatint as aq
from aquatint.analyst.images.blend import ImageBlend
from aquatint.analyst.images.gaussian import ImageGaussian
from aquatint.analyst.images.model import ImageNetwork
from aquatint.analyst.images.moments import MomentMeans
from aquatint.analyst.images.targets import shares_of, targets_of
from aquatint.errors import PlanError, ReleaseError
from aquatint.features import Perceptual, projected_moments
from aquatint.features.pixels import image_rows
from aquatint.features.projected import ProjectedMoments
from aquatint.image_recipes import dp_mepf, pixel_gaussian

pytestmark = pytest.mark.usefixtures("one_thread")
SCHEMA = image_schema()
QUICK = {"steps": 4, "batch": 20, "widths": (8, 8), "latent": 4, "progress": False}


def released(plan):
    return aq.sketch(some_digits(300), SCHEMA, plan=plan, epsilon=10, delta=1e-5)


@pytest.fixture(scope="module")
def release():
    return released(dp_mepf(SCHEMA, tiny_resnet(), gaussian=tiny_projection(4)))


@pytest.fixture(scope="module")
def model(release):
    return aq.synthesize(release, blend=0.25, **QUICK)


def test_the_plan_has_the_block_of_the_baseline_with_its_share():
    plan = dp_mepf(SCHEMA, tiny_resnet(), gaussian=tiny_projection(4), gaussian_share=0.3)
    blocks = {block.name: block for block in plan.blocks}
    alone = pixel_gaussian(SCHEMA, tiny_projection(4)).blocks[-1]
    assert blocks["gaussian"].map == alone.map
    assert blocks["gaussian"].share == 0.3
    assert sum(block.share for block in plan.blocks) == pytest.approx(1)
    with pytest.raises(PlanError, match="needs a public projection, not resnet18"):
        dp_mepf(SCHEMA, tiny_resnet(), gaussian=tiny_resnet())
    for share in (0.0, -0.1, 0.97, 1.0):
        with pytest.raises(PlanError, match="share"):
            dp_mepf(SCHEMA, tiny_resnet(), gaussian=tiny_projection(4), gaussian_share=share)


def test_the_generator_matches_the_gaussian_too(release):
    shares = shares_of(release, "label")
    maps = [type(t.map) for t in targets_of(release, "label", shares)]
    assert maps == [Perceptual, ProjectedMoments]
    alone = released(pixel_gaussian(SCHEMA, tiny_projection(4)))
    assert len(targets_of(alone, "label", shares)) == 1


def test_means_of_moments_are_those_of_the_feature_map():
    moments = projected_moments(tiny_projection(4))
    images = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    features = moments(image_rows("image", images)).view(3, 4, -1)
    means = MomentMeans.of(moments)
    assert means is not None
    found, squared = means(images, 3)
    assert torch.allclose(found, features.mean(dim=1), atol=1e-6)
    assert torch.allclose(squared, features.square().sum(dim=2).mean(dim=1), atol=1e-6)
    assert MomentMeans.of(Perceptual(tiny_resnet())) is None


@pytest.mark.parametrize("narrower", [1, 20])
def test_a_gradient_follows_the_moments_also_where_coordinates_are_clipped(narrower):
    network = tiny_projection(4)
    view = copy.deepcopy(network.require())
    view.level /= narrower
    moments = projected_moments(replace(network, module=view))
    images = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
    clipped = moments.coordinates(images).norm(dim=1) > 0.999
    assert bool(clipped.any()) is (narrower > 1)
    means = MomentMeans.of(moments)
    assert means is not None
    (quick,) = torch.autograd.grad(means(images, 2)[0].square().sum(), images)
    rows = moments(image_rows("image", images)).view(2, 3, -1).mean(dim=1)
    (slow,) = torch.autograd.grad(rows.square().sum(), images)
    assert slow.abs().max() > 1e-4
    assert torch.allclose(quick, slow, atol=1e-6)


def test_what_is_drawn_is_of_both(model):
    assert isinstance(model, ImageBlend)
    drawn = model.sample(80, seed=3)
    crisp, blurred = model.network.sample(60, seed=3), model.gaussian.sample(20, seed=3)
    made = Counter(image.tobytes() for image in drawn.pixels)
    parts = np.concatenate([crisp.pixels, blurred.pixels])
    assert made == Counter(image.tobytes() for image in parts)
    named = Counter(zip((i.tobytes() for i in drawn.pixels), drawn.labels, strict=True))
    labels = np.concatenate([crisp.labels, blurred.labels])
    assert named == Counter(zip((i.tobytes() for i in parts), labels, strict=True))
    assert not np.array_equal(drawn.pixels[:60], crisp.pixels)  # shuffled
    assert np.array_equal(drawn.pixels, model.sample(80, seed=3).pixels)
    assert set(model.sample(9, where={"label": "7"}, seed=0).labels) == {"7"}
    assert len(model.sample(1, seed=0)) == 1


def test_each_method_can_be_had_alone(release):
    assert isinstance(aq.synthesize(release, "network", **QUICK), ImageNetwork)
    assert isinstance(aq.synthesize(release, **QUICK), ImageNetwork)
    assert isinstance(aq.synthesize(release, "gaussian"), ImageGaussian)
    with pytest.raises(ReleaseError, match="from 0 to below 1, got 1"):
        aq.synthesize(release, blend=1, **QUICK)
    with pytest.raises(ReleaseError, match="and the method auto"):
        aq.synthesize(release, "network", blend=0.5, **QUICK)


def test_a_release_without_a_gaussian_has_none_to_blend_in():
    plain = released(dp_mepf(SCHEMA, tiny_resnet(), layers=["relu"]))
    with pytest.raises(ReleaseError, match="by dp_mepf with gaussian="):
        aq.synthesize(plain, blend=0.5, **QUICK)
    assert isinstance(aq.synthesize(plain, **QUICK), ImageNetwork)


def test_a_saved_blend_draws_the_same(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = aq.load_model(path)
    assert isinstance(again, ImageBlend)
    assert again.share == 0.25
    assert np.array_equal(model.sample(30, seed=1).pixels, again.sample(30, seed=1).pixels)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("share", "from 0 to 1, got 1.5"),
        ("no share", "how many of its images are from the Gaussian"),
        ("gaussian", "does not fit together"),
        ("network", "does not fit together"),
    ],
)
def test_a_blend_that_does_not_fit_together_is_refused(model, tmp_path, change, wanted):
    path = tmp_path / "model.safetensors"
    model.save(path)
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    told = metadata["aquatint-model"]
    if change == "share":
        metadata["aquatint-model"] = told.replace('"blend": 0.25', '"blend": 1.5')
    elif change == "no share":
        metadata["aquatint-model"] = told.replace('"blend": 0.25', '"blond": 0.25')
    else:
        del tensors["gaussian.means" if change == "gaussian" else "last.bias"]
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(ReleaseError, match=wanted):
        aq.load_model(path)
