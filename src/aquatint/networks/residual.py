"""ResNet18 for small images: a 3×3 stem and no pooling before the blocks (DP-MEPF §5.1)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from aquatint.errors import PlanError
from aquatint.networks.public import Size

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
"""Of natural images; a public choice that only sets the scale."""


class Normalise(nn.Module):
    """Take a public mean off every channel and divide by a public deviation."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        channels: int,
        mean: tuple[float, ...] = MEAN,
        deviation: tuple[float, ...] = DEVIATION,
    ) -> None:
        super().__init__()
        if channels == 1:
            mean, deviation = (sum(mean) / len(mean),), (sum(deviation) / len(deviation),)
        self.register_buffer("mean", torch.tensor(mean).view(1, channels, 1, 1))
        self.register_buffer("deviation", torch.tensor(deviation).view(1, channels, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Normalise images in [0, 1]."""
        return (images - self.mean) / self.deviation


class Block(nn.Module):
    """Two convolutions and a way around them; each ends in a ReLU of its own."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu2 = nn.ReLU()
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(short, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        inner = self.relu1(self.norm1(self.conv1(x)))
        out: Tensor = self.relu2(self.norm2(self.conv2(inner)) + self.around(x))
        return out


class ResNet18(nn.Module):
    """Eight blocks in four stages; at 32 by 32 its seventeen ReLUs give 557,056 features."""

    def __init__(self, classes: int, width: int, channels: int) -> None:
        super().__init__()
        self.normalise = Normalise(channels)
        self.stem = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        stages, inputs = [], width
        for stage in range(4):
            outputs = width * 2**stage
            stages.append(Block(inputs, outputs, 1 if stage == 0 else 2))
            stages.append(Block(outputs, outputs, 1))
            inputs = outputs
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits of the classes."""
        x = self.blocks(self.relu(self.norm(self.stem(self.normalise(images)))))
        logits: Tensor = self.head(x.mean(dim=(2, 3)))
        return logits


def resnet18(
    *, classes: int = 10, width: int = 64, channels: int = 3, input_size: int | Size = 32
) -> ResNet18:
    """Build a ResNet18 with random weights, to be trained on public images.

    Parameters
    ----------
    classes
        How many classes it tells apart.
    width
        The channels of the first stage; the paper's has 64.
    channels, input_size
        Of the images; the size only has to be large enough for three halvings.

    Examples
    --------
    >>> import torch
    >>> resnet18(classes=5, width=4)(torch.zeros(2, 3, 16, 16)).shape
    torch.Size([2, 5])
    """
    smallest = input_size if isinstance(input_size, int) else min(input_size)
    if not (1 <= width <= 1024 and 1 <= classes <= 1_000_000 and smallest >= 8):
        msg = "a ResNet18 needs a width from 1 to 1,024, a class, and images of at least 8 pixels"
        raise PlanError(msg)
    return ResNet18(classes, width, channels)


def folded(network: ResNet18) -> ResNet18:
    """Give a copy in which each normalisation is part of the convolution before it.

    Nothing is left of it but a name, behind which the same numbers come, but for rounding; a pass
    reads and writes that much less.
    """
    made = copy.deepcopy(network)
    _fold(made, "stem", "norm")
    for part in list(made.modules()):
        if isinstance(part, Block):
            _fold(part, "conv1", "norm1")
            _fold(part, "conv2", "norm2")
            if isinstance(part.around, nn.Sequential):
                _fold(part.around, "0", "1")
    return made


def _fold(owner: nn.Module, convolution: str, norm: str) -> None:
    pair = owner.get_submodule(convolution), owner.get_submodule(norm)
    setattr(owner, convolution, fuse_conv_bn_eval(*pair))  # type: ignore[arg-type, type-var]
    setattr(owner, norm, nn.Identity())
