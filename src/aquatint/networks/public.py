"""A public network: a module in evaluation mode and the hash that names it in a release."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from aquatint.errors import PlanError

Size = tuple[int, int]


@dataclass(frozen=True)
class PublicNetwork:
    """A network that is no secret, so that whatever is computed with it costs no privacy.

    Whoever makes one declares that it was trained on public data alone. Nothing can check that.

    Attributes
    ----------
    architecture
        What is built in: ``"resnet18"``, ``"vgg16"``, ``"vgg19"`` or ``"projection"``; otherwise
        ``"custom"``.
    sha256
        The hash of the names, types, shapes and bytes of everything in its state; for a custom
        network also of the names of its classes, since weights alone do not say what is done.
    input_size
        Height and width of the images it takes, floats in [0, 1].
    channels
        How many channels it takes.
    module
        The network itself; None where it is only named.
    note
        What it was trained on, in words.
    """

    architecture: str
    sha256: str
    input_size: Size
    channels: int
    module: nn.Module | None = field(default=None, compare=False, repr=False)
    note: str = field(default="", compare=False)

    @classmethod
    def of(
        cls,
        module: Any,
        *,
        input_size: int | Size,
        channels: int = 3,
        architecture: str = "custom",
        note: str = "",
    ) -> PublicNetwork:
        """Take a module as public: a copy, in evaluation mode, with nothing left to train.

        >>> PublicNetwork.of(nn.Conv2d(3, 4, 3), input_size=8).architecture
        'custom'
        """
        if not isinstance(module, nn.Module):
            msg = f"a public network is a torch.nn.Module, got {type(module).__name__}"
            raise PlanError(msg)
        kept = copy.deepcopy(module).eval().requires_grad_(False)
        for part in kept.modules():
            if getattr(part, "inplace", False):
                setattr(part, "inplace", False)  # noqa: B010  # otherwise a layer would overwrite the one before it
        size, code = size_of(input_size), kept if architecture == "custom" else None
        return cls(architecture, digest(kept.state_dict(), code), size, channels, kept, note)

    @property
    def label(self) -> str:
        """The network by name and the first digits of its hash."""
        return f"{self.architecture} with SHA-256 {self.sha256[:16]}…"

    def spec(self) -> dict[str, Any]:
        """Name the network as plain JSON data."""
        return {
            "architecture": self.architecture,
            "sha256": self.sha256,
            "made_for": list(self.input_size),
            "channels": self.channels,
        }

    def require(self) -> nn.Module:
        """Give the module, or say which file has it."""
        if self.module is None:
            msg = (
                f"the release names a public network, {self.label}: attach it first, or give its "
                ".safetensors file with network= or --features"
            )
            raise PlanError(msg)
        return self.module

    def attach(self, other: PublicNetwork) -> PublicNetwork:
        """Take the module of another network, if it is the one that is named here."""
        if (other.architecture, other.sha256) != (self.architecture, self.sha256):
            msg = (
                f"this is {other.label}, but the release was made with {self.label}: give that file"
            )
            raise PlanError(msg)
        return replace(self, module=other.require(), note=other.note)

    def to(self, device: str | torch.device) -> PublicNetwork:
        """Give the network on a device: itself if it is there already, otherwise a copy."""
        if self.device == torch.device(device):
            return self
        return replace(self, module=copy.deepcopy(self.require()).to(device))

    @property
    def device(self) -> torch.device:
        """Where the module lives."""
        held = self.require().state_dict().values()
        return next((t.device for t in held if isinstance(t, Tensor)), torch.device("cpu"))


def size_of(size: Any) -> Size:
    """Read a size, one side or height and width."""
    pair = (size, size) if isinstance(size, int) else tuple(size)
    whole = all(isinstance(side, int) and not isinstance(side, bool) for side in pair)
    if len(pair) != 2 or not whole or not all(1 <= side <= 4096 for side in pair):
        msg = f"the input size is one side or [height, width] in pixels, got {size!r}"
        raise PlanError(msg)
    return pair[0], pair[1]


def digest(state: Mapping[str, Any], code: nn.Module | None = None) -> str:
    """Hash the names, types, shapes and bytes of a state, sorted by name, and classes by name."""
    found = hashlib.sha256()
    for name, part in () if code is None else code.named_modules():
        found.update(f"{name}\0{type(part).__module__}.{type(part).__qualname__}\0".encode())
    for name in sorted(state):
        tensor = state[name]
        if not isinstance(tensor, Tensor):
            msg = f"the network's state has {name!r}, which is not a tensor and cannot be named"
            raise PlanError(msg)
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{name}\0{plain.dtype}\0{list(plain.shape)}\0".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
