"""Public networks: hashes, files, projections and pretraining."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_images import (
    digits,
    image_schema,
    some_digits,
    tiny_projection,
    tiny_reduction,
    tiny_resnet,
    tiny_vgg,
)

import aquatint as aq
from aquatint.errors import DataError, PlanError
from aquatint.features.perceptual import Perceptual
from aquatint.image_recipes import dp_mepf
from aquatint.networks import (
    PublicNetwork,
    load,
    public_projection,
    public_reduction,
    resnet18,
    save,
    vgg19,
)
from aquatint.networks.training import _Changes, pretrain

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "network", [tiny_resnet(), tiny_vgg(), tiny_projection(), tiny_reduction()]
)
def test_a_file_gives_the_same_network_back(network, tmp_path):
    path = tmp_path / "network.safetensors"
    save(replace(network, note="made-up digits"), path)
    again = load(path)
    assert again == network
    assert again.note == "made-up digits"
    assert not again.module.training
    images = torch.rand(2, network.channels, *network.input_size)
    assert torch.equal(again.module(images), network.module(images))


def test_grey_and_wide_networks_are_built_from_their_weights(tmp_path):
    for module, name in (
        (resnet18(width=3, classes=7, channels=1), "resnet18"),
        (vgg19(width=1), "vgg19"),
    ):
        channels = 1 if name == "resnet18" else 3
        network = PublicNetwork.of(module, input_size=16, channels=channels, architecture=name)
        save(network, tmp_path / name)
        assert load(tmp_path / name) == network


def test_the_hash_is_of_names_types_shapes_and_bytes():
    base = tiny_resnet()
    module = resnet18(width=2, classes=3)
    module.load_state_dict(base.module.state_dict())
    assert PublicNetwork.of(module, input_size=8, architecture="resnet18") == base
    with torch.no_grad():
        module.stem.weight[0, 0, 0, 0] += 1e-7
    assert PublicNetwork.of(module, input_size=8).sha256 != base.sha256
    one = PublicNetwork.of(torch.nn.Linear(2, 3, bias=False), input_size=1).module
    turned = torch.nn.Linear(3, 2, bias=False)
    turned.weight.data = one.weight.data.reshape(2, 3)
    assert len({PublicNetwork.of(m, input_size=1).sha256 for m in (one, turned)}) == 2


def test_a_network_is_a_copy_that_does_not_train():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.ReLU(inplace=True))
    network = PublicNetwork.of(module.train(), input_size=4)
    assert module.training
    assert module[1].inplace
    assert not network.module.training
    assert not network.module[1].inplace
    assert not any(p.requires_grad for p in network.module.parameters())


def test_another_network_is_refused_and_the_right_one_attached(tmp_path):
    schema = image_schema()
    plan = dp_mepf(schema, tiny_resnet(), stopping=True, stopping_network=tiny_vgg())
    made = aq.sketch(some_digits(40), schema, plan=plan, epsilon=1, delta=1e-5)
    made.save(tmp_path / "digits.aqt")
    opened = aq.load(tmp_path / "digits.aqt")
    with pytest.raises(PlanError, match=r"SHA-256 .*give that file"):
        aq.attach(opened, tiny_resnet(seed=1))
    whole = aq.attach(opened, tiny_resnet(), tiny_vgg())
    for block in ("perceptual", "stopping"):
        rows = aq.features.image_rows(
            "image", torch.zeros(1, 1, 8, 8), {"label": torch.zeros(1, dtype=torch.int64)}
        )
        assert torch.equal(whole.block(block).map(rows), made.block(block).map(rows))
    part = aq.attach(opened, tiny_vgg())
    with pytest.raises(PlanError, match="resnet18 with SHA-256"):
        part.block("perceptual").map.total(rows)


def test_a_release_without_networks_takes_none():
    schema = image_schema()
    made = aq.sketch(
        some_digits(40), schema, plan=aq.dp_merf(schema, features=20), epsilon=1, delta=1e-5
    )
    with pytest.raises(PlanError, match="nothing to attach"):
        aq.attach(made, tiny_resnet())


def test_a_missing_or_foreign_file_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(PlanError, match=r"no network file .*aquatint pretrain"):
        load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"not a network")
    with pytest.raises(PlanError, match="damaged"):
        load(tmp_path / "bad.safetensors")
    save_file({"a": torch.zeros(2)}, str(tmp_path / "other.safetensors"))
    with pytest.raises(PlanError, match="does not name a network"):
        load(tmp_path / "other.safetensors")
    metadata = {"format": "aquatint-network", "architecture": "vgg16"}
    metadata |= {"input_size": "[8, 8]", "channels": "3"}
    save_file({"a": torch.zeros(2)}, str(tmp_path / "cut.safetensors"), metadata)
    with pytest.raises(PlanError, match="its weights are not those of vgg16"):
        load(tmp_path / "cut.safetensors")
    with pytest.raises(PlanError, match="cannot write"):
        save(tiny_resnet(), tmp_path / "no" / "folder.safetensors")
    with pytest.raises(PlanError, match="built-in"):
        save(PublicNetwork.of(torch.nn.ReLU(), input_size=8), tmp_path / "x")


def test_a_layer_that_runs_twice_gives_both_outputs():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = torch.nn.ReLU()

        def forward(self, images):
            return self.relu(self.relu(images) - 0.5)

    sighted = Perceptual(Twice(), input_size=4)
    assert sighted.sizes == (48, 48)


def test_a_projection_keeps_what_it_is_told_and_comes_back():
    pixels = digits().pixels.transpose(0, 3, 1, 2).copy()
    network = public_projection(pixels, 40, quantile=0.8)
    module = network.require()
    lengths = module(torch.from_numpy(pixels).float() / 255).norm(dim=1)
    assert float((lengths > 0.999).float().mean()) == pytest.approx(0.2, abs=0.01)
    assert lengths.max() <= 1 + 1e-6
    inside = lengths < 0.999
    flat = torch.from_numpy(pixels).flatten(1).float() / 255
    again = module.images(module(torch.from_numpy(pixels).float() / 255))
    assert (again - flat)[inside].abs().mean() < 0.02
    directions = module.directions.double()
    gram = directions @ directions.T
    assert torch.allclose(gram, torch.diag(gram.diag()), atol=1e-3)
    assert gram.diag().max() == pytest.approx(1, abs=1e-3)
    assert (gram.diag().diff() > -1e-3).all()  # what varies least counts most
    plain = public_projection(pixels, 40, whiten=0).require().directions.double()
    assert torch.allclose(plain @ plain.T, torch.eye(40).double(), atol=1e-3)


def photographs(count=400, side=12):
    """Smooth grey shapes of little contrast, as photographs are."""
    rng = np.random.default_rng(5)
    waves = np.cos(np.pi * (np.arange(side) + 0.5) * np.arange(side)[:, None] / side)
    fall = 1 / (1 + np.hypot(*np.indices((side, side))))
    made = waves.T @ (rng.normal(size=(count, side, side)) * fall) @ waves
    return (128 + 35 * made / made.std()).clip(0, 255).astype(np.uint8)[:, None]


def black_and_white(images):
    return np.where(images > 127, 255, 0).astype(np.uint8)


def test_images_of_more_contrast_than_the_public_ones_are_not_clipped():
    """Digits were once clipped, every one, at a level of photographs: grey where they are black."""
    public = photographs()
    private = torch.from_numpy(black_and_white(photographs(300))).float() / 255
    told = public_projection(public, 20, quantile=0.9).require()
    assert (told(private).norm(dim=1) > 0.999).float().mean() > 0.99
    for whiten, most in ((0, 0.0), (0.5, 0.2)):
        module = public_projection(public, 20, whiten=whiten).require()
        lengths = module(private).norm(dim=1)
        assert (lengths > 0.9999).float().mean() <= most
        assert lengths.median() > 0.5  # nor is the level far too high: that would cost noise


def test_images_from_coordinates_have_those_coordinates():
    """What is cut off at black and white is made up for elsewhere."""
    module = public_projection(photographs(), 20).require()
    wanted = module(torch.from_numpy(black_and_white(photographs(200))).float() / 255)
    images = module.images(wanted)
    assert 0 <= float(images.min()) <= float(images.max()) <= 1
    back = module.directions / module.directions.square().sum(dim=1, keepdim=True)
    cut_off = (wanted * module.level @ back + module.centre).clamp(0, 1)
    assert (cut_off - images).abs().max() > 0.05
    error = (module(images) - wanted).norm(dim=1).mean()
    assert error < 0.3 * (module(cut_off) - wanted).norm(dim=1).mean()


@pytest.mark.parametrize(
    "build",
    [
        lambda x: public_projection(x.astype(float), 2),
        lambda x: public_projection(x, 0),
        lambda x: public_projection(x[:5], 5),
        lambda x: public_projection(x, 65),
        lambda x: public_projection(x, 2, quantile=0.0),
        lambda x: public_projection(x, 2, whiten=1.5),
        lambda x: public_projection(np.zeros_like(x), 2),
        lambda x: public_reduction(tiny_projection(), x),
        lambda x: public_reduction(tiny_resnet(), x.astype(float)),
        lambda x: public_reduction(tiny_resnet(), x, method="ica"),
        lambda x: public_reduction(tiny_resnet(), x, method="lda"),
        lambda x: public_reduction(tiny_resnet(), x, np.arange(50) % 3, method="lda"),
        lambda x: public_reduction(tiny_resnet(), x, components=50),
        lambda x: public_reduction(tiny_resnet(), x, components=2, quantile=0.0),
        lambda x: public_reduction(tiny_resnet(), x, components=2, layers=["nowhere"]),
        lambda x: resnet18(width=0),
        lambda x: resnet18(input_size=4),
        lambda x: pretrain(x.astype(float), np.arange(len(x))),
        lambda x: pretrain(x, np.zeros(len(x))),
        lambda x: pretrain(x, np.arange(3)),
        lambda x: pretrain(x[:4], np.arange(4)),
        lambda x: pretrain(x, np.arange(len(x)) % 2, epochs=0),
        lambda x: pretrain(x, np.arange(len(x)) % 2, device="cuda:99"),
    ],
)
def test_what_makes_no_sense_is_refused(build):
    pixels = some_digits(50).pixels.transpose(0, 3, 1, 2).copy()
    with pytest.raises((PlanError, DataError), match=r".{20,}"):
        build(pixels)


def test_a_reduction_keeps_what_tells_classes_apart():
    batch = some_digits(400)
    pixels = torch.from_numpy(batch.pixels.transpose(0, 3, 1, 2).copy())
    codes = batch.labels.astype(int)
    shares = {}
    for method, components in (("pca", 9), ("lda", 9)):
        network = public_reduction(
            tiny_resnet(), pixels, batch.labels, components=components, method=method, pool=2
        )
        y = Perceptual(network).features_of(pixels)
        assert y.shape == (400, components)
        lengths = y.norm(dim=1)
        assert lengths.max() <= 1 + 1e-6
        assert float((lengths > 0.999).float().mean()) == pytest.approx(0.1, abs=0.02)
        means = torch.stack([y[codes == code].mean(dim=0) for code in range(10)])
        nearest = torch.cdist(y, means).argmin(dim=1).numpy()
        shares[method] = (nearest == codes).mean()
    assert shares["lda"] > shares["pca"] > 0.3
    assert public_reduction(tiny_resnet(), pixels, components=3) == public_reduction(
        tiny_resnet(), pixels, components=3
    )


def test_the_hash_of_a_reduction_covers_its_layers():
    pixels = some_digits(50).pixels.transpose(0, 3, 1, 2).copy()
    one, other = (
        public_reduction(tiny_resnet(), pixels, components=2, layers=[name], pool=1)
        for name in ("blocks.0.relu1", "blocks.0.relu2")
    )
    state = one.module.state_dict()
    assert any(not torch.equal(state[k], other.module.state_dict()[k]) for k in ("settings",))
    assert one.sha256 != other.sha256


def test_pretraining_learns_its_classes_and_can_be_repeated():
    batch = digits()
    pixels = batch.pixels.transpose(0, 3, 1, 2).copy()
    before = torch.random.get_rng_state()
    settings = {"epochs": 6, "width": 4, "batch": 64, "flip": False, "seed": 5, "note": "digits"}
    network = pretrain(pixels, batch.labels, **settings, progress=False)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert network.note.startswith("digits; resnet18, 1,762 public images in 10 classes")
    flat = torch.from_numpy(pixels).float().expand(-1, 3, -1, -1) / 255
    right = network.module(flat).argmax(dim=1).numpy() == batch.labels.astype(int)
    assert right.mean() > 0.8
    short = {**settings, "epochs": 1}
    again = [pretrain(pixels[:200], batch.labels[:200], **short, progress=False) for _ in "ab"]
    assert again[0] == again[1]


def test_changes_shift_flip_and_grey():
    torch.manual_seed(0)
    images = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8)
    plain = _Changes(grey=False, flip=False)(images)
    assert plain.shape == (64, 3, 32, 32)
    assert not torch.equal(plain[:, 0], plain[:, 1])
    grey = _Changes(grey=True, flip=True)(images)
    without = (grey[:, 0] == grey[:, 1]).flatten(1).all(dim=1).float().mean()
    assert 0.25 < float(without) < 0.75
