"""What the benchmark of images runs: private images, public data and methods.

Every method has one setting for all images and every ε, the default of the library where nothing
else is said. No setting was chosen on test images: see the page of results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from image_data import ImageSet, load, network
from image_letters import ALPHABET, letters
from torch.nn import functional

import aquatint as aq
from aquatint import networks
from aquatint.analyst.images.front import synthesize_images
from aquatint.curator.finishing import finish
from aquatint.curator.sketch import accumulate, on_device
from aquatint.curator.sums import PrivateSum
from aquatint.image_files import ImageBatch
from aquatint.networks.public import PublicNetwork
from aquatint.networks.training import pretrain
from aquatint.schema import Schema

GREY = (0.299, 0.587, 0.114)
EPOCHS = 10
COMPONENTS = 50
COSINES = 100
CENTRED = 150
"""Cosines of a view that a first release centres: about their mean, images spread over more."""
TWELVE = ("papers",)
WIDE = (256, 256, 256, 128)
THREE = ("logreg_torch", "mlp_torch", "cnn")
TINY = {"steps": 4, "batch": 20, "widths": (16, 8, 8)}
NO_SECRET = aq.Budget(100.0, 1e-5)
"""Public images need no privacy: the least noise that there is."""


@dataclass(frozen=True)
class Place:
    """Where and how large: the device, the folder of work, and whether all is tiny."""

    device: str
    work: Path
    tiny: bool = False


@dataclass(frozen=True)
class Method:
    """A way from images to a release and from there to images.

    Attributes
    ----------
    title, public
        What the page calls it, and which public data it uses.
    plan
        Makes the plan from the schema.
    fit
        Settings of `synthesize_images`.
    begin
        Makes the generator of public images to begin with, if there is one.
    view
        Makes the view of pixels that a first release centres, if there is one; the plan is then
        given the view as it was centred.
    watched
        Whether FID is measured ten times while a generator is trained, which is not private.
    """

    title: str
    public: str
    plan: Callable[..., aq.Plan]
    fit: dict[str, Any] = field(default_factory=dict)
    begin: Callable[[Place], Path] | None = None
    view: Callable[[Schema, Place], PublicNetwork] | None = None
    watched: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: which images, methods, ε and classifiers; FID or not."""

    images: tuple[str, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    classifiers: tuple[str, ...]
    fid: bool = False
    gpu: bool = False


def schema_of(images: ImageSet) -> Schema:
    """Declare what is public: the size, the channels and the classes."""
    height, width, channels = images.x_train.shape[1:]
    return Schema.from_dict(
        {
            "name": images.name,
            "label": "label",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "image": {"kind": "image", "size": [height, width], "channels": channels},
                "label": {"kind": "categorical", "categories": list(images.classes)},
            },
        }
    )


@cache
def images_of(name: str, tiny: bool) -> ImageSet:
    """Load a set of images, or scikit-learn's digits in its shape for a quick look."""
    return tiny_images(name) if tiny else load(name)


def tiny_images(name: str) -> ImageSet:
    """Give 8 × 8 digits of scikit-learn, or for CIFAR-10 the same in 16 × 16 and three channels."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = (found.images * 255 / 16).round().astype(np.uint8)[..., None]
    labels = found.target.astype(np.int64)
    if name == "cifar10":
        pixels = pixels.repeat(2, axis=1).repeat(2, axis=2).repeat(3, axis=3)
    cut, end = 400, 600
    return ImageSet(
        name,
        *(pixels[:cut], labels[:cut], pixels[cut:end], labels[cut:end]),
        classes=tuple("0123456789"),
        source="scikit-learn",
        licence="CC BY 4.0",
    )


def grey_public(size: tuple[int, int], tiny: bool) -> np.ndarray:
    """Give CIFAR-10's training images in grey and resized, uint8 of shape (n, 1, h, w)."""
    pixels = torch.from_numpy(images_of("cifar10", tiny).x_train).float()
    grey = (pixels @ torch.tensor(GREY))[:, None]
    resized = functional.interpolate(grey, size, mode="bilinear", antialias=True)
    return resized.round().clamp(0, 255).to(torch.uint8).numpy()


