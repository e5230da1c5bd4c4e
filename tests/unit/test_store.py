"""Model files: they come back as they were, and a stranger's file can only be refused."""

import json
import pickle
import time

import numpy as np
import pandas as pd
import pytest
import torch
from release_files import release_of
from safetensors.torch import save_file

from aquatint.analyst.synthesize import store
from aquatint.analyst.synthesize.atoms import Atoms
from aquatint.analyst.synthesize.front import load_model
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.errors import ReleaseError
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "people",
        "privacy": {"protects": "replace one row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99], "bins": 4, "missing": True},
            "sex": {"kind": "categorical", "categories": ["F", "M"]},
        },
    }
)
MODEL = Mixture(
    SCHEMA,
    Atoms(
        {"age": np.array([0, 0, 1, 1, 2]), "sex": np.array([0, 1])},
        {"age": np.array([0.25, 0.75, 0.5, 0.5, 1.0]), "sex": np.ones(2)},
    ),
    np.array([0.25, 0.75], dtype=np.float32),
    np.array([[0.5, 0.25, 0.25, 1, 0], [0.125, 0.5, 0.375, 0.5, 0.5]], dtype=np.float32),
)


@pytest.fixture
def path(tmp_path):
    MODEL.save(tmp_path / "model")
    return tmp_path / "model"


def forged(path, edit=lambda described, tensors: None, raw=None):
    """Write a model anew after an edit of what it says and holds."""
    method, schema, tensors, settings = store.load(path)
    described = {
        "format": store.FORMAT,
        "format_version": 1,
        "method": method,
        "schema": schema.to_dict(),
        "settings": settings,
    }
    edit(described, tensors)
    text = json.dumps(described) if raw is None else raw
    save_file(tensors, str(path), metadata={store.FORMAT: text})
    return path


def refusal(path):
    """Open what has to be refused, quickly, in one printable line; give what was said."""
    begun = time.monotonic()
    with pytest.raises(ReleaseError) as caught:
        load_model(path).sample(5, seed=0)
    assert time.monotonic() - begun < 5
    said = str(caught.value)
    assert len(said) < 1000
    assert said.isprintable(), repr(said)
    return said


# --- there and back -----------------------------------------------------------------------------


def test_a_model_comes_back_as_it_was(path):
    method, schema, tensors, settings = store.load(path)
    assert (method, schema, settings) == ("mixture", SCHEMA, {})
    assert set(tensors) == {
        "weights",
        "probabilities",
        "atoms.0",
        "atoms.1",
        "within.0",
        "within.1",
    }
    again = load_model(path)
    assert (again.weights == MODEL.weights).all()
    assert (again.probabilities == MODEL.probabilities).all()
    pd.testing.assert_frame_equal(again.sample(50, seed=1), MODEL.sample(50, seed=1))


def test_any_tensors_and_settings_come_back(tmp_path):
    tensors = {"a": torch.arange(6).reshape(2, 3).T, "b": torch.tensor(1.5), "c": torch.zeros(0, 3)}
    tensors["a"].requires_grad = False
    settings = {"deep": {"list": [1, None, "é"]}, "label": None}
    store.save(tmp_path / "m", "other", SCHEMA, tensors, settings)
    method, schema, found, again = store.load(tmp_path / "m")
    assert (method, schema, again) == ("other", SCHEMA, settings)
    assert all(torch.equal(found[n], t) and found[n].dtype == t.dtype for n, t in tensors.items())


def test_tensors_with_a_gradient_are_saved_without(tmp_path):
    store.save(tmp_path / "m", "x", SCHEMA, {"w": torch.ones(2, requires_grad=True)}, {})
    assert not store.load(tmp_path / "m")[2]["w"].requires_grad


def test_the_same_model_gives_the_same_bytes(path, tmp_path):
    MODEL.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_model_is_told_from_a_release(path, tmp_path):
    release_of().save(tmp_path / "x.aqt")
    assert store.is_model(path)
    assert not store.is_model(tmp_path / "x.aqt")
    assert not store.is_model(tmp_path / "nowhere")
    assert not store.is_model(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    assert not store.is_model(tmp_path / "empty")


def test_a_model_is_as_readable_as_a_release(path, tmp_path):
    release_of().save(tmp_path / "x.aqt")
    assert path.stat().st_mode == (tmp_path / "x.aqt").stat().st_mode
    assert path.stat().st_mode & 0o777 == 0o644
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "x.aqt"], "nothing is left over"


