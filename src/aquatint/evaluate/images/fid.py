"""The Fréchet distance between the features of two sets of images: FID, if Inception's.

FID is biased upwards, the more the fewer images there are: with 2,000 of CIFAR-10, training and
test images are already about 30 apart. So there is one number of images for both sides, and it
stands with every value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.images.data import Images
from aquatint.progress import track

Features = Callable[[Tensor], Tensor]
"""Turns uint8 images of shape (n, channels, height, width) into features, (n, dimension)."""
BATCH = 250
IMAGES = 5_000
"""How many images FID compares by default: as many as in DP-MEPF."""


@dataclass(frozen=True)
class Frechet:
    """A Fréchet distance, the number of images on each side, and what real images get.

    Attributes
    ----------
    value
        The squared distance, which is what FID is.
    images
        The number of images on each side.
    sanity
        The same between real images and real test images; None without test images.
    features
        Whose features they are.
    """

    value: float
    images: int
    sanity: float | None
    features: str


class Moments:
    """Mean and covariance of features that come in batches, in float64.

    Sums are taken about the mean of the first batch, so that nothing cancels.
    """

    def __init__(self) -> None:
        self.count = 0
        self._shift: Tensor | None = None
        self._sum: Tensor | None = None
        self._squares: Tensor | None = None

    def add(self, features: Tensor) -> None:
        """Take in a batch of features."""
        rows = features.to(torch.float64)
        if not torch.isfinite(rows).all():
            msg = "the feature network gives values that are not finite"
            raise EvaluationError(msg)
        if self._shift is None or self._sum is None or self._squares is None:
            self._shift = rows.mean(dim=0)
            self._sum = torch.zeros_like(self._shift)
            self._squares = torch.zeros(
                len(self._shift), len(self._shift), dtype=rows.dtype, device=rows.device
            )
        moved = rows - self._shift
        self.count += len(rows)
        self._sum += moved.sum(dim=0)
        self._squares += moved.T @ moved

    def settled(self) -> tuple[Tensor, Tensor]:
        """Give the mean and the covariance, with n − 1 in the denominator."""
        if self.count < 2 or self._shift is None or self._sum is None or self._squares is None:
            msg = "a covariance needs two images or more"
            raise EvaluationError(msg)
        away = self._sum / self.count
        squares = self._squares - self.count * torch.outer(away, away)
        return self._shift + away, squares / (self.count - 1)


def frechet(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> float:
    """Give |m₁ − m₂|² + tr(C₁ + C₂ − 2 (C₁ C₂)^½) for two means and covariances.

    The trace of the root is the sum of the singular values of C₁^½ C₂^½, with the roots of the two
    from their eigenvalues. All of that is stable where covariances are singular, as they are with
    fewer images than features; the root of the product itself is not.
    """
    (mean1, cov1), (mean2, cov2) = first, second
    cross = torch.linalg.svdvals(_root(cov1) @ _root(cov2)).sum()
    spread = cov1.trace() + cov2.trace() - 2 * cross
    return max(0.0, float((mean1 - mean2).square().sum() + spread))


def _root(covariance: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh((covariance + covariance.T) / 2)
    root: Tensor = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    return root


def moments(
    images: Images, features: Features, *, batch: int = BATCH, progress: bool = False
) -> tuple[Tensor, Tensor]:
    """Pass images through a feature network and give mean and covariance."""
    found = Moments()
    with track(f"features of {images.what} images", len(images), show=progress) as advance:
        for part in images.batches(batch):
            with torch.no_grad():
                found.add(features(part))
            advance(len(part))
    return found.settled()


def fid(
    real: Images,
    synthetic: Images,
    features: Features,
    *,
    test: Images | None = None,
    images: int = IMAGES,
    name: str = "Inception",
    seed: int = 0,
    batch: int = BATCH,
    progress: bool = False,
) -> Frechet:
    """Give the Fréchet distance of as many images from either side, drawn at random.

    Parameters
    ----------
    real, synthetic
        The two sides.
    features
        The network, such as `Inception.load(…)`.
    test
        Real images kept apart: with them, the distance of real images from real images is given
        too. Nothing below it can be expected.
    images
        How many of each side.
    name
        Whose features they are, for the table.
    seed
        Seeds the drawing.
    """
    sides = [side for side in (real, synthetic, test) if side is not None]
    short = next((side for side in sides if len(side) < images), None)
    if short is not None:
        msg = (
            f"a Fréchet distance of {images:,} images needs as many on each side, and there are "
            f"{len(short):,} {short.what} ones: ask for fewer, and compare like with like"
        )
        raise EvaluationError(msg)
    found = [
        moments(side.some(images, seed), features, batch=batch, progress=progress) for side in sides
    ]
    sanity = None if test is None else frechet(found[0], found[2])
    return Frechet(frechet(found[0], found[1]), images, sanity, name)
