"""Perceptual features: what the layers of a public network see in an image (DP-MEPF §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from aquatint.errors import DataError, PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.networks.public import PublicNetwork, Size, size_of

Balance = Literal["rows", "layers"]
BALANCES: tuple[str, ...] = get_args(Balance)


@dataclass(frozen=True, init=False)
class Perceptual(FeatureMap):
    """Moments of a public network's activations f(x), each normalised to the same length.

    The first moment is f/‖f‖₂ and the second f²/‖f²‖₂, squares taken coordinate by coordinate;
    M of them side by side are divided by √M. A row of which f is zero has zeros. So ‖φ‖₂ ≤ 1 for
    every image and every network, whatever its weights; ‖φ‖₁ ≤ √dim by Cauchy–Schwarz. Balanced by
    layers, each of L layers is normalised by itself and divided by √L, and the squares of the
    lengths add up to at most 1 again.

    If no activation is negative, which holds behind a ReLU and is enforced otherwise, nor is any
    coordinate of φ: then ⟨φ(x), φ(x')⟩ ≥ 0 and two images are at most √2 apart instead of 2.

    Parameters
    ----------
    network
        A public network, or any ``torch.nn.Module`` that you declare public.
    column
        The image column. Grey images are repeated for a network that takes three channels.
    layers
        The names of submodules whose outputs are taken (``""`` is the network's own output); by
        default every ReLU.
    moments
        (1,), (2,) or (1, 2).
    input_size
        Images are resized to it, bilinearly; by default what the network was made for.
    pool
        Average every layer over a grid of pool × pool cells first.
    nonnegative
        Set negative activations to zero; by default where all layers are ReLUs.
    balance
        ``"rows"`` normalises all layers together as the paper does, ``"layers"`` each by itself.
    sizes
        How many features each output has; found by trying unless the network is only named.
    """

    network: PublicNetwork
    column: str
    layers: tuple[str, ...]
    moments: tuple[int, ...]
    input_size: Size
    pool: int | None
    nonnegative: bool
    balance: Balance
    sizes: tuple[int, ...]
    kind: ClassVar[str] = "perceptual"

    def __init__(
        self,
        network: PublicNetwork | nn.Module,
        *,
        column: str = "image",
        layers: Sequence[str] | None = None,
        moments: Sequence[int] = (1,),
        input_size: int | Size | None = None,
        pool: int | None = None,
        nonnegative: bool | None = None,
        balance: Balance = "rows",
        sizes: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(network, PublicNetwork):
            if input_size is None:
                msg = "say how large the network's images are: input_size=32, or (height, width)"
                raise PlanError(msg)
            network = PublicNetwork.of(network, input_size=input_size)
        chosen = tuple(layers) if layers is not None else _relus(network)
        signs = _only_relus(network, chosen) if nonnegative is None else nonnegative
        size = network.input_size if input_size is None else size_of(input_size)
        settings = (network, column, chosen, tuple(moments), size, pool, signs, balance)
        for name, value in zip(self.__dataclass_fields__, settings, strict=False):
            object.__setattr__(self, name, value)
        self._check()
        found = tuple(sizes) if network.module is None and sizes else self._measured()
        object.__setattr__(self, "sizes", found)
        if sizes is not None and tuple(sizes) != found:
            msg = f"the layers have {list(found)} features, not {list(sizes)}: another network?"
            raise PlanError(msg)

    def _check(self) -> None:
        if not self.layers or len(set(self.layers)) < len(self.layers):
            msg = "name at least one layer of the network, and none twice"
            raise PlanError(msg)
        if self.moments not in ((1,), (2,), (1, 2)):
            msg = f"moments are (1,), (2,) or (1, 2), got {self.moments}"
            raise PlanError(msg)
        if self.pool is not None and not 1 <= self.pool <= 1024:
            msg = f"pool is the side of a grid, at least 1, got {self.pool}"
            raise PlanError(msg)
        if self.balance not in BALANCES:
            msg = f"balance is one of {', '.join(BALANCES)}, got {self.balance!r}"
            raise PlanError(msg)

    def _measured(self) -> tuple[int, ...]:
        blank = torch.zeros(1, self.network.channels, *self.input_size, device=self.network.device)
        try:
            with torch.no_grad():
                outputs = self.layer_outputs(blank)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            msg = f"the network cannot take images of {self.input_size}: {str(error)[:200]}"
            raise PlanError(msg) from None
        return tuple(output.shape[1] for output in outputs)

    @property
    def dim(self) -> int:
        return sum(self.sizes) * len(self.moments)

    @property
    def bound(self) -> Bound:
        parts = len(self.moments) * (len(self.sizes) if self.balance == "layers" else 1)
        high = 1 / sqrt(parts)
        low = 0 if self.nonnegative or self.moments == (2,) else -high
        return Bound(dim=self.dim, l1=root(self.dim), l2_squared=1, low=low, high=high)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), frozenset({self.column})

    @property
    def tile(self) -> int:
        """How many images go through the network at once: always so many, filled up with blanks."""
        device = self.network.device
        return self._together(device) if _steady(self, str(device)) else 1

    def _together(self, device: torch.device) -> int:
        most, room = (512, 2**29) if device.type == "cuda" else (64, 2**25)
        return max(1, min(most, room // self.dim))

    def __call__(self, rows: Rows) -> Tensor:
        return self.features_of(rows.values[self.column])

    def borrowed(self, rows: Rows) -> Tensor:
        """Map rows in blocks of one size, so that no row's bits depend on those beside it."""
        images, size = rows.values[self.column], self.tile
        parts = []
        with torch.no_grad(), _one_algorithm():
            for start in range(0, len(images), size):
                part = images[start : start + size]
                blank = part.new_zeros(size - len(part), *part.shape[1:])
                found = self.features_of(torch.cat([part, blank]) if len(blank) else part)
                parts.append(found[: len(part)])
        if not parts:
            return torch.zeros(0, self.dim)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def features_of(self, images: Tensor) -> Tensor:
        """Give the features of images, shape (n, dim), differentiable; where the module lives.

        Parameters
        ----------
        images
            Shape (n, channels, height, width): uint8, or floats in [0, 1].
        """
        outputs = self._outputs(images)
        parts: list[Tensor] = []
        for moment in self.moments:
            powers = [_power(output, moment) for output in outputs]
            scales = self._scales(powers)
            parts.extend(p * s.to(p)[:, None] for p, s in zip(powers, scales, strict=True))
        return torch.cat(parts, dim=1)

    def weighted(self, rows: Rows, weights: Tensor) -> Tensor:
        outputs = self._outputs(rows.values[self.column])
        parts: list[Tensor] = []
        for moment in self.moments:
            powers = [_power(output, moment) for output in outputs]
            for power, scales in zip(powers, self._scales(powers), strict=True):
                parts.append((weights.to(power) * scales.to(power)[:, None]).T @ power)
        return torch.cat(parts, dim=1)

    def total(self, rows: Rows) -> Tensor:
        return self.weighted(rows, torch.ones(len(rows), 1))[0]

    def _outputs(self, images: Tensor) -> list[Tensor]:
        outputs = self.layer_outputs(self.prepared(images))
        shapes = tuple(output.shape[1] for output in outputs)
        if shapes != self.sizes or any(len(output) != len(images) for output in outputs):
            msg = (
                f"the network gave {list(shapes)} features in its layers where it has "
                f"{list(self.sizes)}: its outputs must not depend on the images' content"
            )
            raise DataError(msg)
        return outputs

    def prepared(self, images: Tensor) -> Tensor:
        """Give what the network takes: floats, its channels, its size, on its device."""
        x = images.to(self.network.device)
        x = x.float() / 255 if x.dtype == torch.uint8 else x
        if x.shape[1] != self.network.channels:
            if x.shape[1] != 1:
                msg = f"the network takes {self.network.channels} channels, not {x.shape[1]}"
                raise PlanError(msg)
            x = x.expand(-1, self.network.channels, -1, -1)
        if tuple(x.shape[2:]) != self.input_size:
            x = nn.functional.interpolate(x, self.input_size, mode="bilinear", align_corners=False)
        return x

    def layer_outputs(self, prepared: Tensor) -> list[Tensor]:
        """Give the outputs of the layers in the order they are computed, each flat by row."""
        return [output.flatten(1) for output in self.raw_outputs(prepared)]

    def raw_outputs(self, prepared: Tensor) -> list[Tensor]:
        """Give the outputs of the layers as they are, pooled and without what is negative."""
        found: list[Any] = []
        module = self.network.require()
        known = dict(module.named_modules())
        for name in self.layers:
            if name not in known:
                some = ", ".join(repr(n) for n in list(known)[1:6])
                msg = f"the network has no layer {name!r}: it has {some} …"
                raise PlanError(msg)
        order: list[str] = []

        def keep(name: str, output: Any) -> None:
            order.append(name)
            found.append(output)

        hooks = [
            known[name].register_forward_hook(lambda _m, _i, out, name=name: keep(name, out))
            for name in self.layers
        ]
        try:
            half = prepared.device.type == "cuda"
            with torch.autocast(prepared.device.type, torch.bfloat16, enabled=half):
                module(prepared)
        finally:
            for hook in hooks:
                hook.remove()
        if not found or not all(isinstance(out, Tensor) and out.dim() >= 2 for out in found):
            msg = "every layer must give one tensor with a row for each image"
            raise PlanError(msg)
        return [self._pooled(out, known[name]) for out, name in zip(found, order, strict=True)]

    def _pooled(self, output: Tensor, layer: nn.Module) -> Tensor:
        if self.pool is not None and output.dim() == 4:
            output = nn.functional.adaptive_avg_pool2d(output, self.pool)
        certain = not self.nonnegative or isinstance(layer, (nn.ReLU, nn.ReLU6))
        return output if certain else output.clamp(min=0)

    def _scales(self, powers: list[Tensor]) -> list[Tensor]:
        """Give what each row of each layer is multiplied by; zero where there is nothing.

        Without a gradient norms are summed in float64: the curator's check of the integers then
        hardly ever finds a row too long.
        """
        exact = torch.float32 if powers[0].requires_grad else torch.float64
        squares = [torch.linalg.vector_norm(p, dim=1, dtype=exact).square() for p in powers]
        share = len(self.moments) * (len(powers) if self.balance == "layers" else 1)
        if self.balance == "rows":
            squares = [torch.stack(squares).sum(dim=0)] * len(powers)
        if not all(bool(found.isfinite().all()) for found in squares):
            msg = (
                "the network gave a value that is not finite: mend the network, or take other "
                "layers"
            )
            raise DataError(msg)
        empty = [found <= 0 for found in squares]
        return [
            (found.masked_fill(gone, 1.0) * share).rsqrt().masked_fill(gone, 0.0)
            for found, gone in zip(squares, empty, strict=True)
        ]

    def attach(self, network: PublicNetwork) -> Perceptual:
        """Give the map with weights, if the network is the one that it names."""
        return replace(self, network=self.network.attach(network))

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "column": self.column,
            "architecture": self.network.architecture,
            "sha256": self.network.sha256,
            "made_for": list(self.network.input_size),
            "channels": self.network.channels,
            "input_size": list(self.input_size),
            "layers": list(self.layers),
            "sizes": list(self.sizes),
            "moments": list(self.moments),
            "pool": self.pool,
            "nonnegative": self.nonnegative,
            "balance": self.balance,
        }


def named(spec: Spec) -> Perceptual:
    """Rebuild a map from its spec: it knows its features and its bound, but has no weights."""
    numbers = (*spec["layers"], *spec["sizes"])
    if not all(isinstance(n, (str, int)) and not isinstance(n, bool) for n in numbers):
        msg = "layers are named by text and have whole numbers of features"
        raise TypeError(msg)
    if not spec["sizes"] or min(spec["sizes"]) < 1:
        msg = "a layer has at least one feature"
        raise ValueError(msg)
    return Perceptual(
        named_network(spec),
        column=str(spec["column"]),
        layers=spec["layers"],
        moments=spec["moments"],
        input_size=size_of(spec["input_size"]),
        pool=spec["pool"],
        nonnegative=bool(spec["nonnegative"]),
        balance=spec["balance"],
        sizes=spec["sizes"],
    )


def named_network(spec: Spec) -> PublicNetwork:
    """Read which public network a spec names."""
    digest, channels = spec["sha256"], spec["channels"]
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        msg = "a network is named by the 64 hexadecimal digits of its SHA-256"
        raise ValueError(msg)
    if channels not in (1, 3):
        msg = "a network takes 1 or 3 channels"
        raise ValueError(msg)
    return PublicNetwork(str(spec["architecture"]), digest, size_of(spec["made_for"]), channels)


def _relus(network: PublicNetwork) -> tuple[str, ...]:
    modules = network.require().named_modules()
    found = tuple(name for name, part in modules if isinstance(part, (nn.ReLU, nn.ReLU6)))
    if not found:
        msg = "the network has no ReLU to take by default: name its layers"
        raise PlanError(msg)
    return found


def _only_relus(network: PublicNetwork, layers: Iterable[str]) -> bool:
    known = dict(network.require().named_modules())
    return all(isinstance(known.get(name), (nn.ReLU, nn.ReLU6)) for name in layers)


def _power(output: Tensor, moment: int) -> Tensor:
    plain = output.float()
    return plain if moment == 1 else plain.square()


@contextmanager
def _one_algorithm() -> Iterator[None]:
    """Let a GPU choose its convolutions by shape alone, and only such as give the same bits."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        yield


@lru_cache(maxsize=16)
def _steady(feature_map: Perceptual, device: str) -> bool:
    """Try whether a row's bits are the same at any place in a block, whatever lies beside it.

    Libraries of linear algebra may treat the rows of a block differently. Were a row's features to
    depend on its neighbours, one row more or less could move other rows' too. Public made-up
    images tell; if they do, images go through the network one by one.
    """
    size = feature_map._together(torch.device(device))
    shape = (feature_map.network.channels, *feature_map.input_size)
    dice = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (size, *shape), generator=dice, dtype=torch.uint8)
    with torch.no_grad(), _one_algorithm():
        found = feature_map.features_of(images)
        for shift in {1, size // 2 + 1}:
            if not torch.equal(
                feature_map.features_of(images.roll(shift, 0)), found.roll(shift, 0)
            ):
                return False
        alone = torch.zeros_like(images)
        alone[-1] = images[-1]
        return torch.equal(feature_map.features_of(alone)[-1], found[-1])
