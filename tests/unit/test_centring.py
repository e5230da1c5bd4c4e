"""A view of cosines, and a view that a first release centres."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_images import image_schema, some_digits, tiny_resnet
from typer.testing import CliRunner

import aquatint as aq
from aquatint.accounting import left
from aquatint.analyst.images.centring import ROOM, centred_view
from aquatint.cli import app
from aquatint.errors import PlanError, ReleaseError
from aquatint.networks import public_projection, smooth_projection
from aquatint.networks.smooth import _waves

pytestmark = pytest.mark.usefixtures("one_thread")
SCHEMA = image_schema()
VIEW = smooth_projection((8, 8), 12)
TOML = """
name = "digits"
[privacy]
protects = "replace one row"
[columns.image]
kind = "image"
size = [8, 8]
channels = 1
"""


def first_release(epsilon=10, *, labelled=False):
    plan = aq.pixel_gaussian(SCHEMA, VIEW, labelled=labelled)
    return aq.sketch(some_digits(800), SCHEMA, plan=plan, epsilon=epsilon, delta=1e-5)


def lengths(view):
    pixels = torch.from_numpy(some_digits(800).pixels.transpose(0, 3, 1, 2).copy()) / 255
    module = view.require()
    return ((pixels.flatten(1) - module.centre) @ module.directions.T).norm(dim=1), pixels


def test_cosines_are_the_principal_components_of_the_images_made_of_them():
    made = _waves((28, 28), 20).reshape(40, -1).astype(float) - 127.5
    waves = made[:20] - made[20:]
    unit = waves / np.linalg.norm(waves, axis=1, keepdims=True)
    assert np.allclose(unit @ unit.T, np.eye(20), atol=0.05)  # pixels are whole numbers
    kept = public_projection(_waves((28, 28), 20), 20, whiten=0.0).require().directions
    assert np.linalg.svd(unit @ kept.double().numpy().T, compute_uv=False).min() > 0.99
    with pytest.raises(PlanError, match="1 to 63 cosines"):
        smooth_projection((8, 8), 64)


@pytest.mark.parametrize(("labelled", "exact"), [(False, 0.1), (True, 0.3)])
def test_a_centred_view_lies_where_the_images_are(labelled, exact):
    # the level has noise of about 1 %, and of 4 % where ten classes are added up
    moved = centred_view(first_release(labelled=labelled))
    long, pixels = lengths(moved)
    mean = pixels.flatten(1).mean(dim=0)
    smooth = VIEW.require().directions
    # along the cosines the centre is the mean; across them it stays grey, where nothing is seen
    off = (moved.require().centre - mean) @ smooth.T / smooth.norm(dim=1)
    assert off.norm() < 0.2 * (VIEW.require().centre - mean).norm()
    wanted = ROOM * float(long.square().mean().sqrt())
    assert float(moved.require().level) == pytest.approx(wanted, rel=exact)
    assert torch.equal(moved.require().directions, smooth)
    assert moved.sha256 != VIEW.sha256
    assert "epsilon 10" in moved.note


def test_a_centred_view_buys_more_precise_moments():
    # noise in pixels goes with the square of the level
    assert float(centred_view(first_release()).require().level) < 0.8 * float(VIEW.require().level)


def test_both_releases_fit_under_one_budget_and_the_second_is_drawn_from():
    whole = aq.Budget(10, 1e-5)
    first = first_release(4)
    rest = left(first.loss, whole)
    plan = aq.dp_mepf(SCHEMA, tiny_resnet(), gaussian=centred_view(first))
    second = aq.sketch(some_digits(800), SCHEMA, plan=plan, epsilon=rest, delta=1e-5)
    assert (first.loss + second.loss).epsilon(1e-5) <= whole.epsilon
    assert (first.loss + second.loss).epsilon(1e-5) > 0.99 * whole.epsilon
    quick = {"steps": 4, "batch": 20, "widths": (8, 8), "latent": 4, "progress": False}
    drawn = aq.synthesize(second, blend=0.5, **quick).sample(40, seed=0)
    assert drawn.pixels.shape == (40, 8, 8, 1)


def test_what_cannot_be_centred_is_refused_in_a_sentence():
    release = first_release()
    with pytest.raises(ReleaseError, match=r"room is between 0\.1 and 10"):
        centred_view(release, room=0)
    counts = aq.sketch(
        some_digits(300), SCHEMA, plan=aq.dp_mepf(SCHEMA, tiny_resnet()), epsilon=10, delta=1e-5
    )
    with pytest.raises(ReleaseError, match="pixel_gaussian, labelled=False, first"):
        centred_view(counts)
    block = release.block("gaussian")
    nothing = replace(block, integers=np.zeros_like(block.integers))
    with pytest.raises(ReleaseError, match="noise hides how far the images spread"):
        centred_view(replace(release, blocks=(nothing,)))


def test_a_view_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()

    def do(words, code=0):
        found = run.invoke(app, words.split(), catch_exceptions=True)
        assert found.exit_code == code, found.output
        return found

    do("view --size 8 --components 12 -o view.safetensors")
    assert aq.networks.load("view.safetensors").sha256 == VIEW.sha256
    first_release().save("first.aqt")
    do("view first.aqt -o centred.safetensors --quiet")
    loaded = aq.load("first.aqt")
    wanted = centred_view(aq.attach(loaded, VIEW))
    assert aq.networks.load("centred.safetensors").sha256 == wanted.sha256
    (tmp_path / "digits.toml").write_text(TOML, encoding="utf-8")
    words = "--rows 800 --epsilon 1 --delta 1e-5 --recipe pixel_gaussian"
    told = do(f"plan digits.toml {words} --features centred.safetensors")
    assert "epsilon 10 and delta 1e-05: both releases count" in told.output
    for words in ("view -o x.safetensors", "view first.aqt --size 8 -o x.safetensors"):
        found = run.invoke(app, words.split())
        assert found.exit_code != 0
        assert not (tmp_path / "x.safetensors").exists()
