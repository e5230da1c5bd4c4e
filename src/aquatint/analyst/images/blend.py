"""Images of a generator with some from a Gaussian by class among them, out of one release.

A generator that matches means of local features draws crisp images whose widest variations, such as
slant and width, are too small. Where the release has a Gaussian by class, the generator matches its
moments as well, which mends most of that; a Gaussian has them all right, and is blurred. In trials
a logistic regression learnt more from both than from either; a perceptron did not always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from aquatint.analyst.images.gaussian import ImageGaussian
from aquatint.analyst.images.model import ImageNetwork
from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.draw import check_count
from aquatint.analyst.where import Where
from aquatint.errors import ReleaseError
from aquatint.image_files import ImageBatch
from aquatint.schema import Schema

GAUSSIAN = "gaussian."
"""How the names of the Gaussian's tensors begin in a file."""


@dataclass(frozen=True, eq=False)
class ImageBlend:
    """A generator and a Gaussian by class that draw side by side.

    Attributes
    ----------
    network, gaussian
        The two models.
    share
        The share of the images that the Gaussian draws.
    """

    network: ImageNetwork
    gaussian: ImageGaussian
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            msg = f"blend is the share of images from the Gaussian, from 0 to 1, got {self.share}"
            raise ReleaseError(msg)

    @property
    def schema(self) -> Schema:
        """The release's schema."""
        return self.network.schema

    @property
    def settings(self) -> dict[str, Any]:
        """How to build the generator again, and the share of the Gaussian."""
        return {**self.network.settings, "blend": self.share}

    def sample(
        self,
        count: int,
        *,
        where: Where | None = None,
        seed: int | None = None,
        device: str | None = None,
    ) -> ImageBatch:
        """Draw images with labels; the arguments are those of `ImageNetwork.sample`."""
        check_count(count)
        blurred = round(self.share * count)
        parts = [
            model.sample(some, where=where, seed=seed, device=device)
            for model, some in ((self.network, count - blurred), (self.gaussian, blurred))
            if some
        ]
        order = np.random.default_rng(None if seed is None else [seed, 2]).permutation(count)
        pixels = np.concatenate([part.pixels for part in parts])[order]
        labels = [part.labels for part in parts if part.labels is not None]
        return ImageBatch(pixels, np.concatenate(labels)[order] if labels else None)

    def save(self, path: str | Path) -> None:
        """Write the model as one file that `load_model` reads."""
        gaussian = {GAUSSIAN + name: tensor for name, tensor in self.gaussian.tensors().items()}
        tensors = {**self.network.tensors(), **gaussian}
        store.save(path, "image blend", self.schema, tensors, self.settings)

    @classmethod
    def from_parts(
        cls, schema: Schema, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> ImageBlend:
        """Rebuild a saved model; each part checks its own tensors."""
        own = {n: t for n, t in tensors.items() if not n.startswith(GAUSSIAN)}
        other = {n.removeprefix(GAUSSIAN): t for n, t in tensors.items() if n.startswith(GAUSSIAN)}
        kept = {name: value for name, value in settings.items() if name != "blend"}
        share = settings.get("blend")
        if not isinstance(share, float):
            msg = "the file does not say how many of its images are from the Gaussian"
            raise ReleaseError(msg)
        network = ImageNetwork.from_parts(schema, own, kept)
        return cls(network, ImageGaussian.from_parts(schema, other, {}), share)

    def __repr__(self) -> str:
        return f"ImageBlend({self.network!r}, {self.gaussian!r}, {self.share:g})"
