"""Privacy accounting: public maths, used to calibrate before a release and to verify one after.

A release is one joint mechanism. Its blocks k have integer sensitivity Δ_k and noise of scale σ_k,
both in grid steps.

* Discrete Gaussian noise is ρ-zCDP with ρ = Σ Δ_k²/(2σ_k²), and up to the discretisation terms
  below it is exactly a Gaussian mechanism with μ² = 2ρ.
* Discrete Laplace noise is ε-DP with ε = Σ Δ_k/b_k, in L1.

The discretisation terms are derived in docs/explanation/accounting.md: over D coordinates the
discrete Gaussian and the rounded continuous one differ by factors e^{±η} off an event of
probability τ, which turns (ε, δ) into (ε + 2η, e^η·δ + (1 + e^{ε+η})·τ). Here t² = 2·log(2D/τ) and
η = t²·Σ D_k/8σ_k², which has to stay below a fixed small share of ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from math import exp, expm1, inf, isfinite, log, nextafter, sqrt

from scipy.special import log_ndtr

from aquatint.errors import BudgetError

SMALLEST_SCALE = 2.0**10
"""Noise of fewer grid steps than this is refused. Above it the term 3·exp(−2π²σ²) of the derivation
is zero in floating point, and e^{t/2σ} ≤ 2 for every reach t that is used."""
LARGEST_SCALE = 2.0**50
"""Noise of more grid steps than this is refused: sums and noise have to fit 64 bits."""
ALLOWANCE = 1e-4
"""The discretisation is allowed this share of ε as η; what needs more is refused."""
MOST_COORDINATES = 2**40
"""The tails are bounded for this many coordinates, however few there are."""


@dataclass(frozen=True)
class Budget:
    """The privacy parameters of one release, declared by a person: there is no default.

    With ``delta == 0`` the promise is pure ε-DP and the noise is Laplace; otherwise it is
    (ε, δ)-DP and the noise is Gaussian.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if not (isfinite(self.epsilon) and 0 < self.epsilon <= 100):
            msg = f"epsilon must be above 0 and at most 100, got {self.epsilon}"
            raise BudgetError(msg)
        if 0 < self.delta < 1e-200:
            msg = f"delta = {self.delta:g} is too small to compute with: 0 asks for pure epsilon"
            raise BudgetError(msg)
        if not 0 <= self.delta < 0.5:
            msg = (
                f"delta must be at least 0 and well below one over the number of rows, "
                f"got {self.delta}"
            )
            raise BudgetError(msg)

    @property
    def pure(self) -> bool:
        """Whether the promise is pure ε-DP."""
        return self.delta == 0


@dataclass(frozen=True, slots=True)
class Noised:
    """What accounting needs to know of one noised vector, all in grid steps.

    ``l2_squared`` and ``l1`` are the sensitivities of the vector under the declared neighbours.

    A private choice of k among several (`chosen`) is written in the same way: with scores that move
    by at most Δ and noise of scale s it is ε-DP with ε = 2kΔ/s and ρ-zCDP with ρ = kΔ²/2s² (the
    exponential mechanism k times, each with bounded range 2Δ/s: Cesar & Rogers 2021). As
    ``l2_squared = k·Δ²`` and ``l1 = 2·k·Δ`` the formulas are those of noise.
    """

    coordinates: int
    scale: float
    l2_squared: int
    l1: int
    choice: bool = False


def chosen(count: int, sensitivity: int, scale: float = 1.0) -> Noised:
    """Give what accounting needs to know of a private choice of so many sets."""
    return Noised(0, scale, count * sensitivity**2, 2 * count * sensitivity, choice=True)


