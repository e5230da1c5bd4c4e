"""What recipes share: settled bins, the label, numbers and others, maps side by side, shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from aquatint.columns import RANGED, Boolean, Ordered
from aquatint.errors import PlanError
from aquatint.features import Count, FeatureMap, fourier, onehot, pixel_names
from aquatint.features.algebra import concat, heterogeneous, scale
from aquatint.features.marginals import Marginals
from aquatint.planning import Plan, PlannedBlock
from aquatint.schema import Schema

BINS = 32
COUNT_SHARE = 0.02
"""The share of the number of rows, the denominator of every mean: the ε_den/ε of M2M (§4)."""


LENGTH_SCALES = (0.3, 0.1, 1 / 30)
"""Fractions of a declared range: the whole shape of a column, its bulk, and fine structure."""


def settled_bins(schema: Schema, bins: int = BINS) -> Schema:
    """Settle the bins, which a plan needs though its blocks may not count them."""
    ranged = {n: c for n, c in schema.columns.items() if isinstance(c, RANGED)}
    return schema.with_bins({n: min(bins, getattr(c, "steps", bins)) for n, c in ranged.items()})


def label_of(schema: Schema, labelled: bool | None) -> str | None:
    """Give the label to condition on: if not told, the schema's, unless it has a range."""
    if labelled and schema.label is None:
        msg = "the schema declares no label: declare one, or leave out labelled=True"
        raise PlanError(msg)
    if labelled is None and schema.label is not None:
        labelled = not isinstance(schema.columns[schema.label], RANGED)
    return schema.label if labelled else None


def numbers_and_others(schema: Schema, label: str | None) -> tuple[list[str], list[str]]:
    """Give the columns with numbers, pixels among them, and the others, without the label."""
    free = [name for name in schema.columns if name != label]
    if not free:
        msg = "the table has no column but its label: declare more, or use a plan of histograms"
        raise PlanError(msg)
    numbers = [name for name in free if isinstance(schema.columns[name], RANGED)]
    others = [name for name in free if name not in numbers and name not in schema.images]
    for name, column in schema.images.items():
        numbers.extend(pixel_names(name, column))
    return numbers, others


def beside(
    schema: Schema, numeric: FeatureMap | None, numbers: Sequence[str], others: Sequence[str]
) -> FeatureMap:
    """Put the features of numbers and one-hot cells side by side, as far as there are any."""
    hot = cells_of(schema, others, numbers)
    parts = [part for part in (numeric, hot) if part is not None]
    return heterogeneous(*parts) if len(parts) > 1 else parts[0]


def cells_of(schema: Schema, others: Sequence[str], numbers: Sequence[str]) -> Marginals | None:
    """Count the cells of other columns, and whether a number is missing.

    Maps of numbers are zero where a value is missing, so a number that may be missing also has two
    cells, present and missing.
    """
    columns, cells = schema.columns, schema.cells()
    may_miss = [n for n in numbers if n in columns and columns[n].missing]
    gaps = {n: (0,) * columns[n].present_cells + (1,) for n in may_miss}
    chosen = {name: cells[name] for name in (*others, *gaps)}
    return onehot(chosen).merge(gaps) if chosen else None


def with_order(schema: Schema) -> tuple[list[str], list[str]]:
    """Give the columns with an order, the label too as in §4.3, and the others."""
    ordered = (*RANGED, Ordered, Boolean)
    numbers = [name for name, column in schema.columns.items() if isinstance(column, ordered)]
    return numbers, [name for name in schema.columns if name not in numbers]


def waves_of(numbers: Sequence[str], seed: int = 0) -> FeatureMap:
    """Mix frequencies of one, two and all columns at three scales, for differences of any size.

    The kernel is the mean of three, so its norm is at most one, as that of each of them. At every
    scale a column has a frequency of its own.
    """
    weight, places = 1 / sqrt(len(LENGTH_SCALES)), len(LENGTH_SCALES) * seed
    return concat(
        *(
            scale(
                fourier(
                    list(numbers),
                    2 * frequencies_of(numbers),
                    length_scale=size,
                    kernel="mixed",
                    seed=places + place,
                ),
                weight,
            )
            for place, size in enumerate(LENGTH_SCALES)
        )
    )


def frequencies_of(numbers: Sequence[str]) -> int:
    """Say how many frequencies a scale has: 34, or twice the columns if that is more."""
    return max(34, 2 * len(numbers))


def divided(
    schema: Schema, blocks: Mapping[str, tuple[FeatureMap, float]], count_share: float
) -> Plan:
    """Add the number of rows where it is private, and divide what it leaves by the shares."""
    planned = []
    if not schema.privacy.replaces:
        if not 0 < count_share < 1:
            msg = f"count_share must be between 0 and 1, got {count_share}"
            raise PlanError(msg)
        planned.append(PlannedBlock("count", Count(), count_share))
    left = 1 - sum(block.share for block in planned)
    total = sum(share for _, share in blocks.values())
    for name, (part, share) in blocks.items():
        planned.append(PlannedBlock(name, part, left * share / total))
    return Plan(schema, tuple(planned))
