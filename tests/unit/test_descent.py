"""Adam with a cosine rate: torch's own steps, without its compiler."""

import subprocess
import sys

import pytest
import torch

from aquatint.analyst.synthesize.descent import LEAST, MEMORY, MOMENTUM, Descent


def path(step, parameters, losses):
    for loss in losses:
        loss(*parameters).backward()
        step()
    return [p.detach().clone() for p in parameters]


@pytest.mark.parametrize("memory", [MEMORY, 0.8])
def test_the_steps_are_those_of_torch_to_the_last_bit(memory):
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 5, generator=generator), torch.randn(7, generator=generator)]
    goals = torch.randn(40, 7, generator=generator)
    losses = [
        lambda a, b, goal=goal: (b - goal).square().sum() + (a * goal[:5]).sum().square()
        for goal in goals
    ]
    one, other = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    adam = torch.optim.Adam(one, lr=0.1, betas=(MOMENTUM, memory), fused=True)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(adam, len(losses), 0.1 / LEAST)

    def by_torch():
        adam.step()
        adam.zero_grad()
        rates.step()

    wanted = path(by_torch, one, losses)
    found = path(Descent(other, 0.1, len(losses), memory).step, other, losses)
    assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))


def test_a_parameter_without_a_gradient_stays():
    moved, still = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    descent = Descent((still, moved), 0.1, 5)
    moved.sum().backward()
    descent.step()
    assert torch.equal(still, torch.ones(2))
    assert (moved < 1).all()


def test_fitting_does_not_import_the_compiler_of_torch():
    script = (
        "import sys, torch; from aquatint.analyst.synthesize.descent import Descent;"
        "p = torch.ones(2, requires_grad=True); d = Descent((p,), .1, 2);"
        "p.sum().backward(); d.step(); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
