"""Means by class of a Gaussian's features, without a row of features: two matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from aquatint.features.projected import CROSS, SQUARE, UNIT, ProjectedMoments
from aquatint.networks.projection import Projection


class MomentMeans:
    """The means of `ProjectedMoments` by class, of images that a generator made.

    They are in float32, and so not to the last bit: what is private has been summed already, and a
    gradient needs no more. All that a step reads is on the device from the start, so that it can be
    recorded as a CUDA graph.

    Parameters
    ----------
    moments
        The map; its network is a plain projection (`of` gives None for others).
    view
        That projection, on the device of the images.
    """

    def __init__(self, moments: ProjectedMoments, view: Projection) -> None:
        count, mean = moments.weights
        self.view = view
        self.once, self.along = count / moments.steps, mean * UNIT / moments.steps
        self.down, self.across = (place.to(view.centre.device) for place in moments.places)
        self.weight = torch.where(self.down == self.across, 1.0, CROSS / SQUARE)

    @classmethod
    def of(cls, feature_map: object) -> MomentMeans | None:
        """Give the means of a map, if it is one of moments in a plain projection."""
        if not isinstance(feature_map, ProjectedMoments):
            return None
        module = feature_map.network.module
        return cls(feature_map, module) if isinstance(module, Projection) else None

    def __call__(self, images: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        """Give the mean features of each class, and the mean squared norm of its rows.

        Images in [0, 1] come sorted by class, as many of each. With w the weight of a product of
        two coordinates, and s = Σy², the squared norm of a row is

            A² + B²·s + Σ y⁴ + w²·(s² − Σ y⁴)/2.
        """
        with torch.autocast(images.device.type, enabled=False):
            flat = images.flatten(1).float() - self.view.centre
            y = flat @ self.view.directions.T / self.view.level
            y = y / y.square().sum(dim=1, keepdim=True).sqrt().clamp(min=1)
            by_class = y.view(classes, -1, y.shape[1])
            second = torch.bmm(by_class.transpose(1, 2), by_class) / by_class.shape[1]
            found = [
                torch.full((classes, 1), self.once, device=y.device),
                by_class.mean(dim=1) * self.along,
                second[:, self.down, self.across] * self.weight,
            ]
            length, fourth = by_class.square().sum(dim=2), by_class.pow(4).sum(dim=2)
            squared = self.once**2 + self.along**2 * length + fourth
            squared = squared + (CROSS / SQUARE) ** 2 * (length.square() - fourth) / 2
        return torch.cat(found, dim=1), squared.mean(dim=1)
