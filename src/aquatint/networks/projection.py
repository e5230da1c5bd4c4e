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
TURNS = 15
"""How often coordinates and the range of pixels are set right in turn."""
LEAST_VARIANCE = 1e-4
"""Of the first direction's: below it, a direction gets no more weight."""


class Projection(nn.Module):
    """y = P(x − m)/r, pulled back onto the unit ball where it is longer than 1.

    Everything in it is public: the centre m, the directions P (orthogonal rows, whose lengths say
    how much each counts) and the level r at which lengths are clipped.
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
        """Give images, flat and in [0, 1], whose coordinates are as near to these as can be.

        The plain inverse leaves the range of pixels. Were it only cut off there, the rest would be
        a faint pattern by class that real images lack and that a linear classifier relies on. So
        the range and the coordinates are set right in turn (projections onto convex sets).
        """
        squares = self.directions.square().sum(dim=1, keepdim=True)
        back = self.directions / squares.clamp(min=1e-12)
        wanted = coordinates * self.level
        flat = wanted @ back + self.centre
        for _ in range(TURNS):
            flat = flat.clamp(0, 1)
            flat = flat + (wanted - (flat - self.centre) @ self.directions.T) @ back
        return flat.clamp(0, 1)


def public_projection(
    images: np.ndarray | Tensor,
    components: int = 50,
    *,
    whiten: float = 0.5,
    quantile: float | None = None,
    note: str = "",
) -> PublicNetwork:
    """Fit principal components to images that you declare public, and a level to clip at.

    Private images need not look like the public ones. By default the level follows from the range
    of pixels: it is the length of an image as far from the centre as an image can be, pure black
    and white, that is spread over the directions as the public images are. With all directions
    alike no image is longer; else few are, and by little. So digits stay as they are, though they
    have far more contrast than photographs.

    Parameters
    ----------
    images
        Public images, uint8 of shape (n, channels, height, width), of the private images' size.
    components
        How many directions to keep.
    whiten
        0 counts all directions alike, 1 in inverse proportion to the public images' deviation
        along them. Between the two, noise is spread best: much along directions of large variance,
        little along those of small.
    quantile
        For private images that look like the public ones: the share of public images whose
        projections are left as they are. Longer ones are clipped, so that noise is less.
    note
        What the images are, in words; saved with the file.

    Examples
    --------
    >>> fitted = public_projection(np.arange(400, dtype=np.uint8).reshape(25, 1, 4, 4), 2)
    >>> fitted.architecture, fitted.input_size
    ('projection', (4, 4))
    """
    given = torch.as_tensor(images)
    _check(given, components, whiten, quantile)
    centre, directions, variances = _principal(given)
    if float(variances.sum()) <= 1e-12:
        msg = "the public images are all alike: give images that differ"
        raise PlanError(msg)
    kept = variances[:components].clamp(min=LEAST_VARIANCE * float(variances[0]))
    weights = (kept / kept.min()) ** (-whiten / 2)
    _, channels, height, width = given.shape
    fitted = Projection(channels * height * width, components)
    fitted.centre.copy_(on_grid(centre, CENTRE_STEPS))
    fitted.directions.copy_(on_grid(directions[:components] * weights[:, None], DIRECTION_STEPS))
    if quantile is None:
        furthest = torch.maximum(centre, 1 - centre).square().sum()
        level = float((furthest * (weights.square() * kept).sum() / kept.sum()).sqrt())
    else:
        level = float(np.quantile(_lengths(given, fitted).numpy(), quantile))
    fitted.level.fill_(max(level, 1e-12))
    size = (height, width)
    return PublicNetwork.of(
        fitted, input_size=size, channels=channels, architecture="projection", note=note
    )


def _check(given: Tensor, components: int, whiten: float, quantile: float | None) -> None:
    if given.dim() != 4 or given.dtype != torch.uint8:
        msg = "public images are uint8 of shape (n, channels, height, width)"
        raise PlanError(msg)
    most = min(given[:1].numel(), MOST_COMPONENTS)
    if not 1 <= components <= min(len(given) - 1, most):
        msg = (
            f"{components} components need more public images than that, and are at most "
            f"{most}: got {len(given)} images"
        )
        raise PlanError(msg)
    if quantile is not None and not 0 < quantile <= 1:
        msg = f"the quantile to clip at is above 0 and at most 1, got {quantile}"
        raise PlanError(msg)
    if not 0 <= whiten <= 1:
        msg = f"whiten is between 0 and 1, got {whiten}"
        raise PlanError(msg)


def on_grid(numbers: Tensor, steps: int) -> Tensor:
    """Round to whole multiples of 1/steps, in float64."""
    return (numbers.double() * steps).round() / steps


def _principal(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Give the mean of the pixels, the principal directions and the variances along them."""
    count = len(images)
    pixels = images[0].numel()
    total = torch.zeros(pixels, dtype=torch.float64)
    squares = torch.zeros(pixels, pixels, dtype=torch.float64)
    for part in torch.split(images, 8192):
        flat = part.flatten(1).double() / 255
        total += flat.sum(dim=0)
        squares += flat.T @ flat
    centre = total / count
    values, vectors = torch.linalg.eigh(squares / count - centre[:, None] * centre)
    chosen = vectors.flip(1).T
    signs = chosen.gather(1, chosen.abs().argmax(dim=1, keepdim=True)).sign()
    return centre, chosen * signs, values.flip(0).clamp(min=0)


def _lengths(images: Tensor, fitted: Projection) -> Tensor:
    lengths = []
    for part in torch.split(images, 8192):
        flat = part.flatten(1).float() / 255 - fitted.centre
        lengths.append((flat @ fitted.directions.T).norm(dim=1))
    return torch.cat(lengths)
