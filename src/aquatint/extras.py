"""Optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aquatint.errors import AquatintError


class MissingExtraError(AquatintError):
    """An optional package is not installed; the text says how to get it."""


def need(module: str, *, extra: str = "evaluate") -> Any:
    """Import an optional module, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        msg = f"{package} is not installed: pip install 'aquatint[{extra}]'"
        raise MissingExtraError(msg) from None
