"""The plan: which blocks to release and their share of the budget, from public facts alone.

A plan is made from the schema, a guess of the number of rows and the privacy parameters. It never
opens the private file, and two owners can share it as a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

from aquatint.accounting import Budget, Noised, calibrate
from aquatint.columns import RANGED, is_printable
from aquatint.errors import PlanError
from aquatint.features import Count, FeatureMap, from_spec, leaves, onehot, pairs
from aquatint.features.fits import check_fits
from aquatint.features.grid import grid_of, sensitivity
from aquatint.schema import Schema

DEFAULT_BINS = 32
PAIR_CELLS = 5_000_000
WIDE_COLUMN = 2_000
COUNT_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One block to release: a feature map and its share of the budget."""

    name: str
    map: FeatureMap
    share: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The blocks of a release, with a schema whose bins are settled."""

    schema: Schema
    blocks: tuple[PlannedBlock, ...]

    def __post_init__(self) -> None:
        check(self)

    @property
    def coordinates(self) -> int:
        """How many numbers the release will hold."""
        return sum(block.map.dim for block in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data that `from_dict` reads back."""
        return {
            "format": "aquatint-plan",
            "format_version": 1,
            "schema": self.schema.to_dict(),
            "blocks": [
                {"name": b.name, "map": b.map.spec(), "share": b.share} for b in self.blocks
            ],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Plan:
        """Check plain data as a plan."""
        if (
            not isinstance(data, Mapping)
            or data.get("format") != "aquatint-plan"
            or data.get("format_version") != 1
        ):
            msg = "this is not a plan of a version that this Aquatint knows"
            raise PlanError(msg)
        try:
            blocks = tuple(
                PlannedBlock(str(b["name"]), from_spec(b["map"]), float(b["share"]))
                for b in data["blocks"]
            )
            return cls(Schema.from_dict(data["schema"]), blocks)
        except (LookupError, TypeError, ValueError) as error:
            msg = f"the plan is malformed: {error}"
            raise PlanError(msg) from None

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, to share it or to look at it."""
        try:
            Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            msg = f"cannot write the plan {path}: {error.strerror}"
            raise PlanError(msg) from None

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save` wrote."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            msg = f"cannot read the plan {path}: {error}"
            raise PlanError(msg) from None


def plan(schema: Schema, *, rows: int | None = None, epsilon: float | None = None) -> Plan:
    """Choose the default blocks for a table: its histograms and the joint counts of its pairs.

    Parameters
    ----------
    schema
        What is public about the table.
    rows
        A public or guessed number of rows; it only sets how finely numbers are binned.
    epsilon
        Likewise.
    """
    for bins in _bins_to_try(rows, epsilon):
        settled = schema.with_bins(
            {
                name: min(bins, getattr(column, "steps", bins))
                for name, column in schema.columns.items()
                if isinstance(column, RANGED)
            }
        )
        cells = settled.cells()
        joint = {name: count for name, count in cells.items() if count <= WIDE_COLUMN}
        if _pair_cells(joint) <= PAIR_CELLS:
            return Plan(settled, _table_blocks(settled, cells, list(combinations(joint, 2))))
    chosen = [(name, settled.label) for name in joint if name != settled.label]
    with_label = [p for p in chosen if settled.label in joint]
    return Plan(settled, _table_blocks(settled, cells, [(a, b) for a, b in with_label if b]))


def _bins_to_try(rows: int | None, epsilon: float | None) -> list[int]:
    signal = (rows or 10**5) * (epsilon or 1.0)
    first = DEFAULT_BINS if signal >= 10**4 else 16 if signal >= 10**3 else 8
    return [bins for bins in (32, 16, 8, 4) if bins <= first]


def _pair_cells(cells: Mapping[str, int]) -> int:
    total = sum(cells.values())
    return (total**2 - sum(c * c for c in cells.values())) // 2


def _table_blocks(
    schema: Schema, cells: Mapping[str, int], chosen: Iterable[tuple[str, str]]
) -> tuple[PlannedBlock, ...]:
    """Weigh histograms four times, and pairs with the label three times, as much as other pairs."""
    label = schema.label
    plain = [p for p in chosen if label not in p]
    labelled = [p for p in chosen if label in p]
    weighed: list[tuple[str, FeatureMap, float]] = [("columns", onehot(cells), 4.0 * len(cells))]
    if labelled:
        weighed.append(("label pairs", pairs(cells, labelled), 3.0 * len(labelled)))
    if plain:
        weighed.append(("pairs", pairs(cells, plain), 1.0 * len(plain)))
    counted = 0.0 if schema.privacy.replaces else COUNT_SHARE
    total = sum(weight for *_, weight in weighed)
    blocks = [PlannedBlock(n, m, w / total * (1 - counted)) for n, m, w in weighed]
    if counted:
        blocks.insert(0, PlannedBlock("count", Count(), counted))
    return tuple(blocks)


def check(plan: Plan) -> None:
    """Refuse a plan that does not fit its schema or does not spend exactly one budget."""
    names = [block.name for block in plan.blocks]
    if not names or len(set(names)) < len(names):
        msg = "a plan needs at least one block, each with a name of its own"
        raise PlanError(msg)
    if not all(0 < len(name) <= 200 and is_printable(name) for name in names):
        msg = "names of blocks have 1 to 200 characters, none of them control characters"
        raise PlanError(msg)
    shares = [block.share for block in plan.blocks]
    if not all(isfinite(s) and s > 0 for s in shares) or abs(sum(shares) - 1) > 1e-9:
        msg = f"the shares of the blocks must be positive and add up to 1, got {sum(shares):g}"
        raise PlanError(msg)
    counts = any(isinstance(block.map, Count) for block in plan.blocks)
    if not plan.schema.privacy.replaces and not counts:
        msg = (
            "the number of rows is private here: add a block for it, "
            'PlannedBlock("count", Count(), 0.01)'
        )
        raise PlanError(msg)
    for block in plan.blocks:
        check_fits(block.name, block.map, plan.schema)


def noise_of(plan: Plan, budget: Budget) -> tuple[tuple[Noised, ...], ...]:
    """Calibrate the noise of every leaf of every block, so that the whole spends the budget.

    Within a block every leaf gets noise of the same size in units of the feature, as if the block
    were one vector; its share is split over the leaves accordingly.
    """
    privacy = plan.schema.privacy
    vectors: list[Noised] = []
    shares: list[float] = []
    for block in plan.blocks:
        moved = []
        for leaf in leaves(block.map):
            grid, (l2_squared, l1) = grid_of(leaf), sensitivity(leaf, privacy)
            vectors.append(Noised(leaf.dim, 1.0, l2_squared, l1))
            moved.append(l1 / grid.steps if budget.pure else l2_squared / grid.steps**2)
        shares.extend(block.share * m / sum(moved) for m in moved)
    scales = iter(calibrate(budget, vectors, [s / sum(shares) for s in shares]))
    noised = iter([replace(v, scale=s) for v, s in zip(vectors, scales, strict=True)])
    return tuple(tuple(next(noised) for _ in leaves(b.map)) for b in plan.blocks)
