"""Checkpoints of a fit: everything to go on with, as safetensors; nothing in them can run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from aquatint.analyst.images.training import Progress
from aquatint.errors import ReleaseError
from aquatint.release.archive import reserved
from aquatint.release.archive import to_bytes as release_bytes
from aquatint.release.model import Release

FORMAT = "aquatint-checkpoint"


def fingerprint(release: Release, settings: Mapping[str, object]) -> str:
    """Name a fit by its release and its settings, so that none goes on with another's weights."""
    found = hashlib.sha256(release_bytes(release))
    found.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return found.hexdigest()


def save(path: str | Path, progress: Progress, name: str) -> None:
    """Write where a fit stands, whole or not at all."""
    tensors = {f"averaged.{n}": t for n, t in progress.averaged.state_dict().items()}
    tensors |= {f"generator.{n}": t for n, t in progress.generator.state_dict().items()}
    for number, state in progress.adam.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{key}": torch.as_tensor(t) for key, t in state.items()}
    if progress.best is not None:
        tensors |= {f"best.{n}": t for n, t in progress.best[1].items()}
    if progress.misfits is not None:
        tensors["misfits"] = progress.misfits
    best = None if progress.best is None else (progress.best[0], progress.best[2])
    described = {"format": FORMAT, "fit": name, "step": progress.step, "best": best}
    plain = {n: t.detach().cpu().contiguous().clone() for n, t in tensors.items()}
    content = to_bytes(plain, metadata={FORMAT: json.dumps(described)})
    with reserved(path, len(content)) as file:
        file.write(content)


def resume(path: str | Path, progress: Progress, name: str) -> None:
    """Go on where a checkpoint stands; one of another fit is refused."""
    try:
        with safe_open(str(path), framework="pt") as file:
            described = json.loads((file.metadata() or {})[FORMAT])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if described["fit"] != name:
            msg = (
                f"checkpoint {path} belongs to another release or other settings: "
                "remove it, or give another file"
            )
            raise ReleaseError(msg)
        progress.generator.load_state_dict(_under(tensors, "generator."))
        progress.averaged.load_state_dict(_under(tensors, "averaged."))
        _load_adam(progress, _under(tensors, "adam."))
        device = next(progress.generator.parameters()).device
        best, misfits = _under(tensors, "best."), tensors.get("misfits")
        if described["best"] is not None:
            off, at = described["best"]
            state = {key: tensor.to(device) for key, tensor in best.items()}
            progress.best = (float(off), state, int(at))
        progress.misfits = None if misfits is None else misfits.to(device)
        progress.step = int(described["step"])
    except (OSError, SafetensorError, LookupError, RuntimeError, TypeError, ValueError):
        msg = f"checkpoint {path} is damaged: remove it to start anew"
        raise ReleaseError(msg) from None


def _load_adam(progress: Progress, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, part = key.partition(".")
        state.setdefault(int(number), {})[part] = tensor
    whole = progress.adam.state_dict()
    progress.adam.load_state_dict({**whole, "state": state})


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
