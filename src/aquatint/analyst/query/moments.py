"""Averages over the rows, from a model and the counts of a release, with their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np

from aquatint.analyst.query.counted import Counted, Groups, Table
from aquatint.analyst.query.expectations import expectations
from aquatint.analyst.query.functions import Function, of_column
from aquatint.analyst.query.levels import Levels, Meeting, levels_of, meeting
from aquatint.analyst.query.points import Points
from aquatint.analyst.query.posterior import Belief, Doubt, Observed, believe, gather
from aquatint.analyst.query.tilts import hidden, sides, tilts
from aquatint.analyst.query.within import STRANGERS, TOGETHER, inside
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.release.histograms import histograms
from aquatint.release.model import Release

OFF, BEST, SAFE, ALONE = 0.3, (1.0, 0.3), (1.8, 1.0), (1.0, 1.0)
"""On development tables a fitted model was off by 0.3·√η standard deviations of whatever was asked,
where η is the noise of a joint count as a share of all rows (docs/results/notes.md). Estimates
take it to be off by this, intervals by 1.8 times this; in units of the noise on the counts
it was fitted to, by the second number besides. A column alone is counted well: there the counts may
say more."""
UNSEEN = 0.35
"""The same for columns that no table of the release holds together: the model can know of their
dependence only through others. Products of histograms were off by up to .35 on those tables."""
HIDDEN = (0.3, 1.0)
"""This much of the rows that a model has where noise hides them may be wrong: for estimates, and
for intervals."""
SURPRISING = 1.1
MOST_CELLS = 600
"""So many cells a question may tell apart; more are put together."""


How = Literal["exact linear", "m2m", "model"]
"""``exact linear``: the release counted just this. ``m2m``: it counted it in cells that the
question cuts, or through other features. ``model``: it never counted all these columns together, so
the model fills in; then the interval is a rule of thumb."""
CUT = 1e-6


@dataclass(frozen=True, eq=False)
class Moments:
    """Averages over the rows of m functions and, last, the number of rows.

    Attributes
    ----------
    mean
        Shape (m + 1,).
    noise, bins, model
        Covariances of the errors, by where they come from: (m + 1, m + 1) each.
    how
        How each function was answered, see `How`.
    """

    mean: np.ndarray
    noise: np.ndarray
    bins: np.ndarray
    model: np.ndarray
    how: tuple[How, ...]

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of all errors together."""
        return np.asarray(self.noise + self.bins + self.model)

    def part(self, start: int, stop: int) -> Moments:
        """Take some of the functions, and the number of rows."""
        kept = [*range(start, stop), len(self.mean) - 1]
        square = np.ix_(kept, kept)
        parts = (self.noise[square], self.bins[square], self.model[square])
        return Moments(self.mean[kept], *parts, self.how[start:stop])


