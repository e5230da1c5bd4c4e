"""Networks that classify small images: a small CNN, and the ResNet9 of FFCV that DP-MEPF trains."""

from __future__ import annotations

from torch import Tensor, nn

from aquatint.evaluate.errors import EvaluationError

LEAST = {"cnn": 4, "resnet9": 12}
"""The smallest side of an image that each can take."""


def build(name: str, channels: int, size: tuple[int, int], classes: int) -> nn.Module:
    """Make a network, not trained yet."""
    if min(size) < LEAST[name]:
        msg = f"{name} needs images of {LEAST[name]} by {LEAST[name]} pixels or more"
        raise EvaluationError(msg)
    return small_cnn(channels, size, classes) if name == "cnn" else resnet9(channels, classes)


def small_cnn(channels: int, size: tuple[int, int], classes: int) -> nn.Sequential:
    """Two convolutions of 32 and 64 channels, each with a max-pool, and two linear layers."""
    flat = 64 * (size[0] // 4) * (size[1] // 4)
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(flat, 128), nn.ReLU(), nn.Dropout(0.5)),
        nn.Linear(128, classes),
    )


def resnet9(channels: int, classes: int) -> nn.Sequential:
    """Eight convolutions with batch normalisation, two detours, and a linear layer."""
    return nn.Sequential(
        _convolution(channels, 64),
        _convolution(64, 128, kernel=5, stride=2, padding=2),
        _Detour(nn.Sequential(_convolution(128, 128), _convolution(128, 128))),
        _convolution(128, 256),
        nn.MaxPool2d(2),
        _Detour(nn.Sequential(_convolution(256, 256), _convolution(256, 256))),
        _convolution(256, 128, padding=0),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes, bias=False),
        _Times(0.2),
    )


def _convolution(
    inputs: int, outputs: int, *, kernel: int = 3, stride: int = 1, padding: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class _Detour(nn.Module):
    """Adds what a part makes of its input to the input."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, images: Tensor) -> Tensor:
        """Take both ways."""
        out: Tensor = images + self.part(images)
        return out


class _Times(nn.Module):
    """Multiplies by a constant: it keeps the first logits small."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, logits: Tensor) -> Tensor:
        """Multiply."""
        return logits * self.factor
