"""What recipes share: settled bins, the label, which columns are numbers, and maps side by side."""

from __future__ import annotations

from collections.abc import Sequence

from aquatint.columns import RANGED
from aquatint.errors import PlanError
from aquatint.features import FeatureMap, onehot
from aquatint.features.algebra import heterogeneous
from aquatint.features.marginals import Marginals
from aquatint.schema import Schema

BINS = 32


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
    """Give the columns with numbers, and the others, without the label."""
    free = [name for name in schema.columns if name != label]
    if not free:
        msg = "the table has no column but its label: declare more, or use a plan of histograms"
        raise PlanError(msg)
    numbers = [name for name in free if isinstance(schema.columns[name], RANGED)]
    return numbers, [name for name in free if name not in numbers]


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
    gaps = {n: (0,) * columns[n].present_cells + (1,) for n in numbers if columns[n].missing}
    chosen = {name: cells[name] for name in (*others, *gaps)}
    return onehot(chosen).merge(gaps) if chosen else None
