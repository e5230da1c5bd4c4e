"""The papers' generator: a network trained once on a noisy embedding, then rows for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.draw import check_count
from aquatint.analyst.synthesize.network_heads import Head, heads_of
from aquatint.analyst.synthesize.network_model import Generator
from aquatint.analyst.synthesize.network_sampling import Sampler
from aquatint.analyst.synthesize.network_targets import (
    class_histograms,
    class_shares,
    reads,
    targets_of,
)
from aquatint.analyst.synthesize.network_training import Training, start, train
from aquatint.analyst.synthesize.store import add_up, are_shares
from aquatint.analyst.synthesize.threads import one_thread
from aquatint.analyst.where import Where, conditions
from aquatint.errors import ReleaseError
from aquatint.progress import track
from aquatint.release.model import Release
from aquatint.schema import Schema

FEWEST_STEPS, MOST_STEPS = 600, 1_500
BATCH = 1_000
HIDDEN = (256, 256)
LATENT = 8
COMPONENTS = 64
RATE = 1e-2
LARGEST = 1e6
"""Trained weights are far smaller, and sums of their products stay finite."""
MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class Network:
    """A trained generator: a public model of the table, for drawing rows.

    Attributes
    ----------
    schema
        The release's schema.
    codes, values
        The columns whose cells, and those whose values, the release told something about.
    label
        The column that the generator is conditional on, if any.
    shares
        The share of every class of the label, or a single 1.
    generator
        The network.
    """

    schema: Schema
    codes: frozenset[str]
    values: frozenset[str]
    label: str | None
    shares: np.ndarray
    generator: Generator

    @property
    def heads(self) -> dict[str, Head]:
        """What the network says of each column."""
        return heads_of(self.schema, self.codes, self.values, self.label)

    def sample(
        self, count: int, *, where: Where | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Draw rows, from the conditional distribution if a condition is given.

        Columns that no block of the release reads are drawn evenly over what the schema admits.

        Parameters
        ----------
        count
            How many rows.
        where
            ``{"sex": "Female"}`` or ``"sex = 'Female' and age >= 30"``.
        seed
            The same seed gives the same rows; by default they differ each time.
        """
        check_count(count)
        given = conditions(self.schema, where)
        sampler = Sampler(self.schema, self.heads, self.generator, self.label, self.shares)
        with one_thread():
            return sampler.draw(count, given, np.random.default_rng(seed))

    def save(self, path: str | Path) -> None:
        """Write the model as one file that `load` reads."""
        tensors: dict[str, Tensor] = {
            "shares": torch.from_numpy(self.shares),
            **self.generator.state_dict(),
        }
        settings = {
            "codes": sorted(self.codes),
            "values": sorted(self.values),
            "label": self.label,
        }
        store.save(path, "network", self.schema, tensors, settings)

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read what `save` wrote."""
        method, schema, tensors, settings = store.load(path)
        if method != "network":
            msg = f"{path} holds a {method}, not a network"
            raise ReleaseError(msg)
        return cls.from_parts(schema, tensors, settings)

    @classmethod
    def from_parts(
        cls, schema: Schema, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> Network:
        """Rebuild a saved model; its layers are as wide as the tensors in the file."""
        try:
            _check(schema, tensors, settings)
        except (LookupError, TypeError, ValueError) as error:
            msg = f"the network in the file does not fit together: {error}"
            raise ReleaseError(msg) from None
        weights = dict(tensors)
        shares = weights.pop("shares").numpy()
        generator = _empty_generator(weights, len(shares))
        generator.load_state_dict(weights, assign=True)
        codes, values = frozenset(settings["codes"]), frozenset(settings["values"])
        return cls(schema, codes, values, settings["label"], shares, generator.eval())

    def __repr__(self) -> str:
        return (
            f"Network(table {self.schema.name!r}, {self.generator.components:,} components, "
            f"{len(self.schema.columns):,} columns)"
        )


def _empty_generator(weights: Mapping[str, Tensor], classes: int) -> Generator:
    """Make a generator with layers as wide as the weights, without memory for its own."""
    norms = [f"norms.{i}.weight" for i in range(len(weights))]
    with torch.device("meta"):
        return Generator(
            classes,
            len(weights["last.weight"]),
            [len(weights[name]) for name in norms if name in weights],
            weights["noise.weight"].shape[1],
            len(weights["component.weight"]),
        )


def _check(schema: Schema, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]) -> None:
    """Refuse parts that do not belong to one network; a file may come from anyone.

    Everything is checked before it is used: names, types, shapes, sizes, and the schema's columns.
    """
    codes, values, label = settings["codes"], settings["values"], settings["label"]
    if not {*codes, *values} <= set(schema.columns) or (label is not None and label not in codes):
        msg = "its columns are not those of the schema"
        raise ValueError(msg)
    weights = dict(tensors)
    shares = weights.pop("shares")
    classes = 1 if label is None else schema.columns[label].cells
    if not are_shares(shares, (classes,)) or not add_up(shares.sum()):
        msg = "its classes are not those of the schema's label"
        raise ValueError(msg)
    wanted = _empty_generator(weights, classes).state_dict()
    if {n: (t.dtype, t.shape) for n, t in weights.items()} != {
        n: (t.dtype, t.shape) for n, t in wanted.items()
    }:
        msg = "its layers do not follow on each other"
        raise ValueError(msg)
    if not all((tensor.abs() < LARGEST).all() for tensor in weights.values()):
        msg = "its weights are not finite"
        raise ValueError(msg)
    if sum(schema.columns[name].cells for name in {*codes, *values}) > MOST_CELLS:
        msg = f"its columns have more than {MOST_CELLS:,} cells"
        raise ValueError(msg)
    heads = heads_of(schema, frozenset(codes), frozenset(values), label)
    if sum(head.width for head in heads.values()) != len(weights["last.weight"]):
        msg = "its heads are not those of the schema's columns"
        raise ValueError(msg)


def fit_network(
    release: Release,
    *,
    steps: int | None = None,
    batch: int | None = None,
    hidden: Sequence[int] = HIDDEN,
    latent: int = LATENT,
    components: int = COMPONENTS,
    rate: float = RATE,
    gamma: float | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: bool = True,
) -> Network:
    """Train a generator on the noisy embedding of a release (DP-MERF Alg. 1, DP-HP eq. 16).

    Residuals are in units of the known noise, per table, and a table stops pulling at its noise
    floor. Eq. 18 of DP-MERF, which divides each class by its count, is not needed for that: every
    class has as many rows in a batch, and its table a weight of its own.

    Parameters
    ----------
    release
        Any release with blocks that read columns: Fourier, Hermite, cosines, products, counts.
    steps, batch
        Steps of Adam, and rows in each; narrow tables, whose steps are quick, have more of them.
    hidden, latent, components
        The widths of the hidden layers, the length of the noise, the number of modes to start with.
    rate
        The highest learning rate; it warms up and falls along a cosine.
    gamma
        The weight of product kernels against the others (DP-HP eq. 16), on top of the weights by
        noise. Those alone, the default, are eq. 16 with the γ that the plan split its budget by.
    seed
        The same seed gives the same network on the same machine.
    device
        ``"cpu"`` or ``"cuda"``.
    progress
        Show progress on a terminal when it takes longer than two seconds.
    """
    schema = release.schema
    codes, values = reads(release)
    label = schema.label if schema.label in codes - values else None
    shares = np.ones(1) if label is None else class_shares(release, label)
    targets = targets_of(release, label, shares, 1.0 if gamma is None else gamma)
    if not targets:
        msg = (
            "the release has no block that a generator can be trained on: sketch with "
            "dp_merf or dp_hp, or with histograms, pairs, cosines, Fourier or Hermite features"
        )
        raise ReleaseError(msg)
    heads = heads_of(schema, codes, values, label)
    usual = min(max(6_000 // max(1, len(heads)), FEWEST_STEPS), MOST_STEPS)
    chosen = Training(steps or usual, batch or BATCH, rate, seed, device)
    outputs = sum(head.width for head in heads.values())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        generator = Generator(len(shares), outputs, tuple(hidden), latent, components)
    start(generator, heads, class_histograms(release, label))
    with track("training", chosen.steps, show=progress) as advance, one_thread():
        train(generator, heads, targets, label, chosen, advance)
    return Network(schema, codes, values, label, shares, generator)
