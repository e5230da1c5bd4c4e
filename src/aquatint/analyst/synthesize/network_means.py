"""The mean features of soft rows, for every kind of map that `has_closed_form`.

A generated row's columns are independent given the generator's input, so the mean of a product of
features is the product of their means. Sums over rows are matrix products: no tensor of rows ×
features × classes is ever built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from math import pi, prod, sqrt

import torch
from torch import Tensor

from aquatint.analyst.synthesize.expect import counted, outer
from aquatint.analyst.synthesize.network_heads import Choice, Head, SoftRows
from aquatint.features import onehot
from aquatint.features.algebra import ByLabel, Product, Scaled
from aquatint.features.base import FeatureMap, Rows
from aquatint.features.cosines import Cosines
from aquatint.features.fourier import Fourier
from aquatint.features.hermite import Hermite
from aquatint.features.marginals import Marginals


def as_product(leaf: FeatureMap) -> FeatureMap:
    """Write a map that is conditional on an ordinary column as a product with its one-hot cells."""
    if not isinstance(leaf, ByLabel):
        return leaf
    return Product(onehot({leaf.label: leaf.classes}), leaf.inner)


def evenly(part: Product) -> tuple[FeatureMap, FeatureMap]:
    """Part a product of products into two sides that have about as many features.

    ⊗ is associative, so it does not matter where; but every row has all features of a side.
    """
    factors = _factors(part)
    cuts = ((factors[:at], factors[at:]) for at in range(1, len(factors)))
    best = min(cuts, key=lambda sides: sum(prod(one.dim for one in side) for side in sides))
    left, right = (reduce(Product, side) for side in best)
    return left, right


def _factors(part: FeatureMap) -> list[FeatureMap]:
    if isinstance(part, Product):
        return [*_factors(part.left), *_factors(part.right)]
    return [part]


class Means:
    """Means of features over groups of soft rows; tables over points are computed once."""

    def __init__(self, heads: Mapping[str, Head]) -> None:
        self.heads = heads
        self._tables: dict[tuple[FeatureMap, str], Tensor] = {}
        self._pair_places: dict[Marginals, Tensor] = {}
        self._even: dict[Product, tuple[FeatureMap, FeatureMap]] = {}

    def groups(self, part: FeatureMap, rows: SoftRows, count: int) -> Tensor:
        """Give the mean over each of `count` equal groups of rows in turn, shape (count, dim)."""
        size = rows.count // count
        if isinstance(part, Scaled):
            return self.groups(part.inner, rows, count) * part.weight
        if isinstance(part, Product):
            if part not in self._even:
                self._even[part] = evenly(part)
            left, right = (self.rows(side, rows) for side in self._even[part])
            left, right = (rows.weight * left).view(count, size, -1), right.view(count, size, -1)
            return torch.bmm(left.transpose(1, 2), right).flatten(1) / size
        if isinstance(part, Marginals) and all(len(s) == 2 for s in part.sets):
            return self._pairs(part, rows, count)
        weight = rows.weight.view(count, 1, size) / size
        return torch.bmm(weight, self.rows(part, rows).view(count, size, -1)).squeeze(1)

    def rows(self, part: FeatureMap, rows: SoftRows) -> Tensor:
        """Give every row's mean features, shape (n, dim)."""
        if part not in rows.features:
            rows.features[part] = self._rows(part, rows)
        return rows.features[part]

    def _rows(self, part: FeatureMap, rows: SoftRows) -> Tensor:
        if isinstance(part, Scaled):
            return self.rows(part.inner, rows) * part.weight
        if isinstance(part, Product):
            return outer(self.rows(part.left, rows), self.rows(part.right, rows))
        if isinstance(part, (Fourier, Cosines, Hermite)):
            return self._numbers(part, rows)
        if isinstance(part, Marginals):
            return torch.cat(
                [reduce(outer, [counted(part, n, rows.cells) for n in s]) for s in part.sets], 1
            )
        return torch.ones(rows.count, 1, device=rows.weight.device)

    def _numbers(self, part: Fourier | Cosines | Hermite, rows: SoftRows) -> Tensor:
        if isinstance(part, Fourier):
            return self._fourier(part, rows)
        if isinstance(part, Cosines):
            return self._cosines(part, rows)
        return self._hermite(part, rows)

    def _fourier(self, part: Fourier, rows: SoftRows) -> Tensor:
        """Multiply the columns' characteristic functions; a missing value makes the row zero."""
        drawn = [i for i, name in enumerate(part.columns) if name in rows.places]
        if drawn:
            places = torch.stack([rows.places[part.columns[i]] for i in drawn], dim=1)
            angle = places @ (2 * pi * part.frequencies[drawn]).float().to(places.device)
            real, imaginary = angle.cos(), angle.sin()
        else:
            real = torch.ones(rows.count, part.features // 2, device=rows.weight.device)
            imaginary = torch.zeros_like(real)
        for i, name in enumerate(part.columns):
            if name in rows.present:
                present = rows.present[name][:, None]
                real, imaginary = real * present, imaginary * present
            elif name not in rows.places:
                c, s = (rows.points[name] @ self._wave(part, i)).chunk(2, dim=1)
                real, imaginary = real * c - imaginary * s, real * s + imaginary * c
        return torch.cat([real, imaginary], dim=1) * sqrt(2 / part.features)

    def _wave(self, part: Fourier, column: int) -> Tensor:
        """Give cos and sin of a choice's points, shape (points, features)."""
        name = part.columns[column]
        if (part, name) not in self._tables:
            place = _places(self.heads[name])
            angle = (
                2 * pi * place.double().nan_to_num(0.0)[:, None].cpu() * part.frequencies[column]
            )
            waves = torch.cat([angle.cos(), angle.sin()], dim=1).float().to(place.device)
            self._tables[part, name] = waves.masked_fill(place.isnan()[:, None], 0.0)
        return self._tables[part, name]

    def _cosines(self, part: Cosines, rows: SoftRows) -> Tensor:
        """Give the mean cosines of every column, zero where missing; a pair's are multiplied."""
        waves = []
        for name in part.columns:
            if name in rows.places:
                place = rows.places[name][:, None]
                wave = (pi * place * part.orders(place).float()).cos()
                waves.append(wave * rows.present[name][:, None] if name in rows.present else wave)
                continue
            if (part, name) not in self._tables:
                place = _places(self.heads[name])
                angle = pi * place.double().nan_to_num(0.0)[:, None] * part.orders(place)
                wave = angle.cos().float().masked_fill(place.isnan()[:, None], 0.0)
                self._tables[part, name] = wave
            waves.append(rows.points[name] @ self._tables[part, name])
        return part.products(torch.stack(waves, 1))

    def _hermite(self, part: Hermite, rows: SoftRows) -> Tensor:
        """Put the columns' features side by side, ordered by c first as in the map."""
        by_column: dict[str, Tensor] = {}
        drawn = tuple(name for name in part.columns if name in rows.places)
        if drawn:
            some = replace(part, columns=drawn)
            features = some(Rows({}, rows.places, rows.count)) * sqrt(
                len(drawn) / len(part.columns)
            )
            lines = features.view(rows.count, part.order + 1, len(drawn)).unbind(2)
            by_column = dict(zip(drawn, lines, strict=True))
        for name in part.columns:
            if name in rows.present:
                by_column[name] = by_column[name] * rows.present[name][:, None]
            elif name not in by_column:
                by_column[name] = rows.points[name] @ self._polynomials(part, name)
        return torch.stack([by_column[name] for name in part.columns], dim=2).flatten(1)

    def _polynomials(self, part: Hermite, name: str) -> Tensor:
        """Give the features of a choice's points, shape (points, order + 1)."""
        if (part, name) not in self._tables:
            place = _places(self.heads[name])
            features = replace(part, columns=(name,))(Rows({}, {name: place}, len(place)))
            self._tables[part, name] = features / sqrt(len(part.columns))
        return self._tables[part, name]

    def _pairs(self, part: Marginals, rows: SoftRows, count: int) -> Tensor:
        """Give all pairs from one Gram matrix of the one-hot columns."""
        names = [name for name, _ in part.columns]
        hot = torch.cat([counted(part, name, rows.cells) for name in names], dim=1)
        size = rows.count // count
        left, right = (rows.weight * hot).view(count, size, -1), hot.view(count, size, -1)
        gram = torch.bmm(left.transpose(1, 2), right) / size
        if part not in self._pair_places:
            self._pair_places[part] = _pair_places(part).to(hot.device)
        return gram.flatten(1)[:, self._pair_places[part]]


def _places(head: Head) -> Tensor:
    if not isinstance(head, Choice) or head.place is None:
        msg = "a column without an order has no place"
        raise TypeError(msg)
    return head.place


def _pair_places(part: Marginals) -> Tensor:
    """Locate the cells of every pair in the flattened Gram matrix of all columns."""
    start, total = {}, 0
    for name, _ in part.columns:
        start[name] = total
        total += part.counted[name]
    places = []
    for a, b in part.sets:
        down = start[a] + torch.arange(part.counted[a])
        along = start[b] + torch.arange(part.counted[b])
        places.append((down[:, None] * total + along[None, :]).flatten())
    return torch.cat(places)
