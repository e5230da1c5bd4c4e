"""The command line: one command for each verb, thin over the library.

Progress and warnings go to standard error, results to standard output. Exit codes: 0 done,
1 refused with one sentence, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from aquatint.cli_bench import bench
from aquatint.cli_compare import compare
from aquatint.cli_compare_private import compare_private
from aquatint.cli_evaluate import evaluate
from aquatint.cli_images import pretrain
from aquatint.cli_learn import learn
from aquatint.cli_query import query
from aquatint.cli_report import report
from aquatint.cli_sample import sample
from aquatint.cli_serve import serve
from aquatint.cli_speed import collect_rarely
from aquatint.cli_spending import unspent_if_interrupted
from aquatint.cli_studio import studio
from aquatint.cli_view import view
from aquatint.errors import AquatintError

if TYPE_CHECKING:
    from aquatint.accounting import Budget
    from aquatint.curator.encode import Notes
    from aquatint.curator.ledger import Account

app = typer.Typer(
    help="Etch once, print for ever: differentially private release of data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

SchemaFile = Annotated[Path, typer.Option("--schema", help="the public schema, a TOML file")]
Epsilon = Annotated[float, typer.Option(help="the privacy parameter epsilon; no default")]
Delta = Annotated[float, typer.Option(help="the privacy parameter delta; 0 asks for pure epsilon")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
ReleaseFile = Annotated[Path, typer.Argument(help="a release file, .aqt")]
Recipe = Annotated[
    str | None, typer.Option(help="for images: dp_mepf, dp_merf, dp_hp or pixel_gaussian")
]
Features = Annotated[
    Path | None, typer.Option(help="with it: the public network, a .safetensors file")
]
Option = Annotated[
    list[str] | None, typer.Option(help="with it: a setting of the recipe, key=value")
]


@app.command()
def draft(data: Annotated[Path, typer.Argument(help="a CSV, Parquet or Arrow file")]) -> None:
    """Write a schema skeleton from the header and the types; you fill in what is public."""
    from aquatint.curator.draft import draft as skeleton

    typer.echo(skeleton(data), nl=False)


@app.command()
def plan(
    schema: Annotated[Path, typer.Argument(help="the public schema, a TOML file")],
    rows: Annotated[int, typer.Option(min=1, help="about how many rows; a guess will do")],
    epsilon: Epsilon,
    delta: Annotated[float | None, typer.Option(help="delta; 0 asks for pure epsilon")] = None,
    output: Annotated[Path | None, typer.Option("-o", help="save the plan, to share it")] = None,
    recipe: Recipe = None,
    features: Features = None,
    option: Option = None,
    as_json: Json = False,
) -> None:
    """Show blocks, noise and the error to expect, before any row is read."""
    from aquatint.cli_images import chosen_plan
    from aquatint.previewing import preview
    from aquatint.schema import Schema
    from aquatint.show import preview_data, preview_text
    from aquatint.table_plan import plan as make

    declared = Schema.from_toml(schema)
    made = chosen_plan(declared, None, recipe, features, option or []) or make(declared)
    assumed = 10.0 ** -(len(str(rows)) + 1) if delta is None else delta
    seen = preview(made, rows=rows, epsilon=epsilon, delta=assumed)
    if output is not None:
        made.save(output)
    if as_json:
        _print_json(preview_data(seen))
        return
    preview_text(seen)
    if delta is None:
        typer.echo(f"delta was not given: {assumed:g} is assumed here; the sketch will ask for it.")


@app.command()
def sketch(
    data: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet, Arrow or Feather files: a path, a folder, 'part-*.parquet' or an "
            "address; a database with --sql; images: a folder, .npz or idx"
        ),
    ],
    schema: SchemaFile,
    epsilon: Epsilon,
    delta: Delta,
    output: Annotated[Path, typer.Option("-o", "--output", help="the release file to write")],
    plan: Annotated[Path | None, typer.Option(help="a plan file; default: from the schema")] = None,
    recipe: Recipe = None,
    features: Features = None,
    option: Option = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; default: a GPU if any")] = None,
    ledger: Annotated[Path | None, typer.Option(help="account for it in this ledger")] = None,
    dataset: Annotated[str | None, typer.Option(help="the dataset's name in the ledger")] = None,
    simulate: Annotated[
        int | None, typer.Option(help="seed of simulated noise, for benchmarks: NOT private")
    ] = None,
    sql: Annotated[str | None, typer.Option(help="sketch the rows of this select")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="threads; default: all cores")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="keep here, encrypted, how far it came, to go on from there")
    ] = None,
    checkpoint_key: Annotated[
        Path | None,
        typer.Option(help="the file with its key; default: AQUATINT_CHECKPOINT_KEY"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Spend a privacy budget once: read the rows, add noise, write the release."""
    from aquatint.cli_images import chosen_plan
    from aquatint.curator.checkpoint import checkpoint_at
    from aquatint.curator.sketch import sketch as make
    from aquatint.schema import Schema
    from aquatint.show import release_text

    with unspent_if_interrupted():
        declared = Schema.from_toml(schema)
        release = make(
            data,
            declared,
            epsilon=epsilon,
            delta=delta,
            plan=chosen_plan(declared, plan, recipe, features, option or []),
            ledger=ledger,
            dataset=dataset,
            output=output,
            simulate=simulate,
            notes=None if quiet else _print_notes,
            progress=not quiet,
            device=device,
            sql=sql,
            workers=workers,
            checkpoint=checkpoint and checkpoint_at(checkpoint, checkpoint_key),
        )
    if not quiet:
        release_text(release)
        typer.echo(f"written: {output}. It is public now: aquatint show {output}")


