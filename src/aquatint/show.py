"""Releases, previews and accounts as text for a terminal and as plain data."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aquatint.previewing import Preview
from aquatint.release.card import NOT_PRIVATE, promise, technical
from aquatint.release.manifest import assumed_public
from aquatint.release.model import Release


def terminal() -> Console:
    """Give a console that neither wraps nor guesses at colours."""
    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 160)


def plain_table(title: str, *columns: str) -> Table:
    """Start a table without lines, the first column to the left and the rest to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def release_data(release: Release) -> dict[str, Any]:
    """Describe a release as plain data."""
    return {
        "name": release.schema.name,
        "private": release.private,
        "promise": promise(release),
        "privacy": {
            "epsilon": release.statement.epsilon,
            "delta": release.statement.delta,
            "rho": release.loss.zcdp_rho if release.statement.delta else None,
            "zcdp_epsilon": release.zcdp_epsilon,
            "noise": release.statement.noise,
            "protects": release.schema.privacy.protects,
            "unit": release.schema.privacy.unit,
        },
        "count": release.count,
        "count_is_public": release.rows is not None,
        "created": release.created,
        "versions": release.versions,
        "columns": {n: c.kind for n, c in release.schema.columns.items()},
        "blocks": [
            {
                "name": b.name,
                "kind": b.map.kind,
                "numbers": b.map.dim,
                "noise_sd": float(b.stderr[0]),
            }
            for b in release.blocks
        ],
        "public": assumed_public(release),
    }


def release_text(release: Release) -> None:
    """Print what a release is and promises."""
    console = terminal()
    console.print(Text(release.schema.name, style="bold"))
    console.print(Text(promise(release), style="" if release.private else "bold red"))
    console.print()
    for name, value in technical(release):
        console.print(Text(f"  {name + ':':24} {value}"))
    console.print()
    table = plain_table("blocks", "name", "features", "numbers", "noise sd")
    for block in release.blocks:
        table.add_row(
            Text(block.name), block.map.kind, f"{block.map.dim:,}", f"{block.stderr[0]:.4g}"
        )
    console.print(table)
    console.print()
    console.print(Text("taken as public, and not protected", style="bold"))
    for item in assumed_public(release):
        console.print(Text(f"  {item}"))


def verified_data(release: Release) -> dict[str, Any]:
    """Give what was recomputed on opening."""
    return {
        "valid": True,
        "private": release.private,
        "epsilon_promised": release.statement.epsilon,
        "epsilon_recomputed": release.loss.epsilon(release.statement.delta),
        "delta": release.statement.delta,
        "rho_recomputed": release.loss.zcdp_rho if release.statement.delta else None,
        "numbers": sum(block.map.dim for block in release.blocks),
    }


def verified_text(release: Release) -> None:
    """Print what was checked; opening the release has checked it."""
    console = terminal()
    data = verified_data(release)
    if not release.private:
        console.print(Text(NOT_PRIVATE, style="bold red"))
    console.print("checksums        match")
    console.print(
        f"shapes           {data['numbers']:,} numbers in {len(release.blocks)} blocks, all fit"
    )
    if data["rho_recomputed"] is not None:
        console.print(
            f"rho              {data['rho_recomputed']:.6g}, recomputed from the noise scales"
        )
    console.print(
        f"epsilon          {data['epsilon_recomputed']:.6g} at delta {data['delta']:g}, "
        f"recomputed; {data['epsilon_promised']:g} was promised"
    )
    console.print("valid")


def preview_data(seen: Preview) -> dict[str, Any]:
    """Give a preview as plain data."""
    return asdict(seen)


def preview_text(seen: Preview) -> None:
    """Print a preview."""
    console = terminal()
    table = plain_table("blocks", "name", "features", "numbers", "share", "noise sd")
    for b in seen.blocks:
        numbers = f"at most {b.numbers:,}" if b.at_most else f"{b.numbers:,}"
        table.add_row(Text(b.name), b.kind, numbers, f"{b.share:.1%}", f"{b.noise:.4g}")
    console.print(table)
    console.print()
    table = plain_table(
        f"what to expect with {seen.rows:,} rows, epsilon {seen.budget.epsilon:g}, "
        f"delta {seen.budget.delta:g}",
        "question",
        "95 % of answers within ±",
        "",
    )
    for e in seen.expected:
        table.add_row(Text(e.question), f"{e.error:.3g}", e.unit)
    console.print(table)
    console.print()
