"""From a spec to a map of images whose public network is named, and not there yet."""

from __future__ import annotations

from aquatint.features.base import Spec
from aquatint.features.perceptual import Perceptual
from aquatint.features.projected import ProjectedMoments
from aquatint.networks.public import PublicNetwork, size_of


def named(spec: Spec) -> Perceptual:
    """Rebuild a map from its spec: it knows its features and its bound, but has no weights."""
    numbers = (*spec["layers"], *spec["sizes"])
    if not all(isinstance(n, (str, int)) and not isinstance(n, bool) for n in numbers):
        msg = "layers are named by text and have whole numbers of features"
        raise TypeError(msg)
    if not spec["sizes"] or min(spec["sizes"]) < 1:
        msg = "a layer has at least one feature"
        raise ValueError(msg)
    return Perceptual(
        named_network(spec),
        column=str(spec["column"]),
        layers=spec["layers"],
        moments=spec["moments"],
        input_size=size_of(spec["input_size"]),
        pool=spec["pool"],
        nonnegative=bool(spec["nonnegative"]),
        split=bool(spec.get("split", False)),
        balance=spec["balance"],
        length=spec.get("length", "unit"),
        sizes=spec["sizes"],
    )


def named_network(spec: Spec) -> PublicNetwork:
    """Read which public network a spec names."""
    digest, channels = spec["sha256"], spec["channels"]
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        msg = "a network is named by the 64 hexadecimal digits of its SHA-256"
        raise ValueError(msg)
    if channels not in (1, 3):
        msg = "a network takes 1 or 3 channels"
        raise ValueError(msg)
    return PublicNetwork(str(spec["architecture"]), digest, size_of(spec["made_for"]), channels)


def projected_from(spec: Spec) -> ProjectedMoments:
    """Rebuild a map from its spec; it has no projection until one is attached."""
    if not isinstance(spec["components"], int) or isinstance(spec["components"], bool):
        msg = "components are not a whole number"
        raise TypeError(msg)
    network = named_network(spec)
    return ProjectedMoments(network, spec["components"], str(spec["column"]), spec["mean_weight"])
