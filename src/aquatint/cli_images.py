"""The command line for images: pretraining of public networks, and recipes by name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aquatint.errors import DataError, PlanError

if TYPE_CHECKING:
    from torch import Tensor

    from aquatint.networks import PublicNetwork
    from aquatint.planning import Plan
    from aquatint.schema import Schema

RECIPES = ("dp_mepf", "dp_merf", "dp_hp", "pixel_gaussian")
WITH_NETWORK = ("dp_mepf", "pixel_gaussian")
NETWORKS = ("stopping_network", "gaussian")
"""Options of recipes that are files of public networks."""


def pretrain(
    data: Annotated[
        Path, typer.Argument(help="PUBLIC images: a folder per class, .npz, idx or Parquet")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="the .safetensors to write")],
    architecture: Annotated[
        str, typer.Option(help="resnet18, projection (of pixels) or reduced (--base)")
    ] = "resnet18",
    base: Annotated[
        Path | None, typer.Option(help="with reduced: the network whose features are reduced")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="how often every image is seen")] = 10,
    width: Annotated[int, typer.Option(min=1, help="channels of the first stage")] = 64,
    components: Annotated[
        int, typer.Option(min=1, help="of projection and reduced: how many directions to keep")
    ] = 50,
    size: Annotated[int | None, typer.Option(min=8, help="resize images to this side")] = None,
    grey: Annotated[
        bool, typer.Option("--grey", help="for use on grey images: take colour off")
    ] = False,
    flip: Annotated[bool, typer.Option(help="mirror images at random; not for digits")] = True,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; default: a GPU if any")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the training")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Train a public network on PUBLIC labelled images, for the features of a sketch."""
    from aquatint.networks import load, public_projection, public_reduction, save
    from aquatint.networks.training import pretrain as train

    if architecture not in {"resnet18", "projection", "reduced"}:
        msg = f"the architecture is resnet18, projection or reduced, got {architecture!r}"
        raise PlanError(msg)
    if (base is not None) is not (architecture == "reduced"):
        msg = "a reduced network needs --base, the network whose features it reduces, and only it"
        raise PlanError(msg)
    typer.echo(
        f"aquatint: {data.name} is taken as public: what is learnt from it is not protected",
        err=True,
    )
    images, labels = _public(data, size)
    if architecture == "projection":
        network = public_projection(_grey(images) if grey else images, components, note=data.name)
    elif base is not None:
        seen = _grey(images) if grey else images
        network = public_reduction(load(base), seen, components=components, note=data.name)
    else:
        if labels is None:
            msg = f"{data.name} has no classes to learn: use one folder for each class"
            raise DataError(msg)
        network = train(
            images,
            labels,
            epochs=epochs,
            width=width,
            grey=grey,
            flip=flip,
            device=device,
            seed=seed,
            note=data.name,
            progress=not quiet,
        )
    save(network, output)
    if not quiet:
        typer.echo(f"written: {output}: {network.note}, SHA-256 {network.sha256[:16]}…", err=True)


def _public(data: Path, size: int | None) -> tuple[Tensor, Any]:
    """Read all public images, uint8 of shape (n, channels, height, width), and their classes."""
    import numpy as np
    import torch

    from aquatint.image_files import read_images

    parts, labels = [], []
    for batch in read_images(data):
        pixels = torch.from_numpy(batch.pixels.transpose(0, 3, 1, 2).copy())
        if size is not None and tuple(pixels.shape[2:]) != (size, size):
            resized = torch.nn.functional.interpolate(
                pixels.float(), (size, size), mode="bilinear", align_corners=False, antialias=True
            )
            pixels = resized.round().clamp(0, 255).to(torch.uint8)
        parts.append(pixels)
        labels.append(batch.labels)
    known = [each for each in labels if each is not None]
    return torch.cat(parts), np.concatenate(known) if len(known) == len(labels) else None


def _grey(images: Tensor) -> Tensor:
    return images.float().mean(dim=1, keepdim=True).round().to(images.dtype)


def chosen_plan(
    schema: Schema, plan: Path | None, recipe: str | None, features: Path | None, options: list[str]
) -> Plan | None:
    """Read a plan, or make one by a recipe; give it the public network that it needs."""
    if plan is not None and (recipe is not None or options):
        msg = "give a plan or a recipe with its options, not both"
        raise PlanError(msg)
    network = _network(features) if features is not None else None
    if plan is not None:
        return _with_network(plan, network)
    if recipe is None:
        if network is not None or options:
            msg = "--features and --option go with --recipe, or --features with a --plan"
            raise PlanError(msg)
        return None
    make = _recipe(recipe)
    if (network is not None) is not (recipe in WITH_NETWORK):
        needs = "needs a public network: --features resnet18.safetensors"
        msg = f"{recipe} {needs if network is None else 'takes no public network: leave it out'}"
        raise PlanError(msg)
    given = [schema] if network is None else [schema, network]
    return make(*given, **_settings(make, recipe, options))


def _network(path: Path) -> PublicNetwork:
    """Read a public network; if a release went into it, say that it counts."""
    from aquatint.analyst.images.centring import CENTRED
    from aquatint.networks import load

    network = load(path)
    if network.note.startswith(CENTRED):
        typer.echo(f"aquatint: {path.name} was {network.note}: both releases count", err=True)
    return network


def _with_network(path: Path, network: Any) -> Plan:
    from dataclasses import replace

    from aquatint.features.attaching import attached, check_attached
    from aquatint.planning import Plan

    read = Plan.load(path)
    if network is None:
        return read
    check_attached(tuple(block.map for block in read.blocks), (network,))
    blocks = [replace(block, map=attached(block.map, (network,))) for block in read.blocks]
    return replace(read, blocks=tuple(blocks))


def _recipe(name: str) -> Callable[..., Plan]:
    from aquatint import image_recipes, recipes

    known: dict[str, Callable[..., Plan]] = {
        "dp_mepf": image_recipes.dp_mepf,
        "dp_merf": recipes.dp_merf,
        "dp_hp": recipes.dp_hp,
        "pixel_gaussian": image_recipes.pixel_gaussian,
    }
    if name not in known:
        msg = f"unknown recipe {name!r}: known are {', '.join(RECIPES)}"
        raise PlanError(msg)
    return known[name]


def _settings(make: Callable[..., Plan], recipe: str, options: list[str]) -> dict[str, Any]:
    """Read key=value pairs; values are JSON, or text as it stands, or files of public networks."""
    keywords = [
        name
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    found: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals or key not in keywords:
            msg = f"{recipe} has no option {key!r}; it has {', '.join(keywords)}: write key=value"
            raise PlanError(msg)
        if key in NETWORKS:
            found[key] = _network(Path(text))
            continue
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found
