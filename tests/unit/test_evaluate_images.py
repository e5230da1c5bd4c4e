"""Evaluation of images: distances with known answers, classifiers that learn, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from benchmark_scripts import fetch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.spatial import distance
from torch import nn

from aquatint.cli_evaluate import evaluate as command
from aquatint.errors import DataError
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.images import (
    Inception,
    Moments,
    evaluate_images,
    fid,
    frechet,
    image_evaluation_text,
)
from aquatint.evaluate.images.data import Images, take_in
from aquatint.evaluate.images.diversity import diversity
from aquatint.evaluate.images.downstream import accuracies, papers_mean
from aquatint.evaluate.images.networks import build
from aquatint.evaluate.images.recipes import PAPERS, choose
from aquatint.evaluate.images.torch_models import _changed, _ramp, predict
from aquatint.image_files import ImageBatch, write_images

parallel_config = pytest.importorskip("joblib").parallel_config
load_digits = pytest.importorskip("sklearn.datasets").load_digits
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    pixels = (found.images * 15.9).astype(np.uint8)[..., None]
    return pixels, found.target.astype(str)


def images(pixels, labels=None, what="real"):
    return Images(what, pixels, labels)


def noise(count, seed=0, shape=(4, 4, 1)):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def flat(part):
    return part.flatten(1).double()


class TestFrechet:
    def test_diagonal_gaussians(self):
        mean1, mean2 = torch.tensor([1.0, 2.0]).double(), torch.tensor([4.0, -2.0]).double()
        cov1, cov2 = torch.diag(torch.tensor([4.0, 9.0]).double()), torch.eye(2).double()
        assert frechet((mean1, cov1), (mean2, cov2)) == pytest.approx(25 + 1 + 4)

    @settings(max_examples=25)
    @given(dimension=st.integers(1, 6), seed=st.integers(0, 1000))
    def test_against_the_root_of_the_product(self, dimension, seed):
        rng = np.random.default_rng(seed)
        factors = [rng.normal(size=(dimension, n)) for n in (dimension + 2, dimension + 4)]
        covariances = [f @ f.T for f in factors]
        means = rng.normal(size=(2, dimension))
        root = linalg.sqrtm(covariances[0] @ covariances[1])
        expected = ((means[0] - means[1]) ** 2).sum() + np.trace(
            covariances[0] + covariances[1] - 2 * np.real(root)
        )
        sides = [
            (torch.from_numpy(m), torch.from_numpy(c))
            for m, c in zip(means, covariances, strict=True)
        ]
        assert frechet(*sides) == pytest.approx(expected, abs=1e-5)
        assert frechet(*reversed(sides)) == pytest.approx(frechet(*sides), abs=1e-7)
        assert frechet(sides[1], sides[1]) == pytest.approx(0, abs=1e-7)

    def test_fewer_images_than_features_is_stable(self):
        rows = torch.from_numpy(RNG.normal(size=(2, 20, 100)))
        sides = []
        for part in rows:
            found = Moments()
            found.add(part)
            sides.append(found.settled())
        # With singular covariances the cross term is exact: |X^T Y| in the nuclear norm.
        left, right = ((part - part.mean(dim=0)) / 19**0.5 for part in rows)
        cross = torch.linalg.svdvals(left @ right.T).sum()
        (mean1, cov1), (mean2, cov2) = sides
        exact = (mean1 - mean2).square().sum() + cov1.trace() + cov2.trace() - 2 * cross
        assert frechet(*sides) == pytest.approx(float(exact), rel=1e-6)

    @settings(max_examples=20)
    @given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6), shift=st.floats(-1e6, 1e6))
    def test_moments_do_not_depend_on_the_batches(self, cuts, shift):
        rows = RNG.normal(size=(sum(cuts) + 1, 3)) + shift
        found = Moments()
        for part in np.split(rows, np.cumsum(cuts)):
            found.add(torch.from_numpy(part))
        mean, covariance = found.settled()
        assert mean.numpy() == pytest.approx(rows.mean(axis=0))
        assert covariance.numpy() == pytest.approx(np.cov(rows, rowvar=False), abs=1e-6)

    def test_one_number_of_images_for_both_sides(self):
        real, made, test = images(noise(60)), images(noise(90, 1), what="synthetic"), noise(50, 2)
        found = fid(real, made, flat, images=40, test=images(test, what="test"), name="pixels")
        assert found.images == 40
        assert found.sanity > 0
        seen = []
        fid(real, made, lambda part: seen.append(len(part)) or flat(part), images=40, batch=30)
        assert seen == [30, 10, 30, 10]
        with pytest.raises(EvaluationError, match="60 real ones: ask for fewer"):
            fid(real, made, flat, images=61)
        assert fid(real, real, flat, images=50).value == pytest.approx(0, abs=1e-6)

    def test_networks_that_give_nonsense(self):
        with pytest.raises(EvaluationError, match="not finite"):
            fid(images(noise(9)), images(noise(9)), lambda part: flat(part) / 0 * 0, images=9)
        with pytest.raises(EvaluationError, match="two images"):
            Moments().settled()


class TestInception:
    def test_only_the_known_file_is_opened(self, tmp_path):
        with pytest.raises(EvaluationError, match="cannot read the Inception"):
            Inception.load(tmp_path / "none.pt")
        (tmp_path / "other.pt").write_bytes(b"other")
        with pytest.raises(EvaluationError, match="not the Inception network of FID"):
            Inception.load(tmp_path / "other.pt")

    def test_what_the_network_sees(self):
        seen = []

        def network(part):
            seen.append(part)
            return part.mean(dim=(2, 3))

        extract = Inception(network, torch.device("cpu"))
        grey = torch.tensor([[[[0, 255], [128, 64]]]], dtype=torch.uint8)
        assert extract(grey).shape == (1, 3)
        assert seen[0].shape == (1, 3, 299, 299)
        assert seen[0].min() == -1.0
        assert seen[0].max() == 127 / 128
        # TensorFlow's first rule: place i comes from i · 2 / 299; the last half is the edge.
        row = seen[0][0, 0, 0]
        expected = -1 + 255 / 128 * np.minimum(np.arange(299) * 2 / 299, 1)
        assert row.numpy() == pytest.approx(expected, abs=1e-5)
        halves = Inception(network, torch.device("cpu"), "torch").prepared(grey)
        assert halves[0, 0, 0, :10].max() < -0.99

    def test_the_real_weights_if_they_are_here(self):
        image_data, datasets = fetch("image_data"), fetch("datasets")
        kept = datasets.data_folder() / "images" / "inception.pt"
        if not kept.is_file():
            pytest.skip(f"{image_data.PACKAGES['inception'].file} is not here")
        extract = Inception.load(kept)
        assert extract(torch.zeros(1, 1, 8, 8, dtype=torch.uint8)).shape == (1, 2048)


class TestDiversity:
    def test_equals(self, digits):
        pixels, labels = digits
        found = diversity(
            images(pixels[::2], labels[::2]), images(pixels[1::2], labels[1::2]), images=800
        )
        assert found.images == 800
        assert found.mean_spread == pytest.approx(1, abs=0.03)
        assert set(found.spread) == set("0123456789")
        assert found.duplicates < 0.04
        assert found.copies < 0.04
        assert found.precision > 0.8
        assert found.recall > 0.8

    def test_against_all_pairs_at_once(self, digits):
        pixels, _ = digits
        sides = images(pixels[:800]), images(pixels[900:1700])
        found = diversity(*sides, images=700)
        rows = [side.some(700, 0).matrix().astype(float) for side in sides]
        real, made, across = (
            distance.cdist(*pair) for pair in (rows[:1] * 2, rows[1:] * 2, rows[::-1])
        )
        for own in (real, made):
            np.fill_diagonal(own, np.inf)
        real_far, made_far = (np.sort(own, axis=1)[:, 2] for own in (real, made))
        limit = np.quantile(real.min(axis=1), 0.01)
        assert found.precision == (across <= real_far).any(axis=1).mean()
        assert found.recall == (across <= made_far[:, None]).any(axis=0).mean()
        assert found.duplicates == pytest.approx((made.min(axis=1) < limit).mean())
        assert found.copies == pytest.approx((across.min(axis=1) < limit).mean())
        finite = [own[np.isfinite(own)].mean() for own in (made, real)]
        assert found.spread["all"] == pytest.approx(finite[0] / finite[1])

    def test_one_image_over_and_over(self, digits):
        pixels, labels = digits
        first = {label: pixels[labels == label][0] for label in set(labels)}
        same = np.stack([first[label] for label in labels])
        found = diversity(images(pixels, labels), images(same, labels), images=500)
        assert found.mean_spread == pytest.approx(0, abs=1e-6)
        assert found.duplicates > 0.95
        assert found.recall < 0.1

    def test_copies_of_real_images_are_seen(self, digits):
        pixels, _ = digits
        found = diversity(images(pixels[:300]), images(pixels[:300]), images=300)
        assert found.copies == 1
        assert found.precision == found.recall == 1
        assert found.duplicates <= 0.02
        assert list(found.spread) == ["all"]

    def test_noise_is_outside(self, digits):
        pixels, _ = digits
        found = diversity(images(pixels[:300]), images(noise(300, shape=(8, 8, 1))))
        assert found.precision < 0.05
        assert found.copies == 0

    def test_a_class_that_is_missing_has_no_spread(self, digits):
        pixels, labels = digits
        kept = labels != "3"
        found = diversity(images(pixels, labels), images(pixels[kept], labels[kept]), images=900)
        assert found.spread["3"] == 0
        with pytest.raises(EvaluationError, match="more than 4 images"):
            diversity(images(pixels[:4]), images(pixels[:4]))


class TestClassifiers:
    def test_names(self):
        assert choose("logreg, mlp,cnn") == ("logistic", "mlp", "cnn")
        assert choose(["papers", "resnet9", "mlp"]) == (*PAPERS, "resnet9")
        assert len(PAPERS) == 12
        with pytest.raises(EvaluationError, match="no classifier is named 'forest'"):
            choose("forest")

    def test_torch_agrees_with_scikit_learn(self, digits):
        pixels, labels = digits
        train, test = images(pixels[:1000], labels[:1000]), images(pixels[1000:], labels[1000:])
        names = ("logistic", "logreg_torch", "mlp", "mlp_torch")
        found = accuracies(train, test, tuple("0123456789"), names)
        logistic, again, mlp, mlp_again = (score.accuracy for score in found)
        assert again == pytest.approx(logistic, abs=0.004)
        assert mlp_again == pytest.approx(mlp, abs=0.03)
        assert min(logistic, mlp) > 0.88

    def test_logistic_regression_has_scikit_learns_optimum(self, digits):
        from sklearn.linear_model import LogisticRegression

        from aquatint.evaluate.images.torch_models import _logistic

        pixels, labels = digits
        codes = labels[:500].astype(int)
        model, note = _logistic(
            torch.from_numpy(pixels[:500].transpose(0, 3, 1, 2)), torch.from_numpy(codes), 10
        )
        rows = pixels[:500].reshape(500, -1) / 255
        theirs = LogisticRegression(max_iter=5000).fit(rows, codes).predict_log_proba(rows)
        part = torch.from_numpy(pixels[:500].transpose(0, 3, 1, 2))
        ours = model(part).detach().log_softmax(dim=1).numpy()
        assert note == ""
        assert np.abs(np.exp(ours) - np.exp(theirs)).max() < 0.01

    def test_networks_learn(self):
        # Two classes that differ in one corner: anything that looks at all gets them right.
        pixels = noise(400, shape=(12, 12, 3)) // 2
        codes = np.arange(400) % 2
        pixels[codes == 1, :6, :6] += 100
        for name, passes in (("cnn", 4), ("resnet9", 2)):
            labels, _ = predict(
                name, pixels[:300], codes[:300], pixels[300:], classes=2, epochs=passes
            )
            assert (labels == codes[300:]).mean() > 0.9, name

    def test_networks_are_as_large_as_they_should_be(self):
        size = {"cnn": 421_642, "resnet9": 2_274_880}
        for name, shape in (("cnn", (1, 28, 28)), ("resnet9", (3, 32, 32))):
            made = build(name, shape[0], shape[1:], 10)
            assert sum(p.numel() for p in made.parameters()) == size[name]
            assert made(torch.zeros(2, *shape)).shape == (2, 10)
        with pytest.raises(EvaluationError, match="12 by 12"):
            build("resnet9", 1, (8, 8), 10)

    def test_the_same_seed_gives_the_same_answers(self, digits):
        pixels, labels = digits
        given = pixels[:200], labels[:200].astype(int), pixels[200:300]
        before = torch.random.get_rng_state()
        runs = [predict("cnn", *given, classes=10, seed=s, epochs=2)[0] for s in (1, 1, 2)]
        assert (runs[0] == runs[1]).all()
        assert (runs[0] != runs[2]).any()
        assert (torch.random.get_rng_state() == before).all()

    def test_changes_move_and_blank_and_mirror_colour_only(self):
        torch.manual_seed(0)
        grey = torch.zeros(200, 1, 12, 12, dtype=torch.uint8)
        grey[:, :, 6, 2] = 255
        mean = torch.full((1, 1, 1, 1), 7.0)
        moved = _changed(grey, mean)
        assert moved.shape == grey.shape
        assert ((moved == 7).sum(dim=(1, 2, 3)) == 16).all()
        places = (moved == 255).nonzero()[:, 2:]
        assert (places - torch.tensor([6, 2])).abs().max() == 2
        colour = _changed(grey.expand(-1, 3, -1, -1), mean.expand(1, 3, 1, 1))
        assert (colour == 255).nonzero()[:, 3].max() >= 9

    def test_rate(self):
        assert [_ramp(x, 0.25) for x in (0, 0.125, 0.25, 1)] == [0, 0.5, 1, 0]
        assert _ramp(0, 0) == 1

    def test_papers_side_by_side(self, digits):
        pixels, labels = digits
        train, test = images(pixels[:200], labels[:200]), images(pixels[200:400], labels[200:400])
        names = ("gaussian_nb", "lda", "decision_tree")
        with parallel_config(backend="threading"):  # processes would import torch twice more
            one, two = (
                accuracies(train, test, tuple("0123456789"), names, jobs=jobs) for jobs in (1, 2)
            )
        assert [s.accuracy for s in one] == [s.accuracy for s in two]
        assert papers_mean(one) is None

    def test_one_class_only_and_classes_that_are_none(self, digits):
        pixels, labels = digits
        test = images(pixels[:100], labels[:100])
        ones = images(pixels[labels == "1"][:20], np.full(20, "1"), "synthetic")
        found = accuracies(ones, test, tuple("0123456789"), ("logistic", "lda"))
        assert {s.accuracy for s in found} == {(labels[:100] == "1").mean()}
        strange = images(pixels[:20], np.full(20, "dog"), "synthetic")
        with pytest.raises(EvaluationError, match="no class that real images have"):
            accuracies(strange, test, tuple("0123456789"), ("logistic",))


class Tiny(nn.Module):
    """A feature network of the test: random projections of the pixels."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weights = nn.Parameter(torch.randn(64, 8, generator=generator))

    def forward(self, part):
        return (part.flatten(1).float() / 255 @ self.weights).relu()


