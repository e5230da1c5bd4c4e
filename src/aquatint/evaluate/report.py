"""One call that compares a synthetic table with real rows, and an object that holds the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aquatint.evaluate.classifiers import Prediction, choose, predictions
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.fidelity import TRIPLES, Fidelity, fidelity
from aquatint.evaluate.mmd import Discrepancy, mmd
from aquatint.evaluate.published import ALPHAS, alpha_way_error, hard_label_score, undersampled
from aquatint.evaluate.second_opinion import second_opinion as ask_sdmetrics
from aquatint.evaluate.tables import BINS, Encoded, Grid, encode
from aquatint.evaluate.utility import Score, Task, Utility, score
from aquatint.schema import Schema

NOT_PRIVATE = (
    "NOT PRIVATE: these scores are exact and come from real rows without noise. "
    "Publish them only where the real rows are public."
)
_WORST = 20
"""How many of the farthest pairs plain data lists."""


@dataclass(frozen=True)
class Closeness:
    """How far one table is from the real rows: marginals, ranges, and mean embeddings."""

    fidelity: Fidelity
    mmd: Discrepancy

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        found = self.fidelity
        worst = sorted(found.two.items(), key=lambda item: -item[1])[:_WORST]
        return {
            **found.means,
            "mmd": self.mmd.mmd,
            "mmd_floor": self.mmd.floor,
            "triples": len(found.three),
            "columns": {
                name: {"tv": distance, "wasserstein": found.wasserstein.get(name)}
                for (name,), distance in found.one.items()
            },
            "worst_pairs": [{"columns": list(pair), "tv": tv} for pair, tv in worst],
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was found about a synthetic table: exact scores, which are not private.

    Attributes
    ----------
    grid
        The cells that the tables were compared on.
    rows
        The number of rows of each table: real, synthetic, and test where it was given.
    outside
        The share of synthetic entries outside the schema.
    shares
        For each column, the share of each cell among the real and among the synthetic rows.
    closeness
        How far the synthetic rows are from the real ones.
    utility
        What classifiers trained on the synthetic rows make of the test rows, if there is a target.
    held_out, baseline
        The same two for real rows, to compare with: how far the test rows are from the real ones,
        and classifiers trained on the real ones. None unless asked for.
    alpha_way
        DP-HP's marginal errors as published, by α; empty unless asked for.
    undersampling
        The share of the commonest class that published scores keep; None unless asked for.
    second_opinion
        The scores of SDMetrics; None unless asked for.
    seed
        The seed of everything random.
    """

    grid: Grid
    rows: Mapping[str, int]
    outside: float
    shares: Mapping[str, tuple[np.ndarray, np.ndarray]]
    closeness: Closeness
    utility: Utility | None
    held_out: Closeness | None
    baseline: Utility | None
    alpha_way: Mapping[int, float]
    undersampling: float | None
    second_opinion: Mapping[str, float] | None
    seed: int

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.grid.schema.name

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data."""
        published = {
            "alpha_way": {str(alpha): error for alpha, error in self.alpha_way.items()},
            "undersampling": self.undersampling,
        }
        return {
            "name": self.name,
            "private": False,
            "note": NOT_PRIVATE,
            "rows": dict(self.rows),
            "bins": self.grid.bins,
            "seed": self.seed,
            "outside_schema": self.outside,
            "closeness": self.closeness.to_dict(),
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
            "as_published": None if self.undersampling is None else published,
            "second_opinion": None if self.second_opinion is None else dict(self.second_opinion),
        }


def evaluate(
    real: Any,
    test: Any,
    synthetic: Any,
    schema: Schema,
    *,
    target: str | None = None,
    positive: str | None = None,
    classifiers: str | Sequence[str] = "papers",
    baseline: bool = False,
    as_published: bool = False,
    undersampling: float = 1.0,
    second_opinion: bool = False,
    triples: int = TRIPLES,
    bins: int = BINS,
    seed: int = 0,
    progress: bool = True,
) -> Evaluation:
    """Compare a synthetic table with real rows. The scores are exact, so they are not private.

    Parameters
    ----------
    real
        The rows the synthetic table was made from: a path, a frame or an Arrow table.
    test
        Real rows that the synthetic table was not made from; None leaves out the classifiers.
    synthetic
        The rows to judge. What they hold outside the schema counts as an error.
    schema
        The public schema: its bounds, bins and categories are the grid of every comparison.
    target
        The column that classifiers predict; by default the schema's label, if it has one.
    positive
        With two classes, the one to detect; by default the rarer.
    classifiers
        "papers" for the twelve of DP-MERF and DP-HP, "quick" for three, or names.
    baseline
        Whether to judge the test rows and classifiers trained on the real rows as well: what a
        perfect generator could reach.
    as_published
        Whether to add the scores as the papers' code computes them, faults included.
    undersampling
        With `as_published`, the share of the commonest class that is kept, of the rows to train
        on and of the test rows; `aquatint.evaluate.published.UNDERSAMPLING` has the papers' rates.
    second_opinion
        Whether to ask SDMetrics as well.
    triples
        How many random 3-way marginals to compare.
    bins
        Bins for the ranged columns that declare none.
    seed
        Seeds everything random: triples, Fourier features, classifiers, undersampling.
    progress
        Whether to show progress on standard error.
    """
    chosen = target if target is not None else (schema.label if test is not None else None)
    if target is not None and test is None:
        msg = f"predicting {target!r} needs test rows: give real rows that were held out"
        raise EvaluationError(msg)
    choose(classifiers)  # a misspelt name is refused before anything takes time
    grid = Grid(schema, bins)
    ours = encode(real, grid, what="real", strict=True, progress=progress)
    theirs = encode(synthetic, grid, what="synthetic", progress=progress)
    held = None if test is None else encode(test, grid, what="test", strict=True, progress=progress)
    bench = _Bench(grid, ours, triples, seed, progress)
    utility = real_utility = None
    if chosen is not None and held is not None:
        task = Task.of(ours, held, grid, chosen, positive)
        keep = undersampling if as_published else None
        utility = bench.utility(theirs, held, task, classifiers, keep, "synthetic")
        if baseline:
            real_utility = bench.utility(ours, held, task, classifiers, keep, "real")
    tables = {"real": ours, "test": held, "synthetic": theirs}
    return Evaluation(
        grid=grid,
        rows={name: table.rows for name, table in tables.items() if table is not None},
        outside=theirs.outside,
        shares={n: (_shares(ours, grid, n), _shares(theirs, grid, n)) for n in grid.cells},
        closeness=bench.closeness(theirs),
        utility=utility,
        held_out=bench.closeness(held) if baseline and held is not None else None,
        baseline=real_utility,
        alpha_way=bench.alpha_way(theirs) if as_published else {},
        undersampling=undersampling if as_published else None,
        second_opinion=ask_sdmetrics(ours, theirs, grid) if second_opinion else None,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class _Bench:
    """What all comparisons of one evaluation share."""

    grid: Grid
    real: Encoded
    triples: int
    seed: int
    progress: bool

    def closeness(self, table: Encoded) -> Closeness:
        seed, show = self.seed, self.progress
        return Closeness(
            fidelity(self.real, table, self.grid, triples=self.triples, seed=seed, progress=show),
            mmd(self.real, table, self.grid, seed=seed, progress=show),
        )

    def alpha_way(self, table: Encoded) -> dict[int, float]:
        given = self.real, table, self.grid
        return {
            alpha: alpha_way_error(
                *given, alpha, limit=self.triples, seed=self.seed, progress=self.progress
            )
            for alpha in ALPHAS
            if alpha < len(self.grid.cells)
        }

    def utility(
        self,
        train: Encoded,
        test: Encoded,
        task: Task,
        classifiers: str | Sequence[str],
        keep: float | None,
        what: str,
    ) -> Utility:
        """Train and score; with `keep`, as published too: trained on thinned rows as well."""
        asked = task.rows(test, "test")
        truth = asked.codes[task.target]

        def trained(rows: Encoded, what: str) -> list[Prediction]:
            return list(
                predictions(
                    rows,
                    asked,
                    self.grid,
                    task.target,
                    positive=task.positive,
                    classifiers=classifiers,
                    seed=self.seed,
                    progress=self.progress,
                    what=what,
                )
            )

        rows = task.rows(train, what)
        found = trained(rows, what)
        scores = tuple(score(f, truth, task) for f in found)
        published: tuple[Score, ...] = ()
        if keep is not None:
            kept = undersampled(rows.codes[task.target], task.commonest, keep, self.seed)
            thinned = found if keep == 1 else trained(rows.take(kept), f"thinned {what}")
            published = tuple(
                hard_label_score(f, truth, task, keep=keep, seed=self.seed) for f in thinned
            )
        name = None if task.positive is None else self.grid.names(task.target)[task.positive]
        return Utility(task.target, name, scores, published)


def _shares(table: Encoded, grid: Grid, column: str) -> np.ndarray:
    counts = np.bincount(table.codes[column], minlength=grid.cells[column])
    shares: np.ndarray = counts / table.rows
    return shares
