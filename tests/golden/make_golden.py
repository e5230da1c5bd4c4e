"""Make the golden files of a format version: run once by hand, never by the tests.

``python tests/golden/make_golden.py VERSION`` writes ``release_v{VERSION}.aqt`` beside this file,
from the synthetic rows of ``people.csv`` and the schema ``people.toml``. With ``default`` after the
version it writes ``release_v{VERSION}_default.aqt``, by the default plan, whose joint counts are
over merged cells; with ``cosines`` a file of cosines, and with ``compare`` one of
the features of two-sample tests, which came later. A file of a version that
was once published is never made again: the noise would differ, and so would what the tests know.
"""

import csv
import sys
from pathlib import Path

import numpy as np

import aquatint as aq
from aquatint.features import (
    Count,
    by_label,
    concat,
    cosines,
    fourier,
    hermite,
    hermite_combined,
    hermite_product,
    locations,
    onehot,
    pairs,
    product,
    race,
    scale,
    second_moment,
    smooth,
    triples,
)

HERE = Path(__file__).parent
ROWS = 120


def write_rows(path: Path) -> None:
    """Write invented rows, with missing values, unknown values and values out of bounds."""
    rng = np.random.default_rng(1)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(
            ["age", "height", "work", "health", "smokes", "born", "seen", "note", "income"]
        )
        for _ in range(ROWS):
            out.writerow(
                [
                    int(rng.integers(15, 95)),
                    f"{rng.normal(170, 10):.1f}" if rng.random() > 0.1 else "",
                    rng.choice(["private", "state", "self", "army"]),
                    rng.choice(["poor", "fair", "good"]),
                    rng.choice(["true", "false"]),
                    np.datetime64("1930-01-01") + int(rng.integers(0, 25_000)),
                    np.datetime64("2020-01-01T00:00:00") + int(rng.integers(0, 10**8)),
                    rng.choice(["none", "see file", "called twice"]),
                    rng.choice(["low", "high"], p=[0.7, 0.3]),
                ]
            )


def blocks(schema: aq.Schema) -> tuple[aq.PlannedBlock, ...]:
    """Use every kind of feature map at least once, each with a tenth or so of the budget."""
    cells = schema.cells()
    numbers = ("age", "height")
    maps = {
        "count": Count(),
        "columns": onehot(cells),
        "pairs": pairs(cells, [("work", "income"), ("smokes", "health")]),
        "triples": triples(cells, [("work", "smokes", "income")]),
        "fourier": fourier(numbers, 8, length_scale=0.3, seed=7),
        "laplace kernel": fourier(numbers, 6, kernel="laplace", seed=8),
        "hermite": hermite_combined(
            hermite(numbers, 4), hermite_product(numbers, 2, length_scale=0.4), gamma=0.5
        ),
        "race": race(numbers, 3, 4, width=0.2, seed=9),
        "by label": by_label(fourier(("age",), 4, seed=10), "income", cells["income"]),
        "mixed": concat(
            scale(fourier(("height",), 4, seed=11), 0.5),
            product(onehot({"smokes": 2}), hermite(("age",), 2)),
        ),
    }
    share = 1 / len(maps)
    return tuple(aq.PlannedBlock(name, feature_map, share) for name, feature_map in maps.items())


def later_blocks(schema: aq.Schema) -> tuple[aq.PlannedBlock, ...]:
    """Use the kinds of feature map that came after the first golden file."""
    numbers = ("age", "height", "born")
    classes = schema.cells()["income"]
    return (
        aq.PlannedBlock("count", Count(), 0.2),
        aq.PlannedBlock("cosines", cosines(numbers, 3, pairs=[("height", "age")]), 0.4),
        aq.PlannedBlock("by label", by_label(cosines(numbers, 2), "income", classes), 0.4),
    )


def test_blocks(schema: aq.Schema) -> tuple[aq.PlannedBlock, ...]:
    """Use the features of two-sample tests, which came later still."""
    cells = {"work": schema.cells()["work"]}
    points = [(0.25, 0.5, 0), (0.5, 0.75, 2), (0.125, 0.5, 1)]
    near = locations(("age", "height"), points, cells=cells, length_scale=0.5)
    bell = smooth(("age", "born"), [(1.5, -0.25), (0.5, 3.0)], width=0.4)
    maps = {
        "count": Count(),
        "locations": near,
        "second moment": second_moment(near),
        "laplace": locations(("age",), [(0.3,)], length_scale=0.2, kernel="laplace"),
        "smooth": bell,
        "second moment of smooth": second_moment(bell),
        "mixed": fourier(("age", "height", "born"), 16, kernel="mixed", seed=5),
    }
    return tuple(aq.PlannedBlock(name, made, 1 / len(maps)) for name, made in maps.items())


def main(version: str, which: str = "") -> None:
    target = HERE / ("_".join(filter(None, [f"release_v{version}", which])) + ".aqt")
    if target.exists():
        sys.exit(f"{target} exists, and a golden file is never made again")
    if not (HERE / "people.csv").exists():
        write_rows(HERE / "people.csv")
    default = aq.plan(aq.Schema.from_toml(HERE / "people.toml"))
    schema = default.schema
    made = {"cosines": later_blocks, "compare": test_blocks}.get(which, blocks)
    chosen = made(schema)
    plan = default if which == "default" else aq.Plan(schema, chosen)
    release = aq.sketch(HERE / "people.csv", schema, epsilon=2.0, delta=1e-6, plan=plan)
    release.save(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
