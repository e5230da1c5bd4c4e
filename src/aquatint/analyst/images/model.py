"""A fitted generator of images: a public model, to draw from, save and load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.images.generators import Generator, Several, build
from aquatint.analyst.images.tones import apply
from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.draw import check_count
from aquatint.analyst.synthesize.store import add_up, are_shares
from aquatint.analyst.where import Where, conditions
from aquatint.columns import Image
from aquatint.errors import ReleaseError
from aquatint.image_files import ImageBatch
from aquatint.schema import Schema

BATCH = 2_000
MEMBERS = 100
LARGEST = 1e6
"""Trained weights are far smaller."""


@dataclass(frozen=True, eq=False)
class ImageNetwork:
    """A trained generator of images, labelled if the schema has a label.

    Attributes
    ----------
    schema
        The release's schema.
    shares
        The share of every class of the label, or a single 1.
    generator
        The network.
    settings
        How to build it again: its kind, latent and widths, and how many `members` draw in turn.
    curves
        What becomes of every tone, uint8 of shape (channels, 256), if tones are known.
    """

    schema: Schema
    shares: np.ndarray
    generator: Generator
    settings: Mapping[str, Any]
    curves: np.ndarray | None = None

    def sample(
        self,
        count: int,
        *,
        where: Where | None = None,
        seed: int | None = None,
        device: str | None = None,
    ) -> ImageBatch:
        """Draw images with labels, in the shares of the classes.

        Parameters
        ----------
        count
            How many images.
        where
            ``{"label": "7"}`` or ``"label in ('1', '7')"``: only these classes.
        seed
            The same seed gives the same images on the same machine.
        device
            Where to compute; by default a GPU if there is one.
        """
        check_count(count)
        classes = drawn_classes(self.schema, self.shares, count, where, seed)
        place = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.generator.to(place).eval()
        parts = list(self._batches(torch.from_numpy(classes).to(place), seed, place))
        self.generator.to("cpu")
        pixels = apply(self.curves, np.concatenate(parts))
        return ImageBatch(pixels, label_names(self.schema, classes))

    def _batches(self, classes: Tensor, seed: int | None, device: str) -> Iterator[np.ndarray]:
        dice = torch.Generator(device=device)
        dice.seed() if seed is None else dice.manual_seed(seed)
        half = torch.device(device).type == "cuda"
        for some in torch.split(classes, BATCH):
            noise = torch.randn(len(some), self.generator.latent, generator=dice, device=device)
            with torch.no_grad(), torch.autocast(some.device.type, torch.bfloat16, enabled=half):
                images = self.generator(noise, some)
            yield as_pixels(images)

    def tensors(self) -> dict[str, Tensor]:
        """Give what a file holds of the model."""
        found = {"shares": torch.from_numpy(self.shares), **self.generator.state_dict()}
        if self.curves is not None:
            found["curves"] = torch.from_numpy(self.curves)
        return found

    def save(self, path: str | Path) -> None:
        """Write the model as one file that `load_model` reads."""
        store.save(path, "image network", self.schema, self.tensors(), dict(self.settings))

    @classmethod
    def load(cls, path: str | Path) -> ImageNetwork:
        """Read what `save` wrote."""
        method, schema, tensors, settings = store.load(path)
        if method != "image network":
            msg = f"{path} holds a {method}, not a generator of images"
            raise ReleaseError(msg)
        return cls.from_parts(schema, tensors, settings)

    @classmethod
    def from_parts(
        cls, schema: Schema, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> ImageNetwork:
        """Rebuild a saved model, after checking that its parts belong together."""
        weights = dict(tensors)
        try:
            shares, curves = weights.pop("shares"), weights.pop("curves", None)
            _, column = image_of(schema)
            if curves is not None and not _is_curves(curves, column.shape[0]):
                msg = "its curves of tones are not of 256 values for each channel"
                raise ValueError(msg)
            classes = class_count(schema)
            if not are_shares(shares, (classes,)) or not add_up(shares.sum()):
                msg = "its classes are not those of the schema's label"
                raise ValueError(msg)
            members = int(settings.get("members", 1))
            if not 1 <= members <= MEMBERS:
                msg = f"it has {members} generators"
                raise ValueError(msg)
            with torch.device("meta"):
                built: list[Generator] = [
                    build(
                        str(settings["kind"]),
                        column.shape,
                        classes,
                        int(settings["latent"]),
                        tuple(map(int, settings["widths"])),
                    )
                    for _ in range(members)
                ]
                generator = built[0] if members == 1 else Several(built)
            wanted = {n: (t.dtype, t.shape) for n, t in generator.state_dict().items()}
            if {n: (t.dtype, t.shape) for n, t in weights.items()} != wanted:
                msg = "its layers do not follow on each other"
                raise ValueError(msg)
            if not all((t.abs() < LARGEST).all() for n, t in weights.items() if _counts(n)):
                msg = "its weights are not finite"
                raise ValueError(msg)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            msg = f"the generator in the file does not fit together: {error}"
            raise ReleaseError(msg) from None
        generator.load_state_dict(weights, assign=True)
        found = None if curves is None else curves.numpy()
        return cls(schema, shares.double().numpy(), generator.eval(), dict(settings), found)

    def __repr__(self) -> str:
        return f"ImageNetwork({self.schema.name!r}, {self.settings['kind']} generator)"


def _counts(name: str) -> bool:
    """Whether a tensor is a weight, and not the number of batches that a norm has seen."""
    return not name.endswith("num_batches_tracked")


def _is_curves(curves: Tensor, channels: int) -> bool:
    return curves.dtype == torch.uint8 and curves.shape == (channels, 256)


def image_of(schema: Schema) -> tuple[str, Image]:
    """Give the one image column."""
    if len(schema.images) != 1:
        msg = f"images are drawn for one image column, and the schema has {len(schema.images)}"
        raise ReleaseError(msg)
    name, column = next(iter(schema.images.items()))
    return name, column


def class_count(schema: Schema) -> int:
    """Give the number of classes, 1 without a label."""
    return 1 if schema.label is None else schema.cells()[schema.label]


def as_pixels(images: Tensor) -> np.ndarray:
    """Turn images in [0, 1] into uint8 of shape (n, height, width, channels)."""
    whole = (images.float() * 255).round().clamp(0, 255).to(torch.uint8)
    return np.ascontiguousarray(whole.permute(0, 2, 3, 1).cpu().numpy())


def drawn_classes(
    schema: Schema, shares: np.ndarray, count: int, where: Where | None, seed: int | None
) -> np.ndarray:
    """Deal out classes in their shares, each rounded up or down, in random order."""
    allowed = np.ones(len(shares))
    for name, condition in conditions(schema, where).items():
        if name != schema.label:
            msg = f"images can be drawn by their label alone, and {name!r} is not it"
            raise ReleaseError(msg)
        allowed = condition.weights
    wanted = shares * allowed
    if wanted.sum() <= 0:
        msg = "no class satisfies the condition, or none that does has any share in the release"
        raise ReleaseError(msg)
    rng = np.random.default_rng(seed)
    edges = np.floor(np.cumsum(wanted / wanted.sum()) * count + rng.random()).astype(int)
    edges = np.minimum(edges, count)
    edges[-1] = count
    dealt = np.repeat(np.arange(len(shares)), np.diff(edges, prepend=0))
    return np.asarray(rng.permutation(dealt))


def label_names(schema: Schema, classes: np.ndarray) -> np.ndarray | None:
    """Give the classes by name, as text."""
    if schema.label is None:
        return None
    return np.asarray(np.asarray(schema.cell_names(schema.label))[classes])
