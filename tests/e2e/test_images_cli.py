"""Images from the command line, on 8×8 digits."""

import io
import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tiny_images import CLASSES, digits

import aquatint as aq
from aquatint import cli

SCHEMA = f"""
name = "digits"
label = "label"

[privacy]
protects = "replace one row"

[columns.image]
kind = "image"
size = [8, 8]
channels = 1

[columns.label]
kind = "categorical"
categories = {json.dumps(CLASSES)}
"""


def aquatint(folder, command, *more):
    """Run a command in this process, as `main` would, in the folder."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "200")
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        patch.setattr(sys, "argv", ["aquatint", *command.split(), *more])
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            cli.main()
    return SimpleNamespace(
        returncode=int(ended.value.code or 0), stdout=out.getvalue(), stderr=err.getvalue()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a schema, private and public digits, a network and a projection."""
    place = tmp_path_factory.mktemp("images")
    (place / "digits.toml").write_text(SCHEMA)
    batch = digits()
    np.savez(place / "private.npz", images=batch.pixels[:600], labels=batch.labels[:600])
    np.savez(place / "public.npz", images=batch.pixels[600:], labels=batch.labels[600:])
    trained = aquatint(
        place, "pretrain public.npz -o net.safetensors --epochs 1 --width 2 --no-flip"
    )
    assert trained.returncode == 0, trained.stderr
    assert "public.npz is taken as public" in trained.stderr
    assert "held-out right" in trained.stderr
    fitted = aquatint(
        place, "pretrain public.npz -o pca.safetensors --architecture projection --components 6"
    )
    assert fitted.returncode == 0, fitted.stderr
    return place


SKETCH = "sketch private.npz --schema digits.toml --epsilon 1 --delta 1e-5 -o"


@pytest.mark.parametrize(
    ("recipe", "blocks"),
    [
        (["dp_mepf", "--features", "net.safetensors"], ["classes", "perceptual", "tones"]),
        (
            [
                *("dp_mepf", "--features", "net.safetensors", "--option", "stopping=true"),
                *("--option", "moments=[1, 2]", "--option", "stopping_noise=5"),
            ],
            ["classes", "perceptual", "stopping", "tones"],
        ),
        (["dp_merf", "--option", "features=60"], ["classes", "embedding"]),
        (["dp_hp", "--option", "order=5"], ["classes", "sum", "products"]),
        (["pixel_gaussian", "--features", "pca.safetensors"], ["gaussian"]),
    ],
)
def test_every_recipe_end_to_end(folder, recipe, blocks):
    done = aquatint(folder, SKETCH, "out.aqt", "--recipe", *recipe)
    assert done.returncode == 0, done.stderr
    assert "(1, 1e-05)-differentially private" in done.stdout
    checked = aquatint(folder, "verify out.aqt")
    assert checked.stdout.endswith("valid\n")
    release = aq.load(folder / "out.aqt")
    assert [block.name for block in release.blocks] == blocks
    assert release.rows == 600
    if "--features" in recipe:
        aq.attach(release, aq.networks.load(folder / recipe[2]))
        assert "SHA-256" in done.stdout


