"""The private side: the only code that ever touches rows.

The names below are for sums made by hand, in parts: see `aquatint.curator.sites`. Most curators
need `aquatint.sketch` alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aquatint.curator.sites import accumulate as accumulate
    from aquatint.curator.sites import finish as finish
    from aquatint.curator.sites import merge as merge
    from aquatint.curator.sites import pack as pack

__all__ = ["accumulate", "finish", "merge", "pack"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("aquatint.curator.sites"), name)
    msg = f"module 'aquatint.curator' has no attribute {name!r}"
    raise AttributeError(msg)
