"""What a mixture is fitted to: the blocks of a release, each against its own known noise.

A mixture of K products has weights w and, in one matrix P of shape (K, atoms), the probabilities of
every column's atoms in every component. Its embedding is then in closed form: the histograms are
w·P, all pairs at once Pᵀ·diag(w)·P, all triples with one common column the same with w replaced by
w times the probability of each class of that column.

Joint tables contribute max(0, s − f) each, where s is the sum of squared residuals in units of the
noise and f what noise alone would give: a table pulls only until it is fitted as well as its noise
allows. Histograms, those by class, and the averages of many joint tables have few cells and little
noise, or tell much together: they are fitted by plain least squares in the same units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.excess import TablesAboveFloor, above_floor
from aquatint.features.marginals import Marginals

MOST_RUNS = 8
WIDEST = 512
"""Of pairs over more groups than this, each step looks at a random part of the columns."""


class Term(ABC):
    """One part of the loss."""

    @abstractmethod
    def __call__(
        self, weights: Tensor, probabilities: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Give the misfit in units of the noise; the generator serves terms that sample.

        Weights have shape (K,) and probabilities (K, atoms); with one dimension more in front they
        are those of several fits, whose misfits are added up.
        """


@dataclass(frozen=True)
class View:
    """How a block sees the atoms: its own groups of them, side by side.

    Attributes
    ----------
    place
        For each atom that the block sees, its position among the block's groups, rising.
    atoms
        Those atoms.
    column
        For each position, the number of the column it belongs to.
    names
        The columns.
    slices
        Where each column's groups lie.
    """

    place: Tensor
    atoms: Tensor
    column: Tensor
    names: tuple[str, ...]
    slices: dict[str, slice]

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """The atoms as runs of neighbours, first and length: slices are cheaper than an index."""
        breaks = torch.nonzero(self.atoms.diff() != 1).flatten() + 1
        parts = torch.tensor_split(self.atoms, breaks)
        return [(int(part[0]), len(part)) for part in parts]

    @cached_property
    def of_column(self) -> Tensor:
        """One-hot: which column each position belongs to, shape (positions, columns)."""
        return torch.nn.functional.one_hot(self.column).float()

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Turn probabilities of atoms into those of the block's groups."""
        if len(self.runs) <= MOST_RUNS:
            seen = torch.cat([probabilities.narrow(-1, *run) for run in self.runs], -1)
        else:
            seen = probabilities[..., self.atoms]
        if len(self.atoms) == len(self.column):
            return seen
        empty = seen.new_zeros(*seen.shape[:-1], len(self.column))
        return empty.index_add(-1, self.place, seen)


def view_of(part: Marginals, atoms: Atoms, columns: tuple[str, ...]) -> View:
    """Line up a block's groups with the atoms, for the columns given."""
    place, seen, column, slices = [], [], [], {}
    start = 0
    cells = dict(part.columns)
    for number, name in enumerate(columns):
        group = np.array(part.merged.get(name, range(cells[name])))
        atom = atoms.of_cell[name]
        first = np.unique(atom, return_index=True)[1]
        count = part.counted[name]
        place.append(start + group[first])
        seen.append(atoms.slices[name].start + np.arange(len(first)))
        column.append(np.full(count, number))
        slices[name] = slice(start, start + count)
        start += count
    order = np.argsort(np.concatenate(place), kind="stable")
    return View(
        torch.from_numpy(np.concatenate(place)[order]),
        torch.from_numpy(np.concatenate(seen)[order]),
        torch.from_numpy(np.concatenate(column)),
        columns,
        slices,
    )