class TestReport:
    def test_everything_at_once(self, digits, capsys):
        pixels, labels = digits
        found = evaluate_images(
            ImageBatch(pixels[:800], labels[:800]),
            (pixels[800:1300], labels[800:1300]),
            test=(pixels[1300:], labels[1300:]),
            classifiers="logreg,cnn",
            features=Tiny(),
            fid_images=400,
            baseline=True,
            epochs=2,
            progress=False,
        )
        data = json.loads(json.dumps(found.to_dict()))
        assert data["private"] is False
        assert data["images"] == {"real": 800, "test": 497, "synthetic": 500}
        assert data["fid"]["images"] == 400
        assert data["fid"]["sanity"] is not None
        assert data["accuracy"]["classifiers"]["logistic"]["accuracy"] > 0.8
        assert data["baseline"]["classifiers"]["logistic"]["accuracy"] > 0.8
        image_evaluation_text(found)
        shown = capsys.readouterr().out
        assert "NOT PRIVATE" in shown
        assert "Fréchet distance, 400 images" in shown
        assert "small CNN" in shown

    def test_the_command(self, digits, tmp_path, capsys):
        pixels, labels = digits
        write_images(tmp_path / "real", pixels[:200], labels[:200])
        write_images(tmp_path / "made.npz", pixels[200:400], labels[200:400])
        write_images(tmp_path / "test.npz", pixels[400:600], labels[400:600])
        paths = {"real": tmp_path / "real", "synthetic": tmp_path / "made.npz"}
        options = {"images": True, "classifiers": "logreg", "fid_images": 100, "quiet": True}
        command(**paths, test=tmp_path / "test.npz", **options, as_json=True)
        data = json.loads(capsys.readouterr().out)
        assert data["accuracy"]["classifiers"]["logistic"]["accuracy"] > 0.7
        assert data["fid"] is None
        command(**paths, **options)
        assert "no FID" in capsys.readouterr().out
        with pytest.raises(EvaluationError, match="--target is for tables"):
            command(**paths, **options, target="x")
        with pytest.raises(EvaluationError, match="give --schema, or say --images"):
            command(**paths)

    def test_refusals(self, digits, tmp_path):
        pixels, labels = digits
        labelled = pixels[:50], labels[:50]
        for settings_, error, text in (
            ({"device": "abacus"}, EvaluationError, "no device"),
            ({"synthetic": pixels[:50, :6]}, DataError, "6 × 8 × 1, the real ones 8 × 8 × 1"),
            ({"synthetic": pixels[:0]}, DataError, "no synthetic images"),
            ({"synthetic": tmp_path / "none"}, DataError, "synthetic images: .* does not exist"),
            ({"synthetic": pixels[:50], "test": labelled}, EvaluationError, "have no labels"),
            ({"features": flat}, EvaluationError, "5,000 images needs as many"),
            ({"classifiers": "x"}, EvaluationError, "no classifier"),
        ):
            given = {"synthetic": labelled, "progress": False} | settings_
            with pytest.raises(error, match=text):
                evaluate_images(labelled, **given)
        if not torch.cuda.is_available():
            with pytest.raises(EvaluationError, match="no GPU"):
                evaluate_images(labelled, labelled, device="cuda")

    def test_labels_are_text_and_sorted_by_number(self):
        made = take_in((noise(3), [10, 9, 2]), "real")
        assert list(made.codes(("2", "9", "10"))) == [2, 1, 0]
        assert list(made.codes(("2",))) == [-1, -1, 0]
