"""Columns as they were counted: shares and means straight from the noise, without a model."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd

from aquatint.analyst.query.answers import Answer
from aquatint.analyst.query.describe import Described
from aquatint.analyst.synthesize.atoms import widths_and_edges
from aquatint.columns import RANGED
from aquatint.features import Count
from aquatint.previewing import GAUSSIAN, LAPLACE
from aquatint.release.histograms import histograms
from aquatint.release.model import Release


def wide_of(release: Release) -> float:
    """Give the standard deviations within which 95 % of the noise lies."""
    return GAUSSIAN if release.statement.noise == "discrete gaussian" else LAPLACE


def rows_of(release: Release) -> tuple[float, float]:
    """Give the number of rows, and the standard deviation of its noise."""
    if release.rows is not None:
        return float(release.rows), 0.0
    block = next(b for b in release.blocks if isinstance(b.map, Count))
    return max(float(block.sum[0]), 1.0), float(block.stderr[0])


def describe_counted(release: Release) -> list[Described]:
    """Describe every column that was counted alone.

    A share is a count over the number of rows. To first order its error is that of the count and
    that of the number of rows times the share; both noises are known.
    """
    rows, unsure = rows_of(release)
    times = wide_of(release)
    found = []
    for name, (counts, deviation) in histograms(release.blocks).items():
        column = release.schema.columns[name]
        shares = counts / rows
        error = np.hypot(deviation, shares * unsure) / rows
        answers = [_answer(s, e, times, low=0.0) for s, e in zip(shares, error, strict=True)]
        cells = pd.Index(release.schema.cell_names(name), name=name)
        histogram = pd.DataFrame([asdict(a) for a in answers], index=cells)
        statistics = {}
        if isinstance(column, RANGED):
            statistics["mean"] = _mean(column, shares, deviation / rows, times)
        if column.missing:
            statistics["missing"] = answers[-1]
        found.append(Described(name, column, statistics, histogram))
    order = {name: i for i, name in enumerate(release.schema.columns)}
    return sorted(found, key=lambda one: order[one.name])


def _mean(column: object, shares: np.ndarray, deviation: float, times: float) -> Answer:
    """Average the bins' middles: each count's noise moves it by how far its bin is from it."""
    left, width, whole = widths_and_edges(column)
    middle = left + (width - whole) / 2
    present = shares[: len(left)]
    total = max(float(present.sum()), 1e-9)
    mean = float(present @ middle) / total
    error = float(deviation * np.sqrt(((middle - mean) ** 2).sum())) / total
    return _answer(mean, error, times)


def _answer(value: float, error: float, times: float, low: float = -np.inf) -> Answer:
    value = max(float(value), low)
    ends = (max(value - times * error, low), value + times * error)
    return Answer(value, *ends, float(error), "exact linear", "noise")