@dataclass(frozen=True, slots=True)
class Loss:
    """The privacy loss of one or several releases; losses add up.

    Attributes
    ----------
    rho
        Σ Δ²/(2σ²) of the discrete Gaussian parts, rounded up.
    roughness
        Σ D/(8σ²) of the same parts: with a reach of t, η = t²·roughness.
    pure
        Σ Δ₁/b of the discrete Laplace parts, rounded up: they are ε-DP with this ε.
    pure_rho
        Σ ε²/2 of the same parts: ε-DP implies ε²/2-zCDP. Private choices are ε-DP too, with less.
    """

    rho: float = 0.0
    roughness: float = 0.0
    pure: float = 0.0
    pure_rho: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Loss(*(round_up(Fraction(a) + Fraction(b)) for a, b in pairs))

    @property
    def zcdp_rho(self) -> float:
        """The ρ of zCDP for all parts together, rounded up."""
        return round_up(Fraction(self.rho) + Fraction(self.pure_rho))

    def epsilon(self, delta: float) -> float:
        """Give the ε of the (ε, δ) promise; inf if there is none.

        Gaussian parts alone get the exact ε of the Gaussian mechanism, raised by a fixed allowance
        for the discretisation. Being fixed, it makes the promise a function of Σρ alone, so that a
        ceiling on it holds for releases that are chosen one after the other (a privacy filter).
        Gaussian and Laplace parts together have such a filter only under zCDP, and get its ε.
        """
        if self.rho == 0:
            return self.pure
        if delta <= 0:
            return inf
        if self.pure:
            return zcdp_epsilon(self.zcdp_rho, delta)
        mu = nextafter(sqrt(2 * self.rho), inf)
        rough = gaussian_epsilon(delta, mu) + 1e-9 if mu < 100 else inf
        if rough > 300:
            return inf
        eta = ALLOWANCE * max(rough, 0.01)
        tail = 1e-9 * delta / (2 + exp(2 * rough + 1))
        if self.roughness * 2 * log(2 * MOST_COORDINATES / tail) > eta:
            return inf
        exact = gaussian_epsilon((delta - (1 + exp(2 * rough + 1)) * tail) * exp(-eta), mu)
        return exact + 2 * eta if exact <= 2 * rough else inf


def gaussian_loss(vectors: Iterable[Noised]) -> Loss:
    """Add up the loss of discrete Gaussian noise, and of private choices, exactly; round it up."""
    given = list(vectors)
    noised = [v for v in given if not v.choice]
    if any(v.scale < SMALLEST_SCALE for v in noised):
        msg = (
            f"noise of {min(v.scale for v in noised):.3g} grid steps is too fine for the exact "
            "accounting: ask for a smaller epsilon, or give this block a smaller share"
        )
        raise BudgetError(msg)
    if sum(v.coordinates for v in noised) > MOST_COORDINATES:
        msg = f"a release has at most {MOST_COORDINATES:,} numbers"
        raise BudgetError(msg)
    rho, rough, pure, pure_rho = Fraction(), Fraction(), Fraction(), Fraction()
    for v in given:
        variance = Fraction(v.scale) ** 2
        if v.choice:
            pure += v.l1 / Fraction(v.scale)
            pure_rho += v.l2_squared / (2 * variance)
        else:
            rho += v.l2_squared / (2 * variance)
            rough += v.coordinates / (8 * variance)
    return Loss(*map(round_up, (rho, rough, pure, pure_rho)))


def left(loss: Loss, ceiling: Budget) -> float:
    """Give the ε of the largest single release that still fits under a ceiling, at its δ.

    It is a billionth less, so that rounding does not take the sum over the ceiling.
    """
    if ceiling.pure:
        return max(0.0, ceiling.epsilon - loss.pure)
    low, high = 0.0, gaussian_mu(ceiling.epsilon, ceiling.delta) ** 2 / 2
    for _ in range(50):
        middle = (low + high) / 2
        fits = (loss + Loss(rho=middle)).epsilon(ceiling.delta) <= ceiling.epsilon
        low, high = (middle, high) if fits else (low, middle)
    return Loss(rho=low).epsilon(ceiling.delta) * (1 - 1e-9)


def laplace_loss(vectors: Iterable[Noised]) -> Loss:
    """Add up the loss Σ Δ₁/b of discrete Laplace noise exactly, and round it up."""
    pure = sum((v.l1 / Fraction(v.scale) for v in vectors), Fraction())
    return Loss(pure=round_up(pure), pure_rho=round_up(pure**2 / 2))


