"""Rows drawn from a model, as a feature map reads them and as a question reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch

from aquatint.analyst.query.evenly import evenly
from aquatint.analyst.query.functions import Function
from aquatint.analyst.query.points import Points
from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.inside import place_of, rates
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.columns import RANGED, Boolean, Ordered
from aquatint.features.base import Rows
from aquatint.features.frequencies import VALUE_STEPS


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of a model.

    Attributes
    ----------
    model
        Where they come from.
    codes
        For each column, every row's cell.
    places
        For each ranged column, the share of its cell that lies below the row's value.
    """

    model: Mixture
    codes: Mapping[str, np.ndarray]
    places: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))

    @cached_property
    def rows(self) -> Rows:
        """The rows as feature maps read them."""
        codes = {name: torch.from_numpy(code) for name, code in self.codes.items()}
        values = {}
        for name, column in self.model.schema.columns.items():
            unit = self._unit(name, column)
            if unit is not None:
                unit = np.rint(unit * VALUE_STEPS) / VALUE_STEPS
                unit[self.codes[name] >= column.present_cells] = np.nan
                values[name] = torch.from_numpy(unit.astype(np.float32))
        return Rows(codes, values, len(self))

    def _unit(self, name: str, column: Any) -> np.ndarray | None:
        code = self.codes[name]
        if isinstance(column, RANGED):
            return self._number_in_unit(name, column)
        if isinstance(column, (Ordered, Boolean)):
            return np.asarray(np.minimum(code / max(1, column.present_cells - 1), 1.0))
        return None

    def _number_in_unit(self, name: str, column: Any) -> np.ndarray:
        """Turn the share of the cell below a value into the value, by the model's density."""
        left, width, whole = widths_and_edges(column)
        rate = rates(left, left + width, self.model.histogram(name))
        code = np.minimum(self.codes[name], column.present_cells - 1)
        number = left[code] + place_of(rate[code], self.places[name]) * width[code]
        number = np.floor(np.minimum(number, left[code] + width[code] - 0.5)) if whole else number
        low, high = column.limits
        return np.asarray(np.clip((number - low) / (high - low), 0.0, 1.0))

    def frame(self) -> pd.DataFrame:
        """Give the rows as a table in the schema's own types."""
        columns = self.model.schema.columns
        units = {n: self._number_in_unit(n, c) for n, c in columns.items() if isinstance(c, RANGED)}
        return decode(self.model.schema, self.codes, np.random.default_rng(0), places=units)

    def evaluate(self, functions: Sequence[Function], points: Mapping[str, Points]) -> np.ndarray:
        """Give every function's value in every row, shape (rows, functions)."""
        place = {name: self._point(name, points[name]) for name in points}
        out = np.empty((len(self), len(functions)))
        for column, function in enumerate(functions):
            out[:, column] = function.constant
            for term in function.terms:
                product = np.ones(len(self))
                for name, vector in term.items():
                    product *= vector[place[name]]
                out[:, column] += product
        return out

    def _point(self, name: str, points: Points) -> np.ndarray:
        """Find the point of its column that each row lies at."""
        order = np.lexsort((points.values, points.cell))  # noqa: PD011  # an array of ours
        if name not in self.places:
            return np.asarray(order[self.codes[name]])
        cell, share = points.cell[order], points.share[order]
        upto = np.cumsum(share)  # the shares of a cell add up to one
        line = cell + upto - (np.append(0.0, upto)[np.searchsorted(cell, cell)])
        found = np.searchsorted(line, self.codes[name] + self.places[name] * (1 - 1e-9))
        last = np.searchsorted(cell, self.codes[name], side="right") - 1
        return np.asarray(order[np.minimum(found, last)])


def drawn(model: Mixture, count: int, seed: int = 0) -> Draws:
    """Draw rows evenly rather than by chance: by Sobol's points, through inverse distributions.

    The first coordinate of a point chooses the component, each other one the value of a column.
    """
    points = evenly(len(model.schema.columns) + 1, count, seed)
    cumulated = np.cumsum(model.weights) / model.weights.sum()
    component = np.minimum(np.searchsorted(cumulated, points[:, 0]), len(cumulated) - 1)
    codes, places = {}, {}
    for at, (name, column) in enumerate(model.schema.columns.items(), start=1):
        share = model.cells(name) + 1e-12
        upto = np.cumsum(share, axis=1)
        share, upto = share / upto[:, -1:], upto / upto[:, -1:]
        # One rising line of all components' thresholds turns the search into a single one.
        line = (upto + np.arange(len(upto))[:, None]).reshape(-1)
        found = np.searchsorted(line, component + points[:, at], side="right")
        code = np.clip(found - component * column.cells, 0, column.cells - 1)
        codes[name] = code.astype(np.int64)
        if isinstance(column, RANGED):
            below = upto[component, code] - share[component, code]
            places[name] = np.clip((points[:, at] - below) / share[component, code], 0.0, 1.0)
    return Draws(model, codes, places)