@pytest.mark.parametrize("name", [".", "nowhere/model"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, name):
    with pytest.raises(ReleaseError, match="cannot write the model"):
        MODEL.save(tmp_path / name)


# --- files that are something else --------------------------------------------------------------


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_is_never_loaded(tmp_path):
    (tmp_path / "p").write_bytes(pickle.dumps(Trap()))
    refusal(tmp_path / "p")
    torch.save(Trap(), tmp_path / "t")
    refusal(tmp_path / "t")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"age,sex\n1,F\n", b"\0" * 100, b"{}" * 100, b"\xff" * 64]
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    assert "f is not a model that Aquatint saved" in refusal(tmp_path / "f")


def test_a_release_a_folder_and_nothing_are_refused(tmp_path):
    release_of().save(tmp_path / "x.aqt")
    for name in ("x.aqt", ".", "nowhere"):
        refusal(tmp_path / name)


def test_every_cut_is_refused(path):
    whole = path.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    for size in {0, 1, 7, 8, 9, 20, header // 2, 8 + header, len(whole) - 8, len(whole) - 1}:
        path.write_bytes(whole[:size])
        refusal(path)


def test_a_header_that_claims_too_much_is_refused(path):
    whole = path.read_bytes()
    for size in (0, 1, 2**31, 2**62, 2**64 - 1):
        path.write_bytes(size.to_bytes(8, "little") + whole[8:])
        refusal(path)


def test_any_flipped_bit_gives_a_sound_model_or_a_refusal(path):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    said = []
    for place in rng.choice(len(whole), 400, replace=False):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        try:
            assert len(load_model(path).sample(20, seed=0)) == 20
        except ReleaseError as error:
            said.append(str(error))
    assert len(said) > 100
    assert all(text.isprintable() for text in said)


# --- what it says of itself ---------------------------------------------------------------------


def test_a_file_of_tensors_without_our_words_is_refused(tmp_path):
    save_file({"weights": torch.ones(1)}, str(tmp_path / "m"))
    refusal(tmp_path / "m")
    save_file({"weights": torch.ones(1)}, str(tmp_path / "m"), metadata={"format": "pt"})
    refusal(tmp_path / "m")


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "null",
        "1",
        "[]",
        '"x"',
        "{}",
        "[" * 100_000,
        '{"format_version": 1}',
        "NaN",
        "\x00",
    ],
)
def test_words_that_are_not_a_description_are_refused(path, raw):
    refusal(forged(path, raw=raw))


def change(**changes):
    return lambda described, _: described.update(changes)


def without(name):
    return lambda described, _: described.pop(name)


@pytest.mark.parametrize(
    "edit",
    [
        change(format_version=2),
        change(format_version=0),
        change(format_version="1"),
        change(format_version=None),
        change(format="something-else"),
        change(method="wizardry"),
        change(method="network"),
        change(method=None),
        change(method=["mixture"]),
        change(method="\x1b[31mred\n"),
        change(schema={}),
        change(schema=None),
        change(schema=[1]),
        change(schema="people"),
        change(schema={"\x1b[31m": 1}),
        change(settings=None),
        change(settings=3),
        change(settings="ab"),
        without("method"),
        without("schema"),
        without("settings"),
        without("format_version"),
    ],
)
def test_a_wrong_description_is_refused(path, edit):
    refusal(forged(path, edit))


def columns(**changes):
    def edit(described, _):
        described["schema"]["columns"].update(changes)
        for name in [n for n, c in described["schema"]["columns"].items() if c is None]:
            del described["schema"]["columns"][name]

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        columns(sex=None),
        columns(more={"kind": "boolean"}),
        columns(sex={"kind": "categorical", "categories": ["F", "M", "X"]}),
        columns(age={"kind": "integer", "bounds": [0, 99], "bins": 4}),
        columns(age={"kind": "integer", "bounds": [0, 99], "bins": 100}),
        columns(age={"kind": "integer", "bounds": [0, 99]}),
        columns(age={"kind": "wizard"}),
    ],
)
def test_a_schema_that_does_not_fit_the_tensors_is_refused(path, edit):
    refusal(forged(path, edit))


# --- tensors that do not fit --------------------------------------------------------------------


def tensor(name, value):
    return lambda _, tensors: tensors.update({name: value})


def missing(name):
    return lambda _, tensors: tensors.pop(name)


