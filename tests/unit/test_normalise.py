"""Probabilities by column, in matrix products: those of a softmax for each column."""

import pytest
import torch

from aquatint.analyst.synthesize.normalise import normalise
from aquatint.analyst.synthesize.threads import without_subnormals

SIZES = [4, 1, 7, 2]
OF_COLUMN = torch.repeat_interleave(torch.eye(len(SIZES)), torch.tensor(SIZES), 0)


def drawn(scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(3, 5, sum(SIZES), generator=generator)


def by_column(logits):
    return torch.cat([part.softmax(-1) for part in logits.split(SIZES, -1)], -1)


def largest(logits):
    return torch.stack([part.amax(-1) for part in logits.split(SIZES, -1)], -1)


@pytest.mark.parametrize("scale", [0.1, 3.0, 200.0])
def test_probabilities_and_gradients_are_those_of_a_softmax_for_each_column(scale):
    pull = drawn(1.0, seed=1)
    one, other = (drawn(scale).requires_grad_() for _ in range(2))
    found, _ = normalise(one, OF_COLUMN, largest(one.detach()))
    wanted = by_column(other)
    torch.testing.assert_close(found, wanted)
    (found * pull).sum().backward()
    (wanted * pull).sum().backward()
    torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)


def test_with_the_levels_of_the_step_before_nothing_overflows_however_far_it_goes():
    logits = drawn(1.0)
    levels = torch.zeros(3, 5, len(SIZES))
    for _ in range(300):
        logits = logits + 10 * drawn(1.0, seed=1) + 5.0
        found, levels = normalise(logits, OF_COLUMN, levels)
    assert logits.max() > 1000
    torch.testing.assert_close(found, by_column(logits))
    torch.testing.assert_close(found @ OF_COLUMN, torch.ones(3, 5, len(SIZES)))


def flushes():
    return not (torch.tensor([1e-40]) * 1.0).any()


@pytest.mark.parametrize("before", [False, True])
def test_tiny_numbers_are_zero_inside_and_what_they_were_afterwards(before):
    if not torch.set_flush_denormal(before):
        pytest.skip("this processor keeps them")
    try:
        with without_subnormals():
            assert flushes()
        assert flushes() == before
        with pytest.raises(ZeroDivisionError), without_subnormals():
            raise ZeroDivisionError
        assert flushes() == before
    finally:
        torch.set_flush_denormal(False)
