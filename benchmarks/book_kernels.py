"""Experiments of the papers on kernels and embeddings, in seconds to minutes on one core.

    python benchmarks/book_kernels.py approximation   # DP-HP, figure 1: Hermite against Fourier
    python benchmarks/book_kernels.py length_scale    # DP-HP, figure 5: how fast features decay
    python benchmarks/book_kernels.py bound           # DP-MERF, proposition 3.1 against its error
    python benchmarks/book_kernels.py reduced_set     # DP-MERF, figure 3: against a reduced set
    python benchmarks/book_kernels.py step            # M2M, figure 2: a step from sketches

Every run is a line of benchmarks/results/book-PART.jsonl, known by its settings, and is made once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from math import exp, lgamma, pi, sqrt

import numpy as np
import torch
from runs import DELTA, Found, Job, Log, Settings, run_all, words
from torch import Tensor

import aquatint as aq
from aquatint.accounting import gaussian_mu
from aquatint.features import FeatureMap, Rows, fourier, hermite
from aquatint.schema import Schema

SPAN = 6.0
"""The unit interval stands for [−6, 6], so that normal samples lie inside."""
DRAWS = 100
"""Draws of random features, as in DP-HP's figure 1."""
ORDERS = (0, 1, 2, 4, 6, 8, 12)
NUMBERS = (2, 8, 32, 128, 500)
BOUND_FEATURES = (100, 1000, 10_000)
BOUND_ROWS, BOUND_EPSILON = 10_000, 1.0
REDUCED_ROWS, REDUCED_COLUMNS, REDUCED_FEATURES = 100_000, 5, 1000
REDUCED_POINTS = (10, 30, 100, 300, 1000)
STEP_POINTS = 2000


def on_unit(x: np.ndarray) -> Rows:
    """Put points of [−SPAN, SPAN] into the one column that features read."""
    return Rows({}, {"x": torch.from_numpy((np.asarray(x) / SPAN + 1) / 2)}, len(x))


def approximation(asked: argparse.Namespace) -> Iterator[Job]:
    """Compare kernels with their features (DP-HP, figure 1): N(0, 1) against N(1, 1)."""
    for seed in range(asked.runs):
        for order in ORDERS:
            settings = {"part": "approximation", "method": "hermite", "size": order, "seed": seed}
            yield Job(settings, partial(_approximation, settings))
        for number in NUMBERS:
            settings = {"part": "approximation", "method": "fourier", "size": number, "seed": seed}
            yield Job(settings, partial(_approximation, settings))


def _approximation(settings: Settings) -> Found:
    rng = np.random.default_rng(settings["seed"])
    x, y = rng.normal(0, 1, 100), rng.normal(1, 1, 100)
    distance = np.abs(x[:, None] - y[None, :])
    length = float(np.median(distance))
    kernel = np.exp(-(distance**2) / (2 * length**2))
    scale = length / (2 * SPAN)

    def error(features: FeatureMap) -> float:
        found = features(on_unit(x)).double() @ features(on_unit(y)).double().T
        return float(np.abs(found.numpy() - kernel).mean())

    if settings["method"] == "hermite":
        return {"error": error(hermite(["x"], settings["size"], length_scale=scale, span=SPAN))}
    drawn = (
        fourier(["x"], settings["size"], length_scale=scale, seed=seed) for seed in range(DRAWS)
    )
    return {"error": float(np.mean([error(features) for features in drawn]))}


def length_scale(asked: argparse.Namespace) -> Iterator[Job]:
    """Find the order past which Hermite features are negligible (DP-HP, figure 5)."""
    for seed in range(asked.runs):
        for length in (0.71, 7.07):
            settings = {"part": "length_scale", "length": length, "seed": seed}
            yield Job(settings, partial(_length_scale, settings))


def _length_scale(settings: Settings) -> Found:
    """Give the last order at which a feature of one of four points is above a hundredth."""
    x = np.random.default_rng(settings["seed"]).normal(0, 1, 4)
    features = hermite(["x"], 60, length_scale=settings["length"] / (2 * SPAN), span=SPAN)
    size = features(on_unit(x)).double().abs().amax(0)
    return {"order": int(torch.nonzero(size > 0.01).max())}


