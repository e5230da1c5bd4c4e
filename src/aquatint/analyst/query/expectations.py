"""The expectation of a function under a mixture of products, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.points import Points
from aquatint.analyst.synthesize.mixture import Mixture


class ComponentMeans:
    """The mean of a function of one column in every component of a mixture, shape (K,)."""

    def __init__(self, model: Mixture, points: Mapping[str, Points]) -> None:
        self.model, self.points = model, points
        self._cells = {name: model.cells(name) for name in points}
        self._known: dict[tuple[str, int], np.ndarray] = {}

    def __call__(self, name: str, vector: np.ndarray) -> np.ndarray:
        """Average a vector over the points of its column; the same vector is averaged once."""
        key = (name, id(vector))
        if key not in self._known:
            self._known[key] = self._cells[name] @ self.points[name].means(vector)
        return self._known[key]


def expectations(
    model: Mixture, functions: Sequence[Function], points: Mapping[str, Points]
) -> np.ndarray:
    """Give Σ_k w_k·Σ_t Π_c E_k[g_tc] for every function."""
    means = ComponentMeans(model, points)
    found = []
    for function in functions:
        total = function.constant
        for term in function.terms:
            product = model.weights.astype(float)
            for name, vector in term.items():
                product = product * means(name, vector)
            total += float(product.sum())
        found.append(total)
    return np.array(found)
