"""A mixture of products, p(x) = Σ_k w_k·Π_c p_kc(x_c), fitted to the blocks of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from aquatint.analyst.synthesize import draw, store
from aquatint.analyst.synthesize.atoms import Atoms, atoms_of
from aquatint.analyst.synthesize.balance import balance, fits
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.dependence import dependence
from aquatint.analyst.synthesize.effort import effort_for, told_apart
from aquatint.analyst.synthesize.expect import embedding_term, has_closed_form
from aquatint.analyst.synthesize.fit import Effort, fit
from aquatint.analyst.synthesize.inside import share_met
from aquatint.analyst.synthesize.store import add_up, are_shares
from aquatint.analyst.synthesize.terms import Pairs, Term, terms_of
from aquatint.analyst.where import Condition, Where, conditions, limits_of
from aquatint.columns import RANGED, Ordered
from aquatint.errors import ReleaseError
from aquatint.features import FeatureMap, leaves
from aquatint.features.marginals import Count, Marginals
from aquatint.progress import track
from aquatint.release.histograms import noisy_leaves, unscaled
from aquatint.release.model import Release
from aquatint.schema import Schema


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: a public model of the table, for drawing rows and asking probabilities.

    Attributes
    ----------
    schema
        The release's schema.
    atoms
        The cells that the model tells apart.
    weights
        w, shape (K,).
    probabilities
        p, shape (K, atoms).
    """

    schema: Schema
    atoms: Atoms
    weights: np.ndarray
    probabilities: np.ndarray

    def cells(self, name: str) -> np.ndarray:
        """Give the probability of every cell of a column in every component, shape (K, cells)."""
        return self.atoms.spread(name, self.probabilities[:, self.atoms.slices[name]])

    def histogram(self, name: str) -> np.ndarray:
        """Give the probability of every cell of a column."""
        return np.asarray(self.weights @ self.cells(name))

    def sample(
        self, count: int, *, where: Where | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Draw rows, from the conditional distribution if a condition is given.

        Parameters
        ----------
        count
            How many rows.
        where
            ``{"sex": "Female"}`` or ``"sex = 'Female' and age >= 30"``.
        seed
            The same seed gives the same rows; by default they differ each time.
        """
        draw.check_count(count)
        rng = np.random.default_rng(seed)
        given = conditions(self.schema, where)
        weights, inside = self._condition(given)
        component = draw.components(weights, count, rng)
        parts = {
            name: inside.get(
                name, (self.probabilities[:, self.atoms.slices[name]], self.atoms.within[name])
            )
            for name in self.schema.columns
        }
        codes = self._codes(parts, weights, component, rng)
        heights = {
            n: self.histogram(n) for n, c in self.schema.columns.items() if isinstance(c, RANGED)
        }
        table = decode(self.schema, codes, rng, heights=heights, limits=limits_of(given))
        return table.iloc[rng.permutation(count)].reset_index(drop=True)

    def _codes(
        self,
        parts: Mapping[str, tuple[np.ndarray, np.ndarray]],
        weights: np.ndarray,
        component: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, np.ndarray]:
        """Draw every row's cells, from each column's chances of atoms and of cells inside them.

        Rows are balanced by cells, or by atoms where a table has too many cells.
        """
        label, of_cell = self.schema.label, self.atoms.of_cell
        atoms = {name: draw.choose(chances, component, rng) for name, (chances, _) in parts.items()}
        fine = fits(self.schema.cells(), label)
        chances = {
            name: part[:, of_cell[name]] * within if fine else part
            for name, (part, within) in parts.items()
        }
        if not fine:
            atoms = balance(atoms, chances, weights, component, label, rng)
        codes = {
            name: draw.divide(atoms[name], of_cell[name], within, rng)
            for name, (_, within) in parts.items()
        }
        return balance(codes, chances, weights, component, label, rng) if fine else codes

    def _condition(
        self, given: Mapping[str, Condition]
    ) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
        """Give the components' weights and each conditioned column's probabilities, given all."""
        weights = self.weights.astype(float)
        inside = {}
        for name, condition in given.items():
            atom = self.atoms.of_cell[name]
            met = share_met(self.schema.columns[name], self.histogram(name), condition)
            kept = self.atoms.within[name] * met
            share = np.bincount(atom, weights=kept)
            probabilities = self.probabilities[:, self.atoms.slices[name]] * share
            weights = weights * probabilities.sum(1)
            inside[name] = (probabilities + 1e-300, kept / np.maximum(share, 1e-300)[atom])
        if not weights.sum() > 0:
            msg = "the model gives these conditions no chance: loosen them"
            raise ReleaseError(msg)
        return weights / weights.sum(), inside

    def save(self, path: str | Path) -> None:
        """Write the model as one file that `load` reads."""
        names = list(self.schema.columns)
        tensors: dict[str, Tensor] = {
            "weights": torch.from_numpy(self.weights),
            "probabilities": torch.from_numpy(self.probabilities),
        }
        for place, name in enumerate(names):
            tensors[f"atoms.{place}"] = torch.from_numpy(self.atoms.of_cell[name])
            tensors[f"within.{place}"] = torch.from_numpy(self.atoms.within[name])
        store.save(path, "mixture", self.schema, tensors, {})

    @classmethod
    def from_parts(
        cls, schema: Schema, tensors: Mapping[str, Tensor], _settings: Mapping[str, Any]
    ) -> Mixture:
        """Rebuild a saved model."""
        _check(schema, tensors)
        places = list(enumerate(schema.columns))
        atoms = Atoms(
            {name: tensors[f"atoms.{i}"].numpy() for i, name in places},
            {name: tensors[f"within.{i}"].numpy() for i, name in places},
        )
        return cls(schema, atoms, tensors["weights"].numpy(), tensors["probabilities"].numpy())

    def __repr__(self) -> str:
        return (
            f"Mixture(table {self.schema.name!r}, {len(self.weights):,} components, "
            f"{len(self.schema.columns):,} columns)"
        )


def _check(schema: Schema, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not a mixture over the schema's cells; a file may come from anyone.

    Everything is checked before it is used: names, types, shapes, and that shares add up to one.
    """
    parts = {f"{part}.{i}" for part in ("atoms", "within") for i in range(len(schema.columns))}
    if set(tensors) != parts | {"weights", "probabilities"}:
        msg = "its tensors are not those of a mixture over the schema's columns"
        raise ReleaseError(msg)
    sizes = []
    for i, (name, cells) in enumerate(schema.cells().items()):
        atom, within = tensors[f"atoms.{i}"], tensors[f"within.{i}"]
        numbers = atom.dtype == torch.int64 and atom.shape == (cells,)
        if not numbers or atom.min() < 0 or atom.max() >= cells or not atom.bincount().all():
            msg = f"its atoms do not fit column {name!r}"
            raise ReleaseError(msg)
        sizes.append(int(atom.max()) + 1)
        if not are_shares(within, (cells,)) or not add_up(
            torch.zeros(sizes[-1]).double().index_add(0, atom, within.double())
        ):
            msg = f"its cells do not fit column {name!r}"
            raise ReleaseError(msg)
    weights, probabilities = tensors["weights"], tensors["probabilities"]
    if not are_shares(weights, (weights.numel(),)) or not add_up(weights.sum()):
        msg = "its weights do not add up to one"
        raise ReleaseError(msg)
    if not are_shares(probabilities, (len(weights), sum(sizes))) or not all(
        add_up(part.sum(1)) for part in torch.split(probabilities, sizes, 1)
    ):
        msg = "its probabilities do not add up to one in every column"
        raise ReleaseError(msg)


def check_same_table(model: Mixture, release: Release) -> None:
    """Refuse a model of another table than the release's."""
    if model.schema != release.schema:
        msg = (
            f"the model was fitted to a release of {model.schema.name!r} with another schema: "
            "leave it out, or fit one to this release"
        )
        raise ReleaseError(msg)


def fit_mixture(
    release: Release, *, effort: Effort | None = None, seed: int = 0, progress: bool = True
) -> Mixture:
    """Fit a mixture to every block of a release that has a closed form."""
    if not can_mix(release):
        msg = (
            "the release has no block that a table can be drawn from: "
            "sketch with aquatint plan's default, or with histograms, pairs, cosines, Fourier or "
            "Hermite features"
        )
        raise ReleaseError(msg)
    atoms, shares = atoms_of(release)
    terms = [*_terms(release, atoms), dependence(len(release.schema.columns))]
    label = release.schema.label
    classes = told_apart(label, terms, atoms)
    chosen = effort or effort_for(atoms, terms, classes)
    if not (classes and chosen.by_class):
        label = None
    if label:
        terms = [term.by_one_class() if isinstance(term, Pairs) else term for term in terms]
    ordered = [n for n, c in release.schema.columns.items() if isinstance(c, (*RANGED, Ordered))]
    with track("fitting", chosen.steps, show=progress) as advance:
        weights, probabilities = fit(terms, atoms, shares, chosen, seed, ordered, label, advance)
    return Mixture(release.schema, atoms, weights, probabilities)


def can_mix(release: Release) -> bool:
    """Whether some block of the release has a closed form for a mixture."""
    return any(
        has_closed_form(leaf) and _tells(unscaled(leaf)[0])
        for block in release.blocks
        for leaf in leaves(block.map)
    )


def _tells(leaf: FeatureMap) -> bool:
    """Whether a leaf says more than the number of rows, or the histogram of merged cells alone."""
    if isinstance(leaf, Marginals):
        return any(len(s) > 1 or s[0] not in leaf.merged for s in leaf.sets)
    return not isinstance(leaf, Count)


def _terms(release: Release, atoms: Atoms) -> list[Term]:
    rows = max(release.count, 1.0)
    terms: list[Term] = []
    for block in release.blocks:
        for leaf, sums, deviation in noisy_leaves(block):
            part, weight = unscaled(leaf)
            mean, noise = sums / rows, deviation / rows
            if isinstance(part, Marginals):
                terms += terms_of(part, mean / weight, noise / weight, atoms)
            elif has_closed_form(leaf) and not isinstance(part, Count):
                terms.append(embedding_term(leaf, mean, noise, release.schema, atoms))
    return terms