@cache
def projection(size: tuple[int, int], tiny: bool) -> PublicNetwork:
    """Fit principal components to public images in grey."""
    components = 10 if tiny else COMPONENTS
    return networks.public_projection(
        grey_public(size, tiny), components, note="CIFAR-10 in grey, resized"
    )


@cache
def resnet(place: Place) -> PublicNetwork:
    """Give a ResNet18 of CIFAR-10 with random greying."""
    found = partial(images_of, "cifar10")
    return _trained(place, "resnet18", found, "CIFAR-10", grey=True)


def _trained(
    place: Place, name: str, find: Callable[[bool], ImageSet], note: str, **changes: bool
) -> PublicNetwork:
    """Train a ResNet18 on public images, once: the file of work is taken again."""
    kept = in_work(place, name)
    if not kept.is_file():
        images = find(place.tiny)
        made = pretrain(
            np.ascontiguousarray(images.x_train.transpose(0, 3, 1, 2)),
            images.y_train,
            epochs=1 if place.tiny else EPOCHS,
            width=4 if place.tiny else 64,
            device=place.device,
            note=note,
            progress=False,
            **changes,
        )
        kept.parent.mkdir(parents=True, exist_ok=True)
        networks.save(made, kept)
    return networks.load(kept)


def in_work(place: Place, name: str) -> Path:
    """Name a file in the folder of work."""
    return place.work / f"{'tiny-' if place.tiny else ''}{name}.safetensors"


@cache
def written(tiny: bool) -> ImageSet:
    """Give public letters; there are none to test on."""
    if tiny:
        return tiny_images("letters")
    pixels, classes = letters()
    none = slice(0, 0)
    parts = (pixels, classes, pixels[none], classes[none])
    return ImageSet("letters", *parts, tuple(ALPHABET), "typefaces", "OFL and others")


@cache
def letters_resnet(place: Place) -> PublicNetwork:
    """Give a ResNet18 of letters."""
    return _trained(place, "letters18", written, "letters of free typefaces", flip=False)


def letters_generator(place: Place) -> Path:
    """Train a generator on a sketch of letters, once; give its file."""
    kept = in_work(place, "letters-generator")
    if not kept.is_file():
        images = written(place.tiny)
        plan = aq.dp_mepf(schema_of(images), letters_resnet(place), tone_share=0)
        given: dict[str, Any] = {"steps": 1_500, "batch": 520, "rate": 1e-3, "patience": 1.0}
        given |= TINY if place.tiny else {}
        release = finish(summed(images, plan, place), NO_SECRET, simulate=0)
        model = synthesize_images(release, members=1, device=place.device, progress=False, **given)
        model.save(kept)
    return kept


def summed(images: ImageSet, plan: aq.Plan, place: Place) -> PrivateSum:
    """Sum training images by a plan, on the device."""
    labelled = ImageBatch(images.x_train, np.array(images.classes)[images.y_train])
    return replace(accumulate(labelled, on_device(plan, place.device)), plan=plan)