REFUSED = {
    "no recipe": ([], "images need a recipe"),
    "no network": (["--recipe", "dp_mepf"], "needs a public network"),
    "a network too many": (
        ["--recipe", "dp_merf", "--features", "net.safetensors"],
        "takes no public network",
    ),
    "another recipe": (["--recipe", "gan"], "known are dp_mepf"),
    "another option": (["--recipe", "dp_hp", "--option", "colour=1"], "no option 'colour'"),
    "no value": (["--recipe", "dp_hp", "--option", "order"], "key=value"),
    "no file": (["--recipe", "dp_mepf", "--features", "none.st"], "no network file none.st"),
    "network alone": (["--features", "net.safetensors"], "go with --recipe"),
    "no such device": (
        ["--recipe", "dp_mepf", "--features", "net.safetensors", "--device", "cuda:77"],
        "no device",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_sentence(folder, name):
    options, wanted = REFUSED[name]
    done = aquatint(folder, SKETCH, "refused.aqt", *options)
    assert done.returncode == 1
    assert wanted in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "refused.aqt").exists()


def test_a_plan_from_a_file_is_given_its_network(folder):
    network = aq.networks.load(folder / "net.safetensors")
    schema = aq.Schema.from_toml(folder / "digits.toml")
    aq.dp_mepf(schema, network).save(folder / "plan.json")
    without = aquatint(folder, SKETCH, "planned.aqt", "--plan", "plan.json")
    assert "attach it first" in without.stderr
    done = aquatint(
        folder, SKETCH, "planned.aqt", "--plan", "plan.json", "--features", "net.safetensors"
    )
    assert done.returncode == 0, done.stderr
    wrong = aquatint(
        folder, SKETCH, "wrong.aqt", "--plan", "plan.json", "--features", "pca.safetensors"
    )
    assert "give that file" in wrong.stderr


def test_a_reduced_network_from_the_command_line(folder):
    done = aquatint(
        folder,
        "pretrain public.npz -o few.safetensors --architecture reduced --base net.safetensors",
        *("--components", "8"),
    )
    assert done.returncode == 0, done.stderr
    made = aquatint(
        folder, SKETCH, "few.aqt", "--recipe", "dp_mepf", "--features", "few.safetensors"
    )
    assert made.returncode == 0, made.stderr
    assert aq.load(folder / "few.aqt").block("perceptual").map.dim == 80


def test_pretraining_refuses_what_it_cannot_use(folder):
    np.savez(folder / "bare.npz", images=digits().pixels[:40])
    for arguments, wanted in (
        ("pretrain bare.npz -o x.safetensors", "no classes to learn"),
        ("pretrain none.npz -o x.safetensors", "does not exist"),
        ("pretrain public.npz -o x.safetensors --architecture gpt", "resnet18, projection or"),
        ("pretrain public.npz -o x.safetensors --architecture reduced", "needs --base"),
        ("pretrain public.npz -o x.safetensors --base net.safetensors", "needs --base"),
    ):
        done = aquatint(folder, arguments)
        assert done.returncode == 1
        assert wanted in done.stderr
    grey = aquatint(
        folder,
        "pretrain public.npz -o g.safetensors --architecture projection --components 3 --size 12",
        "--grey",
    )
    assert grey.returncode == 0, grey.stderr
    assert aq.networks.load(folder / "g.safetensors").input_size == (12, 12)


@pytest.fixture(scope="module")
def released(folder):
    """A release and a model of its images."""
    command = SKETCH.replace("--epsilon 1 ", "--epsilon 10 ")  # no class is lost in noise
    made = aquatint(
        folder, command, "digits.aqt", "--recipe", "dp_mepf", "--features", "net.safetensors"
    )
    assert made.returncode == 0, made.stderr
    wanted = "-n 40 -o drawn --grid grid.png --steps 2 --members 2 --save model.st"
    drawn = aquatint(folder, f"sample digits.aqt {wanted}")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stderr.endswith("written: drawn, 40 synthetic images\n")
    return folder


def test_images_are_drawn_into_folders_and_onto_a_sheet(released):
    """The network is found beside the release by its hash."""
    names = sorted(path.relative_to(released / "drawn") for path in (released / "drawn").rglob("*"))
    assert sum(name.suffix == ".png" for name in names) == 40
    assert {name.parts[0] for name in names} <= set(CLASSES)
    assert (released / "grid.png").read_bytes()[:4] == b"\x89PNG"


def test_a_saved_model_draws_one_class(released):
    done = aquatint(
        released, "sample model.st -n 6 -o three.npz --seed 1 --quiet --where", "label = '3'"
    )
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(released / "three.npz") as drawn:
        assert drawn["images"].shape == (6, 8, 8, 1)
        assert set(drawn["labels"]) == {"3"}


NOT_DRAWN = {
    "a folder that is not empty": ("sample digits.aqt -n 5 -o drawn", "not empty"),
    "a table": ("sample digits.aqt -n 5 -o drawn.csv --method mixture", "images are drawn by"),
    "no Gaussian": ("sample digits.aqt -n 5 -o g.npz --method gaussian", "no Gaussian"),
    "another network": (
        "sample digits.aqt -n 5 -o n.npz --features pca.safetensors",
        "give that file",
    ),
    "no file": ("sample digits.aqt -n 5 -o n.npz --features none.st", "no network file"),
    "a model that is fitted": ("sample model.st -n 5 -o n.npz --steps 3", "fitted already"),
}


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(released, name):
    command, wanted = NOT_DRAWN[name]
    done = aquatint(released, command)
    assert done.returncode == 1
    assert wanted in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_its_network_a_release_says_which_file_it_needs(released, tmp_path):
    (tmp_path / "digits.aqt").write_bytes((released / "digits.aqt").read_bytes())
    done = aquatint(tmp_path, "sample digits.aqt -n 5 -o n.npz")
    assert done.returncode == 1
    assert "names a public network, resnet18 with SHA-256" in done.stderr
    assert "--features" in done.stderr


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ("dp_merf", ["--option", "features=40"]),
        ("dp_hp", ["--option", "order=4"]),
        ("pixel_gaussian", ["--features", "pca.safetensors"]),
        (
            "dp_mepf",
            ["--features", "few.safetensors", "--option", "gaussian=pca.safetensors"],
        ),
    ],
)
def test_every_recipe_gives_images(folder, recipe, options):
    if "few.safetensors" in options:
        aquatint(
            folder,
            "pretrain public.npz -o few.safetensors --architecture reduced --base net.safetensors",
            *("--components", "8", "--quiet"),
        )
    made = aquatint(folder, SKETCH, "each.aqt", "--recipe", recipe, *options)
    assert made.returncode == 0, made.stderr
    steps = [] if recipe == "pixel_gaussian" else ["--steps", "2"]
    done = aquatint(folder, f"sample each.aqt -n 12 -o {recipe}.npz --quiet", *steps)
    assert done.returncode == 0, done.stderr
    with np.load(folder / f"{recipe}.npz") as drawn:
        assert len(drawn["images"]) == 12


def test_options_of_images_are_not_for_tables(tmp_path):
    schema = aq.Schema.from_dict(
        {
            "name": "people",
            "privacy": {"protects": "add or remove one row"},
            "columns": {"sex": {"kind": "categorical", "categories": ["F", "M"]}},
        }
    )
    rows = {"sex": ["F", "M"] * 200}
    release = aq.sketch(pa.table(rows), schema, epsilon=1, delta=1e-6)
    release.save(tmp_path / "people.aqt")
    done = aquatint(tmp_path, "sample people.aqt -n 5 -o people.csv --features net.safetensors")
    assert done.returncode == 1
    assert "--features is for images" in done.stderr


def test_a_plan_for_images_shows_what_to_expect(folder):
    done = aquatint(
        folder,
        "plan digits.toml --rows 60000 --epsilon 1 --recipe dp_mepf --features net.safetensors",
        *("-o", "shared.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "mean embedding 'perceptual'" in done.stdout
    made = aquatint(
        folder, SKETCH, "shared.aqt", "--plan", "shared.json", "--features", "net.safetensors"
    )
    assert made.returncode == 0, made.stderr
    assert (
        "images need a recipe" in aquatint(folder, "plan digits.toml --rows 9 --epsilon 1").stderr
    )
