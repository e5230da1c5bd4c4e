"""Fit a generator of images to a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from aquatint.analyst.images import checkpoints
from aquatint.analyst.images.generators import Generator, Kind, Several, build
from aquatint.analyst.images.matching import Match
from aquatint.analyst.images.model import MEMBERS, ImageNetwork, image_of
from aquatint.analyst.images.targets import (
    Target,
    parted,
    shares_of,
    targets_of,
    validation_of,
)
from aquatint.analyst.images.tones import curves_of, tones_block
from aquatint.analyst.images.training import (
    MATCHINGS,
    Matching,
    Progress,
    Training,
    as_it_is,
    start,
    train,
)
from aquatint.errors import ReleaseError
from aquatint.features.attaching import networked_maps
from aquatint.image_files import contact_sheet
from aquatint.progress import track
from aquatint.release.model import Release
from aquatint.schema import Schema

STEPS = {"cuda": 1_500, "cpu": 500}
GENERATORS = {"cuda": 4, "cpu": 1}
BATCH = {"cuda": 500, "cpu": 200}
RATE = {"residual": 5e-4, "convolutional": 1e-2, "connected": 3e-3}
AVERAGE = 0.995
ASIDE = 0.1
PATIENCE = 0.25
APART = 7_907
"""How far the seeds of members are apart."""
SEEN = 1_000
"""In how many drawn images tones are counted."""
CHECKPOINTS = 10
"""How many checkpoints a fit writes."""
Watch = Callable[[int, ImageNetwork], None]


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
    floor: bool = False,
    shrink: bool = False,
    aside: float = ASIDE,
    patience: float = PATIENCE,
    members: int | None = None,
    begin: ImageNetwork | str | Path | None = None,
    checkpoint: str | Path | None = None,
    preview: str | Path | None = None,
    watch: Watch | None = None,
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
        Whether misfits stop pulling at the noise floor, in place of validation or beside it.
    shrink
        Whether to take noise off the means of convolutions before anything is fitted to them, by
        how smooth they are and what channels tell (`denoise`). It reads the release alone. Where
        noise is large, it takes off what tells classes apart as well.
    aside
        The share of the release's information that chooses among the weights of different steps:
        more noise parts the embedding in two independent ones (`targets.parted`), at no cost in
        privacy. 0 takes the last weights. A block ``"stopping"`` takes its place.
    patience
        Training ends once this share of all steps has passed without a better validation.
    members
        How many generators to train, each with a start and an `aside` of its own; they draw in
        turn (`generators.Several`). By default one, and four on a GPU.
    begin
        A generator to begin with, or the file of one: trained on a sketch of public images, or on
        an earlier release. It may have other classes.
    checkpoint
        A file to save progress in; if it is there already, the fit goes on from it.
    preview
        A PNG that is drawn anew at every checkpoint.
    watch
        Is called before the first step and ten times in a fit, with the number of steps so far and
        the model as it would be if training ended there: to judge it while it is made.
    seed
        The same seed gives the same generator on the same machine, or nearly so on a GPU.
    device
        ``"cpu"`` or ``"cuda"``; by default a GPU if there is one.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    """
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.device(place).type
    members = GENERATORS[where] if members is None else members
    _check(matching, members, aside, patience)
    schema = release.schema
    shares = shares_of(release, schema.label)
    targets = targets_of(release, schema.label, shares)
    perceptual = any(True for target in targets for _ in networked_maps(target.map))
    kind = generator or ("residual" if perceptual else "connected")
    chosen = Training(
        steps=steps or STEPS[where],
        batch=batch or BATCH[where],
        rate=rate or RATE.get(kind, 1e-3),
        average=average,
        matching=matching,
        floor=floor,
        shrink=shrink,
        aside=aside,
        patience=patience,
        seed=seed,
    )
    shape, sizes = image_of(schema)[1].shape, None if widths is None else tuple(widths)
    watches = [] if watch is None else [watch]
    watches += [] if preview is None else [_sheet(preview, place)]
    made: list[Generator] = []
    with torch.random.fork_rng(), track("training", chosen.steps * members, show=progress) as tell:
        for member in range(members):
            own = replace(chosen, seed=seed + APART * member)
            torch.manual_seed(own.seed)
            network = build(kind, shape, len(shares), latent, sizes)
            settings = {"kind": kind, "latent": network.latent, "widths": list(network.widths)}
            state = start(_placed(network, settings, begin, member, place), own)
            kept = _numbered(checkpoint, member)
            seen = _watcher(watches, schema, shares, settings, own) if watches else None
            report = _reporter(release, own, settings, kept, seen, state, tell)
            fitted, judges = _parts(release, targets, shares, aside, own.seed)
            matches = [Match(target.to(place), len(shares), shrink=shrink) for target in fitted]
            validation = [Match(target.to(place), len(shares)) for target in judges]
            made.append(train(state, matches, validation, own, report).to("cpu"))
            tell(chosen.steps - state.step)
    several = {"members": members} if members > 1 else {}
    drawing = Several(made) if members > 1 else made[0]
    return _toned(release, ImageNetwork(schema, shares, drawing, settings | several), seed, place)


