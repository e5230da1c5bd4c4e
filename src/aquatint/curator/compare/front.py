"""The front door of comparisons: a curator who holds both datasets spends budget on one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from aquatint.accounting import Budget
from aquatint.comparison import CompareError, Comparison
from aquatint.curator.compare import permutation, ranks, roots, signflip, tcmc, tcs
from aquatint.curator.compare.accounts import account_names, loss_of, reserve
from aquatint.curator.compare.choice import Choice, all_columns
from aquatint.curator.compare.defaults import default_candidates, default_map
from aquatint.curator.compare.samples import Samples, open_samples
from aquatint.curator.compare.splitting import split
from aquatint.curator.compare.trial import Trial, need_public_sizes
from aquatint.curator.ledger import Reservation
from aquatint.curator.noise import add_noise, choose, chooser, coins, simulator
from aquatint.curator.spending import look_before, uninterrupted
from aquatint.errors import BudgetError, PlanError
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
    delta: float = 0.0,
    alpha: float = 0.01,
    test: Test = "permutation",
    features: FeatureMap | Plan | None = None,
    choose_from: Sequence[FeatureMap | Plan] | str | None = None,
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
        The promise; permutation and signflip spend no δ, and the others need one.
    alpha
        The level: how often at most the test may reject when nothing differs.
    test
        ``"permutation"`` (any sizes, any relation), ``"signflip"`` and ``"tcs"`` (as many rows on
        both sides, "replace one row"), or ``"tcmc"`` (any sizes, any relation).
    features
        A public feature map, or a plan that has one, like that of `me_test`; by default chosen
        from the schema.
    choose_from
        Public feature maps or plans, or ``"length scales"`` for some that follow from the schema:
        one of them is chosen privately on a third of the rows, and the others are tested by it. It
        costs no more than ε in all. For permutation and signflip.
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
    >>> compare_private(young, old, schema, epsilon=1).reject
    True
    """
    names = account_names(ledger, dataset)
    _check(alpha, test, schema, simulate=simulate, accounted=ledger is not None)
    budget = Budget(epsilon, delta)
    data, seeded = (data_a, data_b), coins(simulate)

    def trial_of(samples: Samples) -> Trial:
        if test == "tcmc":
            looked_at = samples.coarse.map
            return tcmc.MeanAndCovariance(
                data, schema, looked_at, samples.sizes, budget, alpha, null, conservative
            )
        if test == "tcs":
            return tcs.PerturbedStatistic(samples, budget, alpha, seeded, ridge)
        count = ranks.how_many(alpha, permutations)
        if test == "signflip":
            return signflip.SignFlip(samples, budget, alpha, count, seeded, ridge)
        return permutation.Permutation(samples, budget, alpha, count, seeded)

    choice = None
    if choose_from is None:
        samples = open_samples(data, schema, features_of(features, schema, test))
        trials = [trial_of(samples)]
    else:
        candidates = _candidates(choose_from, features, schema, test)
        samples = open_samples(data, schema, all_columns(candidates))
        if test == "signflip":
            need_public_sizes(schema, test, samples.sizes)  # in words of all rows, not of a part
        to_choose, to_test = split(samples, seeded)
        trials = [trial_of(to_test.seen_by(each)) for each in candidates]
        choice = Choice(to_choose, candidates, epsilon, seeded)
    spent = budget if trials[0].noise == "discrete gaussian" else Budget(epsilon, 0.0)
    loss = loss_of(trials, choice, spent)
    with ExitStack() as holds:
        held = [holds.enter_context(h) for h in reserve(ledger, names, loss, spent, schema)]
        exact = (choice or trials[0]).exact(progress=progress)
        look_before(max(samples.sizes), spent)
        return _spend(
            trials, choice, exact, held, spent, alpha, schema, output, simulate, progress=progress
        )


def _spend(
    trials: Sequence[Trial],
    choice: Choice | None,
    exact: list[np.ndarray],
    held: list[Reservation],
    spent: Budget,
    alpha: float,
    schema: Schema,
    output: str | Path | None,
    simulate: int | None,
    *,
    progress: bool,
) -> Comparison:
    with ExitStack() as room:
        file = room.enter_context(reserved(output, _ROOM)) if output else None
        with uninterrupted():
            for hold in held:
                hold.spend()
            trial, told = trials[0], ""
            if choice is not None:
                pick = choose if simulate is None else chooser(simulate)
                place = int(pick(exact[0], choice.noised, 1, trial.noise)[0])
                trial, told = trials[place], "; " + choice.told(place)
                exact = trial.exact(progress=progress)
            add = add_noise if simulate is None else simulator(simulate)
            pairs = zip(exact, trial.noised, strict=True)
            found = trial.conclude([add(numbers, part, trial.noise) for numbers, part in pairs])
            sizes = choice.everyone if choice is not None and found.sizes else found.sizes
            method = found.method + told
            result = Comparison(
                reject=found.reject,
                statistic=found.statistic,
                pvalue=found.pvalue,
                alpha=alpha,
                epsilon=spent.epsilon,
                delta=spent.delta,
                neighbours=schema.privacy.protects,
                n=sizes,
                method=method if simulate is None else _NOT_PRIVATE + method,
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
    schema.require_table("a private comparison")
    if schema.privacy.person is not None:
        msg = (
            "a private comparison protects rows, and this schema protects all rows of a person: "
            "sketch both datasets and compare the releases, or give one row for each person"
        )
        raise CompareError(msg)
    if simulate is not None and accounted:
        msg = "simulated noise is not private, so there is nothing to account for: drop one of them"
        raise BudgetError(msg)


def features_of(given: FeatureMap | Plan | None, schema: Schema, test: str) -> FeatureMap:
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


def _candidates(
    given: Sequence[FeatureMap | Plan] | str,
    features: FeatureMap | Plan | None,
    schema: Schema,
    test: str,
) -> tuple[FeatureMap, ...]:
    if features is not None:
        msg = "features are given and others to choose from: give the one or the other"
        raise CompareError(msg)
    if test not in {"permutation", "signflip"}:
        msg = (
            f"a private choice spends epsilon alone and {test} spends delta too, which the ledger "
            "cannot charge as one: use permutation or signflip, or give features"
        )
        raise CompareError(msg)
    if isinstance(given, str):
        if given != "length scales":
            msg = f"choose_from is 'length scales' or feature maps and plans, got {given!r}"
            raise CompareError(msg)
        return default_candidates(schema, test)
    return tuple(features_of(each, schema, test) for each in given)
