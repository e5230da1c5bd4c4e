"""The generator: a label-conditional network from noise to the heads of a table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Generator(nn.Module):
    """A multi-layer perceptron G(z, k, y) (DP-MERF sec. 4.1).

    Besides Gaussian noise z and the label y its input is one of K components, each with an
    embedding of its own. A continuous map of z alone has to connect the modes that it reaches, and
    rows fall in between; with components modes come apart.

    Parameters
    ----------
    classes
        The cells of the label, or 1 without a label.
    outputs
        The width of all heads together.
    hidden
        The widths of the hidden layers; layers of equal width have residual connections.
    latent
        The length of z.
    components
        K.
    """

    def __init__(
        self, classes: int, outputs: int, hidden: Sequence[int], latent: int, components: int
    ) -> None:
        super().__init__()
        self.noise = nn.Linear(latent, hidden[0])
        self.component = nn.Embedding(components, hidden[0])
        self.label = nn.Embedding(classes, hidden[0])
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(hidden))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in hidden)
        self.last = nn.Linear(hidden[-1], outputs)
        self.base = nn.Embedding(classes, outputs)
        self.sizes = nn.Embedding(classes, components)
        with torch.no_grad():
            self.last.weight.mul_(0.3)
            self.base.weight.zero_()
            self.sizes.weight.zero_()

    def forward(self, noise: Tensor, component: Tensor, label: Tensor) -> Tensor:
        """Give the outputs for all heads, shape (n, outputs)."""
        entered = self.noise(noise) + self.component(component) + self.label(label)
        state = nn.functional.silu(self.norms[0](entered))
        for layer, norm in zip(self.layers, list(self.norms)[1:], strict=True):
            stepped = nn.functional.silu(norm(layer(state)))
            state = state + stepped if stepped.shape == state.shape else stepped
        out: Tensor = self.last(state) + self.base(label)
        return out

    def shares(self) -> Tensor:
        """Give the share of every component in each class, shape (classes, components)."""
        return torch.softmax(self.sizes.weight, dim=1)

    @property
    def latent(self) -> int:
        """The length of z."""
        return self.noise.in_features

    @property
    def components(self) -> int:
        """The number of components K."""
        return self.component.num_embeddings

    @property
    def classes(self) -> int:
        """The number of labels."""
        return self.label.num_embeddings