def calibrate(budget: Budget, vectors: Sequence[Noised], shares: Sequence[float]) -> list[float]:
    """Find the noise scales that spend exactly the budget, split by the shares.

    The scales given in ``vectors`` are ignored. Gaussian blocks get ρ_k = share_k·ρ, hence
    σ_k = Δ_k/√(2·share_k·ρ), with the largest ρ whose exact ε does not exceed the budget; Laplace
    blocks get ε_k = share_k·ε.
    """
    if budget.pure:
        return _fine_enough(
            [
                nextafter(v.l1 / (share * budget.epsilon), inf) * (1 + 1e-12)
                for v, share in zip(vectors, shares, strict=True)
            ]
        )

    def scales(rho: float) -> list[float]:
        return [
            sqrt(v.l2_squared / (2 * share * rho)) for v, share in zip(vectors, shares, strict=True)
        ]

    def fits(rho: float) -> bool:
        noised = [replace(v, scale=s) for v, s in zip(vectors, scales(rho), strict=True)]
        return gaussian_loss(noised).epsilon(budget.delta) <= budget.epsilon

    high = gaussian_mu(budget.epsilon, budget.delta) ** 2 / 2
    low = high / 16 if any(v.choice for v in vectors) else high / 2
    if not fits(low):
        msg = (
            "the discretisation terms outgrow this budget: ask for a larger epsilon, "
            "or release fewer coordinates"
        )
        raise BudgetError(msg)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _fine_enough(scales(low))


def _fine_enough(scales: list[float]) -> list[float]:
    if max(scales) >= LARGEST_SCALE:
        msg = (
            "so small an epsilon needs more noise than 64 bits have room for: ask for a larger one"
        )
        raise BudgetError(msg)
    return scales


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Give the exact δ(ε) of a Gaussian mechanism with sensitivity/σ = μ (Balle & Wang, Theorem 8).

    δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).
    """
    if mu == 0:
        return 0.0
    upper = float(log_ndtr(mu / 2 - epsilon / mu))
    lower = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return exp(upper) * -expm1(lower - upper)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Give the smallest ε with δ(ε) ≤ delta, rounded up."""
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * sqrt(2 * log(1 / delta)) + 1
    _, found = _between(lambda e: gaussian_delta(e, mu) <= delta, 0.0, high)
    return found * (1 + 1e-9) + 1e-12


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Give the largest μ whose Gaussian mechanism is (ε, δ)-DP, rounded down."""
    high = 1.0
    while gaussian_delta(epsilon, high) < delta and high < 1e6:
        high *= 2
    found, _ = _between(lambda m: gaussian_delta(epsilon, m) > delta, 0.0, high)
    return found * (1 - 1e-9)


def _between(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Halve from where something does not hold to where it does, until nothing lies between.

    SciPy's root finders need fewer steps, but half a second to import, in every command.
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Give the ε that ρ-zCDP alone promises (Canonne, Kamath & Steinke 2020, Proposition 7).

    ε = inf over α > 1 of αρ + (log(1/(αδ)) + (α−1)·log(1−1/α))/(α−1).
    """
    if rho == 0:
        return 0.0
    best = inf
    low, high = 1e-9, 1e9
    for _ in range(200):  # the objective is unimodal in log(α − 1): golden section
        a, b = low ** (2 / 3) * high ** (1 / 3), low ** (1 / 3) * high ** (2 / 3)
        at_a, at_b = _zcdp_at(rho, delta, a), _zcdp_at(rho, delta, b)
        best = min(best, at_a, at_b)
        low, high = (low, b) if at_a < at_b else (a, high)
    return max(0.0, best)


def _zcdp_at(rho: float, delta: float, beyond: float) -> float:
    alpha = 1 + beyond
    return alpha * rho + (-log(alpha * delta)) / beyond + log(beyond / alpha)


def round_up(value: Fraction) -> float:
    """Give the smallest float that is not below an exact value."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else nextafter(rounded, inf)
