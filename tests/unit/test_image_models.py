"""Images from a release: what is matched, how it is trained, saved, resumed and drawn."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from tiny_images import digits, image_schema, some_digits, tiny_projection, tiny_resnet, tiny_vgg

import aquatint as aq
from aquatint.analyst.images.fit import fit_images
from aquatint.analyst.images.front import with_networks
from aquatint.analyst.images.gaussian import _square_root
from aquatint.analyst.images.generators import KINDS, build
from aquatint.analyst.images.matching import Match, class_means, weights_of
from aquatint.analyst.images.model import drawn_classes
from aquatint.analyst.images.targets import (
    Target,
    parted,
    shares_of,
    shrunk,
    targets_of,
    validation_of,
)
from aquatint.analyst.images.tones import _curve
from aquatint.analyst.images.training import Training, start, train
from aquatint.errors import PlanError, ReleaseError
from aquatint.features import Perceptual, fourier, image_rows, pixel_names
from aquatint.features.tones import TONES, tone_of
from aquatint.image_recipes import dp_mepf, pixel_gaussian
from aquatint.networks import save as save_network

pytestmark = pytest.mark.usefixtures("one_thread")
SCHEMA = image_schema()
QUICK = {"steps": 40, "batch": 60, "widths": (8, 8), "latent": 4, "progress": False}


def released(plan, count=900, epsilon=10.0, schema=SCHEMA):
    return aq.sketch(some_digits(count), schema, plan=plan, epsilon=epsilon, delta=1e-5)


@pytest.fixture(scope="module")
def release():
    return released(dp_mepf(SCHEMA, tiny_resnet(size=16), balance="layers"))


@pytest.fixture(scope="module")
def model(release):
    return fit_images(release, **QUICK)


def accuracy(drawn):
    """Train on what was drawn, test on digits that nobody has seen."""
    real = some_digits(800, start=900)
    flat = [batch.pixels.reshape(len(batch), -1) / 255 for batch in (drawn, real)]
    fitted = LogisticRegression(max_iter=200).fit(flat[0], drawn.labels)
    return fitted.score(flat[1], real.labels)


# What is matched


def test_gradients_of_class_means_are_right():
    dice = torch.Generator().manual_seed(0)
    layers = [torch.randn(6, size, dtype=torch.float64, generator=dice) for size in (4, 3)]
    layers[0][0], layers[1][0] = 0.0, 0.0  # a row of which nothing is seen
    given = [layer[1:].requires_grad_() for layer in layers]

    def means(*rows):
        whole = [torch.cat([torch.zeros(1, r.shape[1], dtype=r.dtype), r]) for r in rows]
        return class_means(2, 0.5, *whole)[:-1]

    assert torch.autograd.gradcheck(means, given)


@pytest.mark.parametrize("balance", ["rows", "layers"])
@pytest.mark.parametrize("moments", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("network", [tiny_resnet, tiny_vgg])
def test_means_are_those_of_the_features(balance, moments, network):
    phi = Perceptual(network(), balance=balance, moments=moments)
    images = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    images[0] = 0
    features = phi.features_of(images)
    mean = features.view(2, 3, -1).mean(dim=1)
    match = Match(Target(phi, mean, torch.ones(2), torch.eye(2)), 2)
    means, squared = match.means(images)
    for found, wanted in zip(means, match.parts, strict=True):
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(squared, features.square().sum(1).view(2, 3).mean(1))
    variance = features.view(2, 3, -1).var(dim=1).sum(dim=1) / 3
    torch.testing.assert_close(match.misfit(images), -variance, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("by_class", [True, False])
def test_the_misfit_has_no_bias(by_class):
    """With few images the plain distance is too large by the variance; the misfit is not.

    Its mean over 4,000 batches is within 5.5 standard errors of the distance of the true means: a
    false alarm in more than ten million runs.
    """
    phi = fourier(pixel_names("image", SCHEMA.images["image"]), 20, length_scale=1.0, seed=0)
    pool = torch.from_numpy(digits().pixels[:400]).permute(0, 3, 1, 2).float() / 255
    features = phi(image_rows("image", pool)).view(2, 200, -1)
    mix = torch.eye(2) if by_class else torch.tensor([[0.3, 0.7]])
    true = mix @ features.mean(dim=1)
    target = true + 0.02
    match = Match(Target(phi, target, torch.ones(len(mix)), mix), 2)
    distance = (true - target).square().sum(dim=1)
    rng = np.random.default_rng()
    found = []
    for _ in range(4_000):
        some = np.concatenate([rng.integers(0, 200, 5), rng.integers(200, 400, 5)])
        found.append(match.misfit(pool[torch.from_numpy(some)]))
    seen = torch.stack(found)
    error = seen.std(dim=0) / len(seen) ** 0.5
    assert ((seen.mean(dim=0) - distance).abs() < 5.5 * error).all()
    bias = mix.square() @ features.var(dim=1).sum(dim=1) / 5
    assert (bias > 11 * error).all()  # the test can tell


def test_a_moving_average_converges_to_the_mean_of_all():
    phi = fourier(pixel_names("image", SCHEMA.images["image"]), 20, length_scale=1.0, seed=0)
    pool = torch.from_numpy(digits().pixels[:200]).permute(0, 3, 1, 2).float() / 255
    mean = phi(image_rows("image", pool)).mean(dim=0, keepdim=True)
    match = Match(Target(phi, mean, torch.ones(1), torch.eye(1)), 1)
    first = float(match.moving(pool[:10], 0.9))
    dice = torch.Generator().manual_seed(0)
    for _ in range(60):
        last = float(match.moving(pool[torch.randint(200, (10,), generator=dice)], 0.9))
    assert 0 <= last < first / 2
    images = pool[:10].clone().requires_grad_()
    match.moving(images, 0.9).sum().backward()
    assert images.grad.abs().sum() > 0


def test_targets_are_noisy_means_with_their_noise():
    plan = dp_mepf(SCHEMA, tiny_resnet(), layers=["relu"], stopping=True)
    release = released(plan)
    shares = shares_of(release, "label")
    assert abs(shares.sum() - 1) < 1e-9
    [target] = targets_of(release, "label", shares)
    [aside] = validation_of(release, "label", shares)
    block = release.block("perceptual")
    counts = shares * 900
    wanted = block.sum.reshape(10, -1) / counts[:, None]
    np.testing.assert_allclose(target.mean.numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(target.spread.numpy(), block.stderr[0] / counts, rtol=1e-5)
    assert torch.equal(target.mix, torch.eye(10))
    assert aside.mix.shape == (1, 10)
    np.testing.assert_allclose(
        aside.mean.numpy()[0], release.mean("stopping"), rtol=1e-5, atol=1e-6
    )


def test_a_class_without_images_has_no_share_and_no_weight():
    batch = some_digits(900)
    kept = batch.labels != "3"
    some = type(batch)(batch.pixels[kept], batch.labels[kept])
    plan = dp_mepf(SCHEMA, tiny_resnet(), layers=["relu"], class_share=0.5)
    release = aq.sketch(some, SCHEMA, plan=plan, epsilon=10, delta=1e-5)
    shares = shares_of(release, "label")
    assert shares[3] < 0.01
    [target] = targets_of(release, "label", shares)
    weights = weights_of([Match(target, 10)])[0]
    assert weights[3] < 0.02 * weights.max()


def test_counts_that_say_little_lose_no_class():
    rng = np.random.default_rng(0)
    true = np.full(10, 60.0)
    drawn = true + rng.normal(0, 50, (500, 10))
    shares = np.array([shrunk(counts, 50.0, 600.0) for counts in drawn])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    lost, otherwise = ((each.min(axis=1) <= 0).mean() for each in (shares, drawn))
    assert lost < 0.1
    assert otherwise > 0.5
    known = shares_of(released(dp_mepf(SCHEMA, tiny_resnet(), class_share=0.9)), "label")
    real = np.bincount(some_digits(900).labels.astype(int)) / 900
    assert np.abs(known - real).max() < 0.02


# The papers, end to end


def test_perceptual_features_make_digits(release):
    drawn = fit_images(release, **{**QUICK, "steps": 150, "widths": (24, 16), "latent": 8})
    assert accuracy(drawn.sample(1500, seed=0)) > 0.4  # five tries: .60 to .65; chance: .1


@pytest.mark.parametrize(("recipe", "least"), [(aq.dp_merf, 0.6), (aq.dp_hp, 0.5)])
def test_pixels_make_digits(recipe, least):
    given = {"features": 1000} if recipe is aq.dp_merf else {"order": 10, "product_order": 3}
    release = released(recipe(SCHEMA, **given))
    model = aq.synthesize(release, generator="connected", steps=200, progress=False)
    assert accuracy(model.sample(1500, seed=0)) > least


def test_the_gaussian_makes_digits():
    model = aq.synthesize(released(pixel_gaussian(SCHEMA, tiny_projection(20))))
    assert accuracy(model.sample(1500, seed=0)) > 0.8


def test_the_edge_of_the_noise_is_where_the_noise_ends():
    """Squares have noise of deviation σ, products of two 5/7 of it: see `ProjectedMoments`."""
    rng, size, sigma = np.random.default_rng(3), 60, 1.0
    upper = np.triu(rng.normal(size=(size, size)), 1) * sigma * 5 / 7
    noise = upper + upper.T + np.diag(rng.normal(size=size)) * sigma
    spike = np.zeros(size)
    spike[0] = 2.5 * 5 / 7 * sigma * size**0.5  # beyond the edge at 2, by a quarter
    found = _square_root(torch.from_numpy(noise + np.diag(spike)), sigma * 5 / 7)
    variances = found.square().sum(dim=0)
    assert variances.max() == pytest.approx(spike[0], rel=0.35)
    assert (variances > 1).sum() <= 2  # the others share what is left, here about .1 each
    assert float(variances.min()) >= 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 13, 10)])
def test_generators_give_images_that_reach_black_and_white(kind, shape):
    torch.manual_seed(0)
    generator = build(kind, shape, 4)
    images = generator(torch.randn(8, generator.latent), torch.arange(8) % 4).detach()
    assert images.shape == (8, *shape)
    assert 0 <= float(images.min()) <= float(images.max()) <= 1
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.mul_(20)
        extreme = generator(torch.randn(64, generator.latent), torch.arange(64) % 4)
    assert (extreme == 0).any()
    assert (extreme == 1).any()


def test_unlabelled_images():
    schema = image_schema(label=False)
    batch = some_digits(300)
    plain = type(batch)(batch.pixels, None)
    plan = dp_mepf(schema, tiny_resnet())
    release = aq.sketch(plain, schema, plan=plan, epsilon=10, delta=1e-5)
    drawn = aq.sample(release, 7, seed=1, **QUICK)
    assert drawn.labels is None
    assert drawn.pixels.shape == (7, 8, 8, 1)


@pytest.mark.parametrize("settings", [{"matching": "moving"}, {"floor": False}])
def test_other_ways_of_training(release, settings):
    model = fit_images(release, **QUICK, **settings)
    assert len(model.sample(11, seed=0)) == 11


def test_at_the_noise_floor_nothing_pulls(release):
    """A target that noise alone explains moves a generator by its first steps, and no further."""
    shares = shares_of(release, "label")
    [target] = targets_of(release, "label", shares)
    loud = replace(target, spread=target.spread * 1e6)
    moved = {}
    for floor in (True, False):
        chosen = Training(60, 40, 1e-2, 0.9, "batch", floor, False, 0.0, 1.0, 0)
        torch.manual_seed(0)
        generator = build("residual", (1, 8, 8), 10, 4, (8, 8))
        before = generator.last.weight.detach().clone()
        progress = start(generator, chosen)
        train(progress, [Match(loud, 10)], [], chosen)
        moved[floor] = float((generator.last.weight.detach() - before).abs().max())
        assert float(progress.misfits.max()) < 1
    assert 2 * moved[True] < moved[False]


def test_the_validation_block_chooses_the_weights(monkeypatch):
    """Weights are kept where the misfit to the validation block is least, not at the end."""
    plan = dp_mepf(SCHEMA, tiny_resnet(), layers=["relu"], stopping=True)
    release = released(plan)
    misfits, original = iter([5.0, 1.0, 3.0] + [9.0] * 17), Match.misfit
    states, kept = [], train.__globals__["_validate"]

    def misfit(self, images):
        aside = self.target.mix.shape == (1, 10)
        return torch.tensor([next(misfits)]) if aside else original(self, images)

    def validate(progress, *rest):
        kept(progress, *rest)
        states.append(progress.averaged.last.weight.detach().clone())

    monkeypatch.setattr(Match, "misfit", misfit)
    monkeypatch.setitem(train.__globals__, "_validate", validate)
    model = fit_images(release, **QUICK, patience=1.0)
    assert len(states) == 20
    assert torch.equal(model.generator.last.weight, states[1])
    assert not torch.equal(states[1], states[-1])
    states.clear()
    misfits = iter([5.0, 1.0, 3.0] + [9.0] * 17)
    again = fit_images(release, **QUICK, patience=0.25)
    assert len(states) == 2 + 5  # and a quarter of the steps in vain
    assert torch.equal(again.generator.last.weight, model.generator.last.weight)


def test_noise_parts_a_target_in_two_that_are_independent(release):
    """Their noises have the stated spread and no correlation, over 4 targets of 10⁶ numbers.

    Twenty deviations are within 5.5 standard errors: a false alarm in a million runs.
    """
    [target] = targets_of(release, "label", shares_of(release, "label"))
    truth, spread = torch.rand(10, 100_000), torch.linspace(0.1, 2.0, 10)
    for aside in (0.1, 0.5):
        for seed in (0, 1):
            own = torch.randn(truth.shape) * spread[:, None]
            given = Target(target.map, truth + own, spread, torch.eye(10))
            one, other = parted(given, aside, seed)
            first, second = (
                ((part.mean - truth) / part.spread[:, None]).double() for part in (one, other)
            )
            assert torch.allclose(one.spread**-2 + other.spread**-2, spread**-2)
            assert torch.allclose(other.spread**-2 * spread**2, torch.tensor(aside))
            allowed = 5.5 / truth.numel() ** 0.5
            assert abs(float((first * second).mean())) < allowed
            for noise in (first, second):
                assert abs(float(noise.mean())) < allowed
                assert abs(float(noise.square().mean()) - 1) < allowed * 2**0.5


def test_several_generators_draw_in_turn(release, tmp_path):
    path = tmp_path / "fit.safetensors"
    both = fit_images(release, **{**QUICK, "steps": 10}, members=2, checkpoint=path)
    assert path.exists()
    assert (tmp_path / "fit-2.safetensors").exists()
    assert both.settings["members"] == 2
    first, second = both.generator.members
    assert not torch.equal(first.last.weight, second.last.weight)
    noise, classes = torch.randn(7, 4), torch.arange(7)
    with torch.no_grad():
        drawn = both.generator.eval()(noise, classes)
        torch.testing.assert_close(drawn[::2], first(noise[::2], classes[::2]))
        torch.testing.assert_close(drawn[1::2], second(noise[1::2], classes[1::2]))
    both.save(tmp_path / "model.safetensors")
    again = aq.load_model(tmp_path / "model.safetensors")
    assert np.array_equal(both.sample(30, seed=1).pixels, again.sample(30, seed=1).pixels)
    alone = fit_images(release, **{**QUICK, "steps": 10})
    torch.testing.assert_close(alone.generator.last.weight, first.last.weight)
    begun = {**QUICK, "steps": 1, "rate": 1e-9, "average": 0.0, "aside": 0}
    later = fit_images(release, **begun, members=3, begin=both).generator.members
    for mine, theirs in zip(later, (first, second, first), strict=True):
        torch.testing.assert_close(mine.last.weight, theirs.last.weight)
    for members in (0, 1000):
        with pytest.raises(ReleaseError, match="how many generators"):
            fit_images(release, **QUICK, members=members)


# Tones


def test_drawn_images_get_the_tones_of_the_release(release, model):
    """Half of the digits' pixels are black; the generator, hardly trained, has few such.

    The released share of black has a deviation of .006, an eighth of what is allowed.
    """
    real = some_digits(900).pixels
    drawn = model.sample(500, seed=1).pixels
    raw = replace(model, curves=None).sample(500, seed=1).pixels
    black = (real == 0).mean()
    assert abs((drawn == 0).mean() - black) < 0.05
    assert abs((raw == 0).mean() - black) > 0.15
    assert (np.diff(model.curves.astype(int), axis=1) >= 0).all()


def test_noise_alone_changes_no_tone():
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 256, (50, 8, 8, 3), dtype=np.uint8)
    place = tone_of(torch.from_numpy(drawn).long()).numpy()
    shares = [np.bincount(place[..., c].ravel(), minlength=TONES) / 3200 for c in range(3)]
    for channel, share in enumerate(shares):
        loud = share + rng.uniform(-1, 1, TONES) * 3.4
        assert np.array_equal(_curve(loud, 1.0, drawn[..., channel]), np.arange(256))
        exact = _curve(np.eye(TONES)[0], 1e-9, drawn[..., channel])
        assert not exact.any()  # all black


def test_a_generator_may_begin_at_another(release, model, tmp_path):
    again = fit_images(release, **{**QUICK, "steps": 1, "rate": 1e-9, "average": 0.0}, begin=model)
    name = "blocks.0.conv1.weight"
    torch.testing.assert_close(
        again.generator.state_dict()[name], model.generator.state_dict()[name]
    )
    schema = image_schema(label=False)
    batch = some_digits(200, start=1000)
    public = aq.sketch(
        type(batch)(batch.pixels, None),
        schema,
        plan=dp_mepf(schema, tiny_resnet(size=16)),
        epsilon=10,
        delta=1e-5,
    )
    fit_images(public, **QUICK).save(tmp_path / "public.safetensors")
    path = tmp_path / "public.safetensors"
    other = fit_images(release, **{**QUICK, "steps": 1, "rate": 1e-9, "average": 0.0}, begin=path)
    assert other.generator.classes == 10
    torch.testing.assert_close(
        other.generator.state_dict()[name], load_file(path)[name], rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ReleaseError, match="begin with is another"):
        fit_images(release, **{**QUICK, "latent": 5}, begin=model)


# Drawing, files, networks


def test_draws_follow_shares_seeds_and_conditions(model):
    drawn = model.sample(200, seed=3)
    assert drawn.pixels.dtype == np.uint8
    again = model.sample(200, seed=3)
    assert np.array_equal(drawn.pixels, again.pixels)
    counts = np.array([(drawn.labels == str(digit)).sum() for digit in range(10)])
    assert np.abs(counts - model.shares * 200).max() <= 1
    assert set(model.sample(9, where="label in ('1', '7')", seed=0).labels) == {"1", "7"}
    assert set(model.sample(5, where={"label": "4"}, seed=0).labels) == {"4"}
    assert len(model.sample(0)) == 0
    for where in ("label = 'x'", "image = 3"):
        with pytest.raises(aq.AquatintError):
            model.sample(5, where=where)


def test_classes_are_dealt_out_exactly():
    shares = np.array([0.5, 0.0, 0.25, 0.25] + [0.0] * 6)
    dealt = drawn_classes(SCHEMA, shares, 1000, None, 0)
    assert np.bincount(dealt, minlength=10).tolist()[:4] == [500, 0, 250, 250]
    with pytest.raises(ReleaseError, match="no class"):
        drawn_classes(SCHEMA, shares, 10, "label = '1'", 0)


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_saved_model_draws_the_same(model, tmp_path, gaussian):
    if gaussian:
        model = aq.synthesize(released(pixel_gaussian(SCHEMA, tiny_projection(4))))
    model.save(tmp_path / "model.safetensors")
    again = aq.load_model(tmp_path / "model.safetensors")
    assert type(again) is type(model)
    assert np.array_equal(model.sample(30, seed=1).pixels, again.sample(30, seed=1).pixels)


@pytest.mark.parametrize("change", ["missing", "shape", "nan", "shares", "kind"])
def test_a_model_file_that_does_not_fit_together_is_refused(model, tmp_path, change):
    path = tmp_path / "model.safetensors"
    if change == "kind":
        object.__setattr__(model, "settings", {**model.settings, "kind": "magic"})
    model.save(path)
    object.__setattr__(model, "settings", {**model.settings, "kind": "residual"})
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    if change == "missing":
        del tensors["last.bias"]
    elif change == "shape":
        tensors["last.bias"] = torch.zeros(3)
    elif change == "nan":
        tensors["last.bias"] = torch.full_like(tensors["last.bias"], float("nan"))
    elif change == "shares":
        tensors["shares"] = torch.full((10,), 0.5, dtype=torch.float64)
    save_file(tensors, path, metadata)
    with pytest.raises(ReleaseError, match=r"does not fit together|unknown generator"):
        aq.load_model(path)


def test_the_network_is_found_beside_the_release_or_asked_for(release, tmp_path, monkeypatch):
    path = tmp_path / "digits.aqt"
    release.save(path)
    opened = aq.load(path)
    with pytest.raises(PlanError, match=r"names a public network, resnet18.*attach"):
        aq.sample(opened, 5, **QUICK)
    with pytest.raises(PlanError, match="but the release was made with"):
        aq.sample(opened, 5, network=tiny_resnet(seed=5), **QUICK)
    (tmp_path / "broken.safetensors").write_bytes(b"no")
    save_network(tiny_vgg(), tmp_path / "other.safetensors")
    save_network(tiny_resnet(size=16), tmp_path / "right.safetensors")
    found = with_networks(opened, folders=(tmp_path,))
    assert found.block("perceptual").map.inner.network.module is not None
    assert len(aq.sample(opened, 5, network=tmp_path / "right.safetensors", **QUICK)) == 5


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"method": "mixture"}, "images are drawn by"),
        ({"method": "gaussian"}, "no Gaussian in a public view"),
        ({"generator": "magic"}, "unknown generator"),
        ({"matching": "magic"}, "unknown matching"),
        ({"aside": 1.0}, "aside is a share"),
        ({"patience": 0.0}, "patience above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(release, settings, wanted):
    with pytest.raises(ReleaseError, match=wanted):
        aq.synthesize(release, **settings)


def test_a_release_of_counts_alone_cannot_make_images():
    from aquatint.features import onehot
    from aquatint.planning import Plan, PlannedBlock

    plan = Plan(SCHEMA, (PlannedBlock("classes", onehot({"label": 10}), 1.0),))
    table = pa.table({"label": digits().labels.tolist()})
    counted = aq.sketch(table, SCHEMA, plan=plan, epsilon=1, delta=1e-5)
    with pytest.raises(ReleaseError, match="no block that a generator of images"):
        aq.synthesize(counted)


# Checkpoints


def test_a_fit_goes_on_from_its_checkpoint(release, tmp_path):
    path = tmp_path / "fit.safetensors"
    whole = fit_images(release, **QUICK, checkpoint=path, preview=tmp_path / "now.png")
    assert (tmp_path / "now.png").stat().st_size > 100
    began = time.perf_counter()
    again = fit_images(release, **QUICK, checkpoint=path)  # all steps are done
    assert time.perf_counter() - began < 5
    name = "last.weight"
    torch.testing.assert_close(
        again.generator.state_dict()[name], whole.generator.state_dict()[name]
    )
    with pytest.raises(ReleaseError, match="another release or other settings"):
        fit_images(release, **{**QUICK, "rate": 0.1}, checkpoint=path)
    with pytest.raises(ReleaseError, match="another release or other settings"):
        fit_images(release, **QUICK, aside=0.5, checkpoint=path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ReleaseError, match="damaged"):
        fit_images(release, **QUICK, checkpoint=path)


def test_a_fit_can_be_watched(release):
    """A look at the start and ten at what a fit has; the last is at the one that comes back."""
    seen = {}
    settings = {**QUICK, "aside": 0}
    watched = fit_images(release, **settings, watch=lambda step, model: seen.update({step: model}))
    alone = fit_images(release, **settings)
    assert list(seen) == list(range(0, 41, 4))
    name = "last.weight"
    last, first = (seen[step].generator.state_dict()[name] for step in (40, 0))
    torch.testing.assert_close(last, watched.generator.state_dict()[name])
    assert not torch.equal(first, last)
    for key, value in alone.generator.state_dict().items():
        torch.testing.assert_close(value, watched.generator.state_dict()[key], msg=key)
    assert seen[0].sample(20, seed=0).pixels.shape == (20, 8, 8, 1)


def test_a_fit_that_was_killed_goes_on(release, tmp_path):
    """Killed without warning, then taken up: the model is whole, and is one that can be used."""
    release.save(tmp_path / "digits.aqt")
    save_network(tiny_resnet(size=16), tmp_path / "net.safetensors")
    code = """
    import torch, aquatint as aq
    torch.set_num_threads(1)
    release = aq.load("digits.aqt")
    model = aq.synthesize(release, network="net.safetensors", steps=100, batch=60, widths=(8, 8),
                          latent=4, checkpoint="fit.safetensors", progress=False)
    model.save("model.safetensors")
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    first = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while not (tmp_path / "fit.safetensors").exists():
        assert first.poll() is None
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not (tmp_path / "model.safetensors").exists()
    subprocess.run(command, cwd=tmp_path, check=True)
    assert len(aq.load_model(tmp_path / "model.safetensors").sample(20, seed=0)) == 20