@cache
def vgg(place: Place) -> PublicNetwork:
    """Give VGG16 with the weights of ImageNet, or a tiny one with random weights."""
    if not place.tiny:
        return networks.load(network("vgg16"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = networks.vgg16(width=2)
    return PublicNetwork.of(module, input_size=16, architecture="vgg16")


def _gaussian(schema: Schema, place: Place) -> aq.Plan:
    column = schema.images["image"]
    size = (column.size[0], column.size[1])
    return aq.pixel_gaussian(schema, projection(size, place.tiny))


def _smooth(schema: Schema, place: Place, count: int = CENTRED) -> PublicNetwork:
    """Give the smoothest cosines as a public view of the pixels."""
    column = schema.images["image"]
    components = 10 if place.tiny else count
    return networks.smooth_projection((column.size[0], column.size[1]), components)


def _gaussian_alone(schema: Schema, place: Place) -> aq.Plan:
    return aq.pixel_gaussian(schema, _smooth(schema, place, COSINES))


def _letters(schema: Schema, place: Place, view: PublicNetwork) -> aq.Plan:
    return aq.dp_mepf(schema, letters_resnet(place), gaussian=view, gaussian_share=0.7)


def _layers(schema: Schema, place: Place, view: PublicNetwork) -> aq.Plan:
    return aq.dp_mepf(schema, resnet(place), balance="layers", gaussian=view)


METHODS = {
    "dp_merf": Method("DP-MERF", "none", lambda schema, _: aq.dp_merf(schema)),
    "dp_hp": Method("DP-HP", "none", lambda schema, _: aq.dp_hp(schema)),
    "gaussian": Method(
        "Gaussian by class, no generator", "CIFAR-10 in grey (50 principal components)", _gaussian
    ),
    "gaussian_alone": Method(
        "Gaussian by class, in cosines", f"none ({COSINES} cosines)", _gaussian_alone
    ),
    "gaussian_centred": Method(
        "Gaussian by class, in centred cosines",
        f"none ({CENTRED} cosines)",
        lambda schema, _, view: aq.pixel_gaussian(schema, view),
        view=_smooth,
    ),
    "dp_mepf": Method(
        "DP-MEPF",
        "CIFAR-10, randomly greyed (ResNet18)",
        lambda schema, place: aq.dp_mepf(schema, resnet(place)),
    ),
    "dp_mepf_letters": Method(
        "DP-MEPF, begun with letters",
        "letters of free typefaces (ResNet18, first generator)",
        _letters,
        {"members": 2, "blend": 0.4},
        begin=letters_generator,
        view=_smooth,
    ),
    "dp_mepf_layers": Method(
        "DP-MEPF, layer by layer",
        "CIFAR-10, randomly greyed (ResNet18)",
        _layers,
        {"steps": 2_500, "rate": 1e-3, "members": 2, "blend": 0.4},
        view=_smooth,
    ),
    "dp_mepf_vgg": Method(
        "DP-MEPF",
        "ImageNet (VGG16)",
        lambda schema, place: aq.dp_mepf(schema, vgg(place), balance="layers"),
        {"widths": WIDE, "latent": 64, "steps": 8_000, "rate": 1e-3, "members": 2},
    ),
    "dp_mepf_paper": Method(
        "DP-MEPF as we read the paper",
        "ImageNet (VGG16)",
        lambda schema, place: aq.dp_mepf(schema, vgg(place), stopping=True, tone_share=0),
        {"matching": "moving", "members": 1, "patience": 1.0, "steps": 2_500, "rate": 1e-3},
        watched=True,
    ),
}
GREYS = ("mnist", "fashion")
PARTS = {
    "merf": Part(GREYS, ("dp_merf",), (1.0, 0.2), TWELVE),
    "hp": Part(GREYS, ("dp_hp",), (10.0, 1.0), TWELVE),
    "gaussian": Part(GREYS, ("gaussian",), (10.0, 1.0, 0.2), THREE),
    "alone": Part(GREYS, ("gaussian_alone",), (10.0, 5.0, 2.0, 1.0, 0.2), TWELVE),
    "centred": Part(GREYS, ("gaussian_centred",), (10.0, 1.0, 0.2), THREE),
    "mepf": Part(GREYS, ("dp_mepf",), (1.0, 0.2), THREE, gpu=True),
    "letters": Part(("mnist",), ("dp_mepf_letters",), (10.0, 1.0, 0.2), THREE, gpu=True),
    "clothes": Part(("fashion",), ("dp_mepf_layers",), (10.0, 1.0, 0.2), THREE, gpu=True),
    "cifar": Part(
        ("cifar10",),
        ("dp_mepf_vgg", "dp_mepf_paper"),
        (10.0, 5.0, 2.0, 1.0, 0.5, 0.2),
        ("resnet9",),
        fid=True,
        gpu=True,
    ),
}
