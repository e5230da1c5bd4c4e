"""Taking noise off the means of layers: most of it goes, and what is left is known."""

import pytest
import torch

from aquatint.analyst.images.denoise import _table, denoised

SHAPES = [(16, 16, 16), (40,), (12, 8, 4)]
SIZES = [4096, 40, 384]


def smooth_means(lines: int) -> torch.Tensor:
    """Give maps with energy in the lowest frequencies of every other channel."""
    dice = torch.Generator().manual_seed(1)
    parts = []
    for shape in SHAPES:
        if len(shape) == 1:
            parts.append(torch.rand(lines, *shape, generator=dice))
            continue
        channels, height, width = shape
        waves = torch.zeros(lines, *shape, dtype=torch.float64)
        waves[:, ::2, :2, :2] = torch.randn(
            lines, channels // 2, 2, 2, generator=dice, dtype=torch.float64
        )
        maps = _table(height).T @ waves @ _table(width)
        parts.append(maps.flatten(1).float())
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("lines", [1, 10])
def test_most_noise_goes_and_the_rest_is_known(lines: int) -> None:
    truth = smooth_means(lines)
    dice = torch.Generator().manual_seed(2)
    spread = torch.linspace(0.2, 0.4, lines)  # classes of different sizes
    noisy = truth + spread[:, None] * torch.randn(truth.shape, generator=dice)
    found, left = denoised(noisy, spread, SHAPES)
    before = (noisy - truth).square().sum(dim=1)
    after = (found - truth).square().sum(dim=1)
    assert (after < 0.15 * before).all()
    assert 0.5 < float(after.mean() / left.mean()) < 2


def test_without_noise_nothing_changes() -> None:
    truth = smooth_means(3)
    found, left = denoised(truth, torch.full((3,), 1e-6), SHAPES)
    torch.testing.assert_close(found, truth, atol=1e-4, rtol=1e-4)
    assert (left < 1e-8).all()


def test_noise_alone_is_hardly_ever_taken_for_a_signal() -> None:
    dice = torch.Generator().manual_seed(3)
    noisy = torch.randn(10, sum(SIZES), generator=dice)
    found, _ = denoised(noisy, torch.ones(10), SHAPES)
    assert found.square().sum() < 0.02 * noisy.square().sum()


def test_the_transform_keeps_lengths() -> None:
    for side in (1, 4, 7):
        torch.testing.assert_close(_table(side) @ _table(side).T, torch.eye(side).double())
