"""The front door of synthesis: `synthesize` fits a model to a release, `sample` draws from one."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

import pandas as pd

from aquatint.analyst.images.blend import ImageBlend
from aquatint.analyst.images.front import synthesize_images, with_networks
from aquatint.analyst.images.gaussian import ImageGaussian
from aquatint.analyst.images.model import ImageNetwork
from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.mixture import Mixture, can_mix, fit_mixture
from aquatint.analyst.synthesize.network import Network, fit_network
from aquatint.analyst.synthesize.store import is_model
from aquatint.analyst.where import Where, conditions
from aquatint.errors import DataError, ReleaseError
from aquatint.features import Count
from aquatint.progress import heard_by
from aquatint.release import load
from aquatint.release.model import Release
from aquatint.schema import Schema

Method = Literal["auto", "mixture", "network", "gaussian"]
METHODS: tuple[str, ...] = get_args(Method)
KINDS: dict[str, type[Mixture | Network | ImageNetwork | ImageGaussian | ImageBlend]] = {
    "mixture": Mixture,
    "network": Network,
    "image network": ImageNetwork,
    "image gaussian": ImageGaussian,
    "image blend": ImageBlend,
}


class Synthesizer(Protocol):
    """What every fitted model can do."""

    @property
    def schema(self) -> Schema:
        """What is public about the table."""

    def sample(self, count: int, *, where: Where | None = None, seed: int | None = None) -> Any:
        """Draw rows, a DataFrame; or images, an `ImageBatch`."""

    def save(self, path: str | Path) -> None:
        """Write the model as one file."""


def synthesize(
    release: Release,
    method: Method = "auto",
    *,
    seed: int = 0,
    progress: bool = True,
    **settings: Any,
) -> Synthesizer:
    """Fit a generative model to a release; what is drawn from it costs no privacy.

    Parameters
    ----------
    release
        Any release with a block that reads columns.
    method
        ``"mixture"`` is a mixture of products fitted in closed form: the best choice for tables,
        and what ``"auto"`` takes wherever a block allows it. ``"network"`` is the label-conditional
        generator of DP-MERF and DP-HP, and for images that of DP-MEPF. ``"gaussian"`` is for images
        without a generator.
    seed
        The same seed gives the same model.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    settings
        Passed on: ``effort=`` for the mixture; ``steps=``, ``gamma=`` … for the network;
        ``network=``, ``device=``, ``checkpoint=`` … for images, see `fit_images`.

    Returns
    -------
    Synthesizer
        With ``sample``, ``save`` and ``schema``; `load_model` reads what ``save`` wrote.
    """
    if method not in METHODS:
        raise ReleaseError(_unknown(method))
    if release.schema.images:
        return synthesize_images(release, method, seed=seed, progress=progress, **settings)
    if method == "gaussian":
        msg = "a Gaussian in a public view is for images: use mixture or network for tables"
        raise ReleaseError(msg)
    if all(isinstance(block.map, Count) for block in release.blocks):
        msg = "the release holds only the number of rows: no table can be drawn from it"
        raise ReleaseError(msg)
    if method == "mixture" or (method == "auto" and can_mix(release)):
        return fit_mixture(release, seed=seed, progress=progress, **settings)
    return fit_network(release, seed=seed, progress=progress, **settings)


def sample(
    release: Release,
    count: int,
    *,
    where: Where | None = None,
    method: Method = "auto",
    seed: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Any:
    """Draw a synthetic table, in the schema's own types, or images from a release.

    Parameters
    ----------
    release
        What the curator published.
    count
        How many rows to draw.
    where
        Draw only rows that satisfy this: ``{"sex": "Female", "age": (30, 50)}`` or SQL like
        ``"sex = 'Female' and age between 30 and 50"``.
    method, progress
        As for `synthesize`, which fits once and draws as often as you like.
    seed
        The same seed gives the same rows.
    settings
        As for `synthesize`: for images ``network=`` names the public network, and ``device=`` where
        to compute.

    Returns
    -------
    pandas.DataFrame or ImageBatch
        Rows; or images with their labels, which ``image_files.write_images`` writes.
    """
    model = synthesize(release, method, seed=seed or 0, progress=progress, **settings)
    with nullcontext() if progress else heard_by(lambda *_: None):
        return model.sample(count, where=where, seed=seed)


def load_model(path: str | Path) -> Synthesizer:
    """Read a model that ``save`` wrote."""
    method, schema, tensors, settings = store.load(path)
    if method not in KINDS:
        store.refuse(path, f"this Aquatint does not know models of kind {method[:40]!r}")
    try:
        return KINDS[method].from_parts(schema, tensors, settings)
    except ReleaseError as error:
        store.refuse(path, str(error))


def opened_schema(path: str | Path) -> Schema:
    """Read the schema of a release or of a saved model."""
    return store.load(path)[1] if is_model(path) else load(path).schema


def open_model(
    path: str | Path,
    method: str = "auto",
    *,
    where: Where | None = None,
    seed: int = 0,
    progress: bool = True,
    **settings: Any,
) -> Synthesizer:
    """Open a saved model, or fit one to the release in a file; a wrong condition is told first.

    Public networks that a release of images names are looked for beside it and in the working
    folder.
    """
    if method not in METHODS:
        raise ReleaseError(_unknown(method))
    if is_model(path):
        model = load_model(path)
        for name in settings.keys() - {"device"}:
            msg = f"{path} is fitted already: leave out {name!r}, or give the release"
            raise ReleaseError(msg)
        kind = type(model).__name__.lower().removeprefix("image")
        if method not in {"auto", kind}:
            msg = f"{path} holds a {kind}, not a {method}: leave the method out, or give a release"
            raise ReleaseError(msg)
        conditions(model.schema, where)
        return model
    release = load(path)
    conditions(release.schema, where)
    if release.schema.images:
        folders = (Path(path).parent, Path.cwd())
        release = with_networks(release, settings.pop("network", None), folders)
    return synthesize(release, cast("Method", method), seed=seed, progress=progress, **settings)


def check_table_path(path: str | Path) -> None:
    """Refuse a file whose format its name does not tell, before anything is drawn."""
    if Path(path).suffix not in {".csv", ".parquet"}:
        msg = f"cannot tell the format of {path}: end its name in .csv or .parquet"
        raise DataError(msg)


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write rows as CSV or Parquet, by the file's suffix."""
    check_table_path(path)
    try:
        if Path(path).suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise DataError(msg) from None


def _unknown(method: str) -> str:
    return f"unknown method {method!r}: choose one of {', '.join(METHODS)}"
