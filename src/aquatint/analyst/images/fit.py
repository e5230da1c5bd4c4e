"""Fit a generator of images to a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aquatint.analyst.images import checkpoints
from aquatint.analyst.images.generators import Kind, build
from aquatint.analyst.images.matching import Match
from aquatint.analyst.images.model import ImageNetwork, as_pixels, image_of, label_names
from aquatint.analyst.images.targets import shares_of, targets_of, validation_of
from aquatint.analyst.images.training import MATCHINGS, Matching, Progress, Training, start, train
from aquatint.errors import ReleaseError
from aquatint.features.attaching import networked_maps
from aquatint.image_files import contact_sheet
from aquatint.progress import track
from aquatint.release.model import Release
from aquatint.schema import Schema

STEPS = {"cuda": 2_500, "cpu": 500}
BATCH = {"cuda": 500, "cpu": 200}
RATE = {"residual": 1e-3, "convolutional": 1e-2, "connected": 3e-3}
AVERAGE = 0.995
CHECKPOINTS = 10
"""How many checkpoints a fit writes."""


def fit_images(
    release: Release,
    *,
    generator: Kind | None = None,
    steps: int | None = None,
    batch: int | None = None,
    rate: float | None = None,
    latent: int | None = None,
    widths: Sequence[int] | None = None,
    average: float = AVERAGE,
    matching: Matching = "batch",
    floor: bool = True,
    shrink: bool = False,
    begin: ImageNetwork | str | Path | None = None,
    checkpoint: str | Path | None = None,
    preview: str | Path | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: bool = True,
) -> ImageNetwork:
    """Train a generator on the noisy embedding of images (DP-MEPF eq. 3, DP-MERF eq. 13–16).

    Residuals count by the known variance of their noise. A block named ``"stopping"`` is kept
    aside, and the weights nearest to it are taken (DP-MEPF §3.2).

    Parameters
    ----------
    release
        A release with perceptual, Fourier or Hermite features of images; its public networks have
        to be attached.
    generator
        ``"residual"`` (by default for perceptual features), ``"connected"`` (by default for
        Fourier and Hermite features) or ``"convolutional"``, the papers' own. After 100 steps of
        DP-MERF on MNIST, a logistic regression was right on .72 of held-out training images with
        the connected one, on .49 with the other, which took twice the time.
    steps, batch, rate, latent, widths, average
        Of the training and of the generator; the defaults are for a GPU or for a CPU.
    matching
        ``"batch"`` or ``"moving"``, see `Training`.
    floor
        Whether misfits stop pulling at the noise floor.
    shrink
        Whether to take noise off the means of convolutions before anything is fitted to them, by
        how smooth they are and what channels tell (`denoise`). It reads the release alone. Where
        noise is large, it takes off what tells classes apart as well.
    begin
        A generator to begin with, or the file of one: trained on a sketch of public images, or on
        an earlier release. It may have other classes.
    checkpoint
        A file to save progress in; if it is there already, the fit goes on from it.
    preview
        A PNG that is drawn anew at every checkpoint.
    seed
        The same seed gives the same generator on the same machine, or nearly so on a GPU.
    device
        ``"cpu"`` or ``"cuda"``; by default a GPU if there is one.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    """
    if matching not in MATCHINGS:
        msg = f"unknown matching {matching!r}: choose one of {', '.join(MATCHINGS)}"
        raise ReleaseError(msg)
    schema = release.schema
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    shares = shares_of(release, schema.label)
    targets = targets_of(release, schema.label, shares)
    aside = validation_of(release, schema.label, shares)
    perceptual = any(True for target in targets for _ in networked_maps(target.map))
    kind = generator or ("residual" if perceptual else "connected")
    chosen = Training(
        steps=steps or STEPS[torch.device(place).type],
        batch=batch or BATCH[torch.device(place).type],
        rate=rate or RATE.get(kind, 1e-3),
        average=average,
        matching=matching,
        floor=floor,
        shrink=shrink,
        seed=seed,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        shape, sizes = image_of(schema)[1].shape, None if widths is None else tuple(widths)
        network = build(kind, shape, len(shares), latent, sizes)
        settings = {"kind": kind, "latent": network.latent, "widths": list(network.widths)}
        if begin is not None:
            _begin(network, settings, begin)
        network.to(place)
        if torch.device(place).type == "cuda":
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        state = start(network, chosen)
        matches = [Match(target.to(place), len(shares), shrink=shrink) for target in targets]
        validation = [Match(target.to(place), len(shares)) for target in aside]
        with track("training", chosen.steps, show=progress) as advance:
            report = _reporter(release, chosen, settings, checkpoint, preview, state, advance)
            made = train(state, matches, validation, chosen, report)
    return ImageNetwork(schema, shares, made.to("cpu"), settings)


def _begin(
    network: torch.nn.Module, settings: dict[str, Any], begin: ImageNetwork | str | Path
) -> None:
    """Take over the weights of another generator; what belongs to classes may differ."""
    if not isinstance(begin, ImageNetwork):
        begin = ImageNetwork.load(begin)
    if dict(begin.settings) != settings:
        msg = f"the generator to begin with is another: {dict(begin.settings)}, not {settings}"
        raise ReleaseError(msg)
    own, given = network.state_dict(), begin.generator.state_dict()
    taken: dict[str, Tensor] = {}
    for name, tensor in own.items():
        other = given[name]
        if other.shape == tensor.shape:
            taken[name] = other
        elif other.shape[1:] == tensor.shape[1:]:  # a line for each class: begin at their mean
            taken[name] = other.mean(dim=0, keepdim=True).expand_as(tensor).clone()
        else:
            msg = f"the generator to begin with makes images of another shape: see {name!r}"
            raise ReleaseError(msg)
    network.load_state_dict(taken)


def _reporter(
    release: Release,
    chosen: Training,
    settings: dict[str, Any],
    checkpoint: str | Path | None,
    preview: str | Path | None,
    state: Progress,
    advance: Callable[[int], None],
) -> Callable[[Progress], None]:
    """Give a function that is called after every step: progress, checkpoints and samples."""
    name = checkpoints.fingerprint(release, {**asdict(chosen), **settings}) if checkpoint else ""
    if checkpoint is not None and Path(checkpoint).exists():
        checkpoints.resume(checkpoint, state, name)
        advance(state.step)
    every = max(1, chosen.steps // CHECKPOINTS)

    def report(now: Progress) -> None:
        advance(1)
        if now.step % every and now.step != chosen.steps:
            return
        if checkpoint is not None:
            checkpoints.save(checkpoint, now, name)
        if preview is not None:
            _draw(now, release.schema, preview)

    return report


def _draw(now: Progress, schema: Schema, path: str | Path) -> None:
    """Draw some images of the network as it is; in training mode its norms are up to date."""
    device = next(now.generator.parameters()).device
    classes = torch.arange(now.generator.classes, device=device).repeat_interleave(10)
    with torch.no_grad():
        images = now.generator(
            torch.randn(len(classes), now.generator.latent, device=device), classes
        )
    contact_sheet(as_pixels(images), label_names(schema, classes.cpu().numpy()), path)
