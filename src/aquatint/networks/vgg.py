"""VGG16 and VGG19: convolutions and max-pools only, as DP-MEPF uses them (§5.1)."""

from __future__ import annotations

from torch import Tensor, nn

from aquatint.networks.residual import Normalise

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PLANS = {"vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}
FACTORS = (1, 2, 4, 8, 8)


class VGG(nn.Module):
    """Stages of 3×3 convolutions with ReLUs, each but the last followed by a max-pool.

    The last max-pool is left out: nothing comes after it, and no ReLU is behind it.
    """

    def __init__(self, repeats: tuple[int, ...], width: int, channels: int) -> None:
        super().__init__()
        self.normalise = Normalise(channels, IMAGENET_MEAN, IMAGENET_DEVIATION)
        layers: list[nn.Module] = []
        inputs = channels
        for stage, (count, factor) in enumerate(zip(repeats, FACTORS, strict=True)):
            if stage:
                layers.append(nn.MaxPool2d(2))
            for _ in range(count):
                layers += [nn.Conv2d(inputs, width * factor, 3, padding=1), nn.ReLU()]
                inputs = width * factor
        self.features = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """Give the last features."""
        out: Tensor = self.features(self.normalise(images))
        return out


def vgg16(*, width: int = 64, channels: int = 3) -> VGG:
    """Build VGG16's thirteen convolutions; at 32 by 32 their ReLUs give 276,480 features."""
    return VGG(PLANS["vgg16"], width, channels)


def vgg19(*, width: int = 64, channels: int = 3) -> VGG:
    """Build VGG19's sixteen convolutions; at 32 by 32 their ReLUs give 303,104 features."""
    return VGG(PLANS["vgg19"], width, channels)
