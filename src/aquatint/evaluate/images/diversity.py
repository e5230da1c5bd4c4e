"""Diversity: whether synthetic images differ from each other as real ones do.

All of it is measured between features, Inception's if they are given, otherwise the pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.images.data import Images, classes_of
from aquatint.evaluate.images.fid import BATCH, Features
from aquatint.progress import track

NEAR = 0.01
"""Nearer than this quantile of the real images' distances to their neighbours is a duplicate."""
_SAME = 1e-6
"""Nearer than this share of a typical size is equal: what is left of rounding."""
_CHUNK = 512


@dataclass(frozen=True)
class Diversity:
    """How varied synthetic images are beside as many real ones.

    Attributes
    ----------
    images
        The number of images on each side.
    features
        What distances are measured between.
    spread
        For each class, the mean distance between its synthetic images over that between its real
        ones: 1 where they are as varied, 0 where all are the same. Without labels, one for all.
    duplicates
        The share of synthetic images that have another synthetic one nearer than 99 % of real
        images have another real one; 0.01 is expected.
    copies
        The same for the nearest real image. A share far above 0.01 says that images were learnt
        by heart.
    precision, recall
        The share of synthetic images within the real ones' manifold, and of real ones within the
        synthetic one's: Kynkäänniemi et al. (2019), with balls that reach the kth neighbour.
    neighbours
        The k of precision and recall.
    """

    images: int
    features: str
    spread: Mapping[str, float]
    duplicates: float
    copies: float
    precision: float
    recall: float
    neighbours: int

    @property
    def mean_spread(self) -> float:
        """The mean of the spreads of the classes."""
        return float(np.mean(list(self.spread.values())))

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return {
            "images": self.images,
            "features": self.features,
            "spread": dict(self.spread),
            "mean_spread": self.mean_spread,
            "duplicates": self.duplicates,
            "copies": self.copies,
            "precision": self.precision,
            "recall": self.recall,
            "neighbours": self.neighbours,
        }


def pixels_as_features(images: Tensor) -> Tensor:
    """Take the pixels themselves, from 0 to 1."""
    return images.flatten(1).to(torch.float32) / 255


def diversity(
    real: Images,
    synthetic: Images,
    features: Features = pixels_as_features,
    *,
    images: int = 5_000,
    neighbours: int = 3,
    name: str = "pixels",
    seed: int = 0,
    progress: bool = False,
) -> Diversity:
    """Compare as many synthetic as real images; where there are fewer, fewer of both.

    Parameters
    ----------
    real, synthetic
        The two sides.
    features
        The network that distances are measured behind.
    images
        The most images of each side.
    neighbours
        The k of precision and recall.
    name
        What the features are, for the table.
    seed
        Seeds the drawing.
    """
    count = min(images, len(real), len(synthetic))
    if count <= neighbours + 1:
        msg = f"diversity needs more than {neighbours + 1} images on each side"
        raise EvaluationError(msg)
    sides = [side.some(count, seed) for side in (real, synthetic)]
    ours, theirs = (_features(side, features, progress) for side in sides)
    real_near, real_far = _neighbours(ours, ours, neighbours, same=True)
    made_near, made_far = _neighbours(theirs, theirs, neighbours, same=True)
    scale = (ours - ours.mean(dim=0)).norm(dim=1).mean()
    limit = torch.quantile(real_near, NEAR).clamp(min=_SAME * float(scale))
    across, precision, recall = _across(ours, theirs, real_far, made_far)
    return Diversity(
        images=count,
        features=name,
        spread=_spread(sides[0], ours, sides[1], theirs),
        duplicates=float((made_near < limit).double().mean()),
        copies=float((across < limit).double().mean()),
        precision=precision,
        recall=recall,
        neighbours=neighbours,
    )


def _features(images: Images, features: Features, progress: bool) -> Tensor:
    parts = []
    with track(f"features of {images.what} images", len(images), show=progress) as advance:
        for part in images.batches(BATCH):
            with torch.no_grad():
                parts.append(features(part).to(torch.float64))
            advance(len(part))
    found = torch.cat(parts)
    if not torch.isfinite(found).all():
        msg = "the feature network gives values that are not finite"
        raise EvaluationError(msg)
    return found


def _neighbours(left: Tensor, right: Tensor, k: int, *, same: bool) -> tuple[Tensor, Tensor]:
    """Give the distances of each on the left to the first and the kth neighbour on the right."""
    first, last = [], []
    for start in range(0, len(left), _CHUNK):
        away = _distances(left[start : start + _CHUNK], right)
        if same:
            away.diagonal(offset=start).fill_(torch.inf)
        near = away.topk(k, dim=1, largest=False).values
        first.append(near[:, 0])
        last.append(near[:, k - 1])
    return torch.cat(first), torch.cat(last)


def _across(
    real: Tensor, made: Tensor, real_far: Tensor, made_far: Tensor
) -> tuple[Tensor, float, float]:
    """Give each synthetic image's distance to the nearest real one, precision and recall."""
    nearest, precise = [], 0
    covered = torch.zeros(len(real), dtype=torch.bool, device=real.device)
    for start in range(0, len(made), _CHUNK):
        away = _distances(made[start : start + _CHUNK], real)
        nearest.append(away.min(dim=1).values)
        precise += int((away <= real_far).any(dim=1).sum())
        covered |= (away <= made_far[start : start + _CHUNK, None]).any(dim=0)
    return torch.cat(nearest), precise / len(made), float(covered.double().mean())


def _spread(real: Images, ours: Tensor, made: Images, theirs: Tensor) -> dict[str, float]:
    if real.labels is None or made.labels is None:
        return {"all": _ratio(_mean_distance(theirs), _mean_distance(ours))}
    found = {}
    for name in classes_of(real):
        parts = [
            features[torch.from_numpy(np.flatnonzero(side.labels == name)).to(features.device)]
            for side, features in ((real, ours), (made, theirs))
        ]
        if len(parts[0]) > 1:
            found[name] = _ratio(_mean_distance(parts[1]), _mean_distance(parts[0]))
    return found or {"all": _ratio(_mean_distance(theirs), _mean_distance(ours))}


def _ratio(made: float, real: float) -> float:
    return made / real if real > 0 else float(made == 0)


def _mean_distance(rows: Tensor) -> float:
    """Give the mean distance of two different rows; none where there are fewer than two."""
    if len(rows) < 2:
        return 0.0
    parts = [
        _distances(rows[s : s + _CHUNK], rows).double().sum() for s in range(0, len(rows), _CHUNK)
    ]
    return float(torch.stack(parts).sum() / (len(rows) * (len(rows) - 1)))


def _distances(left: Tensor, right: Tensor) -> Tensor:
    return torch.cdist(left, right, compute_mode="use_mm_for_euclid_dist")
