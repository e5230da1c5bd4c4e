"""The release file: the same bytes every time, whole or not at all, and fit to its schema."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from release_files import (
    DOCS,
    members_of,
    opened,
    release_of,
    same,
)

from aquatint.errors import ReleaseError
from aquatint.release import archive as module
from aquatint.release.archive import ARRAYS, CARD, MANIFEST, load, to_bytes
from aquatint.release.manifest import json_schema

# --- writing ------------------------------------------------------------------------------------


def test_saving_twice_gives_the_same_bytes(release, tmp_path):
    release.save(tmp_path / "a.aqt")
    release.save(tmp_path / "b.aqt")
    assert (tmp_path / "a.aqt").read_bytes() == (tmp_path / "b.aqt").read_bytes()


def test_saving_what_was_loaded_gives_the_same_bytes(content, tmp_path):
    (tmp_path / "a.aqt").write_bytes(content)
    load(tmp_path / "a.aqt").save(tmp_path / "b.aqt")
    assert (tmp_path / "b.aqt").read_bytes() == content


@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("simulate", [None, 3])
def test_every_field_survives_the_round_trip(protects, delta, simulate, tmp_path):
    made = release_of(protects=protects, delta=delta, simulate=simulate)
    made.save(tmp_path / "x.aqt")
    assert same(load(tmp_path / "x.aqt"), made)


def test_the_order_of_the_columns_survives_the_round_trip(release, content):
    assert list(opened(content).schema.columns) == list(release.schema.columns) == ["sex", "age"]


def test_nothing_in_the_file_depends_on_the_clock_or_the_machine(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
    assert [e.filename for e in entries] == [MANIFEST, ARRAYS, CARD]
    for entry in entries:
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.compress_type == zipfile.ZIP_STORED
        assert (entry.create_system, entry.external_attr, entry.extra) == (3, 0o644 << 16, b"")


def test_the_manifest_is_canonical(content):
    text = members_of(content)[MANIFEST]
    data = json.loads(text)
    again = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    assert text == again.encode() + b"\n"
    assert list(data) == list(json_schema()["properties"])  # the published order


def test_loaded_arrays_cannot_be_changed(content):
    block = opened(content).blocks[0]
    with pytest.raises(ValueError, match="read-only"):
        block.integers[0] = 0


def test_the_row_count_and_a_hash_of_the_data_are_nowhere_in_the_file():
    """Simulated noise with one seed: files of 400 and 401 rows differ in noisy numbers alone."""
    few, many = release_of(400, simulate=1), release_of(401, simulate=1)
    assert few.rows is many.rows is None
    one, other = members_of(to_bytes(few)), members_of(to_bytes(many))
    first, second = json.loads(one[MANIFEST]), json.loads(other[MANIFEST])
    assert first["rows"] is second["rows"] is None
    for manifest in (first, second):
        del manifest["members"]
    assert first == second
    assert changed_lines(one[CARD], other[CARD]) <= {b"- number of rows"}
    assert one[ARRAYS] != other[ARRAYS]


def changed_lines(one, other):
    pairs = zip(one.splitlines(), other.splitlines(), strict=True)
    return {a.split(b":")[0] for a, b in pairs if a != b}


def test_the_real_file_does_not_hold_the_exact_count_either(release, content):
    assert json.loads(members_of(content)[MANIFEST])["rows"] is None
    steps = release.block("count").steps[0]
    assert release.block("count").integers[0] != 400 * steps  # equal once in 3e7 runs


@pytest.mark.parametrize("when", ["write", "fsync", "replace"])
def test_a_failing_write_leaves_no_file(release, tmp_path, monkeypatch, when):
    def fail(*_):
        raise OSError(28, "No space left on device")

    if when == "write":
        monkeypatch.setattr(module, "_settle", fail)
    elif when == "fsync":
        monkeypatch.setattr(module.os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ReleaseError, match=r"cannot write .*No space left on device"):
        release.save(tmp_path / "x.aqt")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_write_leaves_the_old_file_as_it_was(release, tmp_path, monkeypatch):
    (tmp_path / "x.aqt").write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O")))
    with pytest.raises(ReleaseError):
        release.save(tmp_path / "x.aqt")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("x.aqt", b"old")]


def test_an_interrupt_while_writing_leaves_no_file(release, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_settle", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        release.save(tmp_path / "x.aqt")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_refused(release, tmp_path):
    with pytest.raises(ReleaseError, match="cannot write"):
        release.save(tmp_path / "nowhere" / "x.aqt")


# --- the published schema -----------------------------------------------------------------------


def test_the_published_schema_is_that_of_the_code():
    published = DOCS / "release-format-v1.schema.json"
    expected = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    assert published.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("protects", ["add or remove one row", "replace one row"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_manifest_fits_the_published_schema(protects, delta):
    schema = json.loads((DOCS / "release-format-v1.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    manifest = json.loads(
        members_of(to_bytes(release_of(protects=protects, delta=delta)))[MANIFEST]
    )
    jsonschema.Draft202012Validator(schema).validate(manifest)


@pytest.mark.parametrize("edit", ["extra", "missing", "version", "negative"])
def test_the_published_schema_refuses_what_the_reader_refuses(content, edit):
    manifest = json.loads(members_of(content)[MANIFEST])
    if edit == "extra":
        manifest["more"] = 1
    elif edit == "missing":
        del manifest["privacy"]
    elif edit == "version":
        manifest["format_version"] = 2
    else:
        manifest["blocks"][0]["parts"][0]["scale"] = -1.0
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(manifest)


# --- paths --------------------------------------------------------------------------------------


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match=r"cannot read .*No such file"):
        load(tmp_path / "x.aqt")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match=r"cannot read .*directory"):
        load(tmp_path)


def test_names_with_zero_bytes_are_refused():
    with pytest.raises((ReleaseError, ValueError)):
        load("a\0b.aqt")


def test_a_release_cannot_be_built_with_too_little_noise(release):
    short = tuple(replace(b, scales=tuple(0.8 * s for s in b.scales)) for b in release.blocks)
    with pytest.raises(ReleaseError, match="but its noise only gives"):
        replace(release, blocks=short)
