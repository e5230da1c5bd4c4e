"""Entries of the results book on kernels and their features: DP-MERF and DP-HP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from book_cells import NOT_RUN, Cell, Entry, Peer, lines, of, score

NO_PRIVACY = {
    "relation": "no privacy is claimed",
    "delta": None,
    "public": "everything: the data are made up",
}


def entries() -> Iterator[Entry]:
    """Give the figures about features."""
    yield _approximation()
    yield _length_scale()
    yield _bound()
    yield _reduced_set()


def _approximation() -> Entry:
    cells = [
        Cell(
            row=f"{'Hermite, order' if method == 'hermite' else 'random Fourier, number'} {size}",
            measure="mean error of the kernel",
            higher=False,
            faithful=(found := score(_kernels(method, size), of("error"))),
            ours=found,
            missing="" if found else NOT_RUN,
        )
        for method, sizes in (
            ("hermite", (0, 1, 2, 4, 6, 8, 12)),
            ("fourier", (2, 8, 32, 128, 500)),
        )
        for size in sizes
    ]
    return Entry(
        paper="dp-hp",
        item="figure 1",
        title="how fast features approach the kernel",
        metric="mean |k(x, y) − φ(x)·φ(y)| over N(0, 1) × N(1, 1)",
        command="book_kernels.py approximation",
        minutes=2,
        differences=("A picture in the paper: 500 Fourier features are said to match order 2.",),
        pictures=(("book-approximation.svg", "Error of the kernel by order and by number."),),
        cells=tuple(cells),
        **NO_PRIVACY,
    )


def _kernels(method: str, size: int) -> list[dict[str, Any]]:
    return lines("book-approximation", method=method, size=size)


def _length_scale() -> Entry:
    cells = []
    for length, told in ((0.71, 20.0), (7.07, 5.0)):
        found = score(lines("book-length_scale", length=length), of("order"))
        cells.append(
            Cell(
                row=f"length scale {length:g}",
                measure="order past which all features are below a hundredth",
                higher=False,
                published=told,
                faithful=found,
                ours=found,
                missing="" if found else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-hp",
        item="figure 5",
        title="how the length scale sets the order",
        metric="the paper says 'at around order ≤ 20' and '≤ 5' of its picture",
        command="book_kernels.py length_scale",
        minutes=0.1,
        cells=tuple(cells),
        **NO_PRIVACY,
    )


def _bound() -> Entry:
    cells = []
    for features in (100, 1000, 10_000):
        made = lines("book-bound", features=features)
        error, limit = score(made, of("error")), score(made, of("bound"))
        cells.append(
            Cell(
                row=f"{features:,} features",
                measure="error of the noisy MMD²",
                epsilon=1.0,
                higher=False,
                published=limit.mean if limit else None,
                faithful=error,
                ours=error,
                note="*published* is the bound of eq. 12, computed here",
                missing="" if error else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-merf",
        item="proposition 3.1",
        title="the bound against the error that it bounds",
        relation="replace one row",
        delta=1e-5,
        public="everything: the data are made up",
        metric="|noisy MMD² by random features − exact MMD²|, 10,000 rows of N(0, 1) and N(1, 1)",
        command="book_kernels.py bound",
        minutes=5,
        differences=("The bound holds and is loose; the paper measures nothing.",),
        cells=tuple(cells),
    )


def _reduced_set() -> Entry:
    cells = []
    for points in ("10", "30", "100", "300", "1000"):
        made = {
            m: score(lines("book-reduced_set", method=m), of(points))
            for m in ("reduced_set", "dp_merf", "auto")
        }
        reduced = made["reduced_set"]
        cells.append(
            Cell(
                row=f"{int(points):,} points",
                measure="distance of the mean embeddings",
                epsilon=1.0,
                higher=False,
                faithful=made["dp_merf"],
                ours=made["auto"],
                peer=Peer(name="reduced set (Balog et al.)", value=reduced.mean, measured=True)
                if reduced
                else None,
                missing="" if made["dp_merf"] else NOT_RUN,
            )
        )
    return Entry(
        paper="dp-merf",
        item="figure 3",
        title="against a reduced set of points",
        relation="add or remove one row",
        delta=1e-5,
        public="the schema, with its bounds",
        metric="RKHS distance to the private rows' embedding, by 10,000 other Fourier features",
        command="book_kernels.py reduced_set",
        minutes=20,
        differences=(
            "A picture in the paper. The mixture of Gaussians is one like Balog et al.'s.",
            "The reduced set has equal weights and 500 steps of Adam.",
        ),
        paper_ahead=(
            "most likely since the network is fitted to Fourier features, in which the distance is "
            "measured, and the default to counts of columns and pairs"
        ),
        pictures=(("book-reduced_set.svg", "Distance of embeddings by the number of points."),),
        cells=tuple(cells),
    )
