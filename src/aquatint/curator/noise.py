"""All noise is drawn here: OpenDP's exact samplers, fed by the operating system's entropy.

Nothing seeds them. OpenDP does not check what it is given, so this module does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import isfinite, sqrt
from os import cpu_count, urandom

import numpy as np
import opendp.prelude as dp

from aquatint.accounting import LARGEST_SCALE, Noised
from aquatint.errors import BudgetError
from aquatint.release.model import Noise

_CHUNK = 16_384
_ROOM = 2**62

Progress = Callable[[int], None]


def add_noise(
    integers: np.ndarray,
    noised: Noised,
    noise: Noise,
    progress: Progress = lambda _: None,
) -> np.ndarray:
    """Add discrete noise of the given scale to exact integer sums.

    Parameters
    ----------
    integers
        The exact sum, int64, shape (coordinates,).
    noised
        Its sensitivity and the scale of the noise, in grid steps.
    noise
        Which noise to add.
    progress
        Is told how many more coordinates are done.
    """
    _check(integers, noised)
    _check_map(noised, noise)
    chunks = [integers[i : i + _CHUNK] for i in range(0, len(integers), _CHUNK)]

    def one(chunk: np.ndarray) -> np.ndarray:
        out = np.asarray(_measurement(len(chunk), noised.scale, noise)(chunk), dtype=np.int64)
        progress(len(chunk))
        return out

    with ThreadPoolExecutor(cpu_count()) as pool:
        return np.concatenate(list(pool.map(one, chunks)))


def simulator(seed: int) -> Callable[[np.ndarray, Noised, Noise], np.ndarray]:
    """Give a function that adds pseudo-random noise of the same size, for benchmarks.

    It is NOT private: whoever knows the seed can take the noise off again.
    """
    rng = np.random.default_rng(seed)

    def add(integers: np.ndarray, noised: Noised, noise: Noise) -> np.ndarray:
        _check(integers, noised)
        draw = rng.normal if noise == "discrete gaussian" else rng.laplace
        drawn = np.rint(draw(scale=noised.scale, size=len(integers))).astype(np.int64)
        return integers + drawn

    return add


def choose(scores: np.ndarray, noised: Noised, count: int, noise: Noise) -> np.ndarray:
    """Choose the places of the highest scores privately: OpenDP's noisy top-k.

    Gumbel noise under zCDP, exponential noise under pure ε; both are the exponential mechanism or
    better, `count` times.
    """
    if scores.dtype != np.int64 or not 1 <= count < len(scores) or not noised.choice:
        msg = f"a choice of {count} needs more int64 scores than that, got {len(scores)}"
        raise BudgetError(msg)
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=len(scores))
    gaussian = noise == "discrete gaussian"
    measure = dp.zero_concentrated_divergence() if gaussian else dp.max_divergence()
    metric = dp.linf_distance(T="i64")
    measurement = dp.m.make_noisy_top_k(
        domain, metric, measure, k=count, scale=noised.scale, negate=False
    )
    ours = noised.l2_squared / (2 * noised.scale**2) if gaussian else noised.l1 / noised.scale
    _agree(measurement.map(noised.l1 // (2 * count)), ours)
    return np.array(measurement(scores.tolist()), dtype=np.int64)


def chooser(seed: int) -> Callable[[np.ndarray, Noised, int, Noise], np.ndarray]:
    """Give a function that chooses with pseudo-random noise, for benchmarks: NOT private."""
    rng = np.random.default_rng([seed, 1])  # apart from the draws of `simulator`

    def pick(scores: np.ndarray, noised: Noised, count: int, noise: Noise) -> np.ndarray:
        draw = rng.gumbel if noise == "discrete gaussian" else rng.exponential
        noisy = scores + draw(scale=noised.scale, size=len(scores))
        return np.argsort(noisy)[-count:]

    return pick


def coins(seed: int | None = None) -> Callable[[int], np.ndarray]:
    """Give a function that draws random bytes, uint8: for labels that are dealt out anew.

    They come from the operating system's entropy, without a seed. With a seed they are
    pseudo-random, for benchmarks: NOT private.
    """
    if seed is None:
        return lambda size: np.frombuffer(urandom(size), dtype=np.uint8)
    rng = np.random.default_rng([seed, 2])  # apart from the draws of `simulator` and `chooser`
    return lambda size: np.frombuffer(rng.bytes(size), dtype=np.uint8)


def _measurement(size: int, scale: float, noise: Noise) -> dp.Measurement:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=size)
    if noise == "discrete gaussian":
        return (domain, dp.l2_distance(T=float)) >> dp.m.then_gaussian(scale=scale)
    return (domain, dp.l1_distance(T="i64")) >> dp.m.then_laplace(scale=scale)


def _check(integers: np.ndarray, noised: Noised) -> None:
    if integers.dtype != np.int64 or integers.shape != (noised.coordinates,):
        msg = f"noise needs {noised.coordinates} int64 sums, got {integers.dtype} {integers.shape}"
        raise BudgetError(msg)
    if not (isfinite(noised.scale) and 0 < noised.scale < LARGEST_SCALE):
        msg = f"the noise scale must be a positive number of grid steps, got {noised.scale}"
        raise BudgetError(msg)
    largest = max(-int(integers.min()), int(integers.max())) if len(integers) else 0
    if largest + 100 * noised.scale >= _ROOM:
        msg = "the sums leave no room for the noise in 64 bits: split the data"
        raise BudgetError(msg)


def _check_map(noised: Noised, noise: Noise) -> None:
    """Ask OpenDP's own privacy map about this scale: two derivations have to agree."""
    measurement = _measurement(1, noised.scale, noise)
    if noise == "discrete gaussian":
        theirs = measurement.map(sqrt(noised.l2_squared))
        ours = noised.l2_squared / (2 * noised.scale**2)
    else:
        theirs = measurement.map(noised.l1)
        ours = noised.l1 / noised.scale
    _agree(theirs, ours)


def _agree(theirs: float, ours: float) -> None:
    if abs(theirs - ours) > 1e-9 * ours:
        msg = f"OpenDP accounts {theirs} for this noise, Aquatint {ours}: nothing was released"
        raise BudgetError(msg)
