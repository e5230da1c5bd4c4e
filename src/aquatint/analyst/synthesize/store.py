"""Fitted models as files: safetensors with JSON beside the tensors, nothing that can run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from aquatint.errors import AquatintError, ReleaseError
from aquatint.schema import Schema

FORMAT = "aquatint-model"


def save(
    path: str | Path,
    method: str,
    schema: Schema,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> None:
    """Write a fitted model."""
    described = {
        "format": FORMAT,
        "format_version": 1,
        "method": method,
        "schema": schema.to_dict(),
        "settings": dict(settings),
    }
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(plain, str(path), metadata={FORMAT: json.dumps(described)})
    except (OSError, SafetensorError) as error:
        msg = f"cannot write the model {path}: {error}"
        raise ReleaseError(msg) from None


def load(path: str | Path) -> tuple[str, Schema, dict[str, Tensor], dict[str, Any]]:
    """Read what `save` wrote: the method, the schema, the tensors and the settings."""
    try:
        with safe_open(str(path), framework="pt") as file:
            described = json.loads((file.metadata() or {})[FORMAT])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if described["format_version"] != 1:
            msg = f"{path} was written by a newer Aquatint: upgrade to read it"
            raise ReleaseError(msg)
        return (
            str(described["method"]),
            Schema.from_dict(described["schema"]),
            tensors,
            dict(described["settings"]),
        )
    except AquatintError:
        raise
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, RecursionError) as error:
        msg = f"{path} is not a model that Aquatint saved: {error}"
        raise ReleaseError(msg) from None


def is_model(path: str | Path) -> bool:
    """Whether a file looks like a saved model rather than a release, which is a ZIP archive."""
    try:
        with Path(path).open("rb") as file:
            return file.read(9)[8:9] == b"{"  # safetensors: eight bytes of length, then JSON
    except OSError:
        return False