class Knowledge:
    """What a release and a model of it tell about sums over the rows."""

    def __init__(self, release: Release, model: Mixture) -> None:
        self.model = model
        self.counts = Counted(release)
        self._fine: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.release = release

    @cached_property
    def off(self) -> float:
        """How far the model may be off, in standard deviations of whatever is asked."""
        rows, _ = self.counts.rows(())
        most = max(len(table.columns) for table in self.counts.tables)
        noise = max(t.variance for t in self.counts.tables if len(t.columns) == most)
        return float(OFF * (noise**0.5 / rows) ** 0.5)

    @cached_property
    def sides(self) -> dict[str, np.ndarray]:
        """On which side of the middle row each cell is, of the columns that have an order."""
        return sides(self.model)

    @cached_property
    def histograms(self) -> dict[str, tuple[np.ndarray, float]]:
        """The noisy histogram of each column, and the standard deviation of the noise."""
        return histograms(self.release.blocks)

    def moments(
        self,
        functions: Sequence[Function],
        points: Mapping[str, Points],
        alone: tuple[float, float] = ALONE,
    ) -> Moments:
        """Give the averages of functions over the rows, and their errors."""
        columns = tuple(n for n in points if any(n in f.columns for f in functions))
        if not columns:
            return self._constants(functions)
        fine = len(columns) == 1
        of_cell = self.model.atoms.of_cell
        atoms = {n: np.arange(of_cell[n].size) if fine else of_cell[n] for n in columns}
        read = _Reading(self.model, functions, points, columns, atoms, fine=fine)
        levels = read.levels()
        shares, values = read.shares(levels), read.values(levels)
        tables = self.counts.over(columns)
        observed = _observed(tables, columns, levels, atoms)
        rows, variance = self.counts.rows(columns)

        met = _acquainted(columns, tables)
        off = self.off if met else max(self.off, UNSEEN)

        evidence = gather(shares, rows, observed)
        below = hidden(shares, rows, observed)
        doubtful = tilts(shares, below, read.signs(levels, self.sides))

        def belief(doubt: tuple[float, float], more: float, much: float) -> Belief:
            doubted = Doubt(off * doubt[0] * more, doubt[1])
            return believe(shares, rows, variance, evidence, values, doubted, much * doubtful)

        first = belief(alone if fine else BEST, 1.0, HIDDEN[0])
        # Counts far from what was expected say that here the model is worse than elsewhere.
        worse = max(1.0, first.surprise)
        best = belief(alone if fine else BEST, worse, HIDDEN[0]) if worse > SURPRISING else first
        safe = belief(SAFE, worse, HIDDEN[1])
        there = {n: points[n] for n in columns}
        more = inside(
            self.model,
            functions,
            there,
            self.histograms,
            None if fine else self.fine,
            TOGETHER if met else STRANGERS,
        )
        # Levels that were put together average a function: what the model knows is put back.
        cuts = np.diag(more.bins + more.cells) > np.maximum(CUT * np.diag(safe.noise)[:-1], 1e-30)
        rest = expectations(self.model, functions, there) - (shares / shares.sum()) @ values
        return Moments(
            best.mean + np.append(rest + more.shift, 0.0),
            safe.noise + _bordered(more.cells),
            _bordered(more.bins),
            safe.covariance - safe.noise,
            tuple(_how(f, tables, cut) for f, cut in zip(functions, cuts, strict=True)),
        )

    def fine(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Give the share of each of a column's cells, and its variance."""
        if name not in self._fine:
            size = self.model.schema.columns[name].cells
            if size > MOST_CELLS:
                return self._as_counted(name)
            functions = [of_column(name, line) for line in np.eye(size)]
            plain = Points(
                np.zeros(size), np.arange(size), np.ones(size), np.ones(size, dtype=bool)
            )
            found = self.moments(functions, {name: plain}, BEST)
            self._fine[name] = found.mean[:-1], np.diag(found.noise + found.model)[:-1]
        return self._fine[name]

    def _as_counted(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Leave a column of very many cells to the model, with the noise of its histogram."""
        share = self.model.histogram(name)
        loose = (self.histograms.get(name, (share, 0.0))[1] / self.counts.rows(())[0]) ** 2
        return share, loose * share**2 / np.maximum(share**2 + loose, 1e-300)

    def apart(self, functions: Sequence[Function], points: Mapping[str, Points]) -> bool:
        """Whether the functions can be asked about at once without putting levels together."""
        columns = tuple(n for n in points if any(n in f.columns for f in functions))
        atoms = {n: self.model.atoms.of_cell[n] for n in columns}
        read = _Reading(self.model, functions, points, columns, atoms, fine=False)
        return prod(level.count for level in read.all_levels.values()) <= MOST_CELLS

    def _constants(self, functions: Sequence[Function]) -> Moments:
        rows, variance = self.counts.rows(())
        mean = np.array([*(f.constant for f in functions), rows])
        noise = np.zeros((len(mean), len(mean)))
        noise[-1, -1] = variance
        zero = np.zeros_like(noise)
        direct: How = "exact linear"
        return Moments(mean, noise, zero, zero, (direct,) * len(functions))


def _acquainted(columns: tuple[str, ...], tables: Sequence[Table]) -> bool:
    """Whether each two of the columns are together in some table."""
    held = [set(table.columns) for table in tables]
    return all(any({a, b} <= one for one in held) for a, b in combinations(columns, 2))


def _how(function: Function, tables: Sequence[Table], cut: bool) -> How:
    if not any(function.columns <= set(table.columns) for table in tables):
        return "model" if function.columns else "exact linear"
    return "m2m" if cut else "exact linear"


def _bordered(square: np.ndarray) -> np.ndarray:
    """Add a line of zeros: the number of rows owes nothing to this."""
    return np.pad(square, (0, 1))


@dataclass(frozen=True, eq=False)
class _Reading:
    """The functions of a question over the atoms of its columns."""

    model: Mixture
    functions: Sequence[Function]
    points: Mapping[str, Points]
    columns: tuple[str, ...]
    atoms: Mapping[str, np.ndarray]
    fine: bool

    def probabilities(self, name: str) -> np.ndarray:
        if self.fine:
            return self.model.cells(name)
        return self.model.probabilities[:, self.model.atoms.slices[name]]

    @cached_property
    def vectors(self) -> dict[str, dict[int, np.ndarray]]:
        """For each column, every vector that some term reads it through, over its atoms."""
        found: dict[str, dict[int, np.ndarray]] = {name: {} for name in self.columns}
        for term in (t for f in self.functions for t in f.terms):
            for name, vector in term.items():
                if id(vector) not in found[name]:
                    means = self.points[name].means(vector)
                    if not self.fine:
                        within = self.model.atoms.within[name]
                        means = np.bincount(self.atoms[name], weights=within * means)
                    found[name][id(vector)] = means
        return found

    @cached_property
    def all_levels(self) -> dict[str, Levels]:
        """The levels of every column that some function tells apart."""
        return {n: levels_of(list(v.values())) for n, v in self.vectors.items()}

    def levels(self) -> dict[str, Levels]:
        """Give the levels of every column, few enough that their product is small."""
        found = dict(self.all_levels)
        while prod(level.count for level in found.values()) > MOST_CELLS:
            most = max(found, key=lambda n: found[n].count)
            found[most] = found[most].coarser()
        return found

    def shares(self, levels: Mapping[str, Levels]) -> np.ndarray:
        """Give the model's share of every cell, a flat table of the columns' levels."""
        joint = self.model.weights.astype(float)[:, None]
        for name in self.columns[:-1]:
            part = levels[name].total(self.probabilities(name))
            joint = (joint[:, :, None] * part[:, None, :]).reshape(len(joint), -1)
        last = levels[self.columns[-1]].total(self.probabilities(self.columns[-1]))
        return np.asarray((joint.T @ last).reshape(-1))

    def signs(
        self, levels: Mapping[str, Levels], sides: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Give the side of every cell by each column with an order, and by each two of them."""
        sizes = [levels[n].count for n in self.columns]
        index = np.indices(sizes).reshape(len(sizes), -1)
        found = {}
        for axis, name in enumerate(self.columns):
            if name in sides:
                cells = self.model.histogram(name)
                of_atom = np.bincount(self.atoms[name], weights=cells * sides[name])
                held = np.bincount(self.atoms[name], weights=cells)
                by_atom = of_atom / np.maximum(held, 1e-300)
                found[name] = levels[name].mean(by_atom, held)[index[axis]]
        alone = list(found.values())
        return alone + [a * b for a, b in combinations(alone, 2)]

    def values(self, levels: Mapping[str, Levels]) -> np.ndarray:
        """Give every function in every cell."""
        weights = {n: self.model.weights @ self.probabilities(n) for n in self.columns}
        known: dict[tuple[str, int], np.ndarray] = {}
        for name, vectors in self.vectors.items():
            for key, vector in vectors.items():
                known[name, key] = levels[name].mean(vector, weights[name])
        sizes = [levels[n].count for n in self.columns]
        out = np.empty((prod(sizes), len(self.functions)))
        for place, function in enumerate(self.functions):
            table = np.full(sizes, function.constant)
            for term in function.terms:
                product = np.ones([1] * len(sizes))
                for axis, name in enumerate(self.columns):
                    if name in term:
                        shape = [1] * len(sizes)
                        shape[axis] = sizes[axis]
                        product = product * known[name, id(term[name])].reshape(shape)
                table = table + product
            out[:, place] = table.reshape(-1)
        return out


def _observed(
    tables: Sequence[Table],
    columns: tuple[str, ...],
    levels: Mapping[str, Levels],
    atoms: Mapping[str, np.ndarray],
) -> list[Observed]:
    """Add tables up until their cells are cells of the question, or several of those together."""
    sizes = [levels[n].count for n in columns]
    index = dict(zip(columns, np.indices(sizes).reshape(len(sizes), -1), strict=True))

    @cache
    def met(name: str, groups: Groups) -> Meeting:
        return meeting(levels[name], atoms[name], np.array(groups))

    found = []
    for table in tables:
        sums, cells = table.counts, np.ones(table.counts.shape)
        place = []
        for axis, (name, groups) in enumerate(zip(table.columns, table.groups, strict=True)):
            both = met(name, groups)
            sums, cells = (_added(v, both.of_group, both.count, axis) for v in (sums, cells))
            place.append(both.of_level[index[name]])
        part = np.ravel_multi_index(place, sums.shape)
        variance = table.variance * cells.reshape(-1)
        found.append(Observed(part, sums.reshape(-1), variance, len(table.columns)))
    return found


def _added(values: np.ndarray, part: np.ndarray, count: int, axis: int) -> np.ndarray:
    moved = np.moveaxis(values, axis, 0)
    out = np.zeros((count, *moved.shape[1:]))
    np.add.at(out, part, moved)
    return np.moveaxis(out, 0, axis)
