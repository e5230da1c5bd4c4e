"""The front door of comparisons: a curator who holds both datasets spends budget on one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from aquatint.accounting import Budget, gaussian_loss, laplace_loss
from aquatint.comparison import CompareError, Comparison
from aquatint.curator.compare import permutation, ranks, roots, signflip, tcmc, tcs
from aquatint.curator.compare.defaults import default_map
from aquatint.curator.compare.samples import Samples, open_samples
from aquatint.curator.compare.trial import Trial
from aquatint.curator.ledger import Ledger, Reservation
from aquatint.curator.noise import add_noise, coins, simulator
from aquatint.curator.spending import look_before, uninterrupted
from aquatint.errors import BudgetError, LedgerError
from aquatint.features.base import FeatureMap
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
    features: FeatureMap | None = None,
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
        A public feature map; by default chosen from the schema.
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
    chosen = features if features is not None else default_map(schema, test)
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
