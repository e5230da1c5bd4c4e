"""Adam with a cosine rate, by torch's own fused step.

`torch.optim.Adam` computes the same, to the last bit, but imports torch's compiler when it is first
made: a second of every command that fits a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, pi

import torch
from torch import Tensor
from torch.optim.adam import adam

MOMENTUM, MEMORY = 0.9, 0.99
"""How much of the mean gradient, and of the mean square, each step keeps by default."""
LEAST = 50
"""The rate falls to one over so much."""


@dataclass
class Descent:
    """The parameters of a fit on their way down.

    Attributes
    ----------
    parameters
        What is changed in place, by its gradient.
    rate
        The first rate; it falls like half a cosine.
    steps
        How many steps there will be.
    memory
        How much of the mean squared gradient each step keeps.
    """

    parameters: Sequence[Tensor]
    rate: float
    steps: int
    memory: float = MEMORY
    _done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._first = [torch.zeros_like(p) for p in self.parameters]
        self._second = [torch.zeros_like(p) for p in self.parameters]
        self._counts = [torch.zeros(()) for _ in self.parameters]
        self._least = self.rate / LEAST

    def step(self) -> None:
        """Take one step, and lower the rate as `CosineAnnealingLR` does."""
        moved = [i for i, parameter in enumerate(self.parameters) if parameter.grad is not None]
        with torch.no_grad():
            adam(
                [self.parameters[i] for i in moved],
                [gradient for p in self.parameters if (gradient := p.grad) is not None],
                [self._first[i] for i in moved],
                [self._second[i] for i in moved],
                [],
                [self._counts[i] for i in moved],
                fused=True,
                amsgrad=False,
                beta1=MOMENTUM,
                beta2=self.memory,
                lr=self.rate,
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
        for parameter in self.parameters:
            parameter.grad = None
        self._done += 1
        before, after = (1 + cos(pi * t / self.steps) for t in (self._done - 1, self._done))
        self.rate = after / before * (self.rate - self._least) + self._least
