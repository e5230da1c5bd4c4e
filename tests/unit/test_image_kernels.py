"""Triton's kernels for means by class give what plain torch gives, forward and backward.

Without a GPU they run in Triton's interpreter.
"""

import pytest
import torch

from aquatint.analyst.images import matching
from aquatint.analyst.images.matching import Match, class_means, fused_means
from aquatint.analyst.images.targets import Target
from aquatint.features.perceptual import Perceptual
from aquatint.networks import PublicNetwork, resnet18

pytest.importorskip("triton", reason="the kernels are written in Triton: none is here")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def parts(x: torch.Tensor, power: int, split: bool) -> torch.Tensor:
    sided = torch.cat([x.clamp(min=0), (-x).clamp(min=0)], dim=1) if split else x
    return sided**power


@pytest.mark.parametrize(("power", "split"), [(1, False), (2, False), (1, True), (2, True)])
def test_fused_means_are_plain_ones(power: int, split: bool) -> None:
    dice = torch.Generator().manual_seed(0)
    # one of them lies in memory the other way round
    layers = [torch.randn(6, 5, generator=dice), torch.randn(1300, 6, generator=dice).T]
    layers = [layer.to(DEVICE) for layer in layers]
    layers[0][2], layers[1][2] = 0, 0  # a row in which the network sees nothing
    if not split:
        layers = [layer.clamp(min=0) for layer in layers]
    pulls = [torch.randn(3, w * (1 + split), generator=dice).to(DEVICE) for w in (5, 1300)]
    found = []
    for fused in (True, False):
        given = [
            layer.clone(memory_format=torch.preserve_format).requires_grad_() for layer in layers
        ]
        if fused:
            *means, empty = fused_means(3, 0.5, power, split, *given)
        else:
            *means, empty = class_means(3, 0.5, *(parts(x, power, split) for x in given))
        sum((m * pull).sum() for m, pull in zip(means, pulls, strict=True)).backward()
        found.append((means, empty, [x.grad for x in given]))
    (means, empty, gradients), (plain, plain_empty, plain_gradients) = found
    assert torch.equal(empty, plain_empty)
    assert empty.tolist() == [False, False, True, False, False, False]
    torch.testing.assert_close(means, plain)
    # where an activation is zero, plain torch takes half of a corner and the kernel nothing
    for ours, theirs, layer in zip(gradients, plain_gradients, layers, strict=True):
        torch.testing.assert_close(ours[layer != 0], theirs[layer != 0], rtol=1e-4, atol=1e-6)
        assert not ours[layer == 0].any()


def test_a_fused_match_has_the_misfit_of_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    module = resnet18(width=2)
    network = PublicNetwork.of(module, input_size=8, architecture="resnet18").to(DEVICE)
    seen = Perceptual(
        network, layers=("norm", "blocks.2.norm1"), moments=(1, 2), split=True, balance="layers"
    )
    target = Target(
        seen,
        torch.rand(2, seen.dim, device=DEVICE),
        torch.ones(2, device=DEVICE),
        torch.eye(2, device=DEVICE),
    )
    images = torch.rand(6, 3, 8, 8, device=DEVICE)
    monkeypatch.setattr(matching, "find_spec", lambda _: None)
    plain = Match(target, 2)
    assert not plain.fused
    fused = Match(target, 2)
    fused.fused = True
    fused._arrange(seen)
    torch.testing.assert_close(fused.misfit(images), plain.misfit(images), rtol=1e-4, atol=1e-5)
