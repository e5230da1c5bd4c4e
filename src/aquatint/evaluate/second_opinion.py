"""A second opinion: the quality report of SDMetrics, an optional package of other metrics."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from aquatint.evaluate.tables import Encoded, Grid
from aquatint.extras import need


def second_opinion(real: Encoded, synthetic: Encoded, grid: Grid) -> dict[str, float]:
    """Score a synthetic table with SDMetrics: 1 is best.

    Ranged columns are compared by the Kolmogorov–Smirnov statistic and by correlation, others by
    total variation of categories and of pairs. Pairs of a range and a category are cut into
    deciles first. Numbers enter as places between the bounds, which changes none of these.

    Returns
    -------
    dict
        ``score``, the mean of ``column_shapes`` and ``column_pair_trends``.
    """
    with warnings.catch_warnings():
        # Newer versions want another import path, which older ones do not have.
        warnings.simplefilter("ignore")
        reports = need("sdmetrics.reports.single_table", extra="sdmetrics")
        report = reports.QualityReport()
        columns = {name: {"sdtype": "numerical"} for name in grid.ranged}
        columns |= {name: {"sdtype": "categorical"} for name in grid.listed}
        ours, theirs = (_frame(table, grid) for table in (real, synthetic))
        report.generate(ours, theirs, {"columns": columns}, verbose=False)
        found = dict(report.get_properties().itertuples(index=False))
    parts = {name.lower().replace(" ", "_"): float(value) for name, value in found.items()}
    # With a single column there are no pairs, and their score is not a number.
    parts = {name: value for name, value in parts.items() if np.isfinite(value)}
    return {"score": float(report.get_score())} | parts


def _frame(table: Encoded, grid: Grid) -> Any:
    columns: dict[str, Any] = dict(table.values)
    for name in grid.listed:
        cells = np.array([*grid.names(name)[:-1], None], dtype=object)
        columns[name] = cells[table.codes[name]]
    return need("pandas").DataFrame(columns)
