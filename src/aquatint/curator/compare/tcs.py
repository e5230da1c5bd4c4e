"""TCS, corrected: the statistic itself with Gaussian noise (Raj et al. 2019, §3.2).

The paper adds noise to s by its Theorem 1, which is false (see `roots`). Here √q is released, whose
sensitivity is proved there, and with a small part of the budget the trace of Λ.

*Null.* If nothing differs, n·q is about Σ_j λ_j/(λ_j + γ)·χ²_j with λ the eigenvalues of Λ, of
which only the trace is known. So the p-value is the largest over spectra with a trace as large as
it may be: r of the J eigenvalues equal and the others zero, or one more that is apart from them.
That no other spectrum is worse is not proved; the tests search for one. The trace is taken larger
by its noise, and the chance α/20 that this is too little is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.stats import norm

from aquatint.accounting import Budget, Noised, calibrate
from aquatint.comparison import CompareError
from aquatint.curator.compare import roots
from aquatint.curator.compare.samples import Samples
from aquatint.curator.compare.trial import Conclusion, need_public_sizes
from aquatint.release.model import Noise

TRACE_SHARE = 0.05
_DRAWS = 100_000
_UNSURE = 1 / 20


@dataclass(frozen=True, repr=False)
class PerturbedStatistic:
    """One TCS test; `Trial` says what the parts are."""

    samples: Samples
    budget: Budget
    alpha: float
    coins: Callable[[int], np.ndarray]
    ridge: float = roots.RIDGE
    noise: Noise = "discrete gaussian"

    def __post_init__(self) -> None:
        if self.budget.pure:
            msg = "tcs adds Gaussian noise: give a delta above 0, or use permutation or signflip"
            raise CompareError(msg)
        need_public_sizes(self.samples.schema, "tcs", self.samples.sizes)
        roots.check_ridge(self.ridge, self.samples.coarse.map.dim, "tcs")

    @property
    def noised(self) -> tuple[Noised, ...]:
        """√q in its steps, and n·trace Λ = Σ‖z_i‖², each term of which lies in [0, b²]."""
        rows, features = self.samples.sizes[0], self.samples.coarse.map.dim
        moved = roots.sensitivity(rows, self.ridge, features)
        squared = self.samples.coarse.distance_squared
        vectors = [Noised(1, 1.0, size**2, size) for size in (moved, squared)]
        scales = calibrate(self.budget, vectors, (1 - TRACE_SHARE, TRACE_SHARE))
        return tuple(replace(v, scale=s) for v, s in zip(vectors, scales, strict=True))

    def exact(self, *, progress: bool) -> list[np.ndarray]:
        """Give the root and the trace: private."""
        pairs = roots.pairs_of(self.samples, self.coins, progress=progress)
        root = roots.roots(pairs, pairs.sum(axis=0)[None], self.samples, self.ridge)
        trace = sum(int(value) for value in (pairs**2).sum(axis=0))
        return [root, np.array([trace], dtype=np.int64)]

    def conclude(self, noisy: Sequence[np.ndarray]) -> Conclusion:
        """Decide by the noisy root, against the worst null with the noisy trace."""
        rows, features = self.samples.sizes[0], self.samples.coarse.map.dim
        statistic = sqrt(rows) * int(noisy[0][0]) / roots.STEPS
        spread = sqrt(rows) * self.noised[0].scale / roots.STEPS
        unsure = self.alpha * _UNSURE
        most = rows * self.samples.coarse.distance_squared
        sure = int(noisy[1][0]) + float(norm.isf(unsure)) * self.noised[1].scale
        # In units of b², as the ridge is.
        trace = min(max(sure, 0.0), most) / most
        pvalue = worst(statistic, spread, trace, features, self.ridge, self.alpha)
        pvalue = min(1.0, pvalue + unsure)
        return Conclusion(
            pvalue <= self.alpha,
            f"TCS, corrected: the root of the statistic, {features} features, ridge {self.ridge:g}",
            "the worst spectrum with the noisy trace, and the noise",
            statistic=statistic,
            pvalue=pvalue,
            sizes=(float(rows), float(rows)),
        )


def worst(
    statistic: float, spread: float, trace: float, features: int, ridge: float, alpha: float
) -> float:
    """Give the largest P[√(Σ_j λ_j/(λ_j + ridge)·χ²_j) + spread·Z ≥ statistic] over spectra.

    By Monte Carlo with fixed draws, counting the observation itself.
    """
    rng = np.random.default_rng(0)
    draws = max(_DRAWS, int(200 / alpha))
    squares = rng.chisquare(1, (draws, features))
    noise = spread * rng.standard_normal(draws)
    beyond = 0
    for spectrum in spectra(trace, features):
        value = np.sqrt(squares @ (spectrum / (spectrum + ridge))) + noise
        beyond = max(beyond, int((value >= statistic).sum()))
    return (1 + beyond) / (1 + draws)


def spectra(trace: float, features: int) -> Iterator[np.ndarray]:
    """Give the spectra that are tried: r equal eigenvalues, or one apart from r equal ones."""
    for equal in range(1, features + 1):
        found = np.zeros(features)
        found[:equal] = trace / equal
        yield found
        if equal < features:
            for share in (0.2, 0.4, 0.6, 0.8):
                found = np.zeros(features)
                found[:equal] = (1 - share) * trace / equal
                found[equal] = share * trace
                yield found
