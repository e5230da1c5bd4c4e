"""Perceptual features: what the layers of a public network see in an image (DP-MEPF §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from aquatint.errors import DataError, PlanError
from aquatint.features.base import Bound, FeatureMap, Rows, Spec, root
from aquatint.features.exact import exact
from aquatint.features.steady import Block, Precision, one_algorithm, steady_block
from aquatint.networks.layers import is_relu, layer_outputs, linear_layers, pooled, relus
from aquatint.networks.layers import prepared as prepare
from aquatint.networks.public import PublicNetwork, Size, size_of

Balance = Literal["rows", "layers"]
Length = Literal["unit", "ball"]
BALANCES: tuple[str, ...] = get_args(Balance)
LENGTHS: tuple[str, ...] = get_args(Length)


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
    Split, an activation a gives max(a, 0) and max(−a, 0), which keep its length and are not
    negative either. Their difference is a again, with the noise that a itself would have had: at a
    distance of √2 for each of the two against 2.

    Parameters
    ----------
    network
        A public network, or any ``torch.nn.Module`` that you declare public.
    column
        The image column. Grey images are repeated for a network that takes three channels.
    layers
        The names of submodules whose outputs are taken (``""`` is the network's own output); by
        default every ReLU, or what comes before them if activations are split.
    moments
        (1,), (2,) or (1, 2).
    input_size
        Images are resized to it, bilinearly; by default what the network was made for.
    pool
        Average every layer over a grid of pool × pool cells first.
    nonnegative
        Set negative activations to zero; by default where all layers are ReLUs.
    split
        Take the positive and the negative part of every activation.
    balance
        ``"rows"`` normalises all layers together as the paper does, ``"layers"`` each by itself.
    length
        ``"unit"`` gives every moment the same length as the paper does; ``"ball"`` only shortens
        what is longer, for layers whose lengths mean something: the default for a public reduction.
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
    split: bool
    balance: Balance
    length: Length
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
        split: bool = False,
        balance: Balance = "rows",
        length: Length | None = None,
        sizes: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(network, PublicNetwork):
            if input_size is None:
                msg = "say how large the network's images are: input_size=32, or (height, width)"
                raise PlanError(msg)
            network = PublicNetwork.of(network, input_size=input_size)
        reduced = network.architecture == "reduced"
        if layers is None:
            known_layers = linear_layers if split else relus
            layers = ("",) if reduced else known_layers(network.require())
        chosen = tuple(layers)
        if nonnegative is None:
            known = dict(network.require().named_modules())
            nonnegative = split or all(is_relu(known.get(name)) for name in chosen)
        kept = length or ("ball" if reduced else "unit")
        size = network.input_size if input_size is None else size_of(input_size)
        shown = (network, column, chosen, tuple(moments), size, pool)
        settings = (*shown, nonnegative, split, balance, kept)
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
        if self.split and not self.nonnegative:
            msg = "split activations are never negative: leave nonnegative out"
            raise PlanError(msg)
        if self.balance not in BALANCES:
            msg = f"balance is one of {', '.join(BALANCES)}, got {self.balance!r}"
            raise PlanError(msg)
        if self.length not in LENGTHS:
            msg = f"length is one of {', '.join(LENGTHS)}, got {self.length!r}"
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
        """How many images go through the network at once: always so many, filled up if need be."""
        return self._block.size

    @property
    def _block(self) -> Block:
        return steady_block(self, self.together)

    @property
    def together(self) -> int:
        """How many images may go through the network at once."""
        device = self.network.device
        most, room = (512, 2**28) if device.type == "cuda" else (64, 2**25)
        return max(1, min(most, room // self.dim))

    def __call__(self, rows: Rows) -> Tensor:
        return self.features_of(rows.values[self.column])

    def borrowed(self, rows: Rows) -> Tensor:
        """Map rows in blocks of one size, so that no row's bits depend on those beside it."""
        images, block = rows.values[self.column], self._block
        size, parts = block.size, []
        with torch.no_grad(), one_algorithm():
            for start in range(0, len(images), size):
                part = images[start : start + size]
                more = part[-1:].expand(size - len(part), -1, -1, -1)
                whole = torch.cat([part, more]) if len(more) else part
                found = self.features_of(whole, precision=block.precision)
                parts.append(found[: len(part)])
        if not parts:
            return torch.zeros(0, self.dim)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def features_of(self, images: Tensor, *, precision: Precision | None = None) -> Tensor:
        """Give the features of images, shape (n, dim), differentiable; where the module lives.

        Parameters
        ----------
        images
            Shape (n, channels, height, width): uint8, or floats in [0, 1].
        precision
            How the network computes; by default in bfloat16 on a GPU and in float32 otherwise.
        """
        outputs = self._outputs(images, precision)
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

    def _outputs(self, images: Tensor, precision: Precision | None = None) -> list[Tensor]:
        outputs = self.layer_outputs(self.prepared(images), precision)
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
        return prepare(images.to(self.network.device), self.network.channels, self.input_size)

    def layer_outputs(self, prepared: Tensor, precision: Precision | None = None) -> list[Tensor]:
        """Give the outputs of the layers in the order they are computed, each flat by row."""
        return [output.flatten(1) for output in self.raw_outputs(prepared, precision)]

    def raw_outputs(
        self, prepared: Tensor, precision: Precision | None = None, *, whole: bool = False
    ) -> list[Tensor]:
        """Give the outputs of the layers as they are, pooled and without what is negative.

        What is to be split comes in parts, or as a `whole` with both signs.
        """
        chosen = precision or ("bfloat16" if prepared.is_cuda else "float32")
        module = self.network.require()
        if chosen == "exact":
            module, prepared = exact(module), prepared.double()
        with torch.autocast(prepared.device.type, torch.bfloat16, enabled=chosen == "bfloat16"):
            found = layer_outputs(module, self.layers, prepared)
        return [self._pooled(output, layer, whole) for layer, output in found]

    def _pooled(self, output: Tensor, layer: nn.Module, whole: bool) -> Tensor:
        flat = pooled(output, self.pool)
        if self.split:
            return flat if whole else torch.cat([flat.clamp(min=0), flat.neg().clamp(min=0)], dim=1)
        return flat if not self.nonnegative or is_relu(layer) else flat.clamp(min=0)

    def _scales(self, powers: list[Tensor]) -> list[Tensor]:
        """Give what each row of each layer is multiplied by; zero where there is nothing.

        Without a gradient norms are summed in float64: the curator's check of the integers then
        hardly ever finds a row too long.
        """
        exact = torch.float32 if powers[0].requires_grad else torch.float64
        squares = [torch.linalg.vector_norm(p, dim=1, dtype=exact).square() for p in powers]
        share = len(self.moments) * (len(powers) if self.balance == "layers" else 1)
        stacked = torch.stack(squares)
        if self.balance == "rows":
            stacked = stacked.sum(dim=0, keepdim=True)
        if not bool(stacked.isfinite().all()):
            msg = (
                "the network gave a value that is not finite: mend the network, or take other "
                "layers"
            )
            raise DataError(msg)
        empty = stacked <= 0
        longest = stacked.clamp(min=1) if self.length == "ball" else stacked.masked_fill(empty, 1.0)
        scales = (longest * share).rsqrt().masked_fill(empty, 0.0)
        return list(scales.expand(len(powers), -1))

    def attach(self, network: PublicNetwork) -> Perceptual:
        """Give the map with weights, if the network is the one that it names."""
        return replace(self, network=self.network.attach(network))

    def spec(self) -> Spec:
        return {
            "kind": self.kind,
            "column": self.column,
            **self.network.spec(),
            "input_size": list(self.input_size),
            "layers": list(self.layers),
            "sizes": list(self.sizes),
            "moments": list(self.moments),
            "pool": self.pool,
            "nonnegative": self.nonnegative,
            "balance": self.balance,
            **({"split": True} if self.split else {}),
            **({"length": self.length} if self.length != "unit" else {}),
        }


def _power(output: Tensor, moment: int) -> Tensor:
    plain = output.float()
    return plain if moment == 1 else plain.square()
