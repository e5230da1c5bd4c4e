"""The protocol of feature maps, for those that read images."""

import json

import pytest
import torch
from tiny_images import (
    image_schema,
    random_images,
    tiny_projection,
    tiny_reduction,
    tiny_resnet,
    tiny_vgg,
)

from aquatint.errors import PlanError
from aquatint.features import (
    Perceptual,
    Rows,
    by_label,
    from_spec,
    image_rows,
    onehot,
    projected_moments,
    scale,
    tones,
)
from aquatint.features.attaching import attached, networked_maps
from aquatint.features.fits import check_fits
from aquatint.networks import PublicNetwork

SIGNED = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Tanh(), torch.nn.Flatten())
PLAIN = {
    "resnet": Perceptual(tiny_resnet()),
    "resnet, both moments": Perceptual(tiny_resnet(), moments=(1, 2)),
    "resnet, by layers": Perceptual(tiny_resnet(), balance="layers", moments=(1, 2)),
    "resnet, pooled": Perceptual(tiny_resnet(), pool=2),
    "vgg, resized": Perceptual(tiny_vgg(), layers=["features.1", "features.6"]),
    "signed": Perceptual(SIGNED, layers=[""], input_size=8),
    "signed, squared": Perceptual(SIGNED, layers=["0", "1"], input_size=8, moments=(2,)),
    "reduced": Perceptual(tiny_reduction()),
    "reduced, both moments": Perceptual(tiny_reduction(), moments=(1, 2)),
    "resnet, in the ball": Perceptual(tiny_resnet(), layers=["relu"], length="ball"),
    "gaussian of a network": projected_moments(tiny_reduction()),
    "gaussian": projected_moments(tiny_projection()),
    "tones": tones("image", image_schema().images["image"]),
    "gaussian, heavy mean": projected_moments(tiny_projection(), mean_weight=3.0),
}
MAPS = PLAIN | {f"by label, {name}": by_label(inner, "label", 10) for name, inner in PLAIN.items()}
PLAIN["times counts"] = PLAIN["resnet, pooled"] * onehot({"label": 10})
MAPS["times counts"] = PLAIN["times counts"]
MAPS["scaled"] = scale(PLAIN["resnet"], 0.5)
MAPS["sum"] = PLAIN["resnet"] + PLAIN["gaussian"]


@pytest.fixture(params=MAPS.values(), ids=MAPS.keys())
def sighted(request):
    return request.param


def rows_of(count, seed=0):
    dice = torch.Generator().manual_seed(seed)
    codes = {"label": torch.randint(0, 10, (count,), generator=dice)}
    return image_rows("image", random_images(count, seed), codes)


def test_the_shape_and_type_are_as_declared(sighted):
    for count in (1, 20):
        found = sighted(rows_of(count))
        assert found.shape == (count, sighted.dim)
        assert found.dtype == torch.float32


def test_random_rows_keep_the_bound(sighted):
    found, bound, slack = sighted(rows_of(60)).double(), sighted.bound, 1 + 1e-6
    assert found.norm(dim=1).max() <= float(bound.l2_squared) ** 0.5 * slack
    assert found.abs().sum(dim=1).max() <= float(bound.l1) * slack
    assert found.min() >= float(bound.low) * slack
    assert found.max() <= float(bound.high) * slack
    apart = torch.cdist(found, found, compute_mode="donot_use_mm_for_euclid_dist")
    assert apart.max() <= float(bound.replace_l2_squared) ** 0.5 * slack


def test_the_spec_rebuilds_a_map_that_knows_all_but_its_weights(sighted):
    again = from_spec(json.loads(json.dumps(sighted.spec(), allow_nan=False)))
    assert again == sighted
    assert hash(again) == hash(sighted)
    assert (again.dim, again.bound) == (sighted.dim, sighted.bound)
    networks = tuple(inner.network for inner in networked_maps(sighted))
    if networks:
        with pytest.raises(PlanError, match=r"attach it first.*\.safetensors"):
            again(rows_of(2))
    rows = rows_of(5)
    assert torch.equal(attached(again, networks)(rows), sighted(rows))


def test_an_altered_spec_is_refused(sighted):
    spec = sighted.spec()
    gone = [{k: v for k, v in spec.items() if k != key} for key in spec if key != "length"]
    for wrong in [{**spec, "more": 1}, {**spec, "kind": "unheard-of"}, *gone]:
        with pytest.raises(PlanError):
            from_spec(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": []},
        {"sizes": [0] * 17},
        {"sizes": [True] * 17},
        {"sha256": "abc"},
        {"sha256": "Z" * 64},
        {"channels": 2},
        {"input_size": [8]},
        {"input_size": [8, 10**6]},
        {"made_for": None},
        {"moments": [3]},
        {"moments": [2, 1]},
        {"layers": []},
        {"layers": ["relu", "relu"]},
        {"pool": 0},
        {"balance": "none"},
        {"nonnegative": None},
    ],
)
def test_a_hostile_spec_is_refused(wrong):
    with pytest.raises(PlanError):
        from_spec({**PLAIN["resnet"].spec(), **wrong})


@pytest.mark.parametrize("wrong", [{"components": 0}, {"mean_weight": 0}, {"components": 10**9}])
def test_a_hostile_spec_of_moments_is_refused(wrong):
    with pytest.raises(PlanError):
        from_spec({**PLAIN["gaussian"].spec(), **wrong})


