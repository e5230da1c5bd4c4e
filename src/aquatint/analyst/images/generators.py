"""Generators of images: from noise and a class to pixels.

All end in a stretched sigmoid that is cut off at black and white. Images are whole numbers from 0
to 255, and in many of them most pixels are exactly 0 or 255; a plain sigmoid would give each class
a faint background of its own, which no embedding sees and every classifier learns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from aquatint.errors import ReleaseError

Kind = Literal["residual", "convolutional", "connected"]
KINDS: tuple[str, ...] = get_args(Kind)
STRETCH = 0.05
"""How far the sigmoid reaches beyond black and beyond white."""
Shape = tuple[int, int, int]


class ClassNorm(nn.Module):
    """Batch normalisation with a gain and a shift for each class."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.gain = nn.Embedding(classes, channels)
        self.shift = nn.Embedding(classes, channels)
        nn.init.ones_(self.gain.weight)
        nn.init.zeros_(self.shift.weight)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """Normalise, then scale and shift by class."""
        gain, shift = (part(classes)[:, :, None, None].to(x) for part in (self.gain, self.shift))
        out: Tensor = self.norm(x) * gain + shift
        return out


class Doubling(nn.Module):
    """A residual block that doubles height and width."""

    def __init__(self, inputs: int, outputs: int, classes: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = ClassNorm(inputs, classes), ClassNorm(outputs, classes)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.around = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """Apply the block."""
        inner = functional.interpolate(functional.relu(self.norm1(x, classes)), scale_factor=2)
        inner = self.conv2(functional.relu(self.norm2(self.conv1(inner), classes)))
        out: Tensor = inner + functional.interpolate(self.around(x), scale_factor=2)
        return out


class Generator(nn.Module):
    """From noise of shape (n, latent) and classes of shape (n,) to images in [0, 1]."""

    def __init__(self, shape: Shape, classes: int, latent: int) -> None:
        super().__init__()
        self.shape, self.classes, self.latent = shape, classes, latent
        self.names = nn.Embedding(classes, latent)

    def forward(self, noise: Tensor, classes: Tensor) -> Tensor:
        """Generate images, shape (n, channels, height, width)."""
        out = self.pixels(torch.cat([noise, self.names(classes)], dim=1), classes)
        _, height, width = self.shape
        light = torch.sigmoid(out[:, :, :height, :width].float())
        return (light * (1 + 2 * STRETCH) - STRETCH).clamp(0, 1)

    def pixels(self, start: Tensor, classes: Tensor) -> Tensor:
        """Give the images before the sigmoid, perhaps with rows and columns too many."""
        raise NotImplementedError


class Residual(Generator):
    """Residual blocks, each twice as fine as the one before (DP-MEPF §6 has such for CIFAR-10)."""

    def __init__(
        self, shape: Shape, classes: int, latent: int = 32, widths: tuple[int, ...] = (256, 128, 64)
    ) -> None:
        super().__init__(shape, classes, latent)
        self.widths = tuple(widths)
        factor = 2 ** (len(widths) - 1)
        self.base = (ceil(shape[1] / factor), ceil(shape[2] / factor))
        self.first = nn.Linear(2 * latent, widths[0] * self.base[0] * self.base[1])
        self.blocks = nn.ModuleList(Doubling(a, b, classes) for a, b in pairwise(widths))
        self.norm = ClassNorm(widths[-1], classes)
        self.last = nn.Conv2d(widths[-1], shape[0], 3, padding=1)

    def pixels(self, start: Tensor, classes: Tensor) -> Tensor:
        """Double the size block by block."""
        x = self.first(start).view(len(start), self.widths[0], *self.base)
        for block in self.blocks:
            x = block(x, classes)
        out: Tensor = self.last(functional.relu(self.norm(x, classes)))
        return out


class Convolutional(Generator):
    """Two full layers, then two convolutions with bilinear upsampling (DP-MERF, DP-MEPF §6)."""

    def __init__(
        self, shape: Shape, classes: int, latent: int = 5, widths: tuple[int, ...] = (200, 16, 8)
    ) -> None:
        super().__init__(shape, classes, latent)
        self.widths = tuple(widths)
        hidden, wide, narrow = widths
        self.base = (ceil(shape[1] / 4), ceil(shape[2] / 4))
        self.full = nn.Sequential(
            nn.Linear(2 * latent, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, wide * self.base[0] * self.base[1]),
        )
        self.norm = nn.BatchNorm2d(wide)
        self.conv1 = nn.Conv2d(wide, narrow, 5, padding=2)
        self.conv2 = nn.Conv2d(narrow, shape[0], 5, padding=2)

    def pixels(self, start: Tensor, classes: Tensor) -> Tensor:
        """Double the size twice between convolutions."""
        del classes  # they are in the start
        x = self.norm(self.full(start).view(len(start), self.widths[1], *self.base))
        x = functional.interpolate(functional.relu(x), scale_factor=2, mode="bilinear")
        x = functional.relu(self.conv1(x))
        out: Tensor = self.conv2(functional.interpolate(x, scale_factor=2, mode="bilinear"))
        return out


class Connected(Generator):
    """Full layers alone (DP-MERF, DP-HP)."""

    def __init__(
        self, shape: Shape, classes: int, latent: int = 5, widths: tuple[int, ...] = (500, 500)
    ) -> None:
        super().__init__(shape, classes, latent)
        self.widths = tuple(widths)
        layers: list[nn.Module] = []
        inputs = 2 * latent
        for width in widths:
            layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
            inputs = width
        channels, height, wide = shape
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, channels * height * wide))

    def pixels(self, start: Tensor, classes: Tensor) -> Tensor:
        """Give all pixels at once."""
        del classes
        out: Tensor = self.layers(start).view(len(start), *self.shape)
        return out


class Several(Generator):
    """Several generators that draw in turn.

    Each has biases of its own, faint patterns by class among them. A classifier learns what all
    images of a class share; what only some of the generators do stands out less.
    """

    def __init__(self, members: Sequence[Generator]) -> None:
        first = members[0]
        super().__init__(first.shape, first.classes, first.latent)
        del self.names  # each member has its own
        self.members = nn.ModuleList(members)

    def forward(self, noise: Tensor, classes: Tensor) -> Tensor:
        """Generate images, the first by the first member, the second by the second, and so on."""
        out = torch.empty(len(noise), *self.shape, device=noise.device)
        turns = len(self.members)
        for turn, member in enumerate(self.members):
            out[turn::turns] = member(noise[turn::turns], classes[turn::turns])
        return out


_BUILD: dict[str, type[Residual | Convolutional | Connected]] = {
    "residual": Residual,
    "convolutional": Convolutional,
    "connected": Connected,
}


def build(
    kind: str,
    shape: Shape,
    classes: int,
    latent: int | None = None,
    widths: tuple[int, ...] | None = None,
) -> Residual | Convolutional | Connected:
    """Build a generator by name; `latent` and `widths` have defaults of their own for each."""
    if kind not in _BUILD:
        msg = f"unknown generator {kind!r}: choose one of {', '.join(KINDS)}"
        raise ReleaseError(msg)
    given: Mapping[str, Any] = {"latent": latent, "widths": widths}
    chosen = {name: value for name, value in given.items() if value is not None}
    return _BUILD[kind](shape, classes, **chosen)


def recalibrate(generator: nn.Module, draw: Callable[[Any], None], batches: int) -> None:
    """Take the statistics of batch normalisation anew, for weights that were averaged."""
    norms = [m for m in generator.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over the batches
    generator.train()
    with torch.no_grad():
        for _ in range(batches):
            draw(generator)
    generator.eval()
