"""The plan: which blocks to release and their share of the budget, from public facts alone.

A plan is made from the schema, a guess of the number of rows and the privacy parameters. It never
opens the private file, and two owners can share it as a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from aquatint.accounting import Budget, Noised, calibrate, chosen
from aquatint.columns import is_printable
from aquatint.errors import PlanError
from aquatint.features import Count, FeatureMap, from_spec, leaves
from aquatint.features.fits import check_fits
from aquatint.features.grid import grid_of, one_set, sensitivity
from aquatint.features.marginals import Marginals
from aquatint.schema import Schema

SELECTION = 1 / 6
"""What a private choice of sets takes of its block's share."""


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One block to release: a feature map and its share of the budget.

    Attributes
    ----------
    merge
        If given, cells are merged before they are counted, so that each group holds at least this
        many standard deviations of the block's noise in rows, or down to three tenths of it where a
        column with an order would have few groups. Which ones is read off the noisy histograms of
        the blocks before it, in the same release.
    best
        If given, only this many of the map's sets are counted: those that an earlier block, which
        counts the same sets over merged cells, shows to be furthest from independence. They are
        counted over the same merged cells once more.
    select
        If given, only this many of the map's sets are counted: those furthest from independence,
        chosen privately. `SELECTION` of the block's share pays for the choice.
    """

    name: str
    map: FeatureMap
    share: float
    merge: float | None = None
    best: int | None = None
    select: int | None = None

    @property
    def adaptive(self) -> bool:
        """Whether what exactly is counted depends on what earlier blocks published."""
        return self.merge is not None or self.best is not None

    @property
    def bounding(self) -> FeatureMap:
        """A map with the sensitivity of what is counted, whichever sets that will be.

        It depends on how many sets there are, and is less only if some have a single cell: so the
        largest stand for all.
        """
        counted = self.best or self.select
        if counted is None or not isinstance(self.map, Marginals):
            return self.map
        largest = sorted(zip(self.map.sizes, self.map.sets, strict=True), reverse=True)
        return Marginals(self.map.columns, tuple(s for _, s in largest[:counted]))

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        rules = {"merge": self.merge, "best": self.best, "select": self.select}
        given = {name: rule for name, rule in rules.items() if rule is not None}
        return {"name": self.name, "map": self.map.spec(), "share": self.share, **given}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PlannedBlock:
        """Read what `to_dict` gave."""
        rules = data.get("merge"), data.get("best"), data.get("select")
        for rule, kind in zip(rules, ((int, float), (int,), (int,)), strict=True):
            if rule is not None and (isinstance(rule, bool) or not isinstance(rule, kind)):
                msg = "merge, best and select are numbers"
                raise TypeError(msg)
        return cls(str(data["name"]), from_spec(data["map"]), float(data["share"]), *rules)


@dataclass(frozen=True, slots=True)
class Plan:
    """The blocks of a release, with a schema whose bins are settled.

    Attributes
    ----------
    rebalance
        Whether the shares are settled by `rebalanced` once the number of rows is published.
    """

    schema: Schema
    blocks: tuple[PlannedBlock, ...]
    rebalance: bool = False

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
            "blocks": [block.to_dict() for block in self.blocks],
            **({"rebalance": True} if self.rebalance else {}),
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
            blocks = tuple(PlannedBlock.from_dict(block) for block in data["blocks"])
            rebalance = data.get("rebalance", False)
            if not isinstance(rebalance, bool):
                msg = "rebalance is neither true nor false"
                raise TypeError(msg)
            return cls(Schema.from_dict(data["schema"]), blocks, rebalance)
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
    if plan.rebalance and not _can_rebalance(plan):
        msg = (
            "a plan with rebalance needs the count as its first block, then histograms, then "
            "blocks that merge cells"
        )
        raise PlanError(msg)
    counted: set[str] = set()
    for block in plan.blocks:
        check_fits(block.name, block.map, plan.schema)
        if block.merge is not None:
            _check_merge(block, counted)
        if block.best is not None:
            _check_best(block, plan)
        if block.select is not None:
            _check_select(block)
        for leaf in leaves(block.map):
            if isinstance(leaf, Marginals) and not leaf.groups:
                counted |= {s[0] for s in leaf.sets if len(s) == 1}


def _check_best(block: PlannedBlock, plan: Plan) -> None:
    before = plan.blocks[: plan.blocks.index(block)]
    fits = isinstance(block.map, Marginals) and block.merge is None
    if not fits or not any(b.merge is not None and b.map == block.map for b in before):
        msg = (
            f"block {block.name!r}: the best sets are chosen by an earlier block that counts the "
            "same sets over merged cells: put it before this one"
        )
        raise PlanError(msg)
    if not 1 <= (block.best or 0) <= (block.map.ones or 0):
        msg = f"block {block.name!r}: best must be between 1 and the number of its sets"
        raise PlanError(msg)


def _check_select(block: PlannedBlock) -> None:
    if block.merge is None or block.best is not None:
        msg = (
            f"block {block.name!r}: a private choice needs merge, so that sets are compared over "
            "cells worth counting, and excludes best"
        )
        raise PlanError(msg)
    if not 1 <= (block.select or 0) < (block.map.ones or 0):
        msg = f"block {block.name!r}: select must be at least 1 and below the number of its sets"
        raise PlanError(msg)


def _can_rebalance(plan: Plan) -> bool:
    first = isinstance(plan.blocks[0].map, Count)
    rest = [b for b in plan.blocks if not isinstance(b.map, Count)]
    both = {block.adaptive for block in rest} == {True, False}
    return both and (first or plan.schema.privacy.replaces)


def _check_merge(block: PlannedBlock, counted: set[str]) -> None:
    if not isinstance(block.map, Marginals):
        msg = f"block {block.name!r}: only the cells of plain counts can be merged"
        raise PlanError(msg)
    if block.merge is None or not (isfinite(block.merge) and block.merge > 0):
        msg = f"block {block.name!r}: merge must be a positive number of standard deviations"
        raise PlanError(msg)
    for column in sorted(block.map.reads[0] - counted):
        msg = (
            f"block {block.name!r} merges cells of column {column!r}: put a block with its "
            "histogram, onehot(cells), before it"
        )
        raise PlanError(msg)


def noise_of(plan: Plan, budget: Budget) -> tuple[tuple[Noised, ...], ...]:
    """Calibrate the noise of every leaf of every block, so that the whole spends the budget.

    Within a block every leaf gets noise of the same size in units of the feature, as if the block
    were one vector; its share is split over the leaves accordingly. A private choice of sets comes
    after the leaves of its block.
    """
    privacy = plan.schema.privacy
    vectors: list[Noised] = []
    shares: list[float] = []
    for block in plan.blocks:
        moved, bounding = [], block.bounding
        for leaf in leaves(bounding):
            grid, (l2_squared, l1) = grid_of(leaf), sensitivity(leaf, privacy)
            size = leaf.dim if bounding is block.map else block.map.dim
            vectors.append(Noised(size, 1.0, l2_squared, l1))
            moved.append(l1 / grid.steps if budget.pure else l2_squared / grid.steps**2)
        counts = block.share * (1 - SELECTION if block.select else 1)
        shares.extend(counts * m / sum(moved) for m in moved)
        if block.select and isinstance(block.map, Marginals):
            vectors.append(chosen(block.select, one_set(block.map, privacy)))
            shares.append(block.share * SELECTION)
    scales = iter(calibrate(budget, vectors, [s / sum(shares) for s in shares]))
    noised = iter([replace(v, scale=s) for v, s in zip(vectors, scales, strict=True)])
    sizes = [len(leaves(b.map)) + bool(b.select) for b in plan.blocks]
    return tuple(tuple(next(noised) for _ in range(size)) for size in sizes)
