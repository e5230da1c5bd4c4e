"""Classifiers that torch trains, on a GPU if there is one: much faster where images are many.

``logreg_torch`` and ``mlp_torch`` are scikit-learn's logistic regression and multi-layer perceptron
over again. The logistic regression has the same loss and penalty, hence the same optimum, and stops
at the same size of the gradient, by another line search. The perceptron has the same layers, first
weights, penalty, Adam, batches and rule to stop, with other random numbers: it differs as two seeds
do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from aquatint.evaluate.images.networks import build


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes
    ----------
    epochs
        Passes over the images.
    batch
        Images in a step.
    rate
        The highest learning rate.
    """

    epochs: int
    batch: int
    rate: float


CNN = Training(epochs=10, batch=128, rate=1e-3)
RESNET9 = Training(epochs=24, batch=512, rate=0.5)
_MLP_EPOCHS, _MLP_BATCH, _MLP_HIDDEN, _MLP_ALPHA = 200, 200, 100, 1e-4
_TOLERANCE, _PATIENCE = 1e-4, 10
_LEAST_BATCH, _LEAST_STEPS = 32, 20
"""Where images are few, batches are smaller, down to 32, so that an epoch has 20 steps."""


def predict(
    name: str,
    train: np.ndarray,
    codes: np.ndarray,
    test: np.ndarray,
    *,
    classes: int,
    device: str = "cpu",
    seed: int = 0,
    epochs: int | None = None,
) -> tuple[np.ndarray, str]:
    """Train on uint8 images of shape (n, height, width, channels); give predicted codes, a note.

    Parameters
    ----------
    name
        ``logreg_torch``, ``mlp_torch``, ``cnn`` or ``resnet9``.
    train, codes
        Images to train on, and their classes from 0.
    test
        Images to tell the class of.
    classes
        How many classes there are.
    device
        Where to train.
    seed
        Seeds first weights, batches and changes to images.
    epochs
        Passes over the images, other than as usual; for a quick look.
    """
    where = torch.device(device)
    fork = [where] if where.type == "cuda" else []
    with torch.random.fork_rng(devices=fork):
        torch.manual_seed(seed)
        given, wanted = _on(train, where), torch.from_numpy(codes).to(where)
        asked = _on(test, where)
        if name == "logreg_torch":
            model, note = _logistic(given, wanted, classes)
        elif name == "mlp_torch":
            model, note = _perceptron(given, wanted, classes, epochs or _MLP_EPOCHS)
        else:
            model, note = _network(name, given, wanted, classes, epochs), ""
        return _answers(model, asked), note


def _on(pixels: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(device)


@torch.no_grad()
def _answers(model: Callable[[Tensor], Tensor], images: Tensor) -> np.ndarray:
    parts = [model(part).argmax(dim=1) for part in torch.split(images, 1000)]
    return torch.cat(parts).cpu().numpy()


def _logistic(
    images: Tensor, wanted: Tensor, classes: int
) -> tuple[Callable[[Tensor], Tensor], str]:
    """Minimise the mean loss plus |W|²/2n by L-BFGS, as scikit-learn does with C = 1."""
    rows = images.flatten(1).float() / 255
    weights = torch.zeros(rows.shape[1], classes, device=rows.device, requires_grad=True)
    bias = torch.zeros(classes, device=rows.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weights, bias],
        max_iter=5000,
        tolerance_grad=_TOLERANCE,
        tolerance_change=1e-9,
        history_size=10,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        solver.zero_grad()
        found = functional.cross_entropy(rows @ weights + bias, wanted)
        found = found + weights.square().sum() / (2 * len(rows))
        found.backward()  # type: ignore[no-untyped-call]
        return found

    solver.step(loss)  # type: ignore[no-untyped-call]
    left = max(float(p.grad.abs().max()) for p in (weights, bias) if p.grad is not None)
    return (
        lambda part: (part.flatten(1).float() / 255) @ weights + bias,
        "" if left <= 10 * _TOLERANCE else "did not converge",
    )


def _perceptron(
    images: Tensor, wanted: Tensor, classes: int, epochs: int
) -> tuple[Callable[[Tensor], Tensor], str]:
    """Train one hidden layer of 100 ReLUs by Adam until the loss has not fallen for 10 epochs."""
    rows = images.flatten(1).float() / 255
    layers = [
        nn.Linear(rows.shape[1], _MLP_HIDDEN, device=rows.device),
        nn.Linear(_MLP_HIDDEN, classes, device=rows.device),
    ]
    for layer in layers:  # Glorot's bound, for biases too
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))
        nn.init.uniform_(layer.weight, -bound, bound)
        nn.init.uniform_(layer.bias, -bound, bound)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    solver = torch.optim.Adam(model.parameters(), lr=1e-3, fused=rows.is_cuda)
    best, waited, batch = math.inf, 0, min(_MLP_BATCH, len(rows))
    for _ in range(epochs):
        total = torch.zeros((), device=rows.device)
        for places in _shuffled(len(rows), batch, rows.device):
            penalty = sum(
                (layer.weight.square().sum() for layer in layers), torch.zeros(()).to(rows)
            )
            loss = functional.cross_entropy(model(rows[places]), wanted[places])
            loss = loss + _MLP_ALPHA * penalty / (2 * len(places))
            solver.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            solver.step()
            total += loss.detach() * len(places)
        found = float(total) / len(rows)
        waited = waited + 1 if found > best - _TOLERANCE else 0
        best = min(best, found)
        if waited > _PATIENCE:
            break
    else:
        return lambda part: model(part.flatten(1).float() / 255), "did not converge"
    return lambda part: model(part.flatten(1).float() / 255), ""


