"""A public linear view of images: a few directions fitted to images that are declared public."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from aquatint.errors import PlanError
from aquatint.networks.public import PublicNetwork

MOST_COMPONENTS = 512
CENTRE_STEPS, DIRECTION_STEPS = 2**16, 2**18
"""The centre and the directions are on fixed grids, as the curator's pixels are. A coordinate is
then a sum of whole numbers that float64 holds exactly for up to 2**14 pixels and more, the same for
any batch and any machine."""


class Projection(nn.Module):
    """y = P(x − m)/r, pulled back onto the unit ball where it is longer than 1.

    Everything in it is public: the centre m, the directions P (rows of norm one, orthogonal) and
    the level r at which lengths are clipped.
    """

    centre: Tensor
    directions: Tensor
    level: Tensor

    def __init__(self, pixels: int, components: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(pixels))
        self.register_buffer("directions", torch.zeros(components, pixels))
        self.register_buffer("level", torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        """Give the coordinates of images in [0, 1], shape (n, components), of norm at most 1."""
        flat = images.flatten(1).double() - on_grid(self.centre, CENTRE_STEPS)
        y = flat @ on_grid(self.directions, DIRECTION_STEPS).T / self.level.double()
        # Added one by one: elementwise operations round in the same way for any batch.
        squared = sum((y.square()).unbind(1), torch.zeros_like(y[:, 0]))
        clipped: Tensor = y / squared.sqrt().clamp(min=1)[:, None]
        return clipped.float()

    def images(self, coordinates: Tensor) -> Tensor:
        """Give the images, flat and in [0, 1], that have such coordinates."""
        flat = coordinates * self.level @ self.directions + self.centre
        return flat.clamp(0, 1)


def public_projection(
    images: np.ndarray | Tensor, components: int = 50, *, quantile: float = 0.9, note: str = ""
) -> PublicNetwork:
    """Fit principal components to images that you declare public, and a level to clip at.

    Parameters
    ----------
    images
        Public images, uint8 of shape (n, channels, height, width), of the private images' size.
    components
        How many directions to keep.
    quantile
        The share of public images whose projections are left as they are; longer ones are clipped.
    note
        What the images are, in words; saved with the file.

    Examples
    --------
    >>> fitted = public_projection(np.arange(400, dtype=np.uint8).reshape(25, 1, 4, 4), 2)
    >>> fitted.architecture, fitted.input_size
    ('projection', (4, 4))
    """
    given = torch.as_tensor(images)
    if given.dim() != 4 or given.dtype != torch.uint8:
        msg = "public images are uint8 of shape (n, channels, height, width)"
        raise PlanError(msg)
    count, channels, height, width = given.shape
    pixels = channels * height * width
    if not 1 <= components <= min(count - 1, pixels, MOST_COMPONENTS):
        msg = (
            f"{components} components need more public images than that, and are at most "
            f"{min(pixels, MOST_COMPONENTS)}: got {count} images"
        )
        raise PlanError(msg)
    if not 0 < quantile <= 1:
        msg = f"the quantile to clip at is above 0 and at most 1, got {quantile}"
        raise PlanError(msg)
    centre, directions = _principal(given, components)
    fitted = Projection(pixels, components)
    fitted.centre.copy_(on_grid(centre, CENTRE_STEPS))
    fitted.directions.copy_(on_grid(directions, DIRECTION_STEPS))
    lengths = _lengths(given, fitted)
    level = float(np.quantile(lengths.numpy(), quantile))
    if level <= 0:
        msg = "the public images are all alike: give images that differ"
        raise PlanError(msg)
    fitted.level.fill_(level)
    size = (height, width)
    return PublicNetwork.of(
        fitted, input_size=size, channels=channels, architecture="projection", note=note
    )


def on_grid(numbers: Tensor, steps: int) -> Tensor:
    """Round to whole multiples of 1/steps, in float64."""
    return (numbers.double() * steps).round() / steps


def _principal(images: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """Give the mean of the pixels and the first principal directions, in float32."""
    count = len(images)
    pixels = images[0].numel()
    total = torch.zeros(pixels, dtype=torch.float64)
    squares = torch.zeros(pixels, pixels, dtype=torch.float64)
    for part in torch.split(images, 8192):
        flat = part.flatten(1).double() / 255
        total += flat.sum(dim=0)
        squares += flat.T @ flat
    centre = total / count
    _, vectors = torch.linalg.eigh(squares / count - centre[:, None] * centre)
    chosen = vectors[:, -components:].flip(1).T
    signs = chosen.gather(1, chosen.abs().argmax(dim=1, keepdim=True)).sign()
    return centre.float(), (chosen * signs).float()


def _lengths(images: Tensor, fitted: Projection) -> Tensor:
    lengths = []
    for part in torch.split(images, 8192):
        flat = part.flatten(1).float() / 255 - fitted.centre
        lengths.append((flat @ fitted.directions.T).norm(dim=1))
    return torch.cat(lengths)