def test_gradients_reach_the_pixels_and_are_finite(sighted):
    if not any(True for _ in networked_maps(sighted)):
        return  # a count of tones has none
    images = (random_images(8, seed=3).float() / 255).requires_grad_()
    rows = image_rows("image", images, {"label": torch.arange(8)})
    weights = torch.linspace(0.5, 1.5, sighted.dim)
    (sighted(rows) @ weights).sum().backward()
    assert images.grad.isfinite().all()
    assert images.grad.abs().max() > 0


def test_the_total_is_the_sum_of_the_rows(sighted):
    rows = rows_of(30)
    wanted = sighted(rows).double().sum(dim=0)
    assert torch.allclose(sighted.total(rows).double(), wanted, atol=1e-4, rtol=1e-4)


def test_soft_labels_reach_the_total():
    sighted = MAPS["by label, resnet"]
    soft = torch.softmax(torch.randn(6, 10), dim=1).requires_grad_()
    rows = image_rows("image", random_images(6).float() / 255, {"label": soft})
    assert torch.allclose(sighted.total(rows), sighted(rows).sum(dim=0), atol=1e-5)
    sighted.total(rows).square().sum().backward()
    assert soft.grad.isfinite().all()


@pytest.mark.parametrize("name", PLAIN)
def test_a_row_has_the_same_bits_beside_any_others(name):
    sighted = PLAIN[name]
    rows = rows_of(70, seed=5)
    together = sighted.borrowed(rows).clone()
    for start, stop in ((0, 1), (3, 10), (69, 70), (5, 69)):
        assert torch.equal(sighted.borrowed(rows.slice(start, stop)), together[start:stop])
    turned = rows.take(torch.arange(69, -1, -1))
    assert torch.equal(sighted.borrowed(turned).flip(0), together)


def test_a_blank_activation_gives_zeros_and_not_nan():
    dead = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.ReLU())
    torch.nn.init.zeros_(dead[0].weight)
    torch.nn.init.constant_(dead[0].bias, -1.0)
    for balance in ("rows", "layers"):
        found = Perceptual(dead, input_size=8, moments=(1, 2), balance=balance)
        assert torch.equal(found(rows_of(3)), torch.zeros(3, found.dim))
        images = torch.rand(2, 1, 8, 8, requires_grad=True)
        found.features_of(images).sum().backward()
        assert torch.equal(images.grad, torch.zeros_like(images))


def test_the_moments_are_those_of_the_paper():
    network = tiny_resnet()
    both = Perceptual(network, moments=(1, 2))
    images = random_images(5)
    flat = torch.cat(both.layer_outputs(both.prepared(images)), dim=1).double()
    first = flat / flat.norm(dim=1, keepdim=True)
    second = flat**2 / (flat**2).norm(dim=1, keepdim=True)
    wanted = torch.cat([first, second], dim=1) / 2**0.5
    assert torch.allclose(both.features_of(images).double(), wanted, atol=1e-6)


def test_seventeen_relus_of_the_papers_network():
    from aquatint.networks import resnet18, vgg16, vgg19

    sizes = {"resnet18": (resnet18, 557_056), "vgg16": (vgg16, 276_480), "vgg19": (vgg19, 303_104)}
    for architecture, (build, features) in sizes.items():
        network = PublicNetwork.of(build(), input_size=32, architecture=architecture)
        found = Perceptual(network)
        assert found.dim == features
        assert found.bound.low == 0
        assert found.bound.replace_l2_squared == 2


@pytest.mark.parametrize(
    "build",
    [
        lambda: Perceptual(SIGNED),
        lambda: Perceptual(SIGNED, input_size=8),
        lambda: Perceptual(tiny_resnet(), layers=[]),
        lambda: Perceptual(tiny_resnet(), layers=["nowhere"]),
        lambda: Perceptual(tiny_resnet(), layers=["relu", "relu"]),
        lambda: Perceptual(tiny_resnet(), moments=()),
        lambda: Perceptual(tiny_resnet(), moments=(3,)),
        lambda: Perceptual(tiny_resnet(), input_size=0),
        lambda: Perceptual(tiny_resnet(), pool=0),
        lambda: Perceptual(tiny_resnet(), balance="evenly"),
        lambda: Perceptual(tiny_resnet(), length="any"),
        lambda: Perceptual(torch.nn.LSTM(8, 3), layers=[""], input_size=8),
        lambda: Perceptual("resnet18", input_size=8),
        lambda: Perceptual(torch.nn.Linear(7, 3), layers=[""], input_size=8),
        lambda: projected_moments(tiny_resnet()),
        lambda: projected_moments(tiny_projection(), mean_weight=-1),
    ],
)
def test_a_malformed_map_is_refused_with_a_sentence(build):
    with pytest.raises(PlanError, match=r".{20,}"):
        build()


def test_maps_fit_schemas_with_images_and_no_others():
    schema = image_schema()
    for sighted in MAPS.values():
        check_fits("block", sighted, schema)
    with pytest.raises(PlanError, match="does not have"):
        check_fits("block", MAPS["by label, resnet"], image_schema(label=False))
    with pytest.raises(PlanError, match="holds none"):
        check_fits("b", Perceptual(tiny_resnet(), column="label"), schema)
    grey = PublicNetwork.of(torch.nn.Conv2d(1, 2, 3), input_size=8, channels=1)
    with pytest.raises(PlanError, match="takes 1 channels"):
        check_fits("b", Perceptual(grey, layers=[""]), image_schema(channels=3))
    with pytest.raises(PlanError, match="projection of block"):
        check_fits("b", PLAIN["gaussian"], image_schema(size=(9, 8)))


def test_rows_of_nothing():
    assert PLAIN["resnet"].borrowed(Rows({}, {"image": random_images(4)[:0]}, 0)).shape[0] == 0
