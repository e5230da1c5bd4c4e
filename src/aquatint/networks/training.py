"""Train a small public network on images that are declared public (DP-MEPF §5.1)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from aquatint.errors import DataError, PlanError
from aquatint.networks.public import PublicNetwork
from aquatint.networks.residual import ResNet18, resnet18
from aquatint.progress import track

HELD_OUT, MOST_HELD_OUT = 0.02, 1000
MOMENTUM, DECAY, SMOOTHING = 0.9, 5e-4, 0.1
SHIFT = 4
"""Crops are shifted by at most this many pixels, less for images below 32 pixels."""


def pretrain(
    images: np.ndarray | Tensor,
    labels: np.ndarray,
    *,
    epochs: int = 10,
    width: int = 64,
    batch: int = 512,
    rate: float = 0.2,
    grey: bool = False,
    flip: bool = True,
    device: str | None = None,
    seed: int = 0,
    note: str = "",
    progress: bool = True,
) -> PublicNetwork:
    """Train a ResNet18 to tell the classes of public images apart.

    SGD with momentum and a one-cycle rate, on random flips and shifts; bf16 on a GPU. Some images
    are held out, and the note of the network says how many of them it classifies correctly.

    Parameters
    ----------
    images
        Public images, uint8 of shape (n, channels, height, width); grey ones are repeated.
    labels
        Their classes.
    epochs, batch, rate
        How often every image is seen, how many at once, and the highest learning rate.
    width
        The channels of the first stage; the paper's has 64.
    grey
        Take the colour off every other image, at random, for use on grey images.
    flip
        Whether to mirror images at random; not for digits or letters.
    device
        "cpu" or "cuda"; by default a GPU if there is one.
    seed
        Public: the same seed, images and machine give about the same network.
    note
        What the images are, in words; saved with the file.
    progress
        Show progress on a terminal.
    """
    given = torch.as_tensor(images)
    names, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    _check(given, codes, len(names), epochs)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    pixels, classes = _on(given, place), _on(torch.from_numpy(codes.reshape(-1)), place)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return _trained(
            pixels, classes, names, epochs, width, batch, rate, _Changes(grey, flip), note, progress
        )


def _trained(
    images: Tensor,
    classes: Tensor,
    names: np.ndarray,
    epochs: int,
    width: int,
    batch: int,
    rate: float,
    changes: _Changes,
    note: str,
    progress: bool,
) -> PublicNetwork:
    order = torch.randperm(len(images), device=images.device)
    held = order[: max(1, min(MOST_HELD_OUT, int(HELD_OUT * len(order))))]
    kept = order[len(held) :]
    size = (images.shape[2], images.shape[3])
    module = resnet18(classes=len(names), width=width, input_size=size).to(images.device)
    _fit(module, images[kept], classes[kept], epochs, batch, rate, changes, progress)
    right = _accuracy(module, images[held], classes[held])
    what = f"resnet18, {len(kept):,} public images in {len(names)} classes, {epochs} epochs"
    told = f"{note}; " if note else ""
    how = ", randomly greyed" if changes.grey else ""
    return PublicNetwork.of(
        module.to("cpu"),
        input_size=size,
        architecture="resnet18",
        note=f"{told}{what}{how}, {right:.1%} of held-out right",
    )


def _check(images: Tensor, codes: np.ndarray, classes: int, epochs: int) -> None:
    if images.dim() != 4 or images.dtype != torch.uint8 or images.shape[1] not in (1, 3):
        msg = "public images are uint8 of shape (n, channels, height, width)"
        raise DataError(msg)
    if len(images) != codes.size or classes < 2:
        msg = "public images need a label each, and at least two classes"
        raise DataError(msg)
    if len(images) < 10 or epochs < 1:
        msg = "pretraining needs at least 10 public images and 1 epoch"
        raise PlanError(msg)


def _on(tensor: Tensor, device: str) -> Tensor:
    try:
        return tensor.to(device)
    except (RuntimeError, AssertionError):
        msg = f"there is no device {device!r} here: leave it out, or say cpu"
        raise PlanError(msg) from None


class _Changes:
    """Random flips, shifts and greying of a batch, on the batch's device."""

    def __init__(self, grey: bool, flip: bool) -> None:
        self.grey, self.flip = grey, flip

    def __call__(self, images: Tensor) -> Tensor:
        count, _, height, width = images.shape
        device = images.device
        shift = max(1, min(SHIFT, min(height, width) // 8))
        x = nn.functional.pad(as_colour(images), [shift] * 4, mode="reflect")
        down = torch.randint(0, 2 * shift + 1, (count, 1), device=device)
        right = torch.randint(0, 2 * shift + 1, (count, 1), device=device)
        rows = down + torch.arange(height, device=device)
        columns = right + torch.arange(width, device=device)
        if self.flip:
            mirrored = torch.rand(count, 1, device=device) < 0.5
            columns = torch.where(mirrored, columns.flip(1), columns)
        places = torch.arange(count, device=device)[:, None, None, None]
        channels = torch.arange(3, device=device)[None, :, None, None]
        x = x[places, channels, rows[:, None, :, None], columns[:, None, None, :]]
        if self.grey:
            without = torch.rand(count, 1, 1, 1, device=device) < 0.5
            x = torch.where(without, x.mean(dim=1, keepdim=True).expand_as(x), x)
        return x


def as_colour(images: Tensor) -> Tensor:
    """Give floats in [0, 1] with three channels."""
    return (images.float() / 255).expand(-1, 3, -1, -1)


def _fit(
    module: ResNet18,
    images: Tensor,
    classes: Tensor,
    epochs: int,
    batch: int,
    rate: float,
    changes: _Changes,
    progress: bool,
) -> None:
    half = images.device.type == "cuda"
    steps = epochs * max(1, len(images) // batch)
    optimiser = torch.optim.SGD(
        module.parameters(), rate, MOMENTUM, weight_decay=DECAY, nesterov=True
    )
    rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps + 1)
    loss = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    module.train()
    if half:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with track("pretraining", steps, show=progress) as advance:
        for _ in range(epochs):
            order = torch.randperm(len(images), device=images.device)
            for start in range(0, max(1, len(images) - batch + 1), batch):
                some = order[start : start + batch]
                with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
                    found = loss(module(changes(images[some])), classes[some])
                optimiser.zero_grad(set_to_none=True)
                found.backward()
                optimiser.step()
                rates.step()
                advance(1)
    module.eval()


def _accuracy(module: ResNet18, images: Tensor, classes: Tensor) -> float:
    with torch.no_grad():
        found = module(as_colour(images)).argmax(dim=1)
    return float((found == classes).float().mean())