HALF = torch.tensor([0.5, 0.5])
GOOD = torch.from_numpy(MODEL.probabilities)
WRONG = {
    "no weights": missing("weights"),
    "no probabilities": missing("probabilities"),
    "no atoms": missing("atoms.1"),
    "no shares": missing("within.0"),
    "weights too few": tensor("weights", torch.ones(1)),
    "weights too many": tensor("weights", torch.full((3,), 1 / 3)),
    "weights in two dimensions": tensor("weights", HALF[None]),
    "weights without dimension": tensor("weights", torch.tensor(1.0)),
    "no components": lambda _, t: t.update(weights=torch.zeros(0), probabilities=torch.zeros(0, 5)),
    "weights of zero": tensor("weights", torch.zeros(2)),
    "weights below zero": tensor("weights", torch.tensor([1.5, -0.5])),
    "weights not numbers": tensor("weights", torch.tensor([0.5, torch.nan])),
    "weights without end": tensor("weights", torch.tensor([0.5, torch.inf])),
    "weights huge": tensor("weights", torch.tensor([1e308, 1e308], dtype=torch.float64)),
    "weights whole": tensor("weights", torch.tensor([1, 0])),
    "weights yes and no": tensor("weights", torch.tensor([True, False])),
    "weights of a brain": tensor("weights", HALF.bfloat16()),
    "weights complex": tensor("weights", HALF.to(torch.complex64)),
    "probabilities too narrow": tensor("probabilities", GOOD[:, :4].contiguous()),
    "probabilities too wide": tensor("probabilities", torch.cat([GOOD, GOOD], 1)),
    "probabilities flat": tensor("probabilities", GOOD.flatten()),
    "probabilities turned": tensor("probabilities", GOOD.T.contiguous()),
    "probabilities deep": tensor("probabilities", GOOD[None]),
    "probabilities not numbers": tensor("probabilities", GOOD * torch.nan),
    "probabilities below zero": tensor("probabilities", -GOOD),
    "probabilities of zero": tensor("probabilities", GOOD * 0),
    "one row of zero": tensor("probabilities", GOOD * torch.tensor([[0.0], [1.0]])),
    "probabilities huge": tensor("probabilities", GOOD.double() * 1e308),
    "probabilities tiny": tensor("probabilities", GOOD.double() * 1e-308),
    "atoms too few": tensor("atoms.0", torch.tensor([0, 1, 2])),
    "atoms too many": tensor("atoms.1", torch.tensor([0, 1, 1])),
    "no atoms at all": tensor("atoms.1", torch.zeros(0, dtype=torch.int64)),
    "atoms in two dimensions": tensor("atoms.1", torch.tensor([[0, 1]])),
    "atoms below zero": tensor("atoms.1", torch.tensor([0, -1])),
    "atoms with gaps": tensor("atoms.1", torch.tensor([0, 2])),
    "atoms beyond memory": tensor("atoms.1", torch.tensor([0, 2**40])),
    "atoms beyond counting": tensor("atoms.1", torch.tensor([0, 2**63 - 1])),
    "atoms with fractions": tensor("atoms.1", torch.tensor([0.0, 1.0])),
    "atoms yes and no": tensor("atoms.1", torch.tensor([False, True])),
    "one atom too few": tensor("atoms.0", torch.tensor([0, 0, 1, 1, 1])),
    "shares too few": tensor("within.0", torch.ones(4).double()),
    "shares in two dimensions": tensor("within.1", torch.ones(1, 2).double()),
    "shares not numbers": tensor("within.0", torch.full((5,), torch.nan).double()),
    "shares below zero": tensor("within.0", torch.tensor([-1.0, 2, 0.5, 0.5, 1]).double()),
    "shares without end": tensor("within.1", torch.full((2,), torch.inf).double()),
    "shares of zero": tensor("within.0", torch.zeros(5).double()),
    "shares whole": tensor("within.1", torch.ones(2, dtype=torch.int64)),
}


@pytest.mark.parametrize("edit", WRONG.values(), ids=WRONG.keys())
def test_tensors_that_do_not_fit_together_are_refused(path, edit):
    refusal(forged(path, edit))


def test_a_refusal_names_the_file_and_a_newer_format(path):
    assert f"{path} is not a model" in refusal(forged(path, missing("weights")))
    MODEL.save(path)
    assert "install a newer Aquatint" in refusal(forged(path, change(format_version=2)))


def test_an_honest_edit_is_read(path):
    forged(path, tensor("weights", HALF))
    assert load_model(path).weights.tolist() == [0.5, 0.5]
