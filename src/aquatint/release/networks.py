"""A release names the public networks of its maps by hash; here they are given back to it."""

from __future__ import annotations

from dataclasses import replace

from aquatint.features.attaching import attached, check_attached
from aquatint.networks.public import PublicNetwork
from aquatint.release.model import Release


def attach(release: Release, *networks: PublicNetwork) -> Release:
    """Give a release whose maps can be computed, after checking the hash of every network.

    Parameters
    ----------
    release
        As opened: its perceptual maps know their features and bounds, but have no weights.
    networks
        The public networks that it names, from `networks.load`.
    """
    check_attached(tuple(block.map for block in release.blocks), networks)
    blocks = [replace(block, map=attached(block.map, networks)) for block in release.blocks]
    return replace(release, blocks=tuple(blocks))
