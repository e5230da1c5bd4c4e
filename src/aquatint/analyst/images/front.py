"""The front door of images: a model of a release's images, with the public networks it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from aquatint.analyst.images.blend import ImageBlend
from aquatint.analyst.images.fit import fit_images
from aquatint.analyst.images.gaussian import ImageGaussian, fit_gaussian, moments_block
from aquatint.analyst.images.model import ImageNetwork
from aquatint.errors import ReleaseError
from aquatint.features.attaching import networked_maps
from aquatint.features.tones import Tones
from aquatint.networks.files import load
from aquatint.networks.finding import find
from aquatint.networks.public import PublicNetwork
from aquatint.release.model import Release
from aquatint.release.networks import attach

Network = str | Path | PublicNetwork | nn.Module
METHODS = ("auto", "network", "gaussian")


def synthesize_images(
    release: Release,
    method: str = "auto",
    *,
    network: Network | Sequence[Network] | None = None,
    blend: float = 0.0,
    seed: int = 0,
    progress: bool = True,
    **settings: Any,
) -> ImageNetwork | ImageGaussian | ImageBlend:
    """Fit a model to a release of images.

    Parameters
    ----------
    release
        What the curator published.
    method
        ``"network"`` is a generator, ``"gaussian"`` the baseline without one; ``"auto"`` takes what
        the release has: with both, a generator that matches the Gaussian's moments too.
    network
        The public networks that the release names, if they are not attached yet: files, or modules.
    blend
        The share of the images that are drawn from the Gaussian itself, where the release has both.
        They look blurred or worse; a linear classifier learns more with some of them.
    seed, progress
        As for `synthesize`.
    settings
        Passed on to `fit_images`.
    """
    if method not in METHODS:
        msg = f"images are drawn by one of {', '.join(METHODS)}, not {method!r}"
        raise ReleaseError(msg)
    whole = with_networks(release, network)
    found = moments_block(whole)
    others = [
        block
        for block in whole.blocks
        if block.map.reads[1]
        and not isinstance(block.map, Tones)
        and (found is None or block is not found[0])
    ]
    if method == "gaussian" or (method == "auto" and found is not None and not others):
        if settings.keys() - {"device"}:
            msg = f"the Gaussian has no setting {', '.join(sorted(settings.keys() - {'device'}))}"
            raise ReleaseError(msg)
        return fit_gaussian(whole)
    if not 0 <= blend < 1:
        msg = f"blend is the share of images from the Gaussian, from 0 to below 1, got {blend}"
        raise ReleaseError(msg)
    if blend and (method != "auto" or found is None):
        msg = (
            "blend needs a Gaussian beside the generator's features and the method auto: sketch "
            "by dp_mepf with gaussian=, or leave blend out"
        )
        raise ReleaseError(msg)
    model = fit_images(whole, seed=seed, progress=progress, **settings)
    return ImageBlend(model, fit_gaussian(whole), blend) if blend else model


def with_networks(
    release: Release,
    network: Network | Sequence[Network] | None = None,
    folders: Sequence[Path] = (),
) -> Release:
    """Attach the public networks that a release names: those given, or found in folders."""
    if network is None:
        given: list[Network] = []
    elif isinstance(network, (str, Path, PublicNetwork, nn.Module)):
        given = [network]
    else:
        given = list(network)
    named = {inner.network for block in release.blocks for inner in networked_maps(block.map)}
    known = [_read(each, named) for each in given]
    have = {each.sha256 for each in known}
    missing = [n for n in named if n.module is None and n.sha256 not in have]
    known += find(missing, folders)
    return attach(release, *known) if known else release


def _read(network: Network, named: set[PublicNetwork]) -> PublicNetwork:
    if isinstance(network, (str, Path)):
        return load(network)
    if isinstance(network, PublicNetwork):
        return network
    custom = [n for n in named if n.architecture == "custom"]
    first = custom[0] if custom else PublicNetwork("custom", "", (1, 1), 3)
    return PublicNetwork.of(network, input_size=first.input_size, channels=first.channels)
