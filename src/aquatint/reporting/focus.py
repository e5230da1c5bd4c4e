"""A few columns of a wide release: a smaller release, quick to fit and to ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from aquatint.features import Count
from aquatint.features.marginals import Marginals
from aquatint.release.model import Block, Release


def can_focus(release: Release) -> bool:
    """Whether every block counts, so that a part of the columns is a part of the numbers."""
    return all(isinstance(block.map, (Count, Marginals)) for block in release.blocks)


def focus(release: Release, names: Collection[str]) -> Release:
    """Keep what a release tells about some of its columns.

    Nothing is computed anew: the same noisy numbers, fewer of them. What tables with other columns
    say of these is lost, which makes answers a little less sure, and never wrong.
    """
    kept = [_part(block, names) for block in release.blocks]
    columns = {n: c for n, c in release.schema.columns.items() if n in names}
    label = release.schema.label if release.schema.label in columns else None
    schema = release.schema.model_copy(update={"columns": columns, "label": label})
    return Release(
        schema,
        tuple(block for block in kept if block is not None),
        release.statement,
        release.rows,
        release.created,
        release.versions,
    )


def _part(block: Block, names: Collection[str]) -> Block | None:
    if not isinstance(block.map, Marginals):
        return block
    places = [i for i, columns in enumerate(block.map.sets) if set(columns) <= set(names)]
    if not places:
        return None
    part, integers = block.map.keep(block.integers, places)
    used = _used(part.sets)
    columns = tuple((name, cells) for name, cells in part.columns if name in used)
    return Block(
        block.name,
        Marginals(columns, part.sets, part.groups),
        np.ascontiguousarray(integers),
        block.scales,
        block.noise,
    )


def _used(sets: Iterable[tuple[str, ...]]) -> set[str]:
    return {name for columns in sets for name in columns}
