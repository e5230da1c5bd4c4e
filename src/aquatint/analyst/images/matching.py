"""How far generated images are from a target: an estimate without bias, in one pass.

With n images of a class, the squared distance of their mean embedding to a target is too large by
the variance of an embedding over n. A generator could lower that by making all images alike; so
the variance is estimated from the same images and taken off (a U-statistic).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from typing import Any, cast

import torch
from torch import Tensor

from aquatint.analyst.images.denoise import denoised
from aquatint.analyst.images.moments import MomentMeans
from aquatint.analyst.images.targets import Target
from aquatint.errors import ReleaseError
from aquatint.features.perceptual import Perceptual
from aquatint.features.pixels import image_rows
from aquatint.networks.residual import ResNet18, folded


class ClassMeans(torch.autograd.Function):
    """Means by class of activations, each row normalised over a group of layers.

    Rows are sorted by class, as many of each. The features f/‖f‖ are never written out, neither
    forward nor backward: with G the gradient of a class's mean and r = ‖f‖, a row's gradient is
    (G − ⟨G, f⟩ f/r²)/(n·r).
    """

    @staticmethod
    def forward(ctx: Any, classes: int, scale: float, *layers: Tensor) -> tuple[Tensor, ...]:
        """Give the mean of each layer, shape (classes, features), and each row's squared norm."""
        each = len(layers[0]) // classes
        kind = torch.promote_types(layers[0].dtype, torch.float32)
        squared = sum(torch.linalg.vector_norm(f, dim=1, dtype=kind).square() for f in layers)
        empty = cast("Tensor", squared) <= 0
        norm = cast("Tensor", squared).masked_fill(empty, 1.0).sqrt()
        weight = (scale / (each * norm)).masked_fill(empty, 0.0)
        by_class = weight.view(classes, 1, each)
        means = [
            torch.bmm(by_class.to(f.dtype), f.view(classes, each, -1)).view(classes, -1)
            for f in layers
        ]
        ctx.save_for_backward(norm, weight, *layers)
        ctx.classes = classes
        ctx.mark_non_differentiable(empty)
        return (*means, empty)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Give each layer's gradient."""
        norm, weight, *layers = ctx.saved_tensors
        classes = ctx.classes
        shape = (classes, len(norm) // classes, 1)
        pulls = [g.to(f.dtype) for g, f in zip(gradients, layers, strict=False)]
        along = sum(
            torch.bmm(f.view(*shape[:2], -1), g[:, :, None]).view(-1).to(norm)
            for g, f in zip(pulls, layers, strict=True)
        )
        back = (-weight * along / norm.square()).view(shape)
        out = []
        for pull, f in zip(pulls, layers, strict=True):
            gradient = f.view(*shape[:2], -1) * back.to(f.dtype)
            gradient.addcmul_(weight.view(shape).to(f.dtype), pull[:, None, :])
            out.append(gradient.view_as(f))
        return (None, None, *out)


class_means = cast("Callable[..., tuple[Tensor, ...]]", ClassMeans.apply)


class FusedMeans(torch.autograd.Function):
    """The same on a GPU, of powers of activations and of their parts, in kernels of our own."""

    @staticmethod
    def forward(
        ctx: Any, classes: int, scale: float, power: int, split: bool, *layers: Tensor
    ) -> tuple[Tensor, ...]:
        """Give the mean of each layer's powers in float32, and which rows are empty."""
        kernels = _kernels()
        layers = tuple(x.contiguous() for x in layers)  # which is how kernels read them
        each = len(layers[0]) // classes
        squared = cast("Tensor", sum(kernels.squares(x, power) for x in layers))
        empty = squared <= 0
        norm = squared.masked_fill(empty, 1.0).sqrt()
        weight = (scale / (each * norm)).masked_fill(empty, 0.0)
        means = [kernels.means(x, weight, classes, power, split) for x in layers]
        ctx.save_for_backward(norm, weight, *layers)
        ctx.settings = (classes, power, split)
        ctx.mark_non_differentiable(empty)
        return (*means, empty)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Give each layer's gradient."""
        kernels = _kernels()
        norm, weight, *layers = ctx.saved_tensors
        pulls = [g.float().contiguous() for g, _ in zip(gradients, layers, strict=False)]
        pairs = list(zip(layers, pulls, strict=True))
        along = cast("Tensor", sum(kernels.along(x, g, *ctx.settings) for x, g in pairs))
        back = -weight * along / norm.square()
        out = [kernels.gradient(x, g, weight, back, *ctx.settings) for x, g in pairs]
        return (None, None, None, None, *out)


fused_means = cast("Callable[..., tuple[Tensor, ...]]", FusedMeans.apply)


class Match:
    """The misfit of generated images to one target.

    Parameters
    ----------
    target
        What to match, on the device of the images.
    classes
        How many classes a batch has: sorted, with as many images each.
    shrink
        Whether to take noise off the target of convolutions first (see `denoise`).
    """

    def __init__(self, target: Target, classes: int, *, shrink: bool = False) -> None:
        self.target, self.classes, self.shrink = target, classes, shrink
        self.floor = target.spread.square() * target.mean.shape[1]
        """What noise alone adds to the squared distance, shape (lines,)."""
        self.map = target.map
        self.parts = [target.mean]
        self.held: list[Tensor] = []
        self.fused = False
        self.moments = MomentMeans.of(self.map)
        if isinstance(self.map, Perceptual) and self.map.length == "unit":
            if target.mean.is_cuda:
                self.map = _quick(self.map)
                self.fused = self.map.nonnegative and find_spec("triton") is not None
            self._arrange(self.map)

    def _arrange(self, perceptual: Perceptual) -> None:
        """Put the target in the order in which the network's memory holds its layers."""
        device = self.target.mean.device
        blank = torch.zeros(1, perceptual.network.channels, *perceptual.input_size, device=device)
        with torch.no_grad():
            shapes = [tuple(out.shape[1:]) for out in perceptual.raw_outputs(blank)]
        parts, left = [], torch.zeros_like(self.floor)
        for moment in torch.split(self.target.mean, sum(perceptual.sizes), dim=1):
            clean = moment
            if self.shrink:
                clean, error = denoised(moment, self.target.spread, shapes)
                left = left + error
            for part, shape in zip(
                torch.split(clean, list(perceptual.sizes), 1), shapes, strict=True
            ):
                parts.append(self._line(part.view(-1, *shape), perceptual.split))
        self.parts = [part.contiguous() for part in parts]
        self.floor = left if self.shrink else self.floor

    def _line(self, part: Tensor, split: bool) -> Tensor:
        """Flatten a layer's target as its means come: in parts one after the other if fused."""
        if part.dim() != 4:
            return part
        halves = part.chunk(2, dim=1) if split and self.fused else (part,)
        return torch.cat([_last(half) for half in halves], dim=1)

    def means(self, images: Tensor) -> tuple[list[Tensor], Tensor]:
        """Give the mean by class of each part, and the mean squared norm of a class's rows."""
        if isinstance(self.map, Perceptual) and self.map.length == "unit":
            return self._perceptual(self.map, images)
        if self.moments is not None:
            found, squared = self.moments(images, self.classes)
            return [found], squared
        features = self.map(image_rows(_column(self.map), images))
        by_class = features.view(self.classes, -1, features.shape[1])
        return [by_class.mean(dim=1)], by_class.square().sum(dim=2).mean(dim=1)

    def _perceptual(self, perceptual: Perceptual, images: Tensor) -> tuple[list[Tensor], Tensor]:
        outputs = perceptual.raw_outputs(perceptual.prepared(images), whole=self.fused)
        flat = [_last(out) if out.dim() == 4 else out.flatten(1) for out in outputs]
        share = 1 / sqrt(len(perceptual.moments))
        means: list[Tensor] = []
        squared = torch.zeros(self.classes, device=images.device)
        for moment in perceptual.moments:
            powers = flat if moment == 1 or self.fused else [f.square() for f in flat]
            groups = [[f] for f in powers] if perceptual.balance == "layers" else [powers]
            for group in groups:
                scale = share / sqrt(len(groups))
                if self.fused:
                    split = perceptual.split
                    *found, empty = fused_means(self.classes, scale, moment, split, *group)
                else:
                    *found, empty = class_means(self.classes, scale, *group)
                means.extend(found)
                filled = (~empty).view(self.classes, -1).float().mean(dim=1)
                squared = squared + filled * scale**2
        return means, squared

    def moving(self, images: Tensor, memory: float) -> Tensor:
        """Compare a moving average over batches with the target, as GFMN does, shape (lines,).

        The gradient is that of this batch's part alone, and is scaled up to the size of a whole.
        """
        means, _ = self.means(images)
        if not self.held:
            self.held = [mean.detach().float().clone() for mean in means]
        total = torch.zeros(len(self.target.mix), device=images.device)
        for mean, held, part in zip(means, self.held, self.parts, strict=True):
            with torch.no_grad():
                now = held.lerp_(mean.float(), 1 - memory)
            away = (self.target.mix @ now - part).detach()
            # the value is the distance of the average; the gradient is 1/(1 − memory) as large
            pulled = self.target.mix @ (mean.float() - mean.detach().float())
            total = total + away.square().sum(dim=1)
            total = total + 2 * (away * pulled).sum(dim=1)
        return total

    def misfit(self, images: Tensor) -> Tensor:
        """Estimate the squared distance of every line of the target, shape (lines,)."""
        means, squared = self.means(images)
        each = len(images) // self.classes
        mix = self.target.mix
        distance = sum(
            (mix @ mean.float() - part).square().sum(dim=1)
            for mean, part in zip(means, self.parts, strict=True)
        )
        length = sum(mean.float().square().sum(dim=1) for mean in means)
        variance = (squared - cast("Tensor", length)) / max(1, each - 1)
        return cast("Tensor", distance) - mix.square() @ variance


def weights_of(matches: Sequence[Match]) -> list[Tensor]:
    """Weigh misfits by one over the variance of the noise, relative to the least noisy line.

    The sum is then the Gaussian log-likelihood of the release, but for a factor.
    """
    least = min(float(match.target.spread.min()) for match in matches)
    return [(least / match.target.spread).square() for match in matches]


def _kernels() -> Any:
    """Import Triton when it is needed: torch's builds for a processor come without it."""
    return import_module("aquatint.analyst.images.kernels")


def _quick(perceptual: Perceptual) -> Perceptual:
    """Give the map with a copy of its network that a GPU runs quickly."""
    network = perceptual.network
    module = network.require()
    copied = folded(module) if isinstance(module, ResNet18) else copy.deepcopy(module)
    copied.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return replace(perceptual, network=replace(network, module=copied))


def _last(output: Tensor) -> Tensor:
    """Flatten with the channels last, as a GPU holds them: no copy there."""
    return output.permute(0, 2, 3, 1).flatten(1)


def _column(feature_map: Any) -> str:
    """Give the image column that a map reads, itself or by its pixels."""
    names = {name.split("[")[0] for name in feature_map.reads[1]}
    if len(names) != 1:
        msg = "a generator of images matches maps of one image column"
        raise ReleaseError(msg)
    return str(names.pop())
