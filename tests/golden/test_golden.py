"""Golden files: what was once released stays readable, and what people read does not drift.

The release files are never made again (see make_golden.py). The texts are: look at the change, then
run with AQUATINT_UPDATE_GOLDEN=1 to accept it.
"""

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import aquatint as aq
from aquatint.cli import app
from aquatint.features import leaves
from aquatint.release.archive import to_bytes

HERE = Path(__file__).parent
RELEASE = HERE / "release_v1.aqt"
UPDATE = os.environ.get("AQUATINT_UPDATE_GOLDEN") == "1"

# name: (kind, numbers, the first two noisy integers)
KNOWN = {
    "count": ("count", 1, (120638507,)),
    "columns": ("marginals", 37, (-15482773, -31608634)),
    "pairs": ("marginals", 14, (28624131, 8489880)),
    "triples": ("marginals", 16, (11748364, 12802681)),
    "fourier": ("fourier", 8, (378397854, -109888471)),
    "laplace kernel": ("fourier", 6, (-62703910, 31217324)),
    "hermite": ("concat", 19, (209006329, 28475137)),
    "race": ("race", 12, (56011041, 24588126)),
    "by label": ("by_label", 8, (169698046, 78908009)),
    "mixed": ("concat", 10, (-51929786, 297737193)),
}


@pytest.fixture(scope="module")
def release():
    return aq.load(RELEASE)


# --- format version 1 ---------------------------------------------------------------------------


def test_the_file_itself_was_not_touched():
    known = "e045ac6935105b64f3bf0857999553c85582bae90e1726e099ba1201bda52a60"
    assert hashlib.sha256(RELEASE.read_bytes()).hexdigest() == known


def test_the_blocks_are_those_that_were_released(release):
    found = {
        b.name: (b.map.kind, b.map.dim, tuple(int(i) for i in b.integers[:2]))
        for b in release.blocks
    }
    assert found == KNOWN


def test_the_promise_is_the_one_that_was_made(release):
    assert (release.statement.epsilon, release.statement.delta) == (2.0, 1e-6)
    assert release.private
    assert release.rows is None
    assert release.schema.privacy.protects == "add or remove one row"
    assert release.created == "2026-11-16"
    assert release.versions == {"aquatint": "0.1.0", "opendp": "0.16.0", "torch": "2.13.0+cpu"}


def test_the_loss_is_recomputed_to_the_same_number(release):
    assert release.loss.rho == pytest.approx(0.10046352449461332, rel=1e-12)
    assert sum(block.map.dim for block in release.blocks) == 131
    assert release.loss.epsilon(1e-6) == pytest.approx(2.0, rel=1e-8)
    assert release.zcdp_epsilon == pytest.approx(2.1473373, rel=1e-6)


def test_the_schema_has_every_kind_of_column(release):
    kinds = {name: column.kind for name, column in release.schema.columns.items()}
    assert kinds == {
        "age": "integer",
        "height": "numeric",
        "work": "categorical",
        "health": "ordered",
        "smokes": "boolean",
        "born": "date",
        "seen": "datetime",
        "note": "text",
        "income": "categorical",
    }
    declared = aq.Schema.from_toml(HERE / "people.toml")
    assert list(kinds) == list(declared.columns)
    assert release.schema.label == "income"


def test_every_kind_of_feature_map_is_in_a_golden_file(release, later, tested, seen, toned):
    from aquatint.features.spec import _KINDS

    def kinds(spec):
        yield spec["kind"]
        for key in ("inner", "left", "right"):
            if key in spec:
                yield from kinds(spec[key])
        for part in spec.get("parts", []):
            yield from kinds(part)

    blocks = (*release.blocks, *later.blocks, *tested.blocks, *seen.blocks, *toned.blocks)
    used = {kind for block in blocks for kind in kinds(block.map.spec())}
    assert used == set(_KINDS)


def test_sums_come_out_in_units_of_the_features(release):
    assert release.count == pytest.approx(115.050, abs=0.001)
    columns = release.block("columns")
    assert columns.stderr[0] == pytest.approx(21.1642, rel=1e-4)
    assert len(release.block("hermite").scales) == len(leaves(release.block("hermite").map)) == 2


