"""Whether a feature map fits a schema: columns that exist, with the cells and order it needs."""

from __future__ import annotations

from collections.abc import Mapping

from aquatint.columns import RANGED, Boolean, Ordered
from aquatint.errors import PlanError
from aquatint.features.algebra import ByLabel, Product, Scaled, leaves
from aquatint.features.base import FeatureMap
from aquatint.features.locations import Locations
from aquatint.features.marginals import Marginals
from aquatint.features.moments import SecondMoment
from aquatint.schema import Schema


def check_fits(name: str, feature_map: FeatureMap, schema: Schema) -> None:
    """Refuse a block whose map does not fit the schema."""
    codes, values = feature_map.reads
    for column in codes | values:
        if column not in schema.columns:
            msg = f"block {name!r} reads column {column!r}, which the schema does not have"
            raise PlanError(msg)
    for column in values:
        if not isinstance(schema.columns[column], (*RANGED, Ordered, Boolean)):
            msg = f"block {name!r} needs numbers, but column {column!r} has no order"
            raise PlanError(msg)
    cells = schema.cells()
    for leaf in leaves(feature_map):
        _check_cells(leaf, cells)


def _check_cells(leaf: FeatureMap, cells: Mapping[str, int]) -> None:
    if isinstance(leaf, ByLabel) and leaf.classes != cells[leaf.label]:
        msg = f"the label {leaf.label!r} has {cells[leaf.label]} cells, not {leaf.classes}"
        raise PlanError(msg)
    if isinstance(leaf, (ByLabel, Scaled, SecondMoment)):
        _check_cells(leaf.inner, cells)
    elif isinstance(leaf, Product):
        _check_cells(leaf.left, cells)
        _check_cells(leaf.right, cells)
    elif isinstance(leaf, (Locations, Marginals)):
        for column, count in leaf.cells_of if isinstance(leaf, Locations) else leaf.columns:
            if count != cells.get(column):
                msg = f"column {column!r} has {cells.get(column)} cells in the schema, not {count}"
                raise PlanError(msg)
