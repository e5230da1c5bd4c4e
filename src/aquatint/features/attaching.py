"""Give the maps of a release the public networks that they only name, or move them to a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from aquatint.errors import PlanError
from aquatint.features.algebra import ByLabel, Concat, Product, Scaled
from aquatint.features.base import FeatureMap
from aquatint.features.perceptual import Perceptual
from aquatint.features.projected import ProjectedMoments
from aquatint.networks.public import PublicNetwork

Networked = Perceptual | ProjectedMoments


def networked_maps(feature_map: FeatureMap) -> Iterator[Networked]:
    """Give every map within a map that has a network."""
    found: list[Networked] = []

    def note(inner: Networked) -> Networked:
        found.append(inner)
        return inner

    _changed(feature_map, note)
    yield from found


def attached(feature_map: FeatureMap, networks: tuple[PublicNetwork, ...]) -> FeatureMap:
    """Give the map with weights wherever it names one of the networks."""
    by_hash = {network.sha256: network for network in networks}

    def one(inner: Networked) -> Networked:
        known = by_hash.get(inner.network.sha256)
        return inner if known is None else inner.attach(known)

    return _changed(feature_map, one)


def moved(feature_map: FeatureMap, device: str) -> FeatureMap:
    """Give the map with copies of its networks on a device."""
    return _changed(feature_map, lambda inner: replace(inner, network=inner.network.to(device)))


def check_attached(maps: tuple[FeatureMap, ...], networks: tuple[PublicNetwork, ...]) -> None:
    """Refuse networks that no map names, with the hash that is wanted."""
    wanted = {inner.network for each in maps for inner in networked_maps(each)}
    for network in networks:
        if network not in wanted and network.sha256 not in {other.sha256 for other in wanted}:
            if not wanted:
                msg = "the release names no public network, so there is nothing to attach"
                raise PlanError(msg)
            next(iter(wanted)).attach(network)  # says which one is wanted


def _changed(feature_map: FeatureMap, change: Callable[[Networked], Networked]) -> FeatureMap:
    if isinstance(feature_map, (Perceptual, ProjectedMoments)):
        return change(feature_map)
    if isinstance(feature_map, (ByLabel, Scaled)):
        return replace(feature_map, inner=_changed(feature_map.inner, change))
    if isinstance(feature_map, Concat):
        return Concat(tuple(_changed(part, change) for part in feature_map.parts))
    if isinstance(feature_map, Product):
        return Product(_changed(feature_map.left, change), _changed(feature_map.right, change))
    return feature_map
