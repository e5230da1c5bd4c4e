"""The outputs of a network's layers, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from aquatint.errors import PlanError


def layer_outputs(
    module: nn.Module, layers: Sequence[str], images: Tensor
) -> list[tuple[nn.Module, Tensor]]:
    """Run a network and give what its layers gave, in the order they were computed.

    A layer that runs twice gives two outputs. ``""`` names the network itself.
    """
    known = dict(module.named_modules())
    for name in layers:
        if name not in known:
            some = ", ".join(repr(n) for n in list(known)[1:6])
            msg = f"the network has no layer {name!r}: it has {some} …"
            raise PlanError(msg)
    found: list[tuple[nn.Module, Any]] = []
    hooks = [
        known[name].register_forward_hook(lambda layer, _, out: found.append((layer, out)))
        for name in layers
    ]
    try:
        module(images)
    finally:
        for hook in hooks:
            hook.remove()
    if not found or not all(isinstance(out, Tensor) and out.dim() >= 2 for _, out in found):
        msg = "every layer must give one tensor with a row for each image"
        raise PlanError(msg)
    return found


def relus(module: nn.Module) -> tuple[str, ...]:
    """Name every ReLU of a network, in its own order."""
    found = tuple(name for name, part in module.named_modules() if is_relu(part))
    if not found:
        msg = "the network has no ReLU to take by default: name its layers"
        raise PlanError(msg)
    return found


def linear_layers(module: nn.Module) -> tuple[str, ...]:
    """Name what comes before the ReLUs: every normalisation, or every convolution without any."""
    for kind in (nn.BatchNorm2d, nn.Conv2d):
        found = tuple(name for name, part in module.named_modules() if isinstance(part, kind))
        if found:
            return found
    msg = "the network has no normalisation and no convolution to take by default: name its layers"
    raise PlanError(msg)


def is_relu(layer: nn.Module | None) -> bool:
    """Say whether a layer's outputs are never negative by construction."""
    return isinstance(layer, (nn.ReLU, nn.ReLU6))


def pooled(output: Tensor, side: int | None) -> Tensor:
    """Average the output of a convolution over a grid of side × side cells."""
    if side is None or output.dim() != 4:
        return output
    return nn.functional.adaptive_avg_pool2d(output, side)


def prepared(images: Tensor, channels: int, size: tuple[int, int]) -> Tensor:
    """Give what a network takes: floats in [0, 1], grey repeated, resized bilinearly."""
    x = images if images.is_floating_point() else images.float() / 255
    if x.shape[1] != channels:
        if x.shape[1] != 1:
            msg = f"the network takes {channels} channels, not {x.shape[1]}"
            raise PlanError(msg)
        x = x.expand(-1, channels, -1, -1)
    if tuple(x.shape[2:]) != size:
        x = nn.functional.interpolate(x, size, mode="bilinear", align_corners=False)
    return x