def bound(asked: argparse.Namespace) -> Iterator[Job]:
    """Measure the error that DP-MERF's proposition 3.1 bounds."""
    for features in BOUND_FEATURES:
        for seed in range(asked.runs):
            settings = {"part": "bound", "features": features, "rows": BOUND_ROWS}
            settings |= {"epsilon": BOUND_EPSILON, "delta": DELTA, "seed": seed}
            yield Job(settings, partial(_bound, settings))


def _bound(settings: Settings) -> Found:
    """Compare the noisy MMD² by random features with the exact one, of N(0, 1) and N(1, 1)."""
    rng = np.random.default_rng(settings["seed"])
    rows, features = settings["rows"], settings["features"]
    x, y = rng.normal(0, 1, rows), rng.normal(1, 1, rows)
    sigma = 1 / gaussian_mu(settings["epsilon"], settings["delta"])
    map_ = fourier(["x"], features, length_scale=1 / (2 * SPAN), seed=settings["seed"])
    apart = (map_(on_unit(x)).double().mean(0) - map_(on_unit(y)).double().mean(0)).numpy()
    noise = rng.normal(0, 2 * sigma / rows, features)
    error = abs(float(((apart + noise) ** 2).sum()) - exact_mmd(x, y))
    return {"error": error, "bound": proposition(features, sigma, rows)}