@dataclass(frozen=True)
class Singles(Term):
    """Histograms, or the rows of histograms per class of a common column: shape (classes, D).

    `sets` says how many sets were counted for it: none where it follows from pairs.
    """

    view: View
    classes: View | None
    target: Tensor
    deviation: Tensor
    sets: int = 0

    def __call__(  # noqa: D102
        self,
        weights: Tensor,
        probabilities: Tensor,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        seen = self.view(probabilities)
        mixed = by_class(weights, probabilities, self.classes) @ seen
        return (((mixed - self.target) / self.deviation) ** 2).sum()


@dataclass(frozen=True)
class Pairs(Term):
    """Joint counts of pairs, for each class of a common column if there is one: (classes, D, D).

    Every table is there twice, as it is and turned over. `cells` has the number of cells of the
    table of each two columns, zero where none was released. With `alone`, components have one class
    each, come in order of the classes, and are as many for each.
    """

    view: View
    classes: View | None
    target: Tensor
    deviation: float
    cells: Tensor
    alone: bool = False

    @property
    def sets(self) -> int:
        """How many pairs were counted."""
        return int((self.cells > 0).sum()) // 2

    def by_one_class(self) -> Pairs:
        """Give the same for components of one class each, if the classes are told apart as here."""
        view = self.classes
        if view is None or not torch.equal(view.place, torch.arange(len(view.column))):
            return self
        return replace(self, alone=bool((view.atoms.diff() == 1).all()))

    def __call__(  # noqa: D102
        self, weights: Tensor, probabilities: Tensor, generator: torch.Generator
    ) -> Tensor:
        seen = self.view(probabilities)
        mixed = by_class(weights, probabilities, self.classes)
        target, cells, of_column = self.target, self.cells, self.view.of_column
        times = 1.0
        if seen.shape[-1] > WIDEST:
            columns = torch.randperm(len(cells), generator=generator)
            columns = columns[: max(2, len(cells) * WIDEST // seen.shape[-1])].sort().values
            some = torch.nonzero(torch.isin(self.view.column, columns)).flatten()
            seen, target = seen[..., some], target[:, some][:, :, some]
            times = len(cells) * (len(cells) - 1) / (len(columns) * (len(columns) - 1))
            cells, of_column = cells[columns][:, columns], of_column[some][:, columns]
        found: Tensor = TablesAboveFloor.apply(  # type: ignore[no-untyped-call]
            seen, mixed, target, cells, self.deviation, of_column, self.alone
        )
        return found * times


@dataclass(frozen=True)
class Joint(Term):
    """The joint counts of one set of any size, through the products of its columns."""

    views: tuple[View, ...]
    target: Tensor
    deviation: float

    def __call__(  # noqa: D102
        self,
        weights: Tensor,
        probabilities: Tensor,
        generator: torch.Generator,  # noqa: ARG002
    ) -> Tensor:
        product = weights[..., None]
        for view in self.views[:-1]:
            product = (product[..., None] * view(probabilities)[..., None, :]).flatten(-2)
        mixed = (product.transpose(-1, -2) @ self.views[-1](probabilities)).flatten(-2)
        squares = ((mixed - self.target) / self.deviation) ** 2
        return above_floor(squares.sum(-1), torch.tensor(len(self.target)))


def by_class(weights: Tensor, probabilities: Tensor, classes: View | None) -> Tensor:
    """Give the weights of the components, or of components and class together: (…, classes, K)."""
    if classes is None:
        return weights[..., None, :]
    return weights[..., None, :] * classes(probabilities).transpose(-1, -2)


def terms_of(part: Marginals, shares: np.ndarray, deviation: float, atoms: Atoms) -> list[Term]:
    """Turn a block of marginals, as shares of all rows, into terms."""
    terms: list[Term] = []
    tables = {s: shares[part.set_slice(s)] for s in part.sets}
    singles = [s[0] for s in part.sets if len(s) == 1 and s[0] not in part.merged]
    if singles:
        terms.append(_singles(tables, tuple(singles), deviation, atoms))
    common = _common(part.sets)
    pairs: dict[tuple[str, ...], tuple[str, str]] = {
        s: (s[0], s[1]) for s in part.sets if len(s) == 2
    }
    star = _star(pairs)
    if star is not None:
        terms.append(_by_common(part, tables, list(pairs), star, deviation, atoms))
    elif pairs:
        terms += _pairs(part, tables, pairs, None, deviation, atoms)
    if common is not None:
        triples: dict[tuple[str, ...], tuple[str, str]] = {}
        for triple in (s for s in part.sets if len(s) == 3):
            a, b = (n for n in triple if n != common)
            triples[triple] = (a, b)
        terms += _pairs(part, tables, triples, common, deviation, atoms)
    rest = [s for s in part.sets if len(s) > 3 or (len(s) == 3 and common is None)]
    for columns in rest:
        views = tuple(view_of(part, atoms, (name,)) for name in columns)
        terms.append(Joint(views, _tensor(tables[columns]), deviation))
    return terms


def _common(sets: tuple[tuple[str, ...], ...]) -> str | None:
    """Find the column that all triples share."""
    triples = [set(s) for s in sets if len(s) == 3]
    shared = set.intersection(*triples) if triples else set()
    return next((n for s in sets if len(s) == 3 for n in reversed(s) if n in shared), None)


def _star(pairs: Iterable[tuple[str, ...]]) -> str | None:
    """Find the column that several pairs all share, such as the label."""
    shared = [set(pair) for pair in pairs]
    common = set.intersection(*shared) if len(shared) > 1 else set()
    return next(iter(common), None)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


Tables = Mapping[tuple[str, ...], np.ndarray]


def _singles(tables: Tables, names: tuple[str, ...], deviation: float, atoms: Atoms) -> Singles:
    """Give the histograms' term: fine cells are added up to the atoms, which are never finer."""
    sums = [np.bincount(atoms.of_cell[n], weights=tables[(n,)]) for n in names]
    cells = [np.bincount(atoms.of_cell[n]) for n in names]
    sizes = [len(s) for s in sums]
    starts = np.cumsum([0, *sizes])
    view = View(
        torch.arange(sum(sizes)),
        torch.cat([torch.arange(atoms.slices[n].start, atoms.slices[n].stop) for n in names]),
        torch.repeat_interleave(torch.arange(len(names)), torch.tensor(sizes)),
        names,
        {n: slice(int(a), int(a) + k) for n, a, k in zip(names, starts, sizes, strict=False)},
    )
    spread = deviation * np.sqrt(np.concatenate(cells))
    target = _tensor(np.concatenate(sums)[None])
    return Singles(view, None, target, _tensor(spread[None]), len(names))


def _by_common(
    part: Marginals,
    tables: Tables,
    pairs: list[tuple[str, ...]],
    common: str,
    deviation: float,
    atoms: Atoms,
) -> Singles:
    """Give the term of pairs that share a column: the others' histograms by its classes.

    Such a table has few cells, and what many of them tell together counts, however little each one
    does: they are fitted by least squares, and no table stops at its own noise.
    """
    names = tuple(next(n for n in pair if n != common) for pair in pairs)
    counts = [tables[s].reshape([part.counted[n] for n in s]) for s in pairs]
    lines = [t if s[0] == common else t.T for s, t in zip(pairs, counts, strict=True)]
    target = _tensor(np.concatenate(lines, 1))
    view, classes = view_of(part, atoms, names), view_of(part, atoms, (common,))
    return Singles(view, classes, target, torch.full_like(target, deviation), len(names))


def _pairs(
    part: Marginals,
    tables: Tables,
    chosen: Mapping[tuple[str, ...], tuple[str, str]],
    common: str | None,
    deviation: float,
    atoms: Atoms,
) -> list[Term]:
    """Give the pairs' term, and one for the histograms that follow from averaging the pairs.

    Every pair that a column is in tells its histogram once more, so the average of all those is far
    less noisy than any single table.
    """
    names = tuple(dict.fromkeys(n for pair in chosen.values() for n in pair))
    number = {name: i for i, name in enumerate(names)}
    view = view_of(part, atoms, names)
    classes = view_of(part, atoms, (common,)) if common else None
    lines = part.counted[common] if common else 1
    width = len(view.column)
    target = np.zeros((lines, width, width))
    cells = np.zeros((len(names), len(names)))
    sums, weight = np.zeros((lines, width)), np.zeros(width)
    for columns, (a, b) in chosen.items():
        shape = [part.counted[n] for n in columns]
        table = tables[columns].reshape(shape)
        order = [columns.index(n) for n in ((common,) if common else ()) + (a, b)]
        table = table.transpose(order).reshape(lines, part.counted[a], part.counted[b])
        at, bt = view.slices[a], view.slices[b]
        target[:, at, bt] = table
        target[:, bt, at] = table.transpose(0, 2, 1)
        i, j = number[a], number[b]
        cells[i, j] = cells[j, i] = table.size
        sums[:, at] += table.sum(2) / part.counted[b]
        weight[at] += 1 / part.counted[b]
        sums[:, bt] += table.sum(1) / part.counted[a]
        weight[bt] += 1 / part.counted[a]
    spread = np.broadcast_to(deviation / np.sqrt(weight), (lines, width))
    return [
        Pairs(view, classes, _tensor(target), deviation, _tensor(cells)),
        Singles(view, classes, _tensor(sums / weight), _tensor(spread)),
    ]
