"""A public reduction: a few directions of a public network's features, fitted to public images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import ceil, log2
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from aquatint.errors import PlanError
from aquatint.networks.layers import layer_outputs, pooled, prepared, relus
from aquatint.networks.projection import MOST_COMPONENTS, on_grid
from aquatint.networks.public import PublicNetwork

Method = Literal["pca", "lda"]
MOST_IMAGES = 20_000
"""Public images beyond these are not looked at."""
RIDGE = 1e-3
SEEN_STEPS, DIRECTION_BITS = 2**16, 18


class Reduced(nn.Module):
    """y = P(f/‖f‖ − m)/r, pulled back onto the unit ball where it is longer than 1.

    f are the layers of another public network, averaged over a grid; the centre m, the directions P
    and the level r are public too. Which layers is in the state, so that the hash covers it.
    """

    centre: Tensor
    directions: Tensor
    level: Tensor
    settings: Tensor

    def __init__(self, base: nn.Module, settings: dict[str, Any], size: tuple[int, int]) -> None:
        super().__init__()
        components, features = size
        self.base = base
        self.layers: tuple[str, ...] = tuple(settings["layers"])
        self.pool: int | None = settings["pool"]
        text = json.dumps(settings, sort_keys=True).encode()
        self.register_buffer("settings", torch.tensor(list(text), dtype=torch.uint8))
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("directions", torch.zeros(components, features))
        self.register_buffer("level", torch.ones(()))

    def seen(self, images: Tensor) -> Tensor:
        """Give the layers' features, joined and of length one, shape (n, features)."""
        outputs = layer_outputs(self.base, self.layers, images)
        flat = torch.cat([pooled(out, self.pool).flatten(1).float() for _, out in outputs], dim=1)
        return nn.functional.normalize(flat, dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Give the coordinates of images, shape (n, components), of norm at most 1."""
        seen = self.seen(images)
        with torch.autocast(images.device.type, enabled=False):
            y = self._projected(seen)
            # Added one by one: elementwise operations round in the same way for any batch.
            squared = sum(y.square().unbind(1), torch.zeros_like(y[:, 0]))
            clipped: Tensor = y / squared.clamp(min=1).sqrt()[:, None]
        return clipped.float()

    def _projected(self, seen: Tensor) -> Tensor:
        """Give P(f − m)/r; without a gradient, in the same bits for any batch.

        Features and directions are put on fixed grids then. A coordinate is a sum of products of
        whole numbers, 17 and 19 bits with their signs, that float64 adds up exactly for up to
        2**17 features, in any order.
        """
        if seen.requires_grad:
            return (seen - self.centre) @ self.directions.T / self.level
        whole = on_grid(seen, SEEN_STEPS) - on_grid(self.centre, SEEN_STEPS)
        directions = self.directions.double() / self.level.double()
        largest = float(directions.abs().max().clamp(min=1e-30))
        steps = 2.0 ** (DIRECTION_BITS - ceil(log2(largest)))
        return whole @ ((directions * steps).round() / steps).T


def public_reduction(
    network: PublicNetwork,
    images: np.ndarray | Tensor,
    labels: np.ndarray | None = None,
    *,
    components: int = 64,
    method: Method = "pca",
    layers: Sequence[str] | None = None,
    pool: int | None = 1,
    whiten: float = 0.5,
    quantile: float = 0.9,
    note: str = "",
) -> PublicNetwork:
    """Fit a reduction of a public network's features to images that you declare public.

    Far fewer coordinates take the same noise each, so that it hardly matters. What they do not see
    is lost: generators that need spatial detail do better with the layers as they are.

    Parameters
    ----------
    network
        A built-in public network.
    images, labels
        Public images, uint8 of shape (n, channels, height, width), and for LDA their classes.
    components
        How many directions to keep; for LDA fewer than there are classes.
    method
        ``"pca"`` keeps what varies most, ``"lda"`` what tells the classes apart.
    layers, pool
        Which layers, by default every ReLU, averaged over a grid of pool × pool cells first.
    whiten
        For PCA, 0 leaves the coordinates' variances as they are, 1 makes them equal.
    quantile
        The share of public images whose coordinates are left as they are; longer ones are clipped.
    note
        What the images are, in words; saved with the file.
    """
    base = network.require()
    chosen = tuple(layers) if layers is not None else relus(base)
    settings = {"base": network.architecture, "layers": list(chosen), "pool": pool}
    given = torch.as_tensor(images)
    _check(network, given, labels, method, quantile)
    seen = _features(Reduced(base, settings, (1, 1)), network, given[:MOST_IMAGES])
    centre = seen.mean(dim=0)
    most = min(len(seen) - 1, seen.shape[1], MOST_COMPONENTS)
    if method == "lda":
        codes = np.unique(np.asarray(labels)[:MOST_IMAGES].astype(str), return_inverse=True)[1]
        most = min(most, int(codes.max()))
    if not 1 <= components <= most:
        msg = f"there are 1 to {most} components to keep, got {components}"
        raise PlanError(msg)
    if method == "lda":
        directions = _discriminant(seen - centre, torch.from_numpy(codes.reshape(-1)), components)
    else:
        directions = _principal(seen - centre, components, whiten)
    module = Reduced(base, settings, (components, seen.shape[1]))
    module.centre.copy_(centre)
    module.directions.copy_(directions)
    lengths = ((seen - centre) @ directions.T).norm(dim=1)
    module.level.fill_(max(float(np.quantile(lengths.numpy(), quantile)), 1e-12))
    told = "; ".join(
        part for part in (network.note, f"{method} on {note or 'public images'}") if part
    )
    return PublicNetwork.of(
        module,
        input_size=network.input_size,
        channels=network.channels,
        architecture="reduced",
        note=told,
    )


def _check(
    network: PublicNetwork, images: Tensor, labels: Any, method: str, quantile: float
) -> None:
    if network.architecture not in {"resnet18", "vgg16", "vgg19"}:
        msg = f"a reduction is of resnet18, vgg16 or vgg19, got {network.architecture}"
        raise PlanError(msg)
    if images.dim() != 4 or images.dtype != torch.uint8 or len(images) < 3:
        msg = "public images are uint8 of shape (n, channels, height, width), three or more"
        raise PlanError(msg)
    if method not in {"pca", "lda"}:
        msg = f"the method is pca or lda, got {method!r}"
        raise PlanError(msg)
    if method == "lda" and (labels is None or len(labels) != len(images)):
        msg = "LDA needs a class for every public image"
        raise PlanError(msg)
    if not 0 < quantile <= 1:
        msg = f"the quantile to clip at is above 0 and at most 1, got {quantile}"
        raise PlanError(msg)


def _features(module: Reduced, network: PublicNetwork, images: Tensor) -> Tensor:
    found = []
    with torch.no_grad():
        for part in torch.split(images, 256):
            x = prepared(part.to(network.device), network.channels, network.input_size)
            found.append(module.seen(x).cpu())
    return torch.cat(found)


def _principal(centred: Tensor, components: int, whiten: float) -> Tensor:
    """Give the first principal directions, weighted by a power of their variance."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        spare = min(components + 16, *centred.shape)
        _, values, vectors = torch.svd_lowrank(centred, q=spare, niter=4)
    kept = vectors[:, :components].T
    weight = (values[:components] / values[0]).clamp(min=1e-6) ** -whiten
    return kept * weight[:, None]


def _discriminant(centred: Tensor, codes: Tensor, components: int) -> Tensor:
    """Give Fisher's directions, within the principal ones."""
    spare = min(len(centred) // 4 + 1, centred.shape[1], MOST_COMPONENTS)
    first = _principal(centred, max(spare, components), 0.0).double()
    z = centred.double() @ first.T
    classes = int(codes.max()) + 1
    means = torch.stack([z[codes == code].mean(dim=0) for code in range(classes)])
    rest = z - means[codes]
    within = rest.T @ rest / len(z)
    within += torch.eye(len(within)) * (RIDGE * float(within.trace()) / len(within))
    values, vectors = torch.linalg.eigh(within)
    white = vectors * values.rsqrt()
    weights = torch.bincount(codes, minlength=classes).double().sqrt()[:, None]
    _, _, between = torch.linalg.svd(weights * (means @ white), full_matrices=False)
    found: Tensor = between[:components] @ white.T @ first
    return found.float()
