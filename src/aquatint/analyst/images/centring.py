"""A view of images that is centred where they are, read off a first release of them."""

from __future__ import annotations

import torch

from aquatint.analyst.images.gaussian import moments_block
from aquatint.errors import ReleaseError
from aquatint.features.algebra import ByLabel
from aquatint.networks.projection import CENTRE_STEPS, Projection, on_grid
from aquatint.networks.public import PublicNetwork
from aquatint.release.model import Release

CENTRED = "centred by a release"
"""How the note of such a view begins."""
ROOM = 0.9
"""Where lengths are clipped, over the root mean square of them."""
LEAST_SPREAD = 1e-4
"""Below this mean squared length, in units of the level, noise may be all that there is."""


def centred_view(release: Release, *, room: float = ROOM) -> PublicNetwork:
    """Move a public projection to the mean of the images, and its level to how far they spread.

    Noise goes with the square of the level. In a view whose centre is grey, most of an image's
    length is what all images share; about their own mean, lengths are far shorter, and the same
    budget buys more precise moments. The mean and the mean squared length of all images together
    are two things that a first, small release (`pixel_gaussian` with ``labelled=False``) tells well
    enough. What comes of it is computed from that release alone, so it is as public as the release.
    Both releases count: take the second's ε from what the first left (`accounting.left`, or a
    ledger).

    Parameters
    ----------
    release
        A release with moments in a public projection, which has to be attached.
    room
        At how many root mean squares lengths are clipped.
    """
    found = moments_block(release)
    module = None if found is None else found[1].network.require()
    if found is None or not isinstance(module, Projection):
        msg = (
            "the release has no moments in a public projection: sketch with the recipe "
            "pixel_gaussian, labelled=False, first"
        )
        raise ReleaseError(msg)
    if not 0.1 <= room <= 10:
        msg = f"room is between 0.1 and 10, got {room}"
        raise ReleaseError(msg)
    block, inner = found
    lines = block.map.classes if isinstance(block.map, ByLabel) else 1
    total = torch.from_numpy(block.sum.reshape(lines, -1)).sum(dim=0)
    _, first, second = inner.unpack(total)
    rows = max(1.0, release.count)
    mean = first / rows
    spread = float(second.diagonal().sum() / rows - mean.square().sum())
    if spread < LEAST_SPREAD:
        msg = "noise hides how far the images spread: give the first release more of the budget"
        raise ReleaseError(msg)
    state = {name: tensor.cpu() for name, tensor in module.state_dict().items()}
    directions, level = state["directions"].double(), float(state["level"])
    back = directions / directions.square().sum(dim=1, keepdim=True).clamp(min=1e-12)
    centre = (state["centre"].double() + level * (mean @ back)).clamp(0, 1)
    moved = Projection(centre.numel(), inner.components)
    moved.directions.copy_(state["directions"])
    moved.centre.copy_(on_grid(centre, CENTRE_STEPS))
    moved.level.fill_(level * room * spread**0.5)
    told = release.statement
    return PublicNetwork.of(
        moved,
        input_size=inner.network.input_size,
        channels=inner.network.channels,
        architecture="projection",
        note=f"{CENTRED} with epsilon {told.epsilon:g} and delta {told.delta:g}",
    )
