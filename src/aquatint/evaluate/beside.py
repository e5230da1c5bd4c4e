"""What a report adds for the curator: the release beside the real rows, exactly, so not private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aquatint.analyst.synthesize.front import Synthesizer
from aquatint.columns import RANGED
from aquatint.curator.read import read
from aquatint.evaluate.classifiers import RECIPES
from aquatint.evaluate.nearest import Nearest, nearest
from aquatint.evaluate.report import Closeness, Evaluation, evaluate
from aquatint.evaluate.tables import Grid, encode
from aquatint.evaluate.utility import Score, Utility
from aquatint.reporting.charts import bars, brief, histogram, line, percent
from aquatint.reporting.pictures import axis_form, edges_of, most_common
from aquatint.schema import Schema

PANELS = 24
"""The most columns drawn side by side: those that differ most."""
MOST_ROWS = 20_000
"""At most so many synthetic rows are judged."""
APART = 1 / 3
"""Without test rows, this share of the real rows serves as such."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A release beside real rows, ready to be shown.

    Attributes
    ----------
    rows
        How many rows of each table were compared.
    sketched_too
        Whether the test rows were themselves in the release, for none were kept apart.
    scores
        Name, value, and the same of rows kept apart, which is what a perfect table would get.
    columns
        The columns that differ most: name, distance, chart.
    left_out
        How many columns are not drawn.
    target
        What classifiers predict, or nothing.
    curves
        The title of each classifier, and its curve or its scores.
    nearest
        The check of distances, and its chart.
    """

    rows: dict[str, int]
    sketched_too: bool
    scores: list[tuple[str, str, str]]
    columns: list[tuple[str, str, str]]
    left_out: int
    target: str
    curves: list[tuple[str, str]]
    nearest: Nearest
    distances: str


def beside(
    model: Synthesizer,
    real: Any,
    test: Any = None,
    *,
    classifiers: str | Sequence[str] = "quick",
    seed: int = 0,
    progress: bool = True,
) -> Beside:
    """Compare rows drawn from a release with the real rows that it was made from.

    Parameters
    ----------
    model
        What was fitted to the release.
    real
        The rows that were sketched: a path, a frame or an Arrow table.
    test
        Real rows that were not. Without them a third of the real rows takes their place.
    classifiers
        As for `evaluate`.
    seed
        Of the synthetic rows, the split and the classifiers.
    progress
        Show progress on a terminal.
    """
    schema = _with_a_target(model.schema)
    sketched_too = test is None
    if sketched_too:
        real, test = _split(real, schema, seed)
    grid = Grid(schema)
    rows = encode(real, grid, what="real", strict=True).rows
    synthetic = model.sample(min(rows, MOST_ROWS), seed=seed)
    settings: dict[str, Any] = {"classifiers": classifiers, "seed": seed, "progress": progress}
    found = evaluate(real, test, synthetic, schema, baseline=True, **settings)
    train, unseen, drawn = (encode(t, grid) for t in (real, test, synthetic))
    near = nearest(train, unseen, drawn, grid, seed=seed)
    columns = _columns(found)
    return Beside(
        dict(found.rows),
        sketched_too,
        _scores(found),
        columns,
        len(found.shares) - len(columns),
        "" if found.utility is None else found.utility.target,
        _curves(found.utility, found.baseline),
        near,
        _distances(near),
    )


def _with_a_target(schema: Schema) -> Schema:
    """Leave out a label that classifiers cannot predict."""
    if schema.label is not None and isinstance(schema.columns[schema.label], RANGED):
        return schema.model_copy(update={"label": None})
    return schema


def _split(real: Any, schema: Schema, seed: int) -> tuple[pa.Table, pa.Table]:
    batches = read(real, schema, list(schema.columns)).open()
    table = pa.Table.from_batches(list(batches))
    order = np.random.default_rng(seed).permutation(table.num_rows)
    apart = max(1, round(APART * table.num_rows))
    return table.take(order[apart:]), table.take(order[:apart])


def _scores(found: Evaluation) -> list[tuple[str, str, str]]:
    lines = [
        (name, _number(ours), _number(theirs))
        for name, ours, theirs in zip(
            _NAMES, _numbers(found.closeness), _numbers(found.held_out), strict=True
        )
    ]
    return [*lines, ("entries outside the schema", percent(found.outside), "")]


_NAMES = (
    "columns: mean total variation",
    "pairs of columns: mean total variation",
    "triples of columns: mean total variation",
    "ranges: mean Wasserstein distance",
    "mean embeddings: MMD",
)


def _numbers(found: Closeness | None) -> list[float | None]:
    if found is None:
        return [None] * len(_NAMES)
    return [*found.fidelity.means.values(), found.mmd.mmd]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _columns(found: Evaluation) -> list[tuple[str, str, str]]:
    distances = {name: tv for (name,), tv in found.closeness.fidelity.one.items()}
    names = sorted(distances, key=lambda n: -distances[n])[:PANELS]
    return [(n, f"{distances[n]:.3f}", _side_by_side(found, n)) for n in names]


def _side_by_side(found: Evaluation, name: str) -> str:
    """Draw a column's shares in synthetic rows, and in real rows in the second colour."""
    real, synthetic = found.shares[name]
    column = found.grid.wide.columns[name]
    title = f"{name} in synthetic and in real rows"
    if isinstance(column, RANGED):
        size = column.present_cells
        at = axis_form(column)
        return histogram(
            edges_of(column), synthetic[:size], title=title, beside=real[:size], at=at, tips=False
        )
    used = np.flatnonzero(real + synthetic)
    labels = [found.grid.names(name)[i] for i in used]
    empty = np.full(len(used), np.nan)
    labels, parts = most_common(labels, [synthetic[used], empty, empty, real[used]])
    return bars(labels, parts[0], title=title, beside=parts[3], names=("synthetic", "real"))


def _curves(utility: Utility | None, baseline: Utility | None) -> list[tuple[str, str]]:
    if utility is None or baseline is None:
        return []
    pairs = zip(utility.scores, baseline.scores, strict=True)
    return [(RECIPES[ours.classifier].title, _curve(ours, real)) for ours, real in pairs]


def _curve(ours: Score, real: Score) -> str:
    title = f"{RECIPES[ours.classifier].title}, tested on real rows"
    if ours.roc is None or real.roc is None:
        names = list(ours.metrics)
        given = {"title": title, "beside": list(real.metrics.values()), "form": brief}
        return bars(names, list(ours.metrics.values()), names=("synthetic", "real"), **given)  # type: ignore[arg-type]
    places = np.linspace(0, 1, 101)
    curves = {
        f"{name} {s.metrics['roc_auc']:.3f}": np.interp(places, *s.roc)
        for name, s in (("synthetic", ours), ("real", real))
        if s.roc is not None
    }
    axes = {"x_label": "false positive rate", "y_label": "true positive rate"}
    return line(places, curves, title=title, diagonal=True, **axes)  # type: ignore[arg-type]


def _distances(near: Nearest) -> str:
    top = float(np.quantile(np.concatenate([near.synthetic, near.unseen]), 0.99)) or 1.0
    places = np.linspace(0, top, 81)
    curves = {
        name: np.searchsorted(np.sort(values), places, side="right") / len(values)
        for name, values in (("synthetic rows", near.synthetic), ("rows kept apart", near.unseen))
    }
    return line(
        places,
        curves,
        title="Share of rows within a distance of the nearest training row",
        x_label="distance to the nearest training row",
        y_label="share of rows",
        form=percent,
    )
