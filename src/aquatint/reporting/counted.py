"""Columns as they were counted: shares and means straight from the noise, without a model."""

from __future__ import annotations

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
    known = histograms(release.blocks)
    counted = {name: known[name] for name in release.schema.columns if name in known}
    if not counted:
        return []
    shares = np.concatenate([counts for counts, _ in counted.values()]) / rows
    noise = np.concatenate([np.full(len(counts), sd) for counts, sd in counted.values()])
    table = _table(np.maximum(shares, 0.0), np.hypot(noise, shares * unsure) / rows, times)
    found, start = [], 0
    for name, (counts, deviation) in counted.items():
        column, cells = release.schema.columns[name], release.schema.cell_names(name)
        part = table.iloc[start : start + len(cells)]
        start += len(cells)
        statistics = {}
        if isinstance(column, RANGED):
            statistics["mean"] = _mean(column, counts / rows, deviation / rows, times)
        if column.missing:
            statistics["missing"] = Answer(**part.iloc[-1].to_dict())
        histogram = part.set_axis(pd.Index(cells, name=name, dtype=object))
        found.append(Described(name, column, statistics, histogram))
    return found


def _table(shares: np.ndarray, error: np.ndarray, times: float) -> pd.DataFrame:
    """Put all columns' shares into one table: a table for each of them takes far longer."""
    ends = {"low": np.maximum(shares - times * error, 0.0), "high": shares + times * error}
    known = {"value": shares, **ends, "stderr": error}
    return pd.DataFrame({**known, "how": "exact linear", "mostly": "noise"})


def _mean(column: object, shares: np.ndarray, deviation: float, times: float) -> Answer:
    """Average the bins' middles: each count's noise moves it by how far its bin is from it."""
    left, width, whole = widths_and_edges(column)
    middle = left + (width - whole) / 2
    present = shares[: len(left)]
    total = max(float(present.sum()), 1e-9)
    mean = float(present @ middle) / total
    error = float(deviation * np.sqrt(((middle - mean) ** 2).sum())) / total
    ends = (mean - times * error, mean + times * error)
    return Answer(mean, *ends, error, "exact linear", "noise")
