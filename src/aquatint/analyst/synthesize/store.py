"""Fitted models as files: safetensors with JSON beside the tensors, nothing that can run.

The reader trusts nothing. `load` checks what a file says of itself; each kind of model then checks
its own tensors before it is built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from aquatint.errors import AquatintError, ReleaseError
from aquatint.release.archive import reserved
from aquatint.schema import Schema

FORMAT = "aquatint-model"


def save(
    path: str | Path,
    method: str,
    schema: Schema,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> None:
    """Write a fitted model as a release is written: whole or not at all, for all to read."""
    described = {
        "format": FORMAT,
        "format_version": 1,
        "method": method,
        "schema": schema.to_dict(),
        "settings": dict(settings),
    }
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = to_bytes(plain, metadata={FORMAT: json.dumps(described)})
    try:
        with reserved(path, len(content)) as file:
            file.write(content)
    except ReleaseError as error:
        msg = str(error).replace("cannot write", "cannot write the model", 1)
        raise ReleaseError(msg) from None


def load(path: str | Path) -> tuple[str, Schema, dict[str, Tensor], dict[str, Any]]:
    """Read what `save` wrote: the method, the schema, the tensors and the settings."""
    try:
        with safe_open(str(path), framework="pt") as file:
            described = json.loads((file.metadata() or {})[FORMAT])
            method, schema, settings = _described(described)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except KeyError as error:
        refuse(path, f"it does not say its {error}")
    except (
        AquatintError,
        OSError,
        SafetensorError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        refuse(path, str(error))
    return method, schema, tensors, settings


def _described(described: Any) -> tuple[str, Schema, dict[str, Any]]:
    """Check what a file says of itself."""
    if not isinstance(described, dict) or described["format"] != FORMAT:
        msg = "its description is not that of a model"
        raise ReleaseError(msg)
    version = described["format_version"]
    if version != 1:
        newer = ": install a newer Aquatint" if isinstance(version, int) and version > 1 else ""
        msg = f"it has format version {str(version)[:20]}, this Aquatint knows 1{newer}"
        raise ReleaseError(msg)
    method, settings = described["method"], described["settings"]
    if not isinstance(method, str) or not isinstance(settings, dict):
        msg = "its method or its settings are missing"
        raise ReleaseError(msg)
    schema = Schema.from_dict(described["schema"])
    schema.cells()  # refuses bins that are not settled
    return method, schema, settings


def refuse(path: str | Path, why: str) -> NoReturn:
    """Refuse a file in one printable sentence."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in why[:300])
    msg = f"{path} is not a model that Aquatint saved: {clean}"
    raise ReleaseError(msg)


def are_shares(values: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether a tensor has a shape, and real numbers from zero on."""
    floating = values.dtype in {torch.float32, torch.float64}
    return floating and values.shape == shape and bool((values >= 0).all())


def add_up(sums: Tensor) -> bool:
    """Whether sums of shares are one, but for rounding."""
    return bool((sums - 1).abs().max() < 1e-3)


def is_model(path: str | Path) -> bool:
    """Whether a file looks like a saved model rather than a release, which is a ZIP archive."""
    try:
        with Path(path).open("rb") as file:
            return file.read(9)[8:9] == b"{"  # safetensors: eight bytes of length, then JSON
    except OSError:
        return False
