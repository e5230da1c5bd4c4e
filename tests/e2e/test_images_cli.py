"""Images from the command line, on 8×8 digits."""

import io
import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
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
        (["dp_mepf", "--features", "net.safetensors"], ["classes", "perceptual"]),
        (
            [
                *("dp_mepf", "--features", "net.safetensors", "--option", "stopping=true"),
                *("--option", "moments=[1, 2]", "--option", "stopping_noise=5"),
            ],
            ["classes", "perceptual", "stopping"],
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
