"""Images without a generator: a Gaussian for each class in a public view of the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.images.model import as_pixels, drawn_classes, image_of, label_names
from aquatint.analyst.images.targets import projected, shares_of
from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.draw import check_count
from aquatint.analyst.where import Where
from aquatint.errors import ReleaseError
from aquatint.features.projected import CROSS, SQUARE, ProjectedMoments
from aquatint.image_files import ImageBatch
from aquatint.networks.projection import Projection
from aquatint.release.model import Block, Release
from aquatint.schema import Schema


@dataclass(frozen=True, eq=False)
class ImageGaussian:
    """A Gaussian for each class: the line that every generator has to beat.

    Attributes
    ----------
    schema
        The release's schema.
    shares
        The share of every class, or a single 1.
    means, factors
        The mean of each class in the coordinates of the projection, and a square root of its
        covariance.
    projection
        The public view: pixels from coordinates.
    """

    schema: Schema
    shares: np.ndarray
    means: Tensor
    factors: Tensor
    projection: Projection

    def sample(
        self,
        count: int,
        *,
        where: Where | None = None,
        seed: int | None = None,
        device: str | None = None,
    ) -> ImageBatch:
        """Draw images with labels; the arguments are those of `ImageNetwork.sample`."""
        del device  # a matrix product: nothing to gain
        check_count(count)
        classes = drawn_classes(self.schema, self.shares, count, where, seed)
        rng = np.random.default_rng(None if seed is None else [seed, 1])
        noise = torch.from_numpy(rng.standard_normal((count, self.means.shape[1]))).float()
        column = image_of(self.schema)[1]
        pixels = np.empty((count, column.shape[1], column.shape[2], column.shape[0]), np.uint8)
        for number in range(len(self.shares)):
            rows = np.flatnonzero(classes == number)
            some = noise[torch.from_numpy(rows)] @ self.factors[number].T + self.means[number]
            images = self.projection.images(some).view(-1, *column.shape)
            pixels[rows] = as_pixels(images)
        return ImageBatch(pixels, label_names(self.schema, classes))

    def tensors(self) -> dict[str, Tensor]:
        """Give what a file holds of the model."""
        found = {"shares": torch.from_numpy(self.shares), "means": self.means}
        return found | {"factors": self.factors, **self.projection.state_dict()}

    def save(self, path: str | Path) -> None:
        """Write the model as one file that `load_model` reads."""
        store.save(path, "image gaussian", self.schema, self.tensors(), {})

    @classmethod
    def from_parts(
        cls, schema: Schema, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> ImageGaussian:
        """Rebuild a saved model, after checking that its parts belong together."""
        del settings
        try:
            shares, means, factors = (tensors[n] for n in ("shares", "means", "factors"))
            size = tensors["directions"].shape[0]
            projection = Projection(int(np.prod(image_of(schema)[1].shape)), size)
            projection.load_state_dict({n: tensors[n] for n in projection.state_dict()})
            if means.shape != (len(shares), size) or factors.shape != (len(shares), size, size):
                msg = "its means and covariances do not follow on each other"
                raise ValueError(msg)
            if not all(bool(t.isfinite().all()) for t in tensors.values()):
                msg = "its numbers are not finite"
                raise ValueError(msg)
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            msg = f"the Gaussian in the file does not fit together: {error}"
            raise ReleaseError(msg) from None
        return cls(schema, shares.double().numpy(), means, factors, projection)

    def __repr__(self) -> str:
        return f"ImageGaussian({self.schema.name!r}, {self.means.shape[1]} coordinates)"


def moments_block(release: Release) -> tuple[Block, ProjectedMoments] | None:
    """Find the block that holds counts, means and second moments, if there is one."""
    for block in release.blocks:
        inner = projected(block)
        if inner is not None:
            return block, inner
    return None


def fit_gaussian(release: Release) -> ImageGaussian:
    """Read the Gaussians off a release that `pixel_gaussian` planned.

    The spectrum of noise alone, a symmetric d by d matrix of independent entries of deviation σ off
    the diagonal, ends at 2σ√d. An eigenvalue of a covariance above that edge becomes what it must
    have been without the noise. Those below it cannot be told from noise, but their sum can: it is
    shared out evenly among them (Tipping and Bishop 1999), so that no direction is left without any
    variance, which a classifier would trust too much.
    """
    found = moments_block(release)
    if found is None:
        msg = "the release has no Gaussian in a public view: sketch with the recipe pixel_gaussian"
        raise ReleaseError(msg)
    block, inner = found
    module = inner.network.require()
    if not isinstance(module, Projection):
        msg = "the release's public network is not a projection"
        raise ReleaseError(msg)
    shares = shares_of(release, release.schema.label)
    sums = torch.from_numpy(block.sum.reshape(len(shares), -1))
    counts, first, second = inner.unpack(sums)
    rows = counts.clamp(min=1.0)
    means = first / rows[:, None]
    covariances = second / rows[:, None, None] - means[:, :, None] * means[:, None, :]
    # Products of two coordinates weigh more than squares, and so have less noise when unpacked.
    noise = float(block.stderr[0]) * (SQUARE / CROSS) / rows
    factors = torch.stack(
        [_square_root(c, float(n)) for c, n in zip(covariances, noise, strict=True)]
    )
    projection = Projection(module.centre.numel(), inner.components)
    projection.load_state_dict({n: t.cpu() for n, t in module.state_dict().items()})
    return ImageGaussian(release.schema, shares, means.float(), factors.float(), projection)


def _square_root(covariance: Tensor, noise: float) -> Tensor:
    """Take the noise's part off the eigenvalues, and give a square root of what is left."""
    values, vectors = torch.linalg.eigh((covariance + covariance.T) / 2)
    edge = 2 * noise * len(values) ** 0.5
    # Above the edge, a spike λ shows as λ + σ²d/λ.
    spike = (values + (values.square() - edge**2).clamp(min=0).sqrt()) / 2
    known = values > edge
    rest = (values.sum() - spike[known].sum()).clamp(min=0) / max(1, int((~known).sum()))
    return torch.mul(vectors, torch.where(known, spike, rest).sqrt())