def unread(content):
    """What is not for people: the card's words may change, everything else stays to the byte."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        del manifest["members"]["README.md"]
        return manifest, archive.read("arrays.safetensors")


def test_writing_it_again_gives_the_same_manifest_and_arrays(release):
    assert unread(to_bytes(release)) == unread(RELEASE.read_bytes())


# --- format version 1, feature maps that came later -----------------------------------------------

LATER = HERE / "release_v1_cosines.aqt"


@pytest.fixture(scope="module")
def later():
    return aq.load(LATER)


def test_the_file_of_cosines_was_not_touched():
    known = "1b98485585fe9b72ad1f1f7e8437aff3f0fa990bf959674df19c987795687fc8"
    assert hashlib.sha256(LATER.read_bytes()).hexdigest() == known


def test_the_blocks_of_cosines_are_those_that_were_released(later):
    found = {
        b.name: (b.map.kind, b.map.dim, tuple(int(i) for i in b.integers[:2])) for b in later.blocks
    }
    assert found == {
        "count": ("count", 1, (130095545,)),
        "cosines": ("cosines", 13, (-91309766, 9345186)),
        "by label": ("by_label", 36, (-28068849, 49560101)),
    }
    assert later.loss.epsilon(1e-6) == pytest.approx(2.0, rel=1e-8)
    assert unread(to_bytes(later)) == unread(LATER.read_bytes())


TESTED = HERE / "release_v1_compare.aqt"


@pytest.fixture(scope="module")
def tested():
    return aq.load(TESTED)


def test_the_file_of_test_features_was_not_touched():
    known = "0e3aee4354111e755b06f9f944684912f05c9376b452d29944d94420ee84490d"
    assert hashlib.sha256(TESTED.read_bytes()).hexdigest() == known


def test_the_blocks_of_test_features_are_those_that_were_released(tested):
    found = {
        b.name: (b.map.kind, b.map.dim, tuple(int(i) for i in b.integers[:2]))
        for b in tested.blocks
    }
    assert found == {
        "count": ("count", 1, (134400338,)),
        "locations": ("locations", 3, (-251147329, -307985965)),
        "second moment": ("second_moment", 6, (100758008, 158976853)),
        "laplace": ("locations", 1, (-205182640,)),
        "smooth": ("smooth", 4, (21069004, -31965610)),
        "second moment of smooth": ("second_moment", 10, (-101454482, 15382663)),
        "mixed": ("fourier", 16, (-23043545, -248282678)),
    }
    assert tested.loss.epsilon(1e-6) == pytest.approx(2.0, rel=1e-8)
    assert unread(to_bytes(tested)) == unread(TESTED.read_bytes())


SEEN = HERE / "release_v1_images.aqt"
TONED = HERE / "release_v1_tones.aqt"


@pytest.fixture(scope="module")
def seen():
    return aq.load(SEEN)


@pytest.fixture(scope="module")
def toned():
    return aq.load(TONED)


def test_the_tones_of_images_are_those_that_were_released(toned):
    known = "8a9ce3bf21286399f15c0cd9ce4ce19d2f7e6cdbb62cd9c48824b812f3cfac74"
    assert hashlib.sha256(TONED.read_bytes()).hexdigest() == known
    [block] = toned.blocks
    assert (block.name, block.map.kind, block.map.dim) == ("tones", "tones", 66)
    assert [int(i) for i in block.integers[:2]] == [-15695346, 28119055]
    assert unread(to_bytes(toned)) == unread(TONED.read_bytes())


def test_the_files_of_images_were_not_touched():
    known = "31b62377c48839df26b023f859451819fdf33830daab853a861e60b1c2d412b8"
    assert hashlib.sha256(SEEN.read_bytes()).hexdigest() == known
    networks = {
        "images_resnet18": "b7c0f34a38e2c1c007ed2d35ef390661d1c2800eccf67675dd54d52f04707b1f",
        "images_projection": "3f39bae59d7af6166657c739337e2c1b2cd815b8a6c6be9bbb12985f527bce05",
    }
    for name, wanted in networks.items():
        assert aq.networks.load(HERE / f"{name}.safetensors").sha256 == wanted


def test_the_blocks_of_images_are_those_that_were_released(seen):
    found = {
        b.name: (b.map.kind, b.map.dim, tuple(int(i) for i in b.integers[:2])) for b in seen.blocks
    }
    assert found == {
        "perceptual": ("by_label", 576, (5451267, 100827273)),
        "layers": ("perceptual", 61, (544827058, 412886225)),
        "gaussian": ("by_label", 20, (22703931130, 57602681875)),
        "pixels": ("fourier", 4, (-38367184, 47842014)),
    }
    assert seen.loss.epsilon(1e-6) == pytest.approx(2.0, rel=1e-8)
    assert unread(to_bytes(seen)) == unread(SEEN.read_bytes())
    names = ("images_resnet18", "images_projection")
    whole = aq.attach(seen, *(aq.networks.load(HERE / f"{n}.safetensors") for n in names))
    rows = aq.features.image_rows(
        "image", torch.full((2, 1, 8, 8), 7, dtype=torch.uint8), {"shape": torch.tensor([0, 1])}
    )
    for block in whole.blocks:
        assert block.map(rows).shape == (2, block.map.dim)


# --- format version 1, by the default plan: counts over merged cells ------------------------------

DEFAULT = HERE / "release_v1_default.aqt"


@pytest.fixture(scope="module")
def default():
    return aq.load(DEFAULT)


def test_the_file_of_the_default_plan_was_not_touched():
    known = "82d0b0c0a3d5f5f58bf9c8365e3c580afe06e34c767b0921ba01ab2f2ed20dc7"
    assert hashlib.sha256(DEFAULT.read_bytes()).hexdigest() == known


def test_the_blocks_of_the_default_plan_are_those_that_were_released(default):
    found = {b.name: (b.map.dim, tuple(int(i) for i in b.integers[:2])) for b in default.blocks}
    assert found == {
        "count": (1, (108460246,)),
        "columns": (61, (13122138, 20043486)),
        "pairs by label": (460, (27357503, -17688259)),
    }


def test_the_merged_cells_are_those_that_were_released(default):
    joint = default.block("pairs by label").map
    assert joint.merged == {
        "age": (0, 0, 1, 1, 2, 2),
        "height": (0, 0, 1, 1, 2),  # the last is missing, and stays apart
        "born": (*[0] * 9, *[1] * 10, *[2] * 13),
        "seen": (0, 1, 1, 1),
    }
    assert len(joint.sets) == 8 * 7 // 2
    assert all(s[2] == "income" for s in joint.sets)
    assert dict(joint.columns) == default.schema.cells()
    assert joint.counted["work"] == default.schema.cells()["work"] == 4


def test_the_loss_of_two_rounds_is_recomputed_to_the_same_number(default):
    assert default.loss.rho == pytest.approx(0.10046352449461322, rel=1e-12)
    assert default.loss.epsilon(1e-6) == pytest.approx(2.0, rel=1e-8)
    assert default.loss.epsilon(1e-6) <= 2.0
    assert default.count == pytest.approx(103.436, abs=0.001)
    assert [b.scales[0] for b in default.blocks] == [
        23392719.34402636,
        9974689.043304332,
        17593697.742522694,
    ]


def test_writing_the_default_plan_again_gives_the_same_manifest_and_arrays(default):
    assert unread(to_bytes(default)) == unread(DEFAULT.read_bytes())


# --- what people read ---------------------------------------------------------------------------

COMMANDS = {
    "plan.txt": ["plan", "people.toml", "--rows", "40000", "--epsilon", "1"],
    "plan_pure.txt": ["plan", "people.toml", "--rows", "500", "--epsilon", "0.5", "--delta", "0"],
    "draft.txt": ["draft", "people.csv"],
    "show.txt": ["show", "release_v1.aqt"],
    "verify.txt": ["verify", "release_v1.aqt"],
    "plan.json": ["plan", "people.toml", "--rows", "40000", "--epsilon", "1", "--json"],
    "show.json": ["show", "release_v1.aqt", "--json"],
    "registry.json": ["show", "release_v1.aqt", "--registry"],
    "verify.json": ["verify", "release_v1.aqt", "--json"],
    "show_default.txt": ["show", "release_v1_default.aqt"],
    "verify_default.txt": ["verify", "release_v1_default.aqt"],
}


def run(arguments, monkeypatch):
    """Run a command beside the golden files, on a terminal of a fixed width without colours."""
    monkeypatch.chdir(HERE)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_is_the_golden_one(name, monkeypatch):
    said = run(COMMANDS[name], monkeypatch)
    golden = HERE / name
    if UPDATE:
        golden.write_text(said, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8")
    if name.endswith(".json"):
        assert_same(json.loads(said), json.loads(expected))
    else:
        assert said == expected


def assert_same(found, expected):
    """Compare plain data; numbers may differ in the last digits that a processor's log() gives."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        assert found == expected


def test_the_update_switch_is_off():
    """So that a run that updates the texts cannot pass for a run that tests them."""
    if UPDATE:
        pytest.fail("the golden texts were written anew: look at them, then run without the switch")
