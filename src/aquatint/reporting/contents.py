"""What a report says of a release: everything that its page shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb

import pandas as pd

from aquatint.analyst.query.describe import Described, describe
from aquatint.analyst.query.front import Query
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import Mixture, can_mix, fit_mixture
from aquatint.release.histograms import histograms
from aquatint.release.model import Release
from aquatint.reporting.counted import describe_counted
from aquatint.reporting.focus import can_focus, focus
from aquatint.reporting.pictures import (
    column_chart,
    correlation_charts,
    pair_chart,
    statistics_of,
)
from aquatint.reporting.strengths import Strength, counted_strengths, modelled_strengths
from aquatint.reporting.verdicts import Signal, Verdict, signal, verdicts

WIDE = 30
"""Tables of more columns than this are shown as they were counted; a model gets a part of them."""
FOCUS = 10
"""So many columns of a wide table the model gets: those of the strongest pairs."""
PAIRS, NUMBERS, CORRELATIONS = 6, 12, 12
"""The most heat maps of pairs, columns with correlations, and correlations with intervals."""
ROWS = 8
TIPS = 60
"""From so many columns on, charts go without the words that a pointer shows."""
_QUICK = Effort(components=30, fits=2, steps=120)


@dataclass(frozen=True)
class Shown:
    """A column, ready to be shown: its name and kind, its statistics in words, and its chart."""

    name: str
    kind: str
    statistics: list[tuple[str, str, str]]
    chart: str


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report says.

    Attributes
    ----------
    release
        What it is about.
    signals
        How much of each block is signal.
    verdicts
        What the release answers well and badly.
    columns
        Every column.
    strengths
        The columns that depend on each other most.
    pairs
        Heat maps of the strongest.
    pairs_left_out
        How many pairs are not drawn.
    correlations
        The map of correlations, and the strongest with intervals; or nothing.
    sample
        Synthetic rows, or nothing.
    notes
        What was left out or simplified, in sentences.
    """

    release: Release
    signals: list[Signal]
    verdicts: list[Verdict] = field(default_factory=list)
    columns: list[Shown] = field(default_factory=list)
    strengths: list[Strength] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    pairs_left_out: int = 0
    correlations: tuple[str, str] | None = None
    sample: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


def contents(
    release: Release, *, model: Mixture | None = None, seed: int = 0, progress: bool = True
) -> Contents:
    """Gather what there is to say of a release; nothing here costs privacy."""
    signals = [signal(block) for block in release.blocks]
    known = histograms(release.blocks)
    if release.schema.images or not can_mix(release):
        described = describe_counted(release) if known else []
        shown = [_shown(one, tips=True) for one in described]
        judged = verdicts(release, described, None)
        return Contents(release, signals, judged, shown, notes=[_no_model(release)])
    names = list(release.schema.columns)
    wide = len(names) > WIDE and can_focus(release) and set(known) == set(names)
    if wide:
        return _of_wide(release, signals, seed, progress=progress)
    query = Query(release, model=model, progress=progress)
    strengths = modelled_strengths(query.model)
    described = describe(query, progress=progress)
    return _gathered(release, query, signals, described, strengths, seed, [])


def _of_wide(release: Release, signals: list[Signal], seed: int, *, progress: bool) -> Contents:
    """Show every column as it was counted, and model the columns that depend on others most."""
    strengths = counted_strengths(release)
    ranked = [n for pair in strengths for n in (pair.first, pair.second)]
    chosen = set(list(dict.fromkeys([*ranked, *release.schema.columns]))[:FOCUS])
    part = focus(release, chosen)
    model = fit_mixture(part, effort=_QUICK, seed=seed, progress=progress)
    query = Query(part, model=model, progress=progress)
    note = (
        f"The table has {len(release.schema.columns):,} columns: their distributions are the noisy "
        f"counts themselves, and pairs, correlations and rows are of the {len(chosen)} columns "
        "that depend on others most. Ask a query for the rest."
    )
    within = [s for s in strengths if {s.first, s.second} <= chosen]
    described = describe_counted(release)
    return _gathered(release, query, signals, described, within, seed, [note])


def _gathered(
    release: Release,
    query: Query,
    signals: list[Signal],
    described: list[Described],
    strengths: list[Strength],
    seed: int,
    notes: list[str],
) -> Contents:
    numbers = query.numeric
    if len(numbers) > NUMBERS:
        notes = [*notes, f"Correlations are of {NUMBERS} of {len(numbers)} columns with numbers."]
    found = query.correlation(numbers[:NUMBERS]) if len(numbers) > 1 else None
    drawn = [s for s in strengths if s.strength > 0][:PAIRS]
    possible = comb(len(release.schema.columns), 2)
    return Contents(
        release,
        signals,
        verdicts(release, described, found),
        [_shown(one, tips=len(described) <= TIPS) for one in described],
        drawn,
        [pair_chart(query.model, s.first, s.second) for s in drawn],
        possible - len(drawn),
        None if found is None else correlation_charts(found, CORRELATIONS),
        query.model.sample(ROWS, seed=seed),
        notes,
    )


def _shown(one: Described, *, tips: bool) -> Shown:
    return Shown(one.name, one.column.kind, statistics_of(one), column_chart(one, tips=tips))


def _no_model(release: Release) -> str:
    if release.schema.images:
        return (
            "The release is of images: it has no columns to show but their labels, as far as those "
            "were counted. aquatint sample draws images from it."
        )
    return "The release has no block that a table can be drawn from: only what it counted is shown."
