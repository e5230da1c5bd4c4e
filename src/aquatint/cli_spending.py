"""What commands that spend a budget say when they are interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def unspent_if_interrupted() -> Iterator[None]:
    """Say on Ctrl-C that nothing was spent: once something is, the library holds Ctrl-C back."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("aquatint: interrupted; nothing was spent and no file was written", err=True)
        raise typer.Exit(130) from None
