"""How uncertain the inside of a cell is: what was never counted, and what was counted finely alone.

Joint counts are over atoms, which may hold several fine cells, and a bin of numbers holds many
values. A function that is not constant there is averaged by the model's density. The shares of the
fine cells of an atom are known up to the noise of the column's own histogram. Those of the places
inside a bin are not known at all: they are taken for a Dirichlet process around the model's
density, so that a function with variance v inside a bin with a share s of rows adds s²·v·r. How
rough the inside of a bin is, r, is guessed from how far counts of bins are from their neighbours':
a column whose histogram is smooth is taken to be smooth inside its bins too. This part is a rule of
thumb, and answers say when it weighs most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from aquatint.analyst.query.expectations import ComponentMeans
from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.points import Points
from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED

CAUTION = 2.0
ROUGHEST = 1.0
SMOOTHEST = 0.002
UNKNOWN = 0.1
"""r is the guess times the first, between the next two; where nothing is known it is the last."""
TOGETHER, STRANGERS = 0.3, 0.6
"""Inside the same atoms two columns are taken to be correlated by so much, one way or the other; by
the second number if they were never counted together, which leaves room for any correlation."""


def roughness(column: Any, counts: np.ndarray, variance: float) -> float:
    """Guess how unevenly the rows of a bin lie in it, from how unevenly bins follow each other.

    Parameters
    ----------
    column
        A ranged column.
    counts, variance
        Its noisy histogram, and the variance of the noise.
    """
    _, width, _ = widths_and_edges(column)
    wide = width > np.median(width) / 2  # a bin for a single value is no neighbour
    kept = counts[: len(width)][wide]
    if len(kept) < 3:
        return UNKNOWN
    density = kept / width[wide]
    off = (density[1:-1] - (density[:-2] + density[2:]) / 2) * width[wide][1:-1]
    rough = np.sum(off**2 - 1.5 * variance)
    size = max(float(np.sum(kept[1:-1] ** 2 - variance)), variance)
    return float(np.clip(CAUTION * rough / size, SMOOTHEST, ROUGHEST))


@dataclass(frozen=True, eq=False)
class Inside:
    """What the insides of cells add to some averages over rows, and to the errors of these.

    Attributes
    ----------
    shift
        To the averages: what the columns' own histograms say of the fine cells, shape (m,).
    cells
        To the covariance of the errors, from the noise in the shares of fine cells: (m, m).
    bins
        To it, from not knowing where in a bin values lie.
    """

    shift: np.ndarray
    cells: np.ndarray
    bins: np.ndarray


def inside(
    model: Mixture,
    functions: Sequence[Function],
    points: Mapping[str, Points],
    histograms: Mapping[str, tuple[np.ndarray, float]],
    fine: Callable[[str], tuple[np.ndarray, np.ndarray]] | None,
    together: float = TOGETHER,
) -> Inside:
    """Give what the insides of cells add.

    Parameters
    ----------
    model
        The prior.
    functions
        What is averaged over the rows.
    points
        The points of the columns that they read.
    histograms
        The noisy histogram of each column, where there is one, and the noise's standard deviation.
    fine
        Gives the best estimate of the share of each of a column's cells, and its variance. None if
        fine cells were told apart already, so that only bins are left to ask about.
    together
        How far two columns may be correlated inside their atoms.
    """
    size = len(functions)
    shift, cells, bins = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))
    if fine is not None:
        joint = together * _varying_together(model, functions, points)
        bins += np.outer(joint, joint)
    for name, read in _by_column(model, functions, points).items():
        if not read.any():
            continue
        place = points[name]
        cell_means = np.stack([place.means(line) for line in read])
        share = model.histogram(name)
        apart = read - cell_means[:, place.cell]
        counts, deviation = histograms.get(name, (None, 0.0))
        column = model.schema.columns[name]
        rough = UNKNOWN
        if isinstance(column, RANGED) and counts is not None:
            rough = roughness(column, counts, deviation**2)
        weight = place.share * share[place.cell] ** 2 * rough
        bins += (apart * weight) @ apart.T
        if fine is None:
            continue
        atom, within = model.atoms.of_cell[name], model.atoms.within[name]
        atom_means = np.stack([np.bincount(atom, weights=within * line) for line in cell_means])
        off = cell_means - atom_means[:, atom]
        known, variance = fine(name)
        shift += off @ (known - share)
        cells += (off * variance) @ off.T
    return Inside(shift, cells, bins)


def _by_column(
    model: Mixture, functions: Sequence[Function], points: Mapping[str, Points]
) -> dict[str, np.ndarray]:
    """Give E[f | x_c], for every function and every point of each column that it reads."""
    means = ComponentMeans(model, points)
    terms = [(place, term) for place, f in enumerate(functions) for term in f.terms]
    out = {name: np.zeros((len(functions), len(p.values))) for name, p in points.items()}
    for name, point in points.items():
        read = [(place, term) for place, term in terms if name in term]
        if not read:
            continue
        rest = np.tile(model.weights.astype(float), (len(read), 1))
        for line, (_, term) in enumerate(read):
            for other, theirs in term.items():
                if other != name:
                    rest[line] *= means(other, theirs)
        atoms = model.probabilities[:, model.atoms.slices[name]]
        given = (rest @ atoms) / np.maximum(model.weights @ atoms, 1e-300)
        at = model.atoms.of_cell[name][point.cell]
        found = np.stack([term[name] for _, term in read]) * given[:, at]
        np.add.at(out[name], [place for place, _ in read], found)
    return out


def _varying_together(
    model: Mixture, functions: Sequence[Function], points: Mapping[str, Points]
) -> np.ndarray:
    """Give what each function would gain if its columns moved together inside their atoms.

    The model has columns independent there. For a product g·h that leaves out the covariance of g
    and h inside atoms, at most the product of their standard deviations there.
    """
    read = _spreads(model, functions, points)
    out = np.zeros(len(functions))
    for place, function in enumerate(functions):
        for term in function.terms:
            parts = [read[name, id(vector)] for name, vector in term.items()]
            loose = [number for number, (_, spread) in enumerate(parts) if spread is not None]
            for one, two in combinations(loose, 2):
                product = model.weights.astype(float)
                for number, (mean, spread) in enumerate(parts):
                    product = product * (spread if number in (one, two) else mean)
                out[place] += float(product.sum())
    return out


def _spreads(
    model: Mixture, functions: Sequence[Function], points: Mapping[str, Points]
) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray | None]]:
    """Give the mean, and the mean standard deviation inside atoms, in every component.

    A vector that is constant inside every atom has None for the latter.
    """
    known: dict[tuple[str, int], tuple[np.ndarray, np.ndarray | None]] = {}
    for name, point in points.items():
        vectors = {id(t[name]): t[name] for f in functions for t in f.terms if name in t}
        if not vectors:
            continue
        stacked = np.stack(list(vectors.values()))
        atom = model.atoms.of_cell[name][point.cell]
        share = point.share * model.atoms.within[name][point.cell]
        to_atom = np.zeros((len(atom), int(atom.max()) + 1))
        to_atom[np.arange(len(atom)), atom] = share
        mean = stacked @ to_atom
        spread = np.sqrt(np.maximum((stacked - mean[:, atom]) ** 2 @ to_atom, 0.0))
        probabilities = model.probabilities[:, model.atoms.slices[name]].T
        means, spreads = mean @ probabilities, spread @ probabilities
        for line, key in enumerate(vectors):
            loose = spreads[line] if spread[line].any() else None
            known[name, key] = means[line], loose
    return known
