"""Tiny public networks and 8×8 digits, for all tests of images."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits

from aquatint.image_files import ImageBatch
from aquatint.networks import (
    PublicNetwork,
    public_projection,
    public_reduction,
    resnet18,
    vgg16,
)
from aquatint.schema import Schema

CLASSES = [str(digit) for digit in range(10)]


def image_schema(protects="replace one row", *, size=(8, 8), channels=1, label=True, **privacy):
    columns = {"image": {"kind": "image", "size": list(size), "channels": channels}}
    if label:
        columns["label"] = {"kind": "categorical", "categories": CLASSES}
    return Schema.from_dict(
        {
            "name": "digits",
            "privacy": {"protects": protects, **privacy},
            "columns": columns,
            **({"label": "label"} if label else {}),
        }
    )


@cache
def digits() -> ImageBatch:
    found = load_digits()
    pixels = (found.images * 255 / 16).round().astype(np.uint8)[..., None]
    return ImageBatch(pixels, found.target.astype(str))


def some_digits(count, start=0):
    whole = digits()
    return ImageBatch(whole.pixels[start : start + count], whole.labels[start : start + count])


@cache
def tiny_resnet(seed=0, size=8) -> PublicNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = resnet18(width=2, classes=3)
    return PublicNetwork.of(module, input_size=size, architecture="resnet18")


@cache
def tiny_vgg(seed=0, size=16) -> PublicNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = vgg16(width=2)
    return PublicNetwork.of(module, input_size=size, architecture="vgg16")


@cache
def tiny_projection(components=6) -> PublicNetwork:
    return public_projection(digits().pixels[900:].transpose(0, 3, 1, 2).copy(), components)


@cache
def tiny_reduction(components=4) -> PublicNetwork:
    public = digits().pixels[900:1100].transpose(0, 3, 1, 2).copy()
    return public_reduction(tiny_resnet(), public, components=components, pool=2)


def random_images(count, seed=0, shape=(1, 8, 8)):
    """Images at the ends of what there is: blank, full, one pixel, noise."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *shape)).astype(np.uint8)
    images[0:1], images[1:2], images[2:3] = 0, 255, 0
    images[2:3, 0, 0, 0] = 255
    images[3:4] = np.where(images[3:4] > 127, 255, 0)
    return torch.from_numpy(images)