def exact_mmd(x: np.ndarray, y: np.ndarray) -> float:
    """Give MMD² under the Gaussian kernel of length 1, all pairs of rows (eq. 2)."""

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        parts = np.array_split(a, max(1, len(a) // 1000))
        total = sum(np.exp(-((part[:, None] - b[None, :]) ** 2) / 2).sum() for part in parts)
        return float(total) / (len(a) * len(b))

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)


def proposition(features: int, sigma: float, rows: int) -> float:
    """Give the right side of eq. 12.

    >>> round(proposition(10_000, 3.73, 10_000), 3)
    0.5
    """
    ratio = exp(lgamma((features + 1) / 2) - lgamma(features / 2))
    noise = 4 * features * sigma**2 / rows**2 + 8 * sqrt(2) * sigma / rows * ratio
    return noise + 8 * sqrt(2 * pi / features)


def reduced_set(asked: argparse.Namespace) -> Iterator[Job]:
    """Approximate a private embedding by few points (DP-MERF, figure 3)."""
    for seed in range(asked.runs):
        for method in ("reduced_set", "dp_merf", "auto"):
            settings = {"part": "reduced_set", "method": method, "epsilon": 1.0, "delta": DELTA}
            settings |= {"rows": REDUCED_ROWS, "points": list(REDUCED_POINTS), "seed": seed}
            yield Job(settings, partial(_reduced_set, settings))


def five_columns(seed: int, rows: int) -> tuple[np.ndarray, Schema]:
    """Draw a mixture of ten Gaussians in five columns, as in Balog et al. (2018)."""
    rng = np.random.default_rng(seed)
    means, cell = rng.uniform(-3, 3, (10, REDUCED_COLUMNS)), rng.integers(10, size=rows)
    x = (means[cell] + 0.5 * rng.standard_normal((rows, REDUCED_COLUMNS))).clip(-6, 6)
    columns = {f"x{i}": {"kind": "numeric", "bounds": [-6, 6]} for i in range(REDUCED_COLUMNS)}
    told = {"name": "five", "privacy": {"protects": "add or remove one row"}, "columns": columns}
    return x, Schema.from_dict(told)


def _unit(x: np.ndarray | Tensor) -> Rows:
    points = torch.as_tensor(x).double()
    values = {f"x{i}": (points[:, i] / 6 + 1) / 2 for i in range(REDUCED_COLUMNS)}
    return Rows({}, values, len(points))


def _reduced_set(settings: Settings) -> Found:
    """Give the distance of embeddings, by 10,000 features that no method has seen."""
    import pandas as pd

    seed, method = settings["seed"], settings["method"]
    x, schema = five_columns(seed, settings["rows"])
    frame = pd.DataFrame(x, columns=list(schema.columns))
    kernel = {"length_scale": 0.1 * sqrt(REDUCED_COLUMNS), "kernel": "gaussian"}
    plan = aq.plan(schema)
    if method != "auto":
        plan = aq.dp_merf(schema, features=REDUCED_FEATURES, seed=seed, **kernel)
    budget = {"epsilon": settings["epsilon"], "delta": settings["delta"]}
    release = aq.sketch(frame, schema, plan=plan, simulate=seed, progress=False, **budget)
    judge = fourier(list(schema.columns), 10_000, seed=10_000 + seed, **kernel)
    truth = judge(_unit(x[:20_000])).double().mean(0)
    for start in range(20_000, len(x), 20_000):
        some = judge(_unit(x[start : start + 20_000])).double().mean(0)
        truth += (some - truth) / (start // 20_000 + 1)

    def distance(points: np.ndarray | Tensor) -> float:
        return float((judge(_unit(points)).double().mean(0) - truth).norm())

    if method == "reduced_set":
        return {str(n): distance(_points(release, n, seed)) for n in settings["points"]}
    kind = "network" if method == "dp_merf" else "auto"
    model = aq.synthesize(release, kind, seed=seed, progress=False)
    drawn = {n: model.sample(n, seed=seed).to_numpy() for n in settings["points"]}
    return {str(n): distance(points) for n, points in drawn.items()}


def _points(release: aq.Release, number: int, seed: int) -> Tensor:
    """Move points until their embedding is the release's: the reduced set, with equal weights."""
    block = next(b for b in release.blocks if b.name == "embedding")
    target = torch.from_numpy(np.asarray(block.sum, dtype=float)) / release.count
    start = np.random.default_rng(seed).uniform(-4, 4, (number, REDUCED_COLUMNS))
    points = torch.tensor(start, requires_grad=True)
    optimiser = torch.optim.Adam([points], lr=0.05)
    for _ in range(500):
        optimiser.zero_grad()
        loss = ((block.map(_unit(points.clamp(-6, 6))).double().mean(0) - target) ** 2).sum()
        loss.backward()
        optimiser.step()
    return points.detach().clamp(-6, 6)


def step(asked: argparse.Namespace) -> Iterator[Job]:
    """Approximate a step by combinations of features (M2M, figure 2)."""
    for seed in range(asked.runs):
        for method in ("rff", "race", "hist"):
            settings = {"part": "step", "method": method, "seed": seed}
            yield Job(settings, partial(_step, settings))


def _step(settings: Settings) -> Found:
    """Fit I(x ≥ ½) on the unit interval by least squares; give the mean error and some points."""
    column = {"x": {"kind": "numeric", "bounds": [0, 1]}}
    told = {"name": "step", "privacy": {"protects": "add or remove one row"}, "columns": column}
    schema, seed = Schema.from_dict(told), settings["seed"]
    make: dict[str, Callable[[], aq.Plan]] = {
        "rff": lambda: aq.m2m_rff(schema, features=20, length_scale=0.1, seed=seed),
        "race": lambda: aq.m2m_race(schema, repetitions=10, buckets=10, seed=seed),
        "hist": lambda: aq.m2m_hist(schema, bins=9),
    }
    plan = make[settings["method"]]()
    x = (torch.arange(STEP_POINTS).double() + 0.5) / STEP_POINTS
    cells = plan.schema.cells()["x"]
    rows = Rows({"x": (x * cells).long().clamp(max=cells - 1)}, {"x": x}, STEP_POINTS)
    maps = [block.map for block in plan.blocks if block.name != "count"]
    design = torch.cat([map_(rows).double() for map_ in maps], 1)
    wanted = (x >= 0.5).double()
    fitted = design @ torch.linalg.lstsq(design, wanted[:, None], driver="gelsd").solution
    shown = fitted[:: STEP_POINTS // 100, 0]
    return {
        "error": float((fitted[:, 0] - wanted).abs().mean()),
        "shown": [round(float(v), 4) for v in shown],
    }


PARTS = {
    "approximation": (approximation, ("error",), 3),
    "length_scale": (length_scale, ("order",), 3),
    "bound": (bound, ("error", "bound"), 10),
    "reduced_set": (reduced_set, ("10", "100", "1000"), 3),
    "step": (step, ("error",), 1),
}


def main() -> None:
    """Run one part."""
    parser = words(__doc__)
    parser.add_argument("part", choices=PARTS)
    asked = parser.parse_args()
    make, show, runs = PARTS[asked.part]
    asked.runs = asked.runs or runs
    torch.set_num_threads(1)
    log = Log(asked.results / f"book-{asked.part}.jsonl")
    raise SystemExit(bool(run_all(log, list(make(asked)), show, again=asked.again)))


if __name__ == "__main__":
    main()
