"""Entries of the results book on α-way marginals: DP-MERF and DP-HP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from book_cells import NOT_RUN, Cell, Entry, Peer, Score, lines, of, score
from book_papers import GAMMA, PRIVBAYES, PRODUCT
from book_tables import frame
from datasets import MARGINALS


def entries() -> Iterator[Entry]:
    """Give the tables about marginals."""
    yield _privbayes()
    yield _marginals()
    yield _gamma()
    yield _product()


def _alpha(name: str, method: str, epsilon: float, alpha: int, metric: str) -> Score | None:
    made = lines("tables-marginals", table=name, method=method, epsilon=epsilon)
    return score(made, of(metric, str(alpha)))


NOTHING: Mapping[Any, str] = MappingProxyType({})
TOO_MANY_CELLS = (
    "seven columns have 113,400 joint cells at the least, more than a plan takes; "
    "the paper multiplies polynomials of their codes"
)
METRICS = (("published", "α-way error, as published"), ("right", "α-way error, right"))
ALPHA_METRIC = "mean total variation distance of α-way marginals"
ALPHA_DIFFERS = (
    (
        "By the official code, α means sets of α + 1 columns and bins that do not line up; the "
        "right metric has sets of α columns."
    ),
    "The papers' cuts of numeric columns are not published.",
)


def _marginals() -> Entry:
    cells = []
    for (name, alpha), known in MARGINALS.items():
        for place, epsilon in enumerate((0.3, 0.1)):
            for metric, title in METRICS:
                ours = _alpha(name, "auto", epsilon, alpha, metric)
                privbayes = known["PrivBayes"][place]
                as_published = metric == "published"
                cells.append(
                    Cell(
                        row=f"{name}, α = {alpha}",
                        measure=title,
                        epsilon=epsilon,
                        higher=False,
                        published=known["DP-HP"][place] if as_published else None,
                        faithful=_alpha(name, "dp_hp", epsilon, alpha, metric),
                        ours=ours,
                        peer=Peer(name="PrivBayes", value=privbayes, measured=False)
                        if as_published
                        else None,
                        missing="" if ours else NOT_RUN,
                    )
                )
    command = "tables.py marginals --methods auto dp_hp dp_merf"
    return Entry(
        paper="dp-hp",
        item="table 1",
        title="α-way marginals of discretised tables",
        differences=ALPHA_DIFFERS,
        cells=tuple(cells),
        **frame(ALPHA_METRIC, command, 20),
    )


def _privbayes() -> Entry:
    cells = []
    for (name, alpha), (other, merf) in PRIVBAYES.items():
        for place, epsilon in enumerate((1.0, 0.3, 0.1)):
            ours = _alpha(name, "auto", epsilon, alpha, "published")
            cells.append(
                Cell(
                    row=f"{name}, α = {alpha}",
                    measure=METRICS[0][1],
                    epsilon=epsilon,
                    higher=False,
                    published=merf[place],
                    faithful=_alpha(name, "dp_merf", epsilon, alpha, "published"),
                    ours=ours,
                    peer=Peer(name="PrivBayes", value=other[place], measured=False),
                    missing="" if ours else NOT_RUN,
                )
            )
    command = "tables.py marginals --methods auto dp_merf --epsilon 1 0.3 0.1"
    return Entry(
        paper="dp-merf",
        item="§M.2",
        title="α-way marginals beside PrivBayes",
        differences=(*ALPHA_DIFFERS, "PrivBayes is ε-DP, without δ; its figures are published."),
        cells=tuple(cells),
        **frame(ALPHA_METRIC, command, 20),
    )


def _ablation(
    part: str,
    setting: str,
    title: str,
    epsilon: float,
    known: Any,
    cannot: Mapping[Any, str] = NOTHING,
) -> tuple[Cell, ...]:
    """Give DP-HP's error by one of its settings; ours is `dp_hp` too."""
    return tuple(
        Cell(
            row=title.format(value),
            measure=f"{way}-way error, as published",
            epsilon=epsilon,
            higher=False,
            published=told[place],
            faithful=(
                found := score(lines(f"book-{part}", **{setting: value}), of("published", way))
            ),
            ours=found,
            missing="" if found else cannot.get(value, NOT_RUN),
        )
        for value, told in known.items()
        for place, way in enumerate(("3", "4"))
    )


def _gamma() -> Entry:
    return Entry(
        paper="dp-hp",
        item="table 5",
        title="the weight γ of the product kernels",
        differences=(
            (
                "Ours is `dp_hp` too: the table is about its setting. γ divides the budget here, "
                "and only weighs the loss there."
            ),
            "The text says Census, but 3- and 4-way marginals are those of Adult: so here.",
            *ALPHA_DIFFERS,
        ),
        cells=_ablation("gamma", "gamma", "γ = {:g}", 0.3, GAMMA),
        **frame(ALPHA_METRIC, "book_ablations.py gamma", 15),
    )


def _product() -> Entry:
    return Entry(
        paper="dp-hp",
        item="table 8",
        title="how many columns a product kernel has",
        differences=("Ours is `dp_hp` too: the table is about its setting.", *ALPHA_DIFFERS),
        cells=_ablation(
            "product", "columns", "{} columns in a product", 1.0, PRODUCT, {7: TOO_MANY_CELLS}
        ),
        **frame(ALPHA_METRIC, "book_ablations.py product", 30),
    )
