"""Networks on a GPU: what no order of adding can change, and how soon that way is taken."""

import gc

import pytest
import torch
from tiny_images import random_images, tiny_reduction, tiny_resnet, tiny_vgg
from torch import nn

from aquatint.features import Perceptual, image_rows, steady
from aquatint.features import exact as exact_sums
from aquatint.features.exact import ExactConv2d, exact
from aquatint.networks import PublicNetwork

pytestmark = pytest.mark.usefixtures("one_thread")
LAYERS = {
    "plain": nn.Conv2d(3, 5, 3, padding=1),
    "strided": nn.Conv2d(3, 5, (3, 2), stride=(2, 1), dilation=(1, 2), bias=False),
    "groups": nn.Conv2d(4, 6, 3, groups=2),
    "mirrored": nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
    "same": nn.Conv2d(3, 4, 3, padding="same"),
    "linear": nn.Linear(9, 7),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_in_exact_sums_is_the_layer(name):
    layer = LAYERS[name]
    inputs = layer.in_features if name == "linear" else layer.in_channels
    shape = (3, inputs) if name == "linear" else (3, inputs, 7, 9)
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(exact(layer)(rows).float(), layer(rows), atol=1e-5)


@pytest.mark.parametrize("network", [tiny_resnet(size=16), tiny_vgg(), tiny_reduction()])
def test_bits_are_the_same_in_blocks_of_any_size(network):
    """The strong form of what the curator needs; float32 convolutions on a CPU fail it."""
    seeing = Perceptual(network)
    images = random_images(9, shape=(1, 8, 8))
    with torch.no_grad():
        whole = seeing.features_of(images, precision="exact")
        for size in (1, 2, 4, 5):
            parts = [seeing.features_of(p, precision="exact") for p in torch.split(images, size)]
            assert torch.equal(torch.cat(parts), whole)
        near = seeing.features_of(images, precision="float32")
    assert torch.allclose(whole, near, atol=1e-4)


def test_sums_are_exact_to_the_last_bit():
    """Products are added up in integers, in Python, and no rounding is seen."""
    layer = exact(nn.Conv2d(16, 1, 3, bias=False))
    assert isinstance(layer, ExactConv2d)
    rows = torch.rand(1, 16, 3, 3, dtype=torch.float64)
    taken = exact_sums._rounded(rows, layer.bits)
    step = 2.0**60
    terms = zip(taken.flatten().tolist(), layer.weight.flatten().tolist(), strict=True)
    wanted = sum(int(a * step) * int(b * step) for a, b in terms)
    assert int(float(layer(rows)) * step) * int(step) == wanted
    assert 2 * layer.bits + 8 <= 53  # 144 terms


def test_a_row_of_zeros_or_of_huge_values_does_not_touch_the_others():
    layer = exact(nn.Conv2d(1, 2, 2))
    rows = torch.rand(3, 1, 4, 4, dtype=torch.float64)
    wanted = layer(rows)[1]
    rows[0], rows[2] = 0, 1e200
    assert torch.equal(layer(rows)[1], wanted)
    rows[2] = float("nan")
    assert torch.equal(layer(rows)[1], wanted)
    assert layer(rows)[2].isnan().all()


def test_a_gpu_that_is_never_steady_takes_exact_sums_and_not_images_one_by_one(monkeypatch):
    """Whatever order a GPU adds in: here, one that depends on the place in the block."""
    seeing = Perceptual(tiny_resnet(seed=5))
    plain = Perceptual.raw_outputs

    def placed(self, prepared, precision=None):
        found = plain(self, prepared, precision)
        if precision == "exact":
            return found
        place = torch.arange(len(prepared)).view(-1, 1, 1, 1)
        return [out * (1 + 1e-6 * place) for out in found]

    monkeypatch.setattr(Perceptual, "raw_outputs", placed)
    block = steady.steady_block(seeing, seeing.together)
    assert block == steady.Block(64, "exact")
    assert [b.precision for b in steady.tries(True, 400)] == ["bfloat16", "float32", "exact"]
    rows = image_rows("image", random_images(70))
    one = seeing.borrowed(rows.slice(66, 67))
    assert torch.equal(seeing.borrowed(rows)[66:67], one)


class Apart(nn.Module):
    def forward(self, images):
        return torch.relu(images - 0.5)


class Together(nn.Module):
    def forward(self, images):
        return torch.relu(images - images.mean(dim=0, keepdim=True))


def test_a_network_is_not_taken_for_another_with_the_same_weights():
    """Neither has any weights. What is known of the one must not be believed of the other."""
    apart = Perceptual(PublicNetwork.of(Apart(), input_size=8), layers=[""])
    together = Perceptual(PublicNetwork.of(Together(), input_size=8), layers=[""])
    assert apart.tile == 64
    with pytest.warns(UserWarning, match="one by one"):
        assert together.tile == 1
    assert apart.network != together.network


def test_nothing_is_kept_of_networks_that_are_gone():
    before = len(steady._KNOWN), len(exact_sums._MADE)
    seeing = Perceptual(PublicNetwork.of(nn.Conv2d(1, 2, 2), input_size=4, channels=1), layers=[""])
    assert seeing.tile
    seeing.features_of(random_images(2, shape=(1, 4, 4)), precision="exact")
    assert len(steady._KNOWN) == before[0] + 1
    del seeing
    gc.collect()
    assert (len(steady._KNOWN), len(exact_sums._MADE)) == before
