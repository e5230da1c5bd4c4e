"""Public networks as files: safetensors, no pickle and no code, with the architecture by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from aquatint.errors import PlanError
from aquatint.networks.projection import Projection
from aquatint.networks.public import PublicNetwork, size_of
from aquatint.networks.reduced import Reduced
from aquatint.networks.residual import resnet18
from aquatint.networks.vgg import vgg16, vgg19

FORMAT = "aquatint-network"
State = Mapping[str, Tensor]


def _resnet18(state: State) -> nn.Module:
    width, channels = state["stem.weight"].shape[:2]
    return resnet18(classes=state["head.weight"].shape[0], width=width, channels=channels)


def _vgg16(state: State) -> nn.Module:
    width, channels = state["features.0.weight"].shape[:2]
    return vgg16(width=width, channels=channels)


def _vgg19(state: State) -> nn.Module:
    width, channels = state["features.0.weight"].shape[:2]
    return vgg19(width=width, channels=channels)


def _projection(state: State) -> nn.Module:
    components, pixels = state["directions"].shape
    return Projection(pixels, components)


def _reduced(state: State) -> nn.Module:
    settings = json.loads(bytes(state["settings"].tolist()))
    inside = {n.removeprefix("base."): t for n, t in state.items() if n.startswith("base.")}
    base = ARCHITECTURES[settings["base"]](inside)
    components, features = state["directions"].shape
    return Reduced(base, settings, (components, features))


ARCHITECTURES: dict[str, Callable[[State], nn.Module]] = {
    "resnet18": _resnet18,
    "vgg16": _vgg16,
    "vgg19": _vgg19,
    "projection": _projection,
    "reduced": _reduced,
}


def save(network: PublicNetwork, path: str | Path) -> None:
    """Write a built-in network as a safetensors file whose metadata says what it is."""
    if network.architecture not in ARCHITECTURES:
        msg = (
            f"only built-in networks have a file of their own ({', '.join(ARCHITECTURES)}): keep "
            "your module's own file, and give the module to whoever opens the release"
        )
        raise PlanError(msg)
    state = {n: t.detach().cpu().contiguous() for n, t in network.require().state_dict().items()}
    metadata = {
        "format": FORMAT,
        "architecture": network.architecture,
        "input_size": json.dumps(network.input_size),
        "channels": str(network.channels),
        "note": network.note,
    }
    try:
        save_file(state, str(path), metadata)
        Path(path).chmod(0o644)
    except (OSError, safetensors.SafetensorError) as error:
        msg = f"cannot write the network {path}: {error}"
        raise PlanError(msg) from None


def load(path: str | Path) -> PublicNetwork:
    """Read a network that `save` wrote; by using it you declare that it is public."""
    name = Path(path).name
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        msg = f"there is no network file {path}: aquatint pretrain makes one from public images"
        raise PlanError(msg) from None
    except (OSError, safetensors.SafetensorError):
        msg = f"cannot read {name}: it is damaged or not a safetensors file"
        raise PlanError(msg) from None
    build = ARCHITECTURES.get(metadata.get("architecture", ""))
    if metadata.get("format") != FORMAT or build is None:
        msg = f"{name} does not name a network that is built in: {', '.join(ARCHITECTURES)}"
        raise PlanError(msg)
    try:
        module = build(state)
        module.load_state_dict(dict(state), strict=True)
        size, channels = size_of(json.loads(metadata["input_size"])), int(metadata["channels"])
    except (LookupError, RuntimeError, TypeError, ValueError):
        msg = f"{name} is damaged: its weights are not those of {metadata['architecture']}"
        raise PlanError(msg) from None
    return PublicNetwork.of(
        module,
        input_size=size,
        channels=channels,
        architecture=metadata["architecture"],
        note=metadata.get("note", ""),
    )