def _network(
    name: str, images: Tensor, wanted: Tensor, classes: int, epochs: int | None
) -> Callable[[Tensor], Tensor]:
    usual = CNN if name == "cnn" else RESNET9
    size = (images.shape[2], images.shape[3])
    model = build(name, images.shape[1], size, classes).to(images.device)
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    mean, deviation = _scale(images)
    passes = epochs or usual.epochs
    batch = min(usual.batch, max(_LEAST_BATCH, len(images) // _LEAST_STEPS), len(images))
    rate = usual.rate if name == "cnn" else usual.rate * batch / usual.batch
    steps = passes * max(1, len(images) // batch)
    if name == "cnn":
        solver: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        peak, smoothing = 0.0, 0.0
    else:
        solver = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
        peak, smoothing = 5 / 24, 0.1
    rates = torch.optim.lr_scheduler.LambdaLR(solver, lambda step: _ramp(step / steps, peak))
    low = images.device.type == "cuda"

    def forward(part: Tensor) -> Tensor:
        scaled = (part.float() - mean) / deviation
        with torch.autocast("cuda", torch.bfloat16, enabled=low):
            out: Tensor = model(scaled.contiguous(memory_format=torch.channels_last))
        return out.float()

    model.train()
    for _ in range(passes):
        for places in _shuffled(len(images), batch, images.device):
            if len(places) < batch and len(images) > batch:
                continue  # a last batch of a few images upsets batch normalisation
            part = images[places] if name == "cnn" else _changed(images[places], mean)
            loss = functional.cross_entropy(
                forward(part), wanted[places], label_smoothing=smoothing
            )
            solver.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            solver.step()
            rates.step()
    model.eval()
    return forward


def _shuffled(count: int, batch: int, device: torch.device) -> tuple[Tensor, ...]:
    return torch.split(torch.randperm(count, device=device), batch)


def _ramp(done: float, peak: float) -> float:
    """Rise in a line up to the peak, and fall in a line to nothing."""
    return done / peak if done < peak else max(0.0, (1 - done) / (1 - peak))


def _scale(images: Tensor) -> tuple[Tensor, Tensor]:
    """Give each channel's mean and deviation among the images that are trained on."""
    values = images[:: 1 + len(images) // 10_000].float()  # images may lie sorted by class
    deviation, mean = torch.std_mean(values, dim=(0, 2, 3), keepdim=True)
    return mean, deviation.clamp(min=1.0)


def _changed(images: Tensor, mean: Tensor) -> Tensor:
    """Change images as FFCV does: move by up to 2 pixels, blank 4 by 4; mirror those in colour.

    Images in grey are not mirrored: most of them are signs, which have a direction.
    """
    count, channels, height, width = images.shape
    device = images.device
    down, right = (torch.randint(0, 5, (count, 1), device=device) for _ in range(2))
    rows = torch.arange(height, device=device) + down
    columns = torch.arange(width, device=device) + right
    if channels == 3:
        mirrored = torch.rand(count, 1, device=device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    padded = functional.pad(images.float(), (2, 2, 2, 2)).permute(0, 2, 3, 1)
    at = torch.arange(count, device=device)[:, None, None]
    moved = padded[at, rows[:, :, None], columns[:, None, :]]
    top, left = (torch.randint(0, side - 3, (count, 1), device=device) for side in (height, width))
    tall = (torch.arange(height, device=device) - top)[:, :, None]
    wide = (torch.arange(width, device=device) - left)[:, None, :]
    blank = (tall >= 0) & (tall < 4) & (wide >= 0) & (wide < 4)
    moved = torch.where(blank[..., None], mean.view(1, 1, 1, -1), moved)
    return moved.permute(0, 3, 1, 2)