def _check(matching: str, members: int, aside: float, patience: float) -> None:
    """Refuse settings that cannot be."""
    if matching not in MATCHINGS:
        msg = f"unknown matching {matching!r}: choose one of {', '.join(MATCHINGS)}"
        raise ReleaseError(msg)
    if not 1 <= members <= MEMBERS:
        msg = f"members is how many generators draw in turn, 1 to {MEMBERS}, got {members}"
        raise ReleaseError(msg)
    if not (0 <= aside < 1 and patience > 0):
        msg = f"aside is a share from 0 to below 1 and patience above 0, got {aside} and {patience}"
        raise ReleaseError(msg)


def _toned(release: Release, model: ImageNetwork, seed: int, place: str) -> ImageNetwork:
    """Give drawn images the tones of the release, if it has them."""
    counted = tones_block(release)
    if counted is None:
        return model
    drawn = model.sample(SEEN, seed=seed, device=place).pixels
    return replace(model, curves=curves_of(counted, release.count, drawn))


def _parts(
    release: Release, targets: Sequence[Target], shares: np.ndarray, aside: float, seed: int
) -> tuple[Sequence[Target], Sequence[Target]]:
    """Give what to fit and what to validate with: a block for it, or a part of the information."""
    judges = validation_of(release, release.schema.label, shares)
    if judges or not aside:
        return targets, judges
    both = [parted(target, aside, seed) for target in targets]
    return [fitted for fitted, _ in both], [judge for _, judge in both]


def _numbered(checkpoint: str | Path | None, member: int) -> Path | None:
    """Give the file of a member's checkpoint; the first has the name as it is."""
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}-{member + 1}{path.suffix}") if member else path


def _placed(
    network: Generator,
    settings: dict[str, Any],
    begin: ImageNetwork | str | Path | None,
    member: int,
    place: str,
) -> Generator:
    """Give a generator on its device, with the weights to begin with."""
    if begin is not None:
        _begin(network, settings, begin, member)
    if torch.device(place).type == "cuda":
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.to(place)


def _begin(
    network: torch.nn.Module,
    settings: dict[str, Any],
    begin: ImageNetwork | str | Path,
    member: int,
) -> None:
    """Take over the weights of another generator; what belongs to classes may differ.

    Of several generators each member takes over one, in turn.
    """
    if not isinstance(begin, ImageNetwork):
        begin = ImageNetwork.load(begin)
    known = {name: value for name, value in begin.settings.items() if name != "members"}
    if known != settings:
        msg = f"the generator to begin with is another: {known}, not {settings}"
        raise ReleaseError(msg)
    other = begin.generator
    if isinstance(other, Several):
        other = cast("Generator", other.members[member % len(other.members)])
    own, given = network.state_dict(), other.state_dict()
    taken: dict[str, Tensor] = {}
    for name, tensor in own.items():
        found = given[name]
        if found.shape == tensor.shape:
            taken[name] = found
        elif found.shape[1:] == tensor.shape[1:]:  # a line for each class: begin at their mean
            taken[name] = found.mean(dim=0, keepdim=True).expand_as(tensor).clone()
        else:
            msg = f"the generator to begin with makes images of another shape: see {name!r}"
            raise ReleaseError(msg)
    network.load_state_dict(taken)


def _reporter(
    release: Release,
    chosen: Training,
    settings: dict[str, Any],
    checkpoint: str | Path | None,
    seen: Callable[[Progress], None] | None,
    state: Progress,
    advance: Callable[[int], None],
) -> Callable[[Progress], None]:
    """Give a function that is called after every step: progress, checkpoints and samples."""
    name = checkpoints.fingerprint(release, {**asdict(chosen), **settings}) if checkpoint else ""
    if checkpoint is not None and Path(checkpoint).exists():
        checkpoints.resume(checkpoint, state, name)
        advance(state.step)
    if seen is not None and state.step == 0:
        seen(state)
    every = max(1, chosen.steps // CHECKPOINTS)

    def report(now: Progress) -> None:
        advance(1)
        if now.step % every and now.step != chosen.steps:
            return
        if checkpoint is not None:
            checkpoints.save(checkpoint, now, name)
        if seen is not None:
            seen(now)

    return report


def _watcher(
    watches: Sequence[Watch],
    schema: Schema,
    shares: np.ndarray,
    settings: dict[str, Any],
    chosen: Training,
) -> Callable[[Progress], None]:
    """Give a function that shows a fit as it is; that does not change how the fit goes on."""

    def seen(now: Progress) -> None:
        with torch.random.fork_rng():
            made = as_it_is(now, chosen).to("cpu")
        for watch in watches:
            watch(now.step, ImageNetwork(schema, shares, made, settings))

    return seen


def _sheet(path: str | Path, place: str) -> Watch:
    """Give a function that draws some images of a fit."""

    def draw(_: int, model: ImageNetwork) -> None:
        drawn = model.sample(10 * model.generator.classes, seed=0, device=place)
        contact_sheet(drawn.pixels, drawn.labels, path)

    return draw
