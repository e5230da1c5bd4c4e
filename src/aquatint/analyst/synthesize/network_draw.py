"""Drawing one column from its head, within what a condition leaves of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from aquatint.analyst.synthesize.network_heads import Choice, Head, Interval, below, to_place
from aquatint.analyst.where import Condition
from aquatint.columns import Date, Integer


@dataclass(frozen=True)
class Kept:
    """What a condition leaves of a column.

    Attributes
    ----------
    points
        Of a choice, the share of every point; of an interval, whether values and whether missing.
    low, high
        Of an interval, the places between which its values lie.
    """

    points: np.ndarray
    low: float = -inf
    high: float = inf


def kept_of(column: Any, head: Head, condition: Condition | None) -> Kept:
    """Say what a condition leaves of a column; without one, everything."""
    if isinstance(head, Interval):
        return Kept(np.ones(2)) if condition is None else _kept_interval(column, condition)
    if condition is None:
        return Kept(np.ones(head.width))
    weights = condition.weights[head.cell.numpy()]
    if isinstance(column, (Integer, Date)) and head.place is not None and condition.low > -inf:
        number = column.limits[0] + np.arange(column.steps)
        weights[: column.steps] = (number >= condition.low) & (number <= condition.high)
    return Kept(weights)


def _kept_interval(column: Any, condition: Condition) -> Kept:
    present = float(condition.weights[: column.present_cells].max() > 0)
    absent = float(condition.weights[column.present_cells :].sum())
    low, high = column.limits
    first, last = condition.low, condition.high
    if isinstance(column, (Integer, Date)) and np.isfinite([first, last]).all():
        first, last = ceil(first) - 0.5, floor(last) + 0.5
    return Kept(
        np.array([present, absent]),
        -inf if first <= low else (first - low) / (high - low),
        inf if last >= high else (last - low) / (high - low),
    )


def chance(head: Head, outputs: Tensor, kept: Kept) -> np.ndarray:
    """Give the probability that each row's column is among what is kept, shape (n,)."""
    if isinstance(head, Choice):
        return np.asarray(torch.softmax(outputs, 1).double().numpy() @ kept.points)
    present, first, last = _interval(head, outputs, kept)
    return np.asarray(present * (last - first) * kept.points[0] + (1 - present) * kept.points[1])


def draw_column(
    head: Head, outputs: Tensor, kept: Kept, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Draw the cell of every row, and its place if the head knows it, from uniform points."""
    if isinstance(head, Choice):
        shares = torch.softmax(outputs, 1).double().numpy() * kept.points
        chosen = _invert(shares, points)
        cell = head.cell.numpy()[chosen]
        return cell, None if head.place is None else head.place.nan_to_num(0.0).numpy()[chosen]
    present, first, last = _interval(head, outputs, kept)
    values = present * (last - first) * kept.points[0]
    missing = (1 - present) * kept.points[1]
    share = values / np.maximum(values + missing, 1e-300)
    absent = points >= share
    within = np.minimum(points / np.maximum(share, 1e-300), 1.0)
    level = np.clip(first + within * (last - first), 1e-12, 1 - 1e-12)
    place = to_place(outputs, torch.from_numpy(ndtri(level)).float()).double().numpy()
    place = np.clip(place, max(kept.low, 0.0), min(kept.high, 1.0))
    cell = np.searchsorted(head.edges.numpy(), place, side="right")
    return np.where(absent, len(head.edges) + 1, cell), place


def _interval(
    head: Interval, outputs: Tensor, kept: Kept
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the probabilities of a value, of one below what is kept, and of one not above it."""
    ends = below(outputs, torch.tensor([min(max(kept.low, 0.0), 1.0), min(kept.high, 1.0)]))
    first, last = ends.double().numpy().T
    first = first if kept.low > -inf else np.zeros(len(first))
    last = last if kept.high < inf else np.ones(len(last))
    present = torch.sigmoid(outputs[:, 2]).double().numpy() if head.missing else np.ones(len(first))
    return present, first, last


def _invert(shares: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Choose a point for every row by the inverse of its cumulated shares."""
    cumulated = np.cumsum(shares, axis=1)
    below_point = cumulated <= (points * cumulated[:, -1])[:, None]
    chosen = np.minimum(below_point.sum(1), shares.shape[1] - 1)
    # Rounding may end on a point of share zero behind the last one: step back to one that has any.
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum(chosen, last))
