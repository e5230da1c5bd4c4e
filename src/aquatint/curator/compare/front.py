"""The front door of comparisons: a curator who holds both datasets spends budget on one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from aquatint.accounting import Budget, gaussian_loss, laplace_loss
from aquatint.comparison import CompareError, Comparison
from aquatint.curator.compare import permutation, ranks, roots, signflip, tcmc, tcs
from aquatint.curator.compare.defaults import default_map
from aquatint.curator.compare.samples import open_samples
from aquatint.curator.compare.trial import Trial
from aquatint.curator.ledger import Ledger, Reservation
from aquatint.curator.noise import add_noise, coins, simulator
from aquatint.curator.spending import look_before, uninterrupted
from aquatint.errors import BudgetError, LedgerError, PlanError
from aquatint.features.base import FeatureMap
from aquatint.features.marginals import Count
from aquatint.features.moments import SecondMoment
from aquatint.planning import Plan
from aquatint.recipe_parts import settled_bins
from aquatint.release.archive import reserved
from aquatint.schema import Schema

Test = Literal["permutation", "signflip", "tcmc", "tcs"]
TESTS: tuple[str, ...] = get_args(Test)
_ROOM = 1 << 20
_NOT_PRIVATE = "SIMULATED NOISE, NOT PRIVATE: "


def compare_private(
    data_a: Any,
    data_b: Any,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    alpha: float = 0.01,
    test: Test = "permutation",
    features: FeatureMap | Plan | None = None,
    permutations: int | None = None,
    ridge: float = roots.RIDGE,
    null: tcmc.Null = "noise-aware",
    conservative: bool = False,
    ledger: str | Path | None = None,
    dataset: str | Sequence[str] | None = None,
    output: str | Path | None = None,
    simulate: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Say whether two private datasets differ, by a test that is itself private.

    What is promised to a row of either dataset is (ε, δ) for the whole answer. The tests
    ``"permutation"`` and ``"signflip"`` release one decision and spend ε alone, whatever δ is;
    ``"tcmc"`` and ``"tcs"`` also release a statistic and a p-value.

    Parameters
    ----------
    data_a, data_b
        The two datasets, as in `sketch`; they are read twice, so an iterator will not do.
    schema
        What is public about both, and what is protected.
    epsilon, delta
        The promise.
    alpha
        The level: how often at most the test may reject when nothing differs.
    test
        ``"permutation"`` (any sizes, any relation), ``"signflip"`` and ``"tcs"`` (as many rows on
        both sides, "replace one row"), or ``"tcmc"`` (any sizes, any relation).
    features
        A public feature map, or a plan that has one, like that of `me_test`; by default chosen
        from the schema.
    permutations
        How many labellings or swaps the decision is a rank among.
    ridge
        γ of signflip and tcs, as a share of the largest squared distance of two rows' features.
    null
        Of tcmc: ``"noise-aware"``; others are there for comparison with the paper.
    conservative
        Of tcmc: add the noise of the covariance to it.
    ledger, dataset
        Account for the loss in this ledger, under one name for both datasets or a name for each.
    output
        Also write the result there, as JSON; the room is secured before the budget is spent.
    simulate
        A seed for pseudo-random noise and labels, for benchmarks: NOT private, and it says so.
    progress
        Show progress on a terminal when it takes longer than two seconds.

    Returns
    -------
    Comparison
        Public: nothing without noise is in it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> schema = Schema.from_dict({
    ...     "name": "people",
    ...     "privacy": {"protects": "add or remove one row"},
    ...     "columns": {"age": {"kind": "numeric", "bounds": [0, 100]}},
    ... })
    >>> young, old = pa.table({"age": [20.0] * 500}), pa.table({"age": [60.0] * 500})
    >>> compare_private(young, old, schema, epsilon=1, delta=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    names = _names(ledger, dataset)
    _check(alpha, test, schema, simulate=simulate, accounted=ledger is not None)
    chosen = _features(features, schema, test)
    samples = open_samples((data_a, data_b), schema, chosen)
    seeded = coins(simulate)
    trial: Trial
    if test == "tcmc":
        trial = tcmc.MeanAndCovariance(
            (data_a, data_b), schema, chosen, samples.sizes, budget, alpha, null, conservative
        )
    elif test == "tcs":
        trial = tcs.PerturbedStatistic(samples, budget, alpha, seeded, ridge)
    else:
        count = ranks.how_many(alpha, permutations)
        if test == "signflip":
            trial = signflip.SignFlip(samples, budget, alpha, count, seeded, ridge)
        else:
            trial = permutation.Permutation(samples, budget, alpha, count, seeded)
    spent = budget if trial.noise == "discrete gaussian" else Budget(epsilon, 0.0)
    with ExitStack() as holds:
        held = [holds.enter_context(h) for h in _reserve(ledger, names, trial, spent, schema)]
        vectors = trial.exact(progress=progress)
        look_before(max(samples.sizes), spent)
        return _spend(trial, vectors, held, spent, alpha, schema, output, simulate)


def _spend(
    trial: Trial,
    vectors: list[np.ndarray],
    held: list[Reservation],
    spent: Budget,
    alpha: float,
    schema: Schema,
    output: str | Path | None,
    simulate: int | None,
) -> Comparison:
    with ExitStack() as room:
        file = room.enter_context(reserved(output, _ROOM)) if output else None
        with uninterrupted():
            for hold in held:
                hold.spend()
            if simulate is None:
                pairs = zip(vectors, trial.noised, strict=True)
                noisy = [add_noise(exact, part, trial.noise) for exact, part in pairs]
            else:
                add = simulator(simulate)
                pairs = zip(vectors, trial.noised, strict=True)
                noisy = [add(exact, part, trial.noise) for exact, part in pairs]
            found = trial.conclude(noisy)
            result = Comparison(
                reject=found.reject,
                statistic=found.statistic,
                pvalue=found.pvalue,
                alpha=alpha,
                epsilon=spent.epsilon,
                delta=spent.delta,
                neighbours=schema.privacy.protects,
                n=found.sizes,
                method=found.method if simulate is None else _NOT_PRIVATE + found.method,
                null=found.null,
                differences=found.differences,
            )
            if file is not None:
                file.write(to_json(result).encode())
            room.close()
    return result


def to_json(result: Comparison) -> str:
    """Give a result as JSON text, for a file."""
    return json.dumps(result.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _check(
    alpha: float, test: str, schema: Schema, *, simulate: int | None, accounted: bool
) -> None:
    if test not in TESTS:
        msg = f"the test must be one of {', '.join(TESTS)}, got {test!r}"
        raise CompareError(msg)
    if not 0 < alpha < 0.5:
        msg = f"alpha must be above 0 and below 0.5, got {alpha}"
        raise CompareError(msg)
    if schema.privacy.person is not None:
        msg = (
            "a private comparison protects rows, and this schema protects all rows of a person: "
            "sketch both datasets and compare the releases, or give one row for each person"
        )
        raise CompareError(msg)
    if simulate is not None and accounted:
        msg = "simulated noise is not private, so there is nothing to account for: drop one of them"
        raise BudgetError(msg)


def _features(given: FeatureMap | Plan | None, schema: Schema, test: str) -> FeatureMap:
    """Give the features to compare by: those of a plan are its first that are not counts."""
    if given is None:
        return default_map(schema, test)
    if isinstance(given, FeatureMap):
        return given
    if given.schema != settled_bins(schema):
        msg = "the plan was made for another schema: plan again with this one"
        raise PlanError(msg)
    for block in given.blocks:
        if not isinstance(block.map, (Count, SecondMoment)):
            return block.map
    msg = "the plan has no features to compare by: take one of me_test, scf_test or mixed_fourier"
    raise PlanError(msg)


def _names(ledger: str | Path | None, dataset: str | Sequence[str] | None) -> list[str]:
    """Give the accounts to charge: a row is in one dataset, so one that holds both pays once."""
    names = [dataset] if isinstance(dataset, str) else list(dataset or [])
    if (ledger is None) is not (not names) or len(names) > 2:
        msg = "a ledger needs the name of the dataset, or of both, and names need a ledger"
        raise LedgerError(msg)
    return list(dict.fromkeys(names))


def _reserve(
    ledger: str | Path | None, names: list[str], trial: Trial, spent: Budget, schema: Schema
) -> Iterator[Reservation]:
    if ledger is None:
        return
    if spent.pure:
        # What is accounted for is one statistic against a threshold: see `ranks`.
        loss = laplace_loss(replace(part, coordinates=1) for part in trial.noised)
    else:
        loss = gaussian_loss(trial.noised)
    for name in names:
        yield Ledger(ledger).reserve(name, loss, spent, schema.privacy.protects)
