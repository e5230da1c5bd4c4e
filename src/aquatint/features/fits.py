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
from aquatint.features.perceptual import Perceptual
from aquatint.features.projected import ProjectedMoments
from aquatint.features.stacking import pixel_of
from aquatint.features.tones import Tones, tones
from aquatint.schema import Schema


def check_fits(name: str, feature_map: FeatureMap, schema: Schema) -> None:
    """Refuse a block whose map does not fit the schema."""
    codes, values = feature_map.reads
    for column in codes | {_column_of(value, schema) for value in values}:
        if column not in schema.columns:
            msg = f"block {name!r} reads column {column!r}, which the schema does not have"
            raise PlanError(msg)
    for column in sorted(codes & schema.images.keys()):
        msg = f"block {name!r} counts cells, but column {column!r} holds images"
        raise PlanError(msg)
    for leaf in leaves(feature_map):
        _check_images(name, leaf, schema)
    for column in values - schema.images.keys():
        if _column_of(column, schema) == column and not isinstance(
            schema.columns[column], (*RANGED, Ordered, Boolean)
        ):
            msg = f"block {name!r} needs numbers, but column {column!r} has no order"
            raise PlanError(msg)
    cells = schema.cells()
    for leaf in leaves(feature_map):
        _check_cells(leaf, cells)


def _column_of(name: str, schema: Schema) -> str:
    """Give the image column of a pixel; any other name is its own column."""
    found = pixel_of(name)
    if found is None or found[0] not in schema.images:
        return name
    if found[1] >= schema.images[found[0]].pixels:
        msg = f"{name!r} is beyond the {schema.images[found[0]].pixels} pixels of the images"
        raise PlanError(msg)
    return found[0]


def _check_images(name: str, leaf: FeatureMap, schema: Schema) -> None:
    """Refuse a map that takes images for numbers, or numbers for images."""
    if isinstance(leaf, (ByLabel, Scaled, SecondMoment)):
        _check_images(name, leaf.inner, schema)
    elif isinstance(leaf, Product):
        _check_images(name, leaf.left, schema)
        _check_images(name, leaf.right, schema)
    elif isinstance(leaf, (Perceptual, ProjectedMoments, Tones)):
        image = schema.images.get(leaf.column)
        if image is None:
            msg = f"block {name!r} needs images, but column {leaf.column!r} holds none"
            raise PlanError(msg)
        if isinstance(leaf, Tones):
            if tones(leaf.column, image) != leaf:
                msg = f"block {name!r} counts tones of images of another size than the schema's"
                raise PlanError(msg)
            return
        taken = (leaf.network.channels, *leaf.network.input_size)
        if leaf.network.architecture == "projection" and image.shape != taken:
            msg = (
                f"the projection of block {name!r} is for images of {taken} (channels, height, "
                f"width), but the images have {image.shape}"
            )
            raise PlanError(msg)
        if image.channels not in (1, leaf.network.channels):
            msg = (
                f"the network of block {name!r} takes {leaf.network.channels} channels, but the "
                f"images have {image.channels}"
            )
            raise PlanError(msg)
    elif leaf.reads[1] & schema.images.keys():
        msg = (
            f"block {name!r} needs numbers: name the pixels of the images, "
            "features.pixel_names(name, column)"
        )
        raise PlanError(msg)


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
