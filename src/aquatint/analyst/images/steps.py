"""One step of training as a function: recorded once as a CUDA graph where there is a GPU.

A step is a thousand small kernels, and starting them one by one takes longer than running them. A
graph starts them all at once. What changes from step to step, noise and rate, is written into the
tensors that the graph reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from aquatint.analyst.images.generators import Generator
from aquatint.analyst.images.matching import Match

WARM_UP = 3
MOVING = 0.9
"""How much of the mean embedding of earlier batches a moving average keeps."""

Step = Callable[[], Tensor]


def stepper(
    generator: Generator,
    adam: torch.optim.Adam,
    matches: Sequence[Match],
    noise: Tensor,
    classes: Tensor,
    weights: Tensor,
    pull: Tensor,
    matching: str,
) -> Step:
    """Give a function that makes one step and returns the misfit of every line.

    Parameters
    ----------
    noise
        Is written anew before each step.
    weights, pull
        What a line's misfit counts for, and whether it still pulls; may be written to.
    matching
        ``"batch"`` or ``"moving"``.
    """
    device = noise.device
    half = device.type == "cuda"

    def misfits() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            images = generator(noise, classes)
        if matching == "moving":
            return torch.cat([match.moving(images, MOVING) for match in matches])
        return torch.cat([match.misfit(images) for match in matches])

    def once() -> Tensor:
        # Without gradients to add to, a recorded step writes its own anew at every replay.
        adam.zero_grad(set_to_none=True)
        found = misfits()
        (found * weights * pull).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
        return found.detach()

    return _recorded(once, device) if half else once


def _recorded(once: Step, device: torch.device) -> Step:
    """Record a step; a map that cannot be recorded is run step by step."""
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    # the first steps try which convolutions are quickest here, and the graph keeps those
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                once()
        torch.cuda.current_stream(device).wait_stream(side)
        try:
            with torch.cuda.graph(graph):
                result = once()
        except RuntimeError:
            torch.cuda.synchronize(device)
            return once

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay
