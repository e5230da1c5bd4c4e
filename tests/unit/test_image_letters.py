"""Letters of free typefaces: where they come from, and that they lie as MNIST's digits do."""

import numpy as np
import pytest
import torch
from benchmark_scripts import fetch

pytest.importorskip("PIL")
made = fetch("image_letters")


def test_without_typefaces_it_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv("AQUATINT_DATA", str(tmp_path))
    with pytest.raises(made.NotHereError, match=r"npm pack .*letters\.txt.* gets all typefaces"):
        made.letters(each=1)


def test_every_typeface_is_named_with_its_version():
    lines = made.TYPEFACES.read_text(encoding="utf-8").split()
    assert len(lines) == len(set(lines)) == 102
    assert all(line.startswith("@fontsource/") and line.count("@") == 2 for line in lines)


def test_what_is_written_fits_the_box_and_is_centred_by_its_weight():
    glyphs = np.zeros((40, made.CANVAS, made.CANVAS), np.uint8)
    glyphs[:20, 20:70, 40:52] = 255  # a stroke, aside
    glyphs[20:, 60:90, 10:60] = 255  # a slab, low and to the left
    found = made._written(glyphs, torch.Generator().manual_seed(0))
    assert found.shape == (40, made.SIDE, made.SIDE)
    assert found.dtype == np.uint8
    assert (found.max(axis=(1, 2)) == 255).all()
    place = np.arange(made.SIDE) + 0.5
    for axis in (1, 2):
        seen = (found > 100).any(axis=3 - axis)
        assert (seen.sum(axis=1) <= made.BOX + 2).all()
        weight = found.sum(axis=3 - axis) / found.sum(axis=(1, 2))[:, None]
        assert np.abs(weight @ place - made.SIDE / 2).max() < 1
    assert len({image.tobytes() for image in found}) == 40  # each is bent in its own way
