"""Make the golden files of images: run once by hand, never by the tests.

``python tests/golden/make_golden_images.py`` writes ``release_v1_images.aqt`` beside this file, and
the two public networks that it names, from made-up images, and ``release_v1_tones.aqt``, which has
what came later. None is ever made again.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import aquatint as aq
from aquatint.features import Perceptual, by_label, projected_moments, tones
from aquatint.image_files import ImageBatch
from aquatint.networks import PublicNetwork, public_projection, resnet18, save

HERE = Path(__file__).parent
SCHEMA = {
    "name": "shapes",
    "label": "shape",
    "privacy": {"protects": "replace one row"},
    "columns": {
        "image": {"kind": "image", "size": [8, 8], "channels": 1},
        "shape": {"kind": "categorical", "categories": ["bar", "field"]},
    },
}


def images(count: int, seed: int) -> ImageBatch:
    """Draw dark images, half of them with a bright bar."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 80, (count, 8, 8, 1)).astype(np.uint8)
    bars = rng.random(count) < 0.5
    pixels[bars, :, 3:5] += 150
    return ImageBatch(pixels, np.where(bars, "bar", "field"))


def main() -> None:
    """Make what is not there."""
    targets = {"release_v1_images.aqt": networks, "release_v1_tones.aqt": toned}
    missing = {HERE / name: make for name, make in targets.items() if not (HERE / name).exists()}
    if not missing:
        sys.exit("all golden files exist, and none is ever made again")
    for target, make in missing.items():
        make(target)


def toned(target: Path) -> None:
    schema = aq.Schema.from_dict(SCHEMA)
    plan = aq.Plan(schema, (aq.PlannedBlock("tones", tones("image", schema.images["image"]), 1.0),))
    aq.sketch(images(120, 0), schema, epsilon=2.0, delta=1e-6, plan=plan).save(target)


def networks(target: Path) -> None:
    torch.manual_seed(0)
    network = PublicNetwork.of(
        resnet18(width=1, classes=2), input_size=8, architecture="resnet18", note="random weights"
    )
    public = images(200, 1).pixels.transpose(0, 3, 1, 2).copy()
    view = public_projection(public, 3, note="made-up shapes")
    save(network, HERE / "images_resnet18.safetensors")
    save(view, HERE / "images_projection.safetensors")
    schema = aq.Schema.from_dict(SCHEMA)
    seen = Perceptual(network, layers=["relu", "blocks.7.relu2"], moments=(1, 2), pool=4)
    blocks = {
        "perceptual": by_label(seen, "shape", 2),
        "layers": Perceptual(network, balance="layers", pool=1),
        "gaussian": by_label(projected_moments(view), "shape", 2),
        "pixels": aq.features.fourier(["image[0]", "image[27]"], 4, seed=3),
    }
    planned = [aq.PlannedBlock(name, made, 0.25) for name, made in blocks.items()]
    plan = aq.Plan(schema, tuple(planned))
    aq.sketch(images(120, 0), schema, epsilon=2.0, delta=1e-6, plan=plan).save(target)


if __name__ == "__main__":
    main()