@app.command()
def show(
    release: ReleaseFile,
    as_json: Json = False,
    registry: Annotated[
        bool, typer.Option("--registry", help="fields of the OpenDP/NIST deployment registry")
    ] = False,
) -> None:
    """Say what a release is, what it promises, and what was taken as public."""
    from aquatint.release import load
    from aquatint.show import release_data, release_text

    opened = load(release)
    if registry:
        from aquatint.release.card import registry_entry

        _print_json(registry_entry(opened))
    elif as_json:
        _print_json(release_data(opened))
    else:
        release_text(opened)


@app.command()
def verify(release: ReleaseFile, as_json: Json = False) -> None:
    """Check a release: checksums, shapes, and the loss recomputed from the noise scales."""
    from aquatint.release import load
    from aquatint.show import verified_data, verified_text

    opened = load(release)
    if as_json:
        _print_json(verified_data(opened))
    else:
        verified_text(opened)


app.command()(sample)
app.command()(pretrain)
app.command()(view)
app.command()(query)
app.command()(learn)
app.command()(compare)
app.command("compare-private")(compare_private)
app.command()(report)
app.command()(evaluate)
app.command()(bench)
app.command()(serve)
app.command()(studio)


@app.command()
def ledger(
    path: Annotated[Path, typer.Argument(help="the ledger file")],
    open_: Annotated[
        str | None, typer.Option("--open", metavar="DATASET", help="declare a dataset's ceiling")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="with --open: the ceiling's epsilon")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="with --open: the ceiling's delta")] = None,
    protects: Annotated[
        str | None, typer.Option(help="with --open: what is protected, as in the schema")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what each dataset has spent and has left; --open declares a ceiling."""
    from dataclasses import asdict

    from aquatint.curator.ledger import Ledger

    book = Ledger(path)
    if open_ is not None:
        book.open_account(open_, *_ceiling(epsilon, delta, protects))
    accounts = book.accounts()
    if as_json:
        _print_json([asdict(account) for account in accounts])
    else:
        _print_accounts(accounts)


def _ceiling(
    epsilon: float | None, delta: float | None, protects: str | None
) -> tuple[Budget, str]:
    from aquatint.accounting import Budget
    from aquatint.errors import LedgerError
    from aquatint.schema import PROTECTS

    if epsilon is None or delta is None or protects not in PROTECTS:
        choices = ", ".join(f'"{choice}"' for choice in PROTECTS)
        msg = f"--open needs --epsilon, --delta and --protects, one of {choices}"
        raise LedgerError(msg)
    return Budget(epsilon, delta), protects


def _print_accounts(accounts: list[Account]) -> None:
    from rich.text import Text

    from aquatint.show import plain_table, terminal

    columns = ("dataset", "protects", "ceiling", "delta", "spent", "reserved", "left", "releases")
    table = plain_table("ledger", *columns)
    for a in accounts:
        numbers = (a.epsilon, a.delta, a.spent, a.reserved, a.left)
        table.add_row(Text(a.dataset), a.protects, *(f"{n:.4g}" for n in numbers), str(a.releases))
    terminal().print(table)


def _print_notes(notes: Notes) -> None:
    from aquatint.curator.spending import in_words

    for line in in_words(notes):
        typer.echo(f"aquatint: for your eyes only: {line}", err=True)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def main() -> NoReturn:
    """Run the command line; every refusal is one sentence on standard error."""
    warnings.showwarning = _warn
    collect_rarely()
    try:
        app(standalone_mode=True)
    except AquatintError as error:
        typer.echo(f"aquatint: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(f"aquatint: cannot print: {error.strerror or error}", err=True)
        sys.exit(1)
    sys.exit(0)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"aquatint: warning: {message}", err=True)
