"""What a release will be good for, computed from the plan before a single row is read."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from aquatint.accounting import Budget, Noised
from aquatint.columns import RANGED
from aquatint.features import Count, FeatureMap, leaves
from aquatint.features.algebra import Scaled
from aquatint.features.grid import grid_of
from aquatint.features.marginals import Marginals
from aquatint.planning import Plan, noise_of
from aquatint.table_plan import rebalanced

GAUSSIAN, LAPLACE = 1.96, 2.118
"""Standard deviations within which 95 % of the noise lies; ln 20/√2 for Laplace noise."""


@dataclass(frozen=True, slots=True)
class BlockPreview:
    """One block before it is released: its size, its share, and the noise it will get.

    Attributes
    ----------
    at_most
        Whether fewer numbers may come out, because cells are merged or sets chosen on the way.
    """

    name: str
    kind: str
    numbers: int
    at_most: bool
    share: float
    noise: float


@dataclass(frozen=True, slots=True)
class Expected:
    """A kind of question, and the half width of a 95 % interval from the noise alone."""

    question: str
    error: float
    unit: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Blocks, noise and the error to expect; made from public facts alone."""

    rows: int
    budget: Budget
    blocks: tuple[BlockPreview, ...]
    expected: tuple[Expected, ...]


def preview(plan: Plan, *, rows: int, epsilon: float, delta: float) -> Preview:
    """Predict the noise and the error of a release of about `rows` rows."""
    budget = Budget(epsilon, delta)
    if plan.rebalance:
        plan = rebalanced(plan, budget, rows)
    noise = noise_of(plan, budget)
    blocks, expected = [], []
    for block, parts in zip(plan.blocks, noise, strict=True):
        deviation = _deviation(leaves(block.map)[0], parts[0], budget)
        size = (block.map.dim, block.adaptive)
        blocks.append(BlockPreview(block.name, block.map.kind, *size, block.share, deviation))
        wide = deviation * (LAPLACE if budget.pure else GAUSSIAN)
        expected.extend(_questions(plan, block.name, block.map, wide, rows))
    return Preview(rows, budget, tuple(blocks), tuple(expected))


def _deviation(leaf: FeatureMap, part: Noised, budget: Budget) -> float:
    return part.scale * (sqrt(2.0) if budget.pure else 1.0) / grid_of(leaf).steps


def _questions(
    plan: Plan, name: str, feature_map: FeatureMap, wide: float, rows: int
) -> list[Expected]:
    if isinstance(feature_map, Count):
        return [Expected("how many rows are there", wide, "rows")]
    inner = feature_map.inner if isinstance(feature_map, Scaled) else feature_map
    if not isinstance(inner, Marginals):
        total = wide * sqrt(feature_map.dim) / rows
        longest = sqrt(feature_map.bound.l2_squared)
        question = f"mean embedding {name!r}, as a vector"
        return [Expected(question, total, f"of at most {longest:.3g}")]
    share = 100 * wide / rows
    size = max(len(s) for s in inner.sets)
    if size > 1:
        label = plan.schema.label
        what = f"{size} columns" + (
            f", one of them {label!r}" if label and all(label in s for s in inner.sets) else ""
        )
        return [Expected(f"share of rows in one cell of {what}", share, "percent of all rows")]
    found = [Expected("share of rows in one cell of a column", share, "percent of all rows")]
    ranged = [c.present_cells for c in plan.schema.columns.values() if isinstance(c, RANGED)]
    if ranged:
        bins = max(ranged)
        spread = sqrt(sum(((i + 0.5) / bins - 0.5) ** 2 for i in range(bins)))
        error = 100 * (wide * spread / rows)
        found.append(Expected("mean of a numeric column", error, "percent of its range"))
    return found
