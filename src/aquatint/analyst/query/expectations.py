"""The expectation of a function under a mixture of products, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.points import Points
from aquatint.analyst.synthesize.mixture import Mixture


def expectations(
    model: Mixture, functions: Sequence[Function], points: Mapping[str, Points]
) -> np.ndarray:
    """Give Σ_k w_k·Σ_t Π_c E_k[g_tc] for every function."""
    cells = {name: model.cells(name) for name in points}
    known: dict[tuple[str, int], np.ndarray] = {}

    def means(name: str, vector: np.ndarray) -> np.ndarray:
        key = (name, id(vector))
        if key not in known:
            known[key] = cells[name] @ points[name].means(vector)
        return known[key]

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
