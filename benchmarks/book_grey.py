"""Entries of the results book on digits and clothes without public images: DP-MERF and DP-HP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import image_published as known
from book_cells import NOT_RUN, Cell, Entry, Score, lines, of, score
from book_images import TITLES, found_on, frame, percent
from book_papers import TWELVE

DRAWN = "Classifiers learn from 10,000 drawn images; the paper draws 60,000."
OURS = (
    "*Faithful* is the paper's method and *ours* the Gaussian by class in 100 cosines, in every "
    "row: nothing public but the size of the images. Its settings were chosen on training images "
    "of MNIST; see the notes."
)
RINGING = (
    "pixels are cut at black there, and smooth directions most likely leave faint ones around a "
    "shape"
)
NO_PUBLIC = "the schema: the size of the images and the classes"
PARTS = {"merf": "dp_merf", "alone": "gaussian_alone"}
METRIC = "accuracy on 10,000 test images"
COMMAND = "images.py {} --drawn 10000"


def entries() -> Iterator[Entry]:
    """Give the tables and figures about grey images."""
    yield _merf_mean()
    yield _merf_twelve("table 9", "mnist", 0)
    yield _merf_twelve("table 10", "fashion", 2)
    yield _hp()
    yield _hp_sizes()


def _both(part: str, name: str, epsilon: float, key: str) -> dict[str, Score | None]:
    """Give the paper's method and ours."""
    paper = found_on(part, name, f"dp_{part}", epsilon, key)
    alone = found_on("alone", name, "gaussian_alone", epsilon, key)
    return {"faithful": paper, "ours": alone}


def _cell(made: Cell) -> Cell:
    """Say what is missing, or why ours is behind."""
    if made.ours is None:
        return made.model_copy(update={"missing": NOT_RUN})
    return made.model_copy(update={"note": RINGING}) if made.ahead is False else made


def _merf_mean() -> Entry:
    cells = [
        _cell(
            Cell(
                row=TITLES[name],
                measure="accuracy, mean of 12 classifiers, %",
                epsilon=epsilon,
                published=told,
                **_both("merf", name, epsilon, "mean"),
            )
        )
        for (name, epsilon), told in known.MERF.items()
    ]
    return Entry(
        paper="dp-merf",
        item="table 3",
        title="classifiers that learn from drawn digits and clothes",
        differences=(DRAWN, OURS),
        pictures=_pictures("merf", "DP-MERF") + _pictures("alone", "ours"),
        cells=tuple(cells),
        **_frame("merf", 150),
    )


def _frame(part: str, minutes: float) -> dict[str, Any]:
    """Give the frame of figures of which a part makes the faithful and `alone` makes ours."""
    told = frame(METRIC, COMMAND.format(part), minutes)
    return {**told, "also": (COMMAND.format("alone"),), "public": NO_PUBLIC}


def _pictures(part: str, title: str) -> tuple[tuple[str, str], ...]:
    """Give the contact sheets of a part that there are runs of."""
    return tuple(
        (
            f"images-{name}-{PARTS[part]}-{epsilon:g}.png",
            f"{TITLES[name]}, {title}, ε = {epsilon:g}.",
        )
        for name, epsilon in known.MERF
        if lines(f"images-{part}", images=name, epsilon=epsilon)
    )


def _merf_twelve(item: str, name: str, start: int) -> Entry:
    cells = [
        _cell(
            Cell(
                row=TWELVE[classifier],
                measure="accuracy, %",
                epsilon=epsilon,
                published=four[start + place],
                **_both("merf", name, epsilon, classifier),
            )
        )
        for classifier, four in known.MERF_TWELVE.items()
        for place, epsilon in enumerate((1.0, 0.2))
    ]
    return Entry(
        paper="dp-merf",
        item=item,
        title=f"{TITLES[name]}, classifier by classifier",
        differences=(
            DRAWN,
            OURS,
            "AdaBoost is SAMME, for the paper's SAMME.R has left scikit-learn.",
        ),
        cells=tuple(cells),
        **_frame("merf", 150),
    )


def _hp() -> Entry:
    """Figure 6 of DP-HP is a picture; the printed figures are in DP-MEPF's table 1."""
    cells = [
        _cell(
            Cell(
                row=TITLES[name],
                measure=measure,
                epsilon=epsilon,
                published=told if epsilon == 10.0 else None,
                **_both("hp", name, epsilon, key),
            )
        )
        for name, (logistic, mlp) in known.HP.items()
        for measure, told, key in (
            ("LogReg, %", logistic, "logistic"),
            ("MLP, %", mlp, "mlp"),
            ("mean of 12, %", None, "mean"),
        )
        for epsilon in (10.0, 1.0)
    ]
    return Entry(
        paper="dp-hp",
        item="figure 6",
        title="digits and clothes, by classifier",
        differences=(
            DRAWN,
            OURS,
            (
                "The paper has a picture only. The published figures are table 1 of DP-MEPF, whose "
                "caption says ε = 10."
            ),
        ),
        cells=tuple(cells),
        **_frame("hp", 150),
    )


def _hp_sizes() -> Entry:
    cells = []
    for name in known.HP:
        for size in known.HP_SIZES:
            hp, ours = (
                percent(score(lines("book-sizes", images=name, method=method), _mean_of(size)))
                for method in ("dp_hp", "gaussian_alone")
            )
            made = Cell(
                row=f"{TITLES[name]}, {size:,} images drawn",
                measure="mean of 6 classifiers, %",
                epsilon=1.0,
                faithful=hp,
                ours=ours,
            )
            cells.append(_cell(made))
    return Entry(
        paper="dp-hp",
        item="figure 3",
        title="digits and clothes, by the number of images drawn",
        differences=(
            "A picture in the paper, of twelve classifiers; here the six that take seconds.",
            OURS,
        ),
        pictures=(("book-sizes.svg", "Accuracy by the number of images drawn."),),
        cells=tuple(cells),
        **{**frame(METRIC, "book_sizes.py", 10), "public": NO_PUBLIC},
    )


def _mean_of(size: int) -> Any:
    return of("sizes", str(size), "mean")
