"""``aquatint compare-private``: a curator who holds both datasets asks whether they differ."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from aquatint.cli_compare import print_comparison
from aquatint.cli_spending import unspent_if_interrupted


class Test(StrEnum):
    """The tests, by name."""

    permutation = "permutation"
    signflip = "signflip"
    tcmc = "tcmc"
    tcs = "tcs"


def compare_private(
    data_a: Annotated[Path, typer.Argument(help="a CSV, Parquet, Arrow or Feather file")],
    data_b: Annotated[Path, typer.Argument(help="another, with the same columns")],
    schema: Annotated[Path, typer.Option("--schema", help="the public schema of both, TOML")],
    epsilon: Annotated[float, typer.Option(help="the privacy parameter epsilon; no default")],
    delta: Annotated[
        float,
        typer.Option(help="the privacy parameter delta; tcmc and tcs need it, others spend none"),
    ] = 0.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="also write the result, as JSON")
    ] = None,
    test: Annotated[Test, typer.Option(help="which test")] = Test.permutation,
    alpha: Annotated[float, typer.Option(help="the level of the test")] = 0.01,
    plan: Annotated[
        list[Path] | None,
        typer.Option(help="a plan file with features to compare by; several with --choose"),
    ] = None,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose", help="choose privately between the plans, or between length scales"
        ),
    ] = False,
    permutations: Annotated[
        int | None, typer.Option(min=1, help="how many labellings or swaps to rank among")
    ] = None,
    conservative: Annotated[
        bool, typer.Option("--conservative", help="tcmc: allow for the noise of the covariance")
    ] = False,
    ledger: Annotated[Path | None, typer.Option(help="account for it in this ledger")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="the name in the ledger; give it twice if each file has its own"),
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(help="seed of simulated noise, for benchmarks: NOT private")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Spend a privacy budget once to say whether two private datasets differ."""
    from aquatint.comparison import CompareError
    from aquatint.curator.compare.front import compare_private as ask
    from aquatint.planning import Plan
    from aquatint.schema import Schema

    plans = [Plan.load(each) for each in plan or []]
    if len(plans) > 1 and not choose:
        msg = "several plans: give one of them, or --choose to choose between them privately"
        raise CompareError(msg)
    with unspent_if_interrupted():
        found = ask(
            data_a,
            data_b,
            Schema.from_toml(schema),
            epsilon=epsilon,
            delta=delta,
            alpha=alpha,
            test=test.value,
            features=plans[0] if plans and not choose else None,
            choose_from=(plans or "length scales") if choose else None,
            permutations=permutations,
            conservative=conservative,
            ledger=ledger,
            dataset=dataset,
            output=output,
            simulate=simulate,
            progress=not quiet,
        )
    if as_json or not quiet:
        print_comparison(found, [data_a.stem, data_b.stem], as_json=as_json)
    if output is not None and not (as_json or quiet):
        typer.echo(f"written: {output}. It is public now.")
