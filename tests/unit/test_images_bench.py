"""The benchmark of images: every part on tiny images, and its page."""

import json

import pytest
from benchmark_scripts import fetch

pytest.importorskip("PIL")
script = fetch("images")
tasks = fetch("image_tasks")
pages = fetch("results_images")
book = fetch("book")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    asked = script.read_words(["quick", "--work", str(work)])
    assert script.quick(asked) == 0
    return work


def test_every_part_runs_on_tiny_images(quick, capsys):
    for part, chosen in tasks.PARTS.items():
        lines = (quick / f"images-{part}.jsonl").read_text(encoding="utf-8").splitlines()
        runs = [json.loads(line) for line in lines]
        assert {run["settings"]["method"] for run in runs} == set(chosen.methods)
        for run in runs:
            assert run["settings"]["public"] == tasks.METHODS[run["settings"]["method"]].public
            assert run["found"]["fit_s"] >= 0
            assert ("fid" in run["found"]) is chosen.fid
            named = "images-{images}-{method}-1.png".format(**run["settings"])
            assert (quick / named).is_file()
    asked = script.read_words(["merf", "--quick", "--work", str(quick)])
    assert script.part(asked, script.Log(quick / "images-merf.jsonl")) == 0
    assert "done before" in capsys.readouterr().out


def test_the_page_says_what_has_not_been_run(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "RESULTS", quick)
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    pages.render()
    text = (tmp_path / "images.md").read_text(encoding="utf-8")
    assert "| MNIST | DP-MERF | none | 1 |" in text
    assert "*Not run yet*: MNIST, DP-MERF, ε = 0.2; FashionMNIST" in text
    assert "CIFAR-10, randomly greyed (ResNet18)" in text
    (quick / "images-mepf.jsonl").unlink()
    pages.render()
    text = (tmp_path / "images.md").read_text(encoding="utf-8")
    assert "*Not run yet*: MNIST, DP-MEPF, ε = 1; MNIST, DP-MEPF, ε = 0.2" in text


def test_a_part_for_a_gpu_does_not_start_without_one(tmp_path, capsys):
    asked = script.read_words(["cifar", "--results", str(tmp_path), "--work", str(tmp_path)])
    assert script.part(asked, script.Log(tmp_path / "images-cifar.jsonl")) == 0
    assert "--device cuda" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_what_the_book_says_makes_its_figures_of_images_can_be_run():
    said = [w for entry in book.entries() for w in (entry.command, *entry.also)]
    ours = [words.split()[1:] for words in said if words.startswith("images.py ")]
    assert len(ours) > 5
    for words in ours:
        assert script.read_words(words).part == words[0]
