"""The release file: byte-stable, complete, atomic, and safe to open from a stranger.

What the reader can and cannot notice. Everything that follows from the feature maps and the noise
scales is recomputed, and the two other members are checksummed, so accidents and careless edits are
caught. The file is not signed: someone who rewrites the manifest, the arrays and the checksums
together makes another release, and can say of it what they like (that noise which was never drawn
was drawn, for one). `test_what_is_not_caught` keeps that on record.
"""

import hashlib
import io
import json
import pickle
import struct
import time
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_arrays

import aquatint as aq
from aquatint.errors import ReleaseError
from aquatint.features import Count, by_label, concat, fourier, hermite, onehot, race, scale
from aquatint.release import archive as module
from aquatint.release.archive import ARRAYS, CARD, MANIFEST, from_file, load, to_bytes
from aquatint.release.manifest import json_schema

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS = {
    "sex": {"kind": "categorical", "categories": ["F", "M"]},
    "age": {"kind": "integer", "bounds": [0, 99], "bins": 5},
}


def schema_of(protects="add or remove one row"):
    return aq.Schema.from_dict(
        {"name": "people", "privacy": {"protects": protects}, "columns": COLUMNS}
    )


def rows(number):
    rng = np.random.default_rng(5)
    sex = np.where(rng.random(number) < 0.5, "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(0, 100, number)})


def release_of(number=400, protects="add or remove one row", **options):
    schema = schema_of(protects)
    maps = {
        "columns": onehot(schema.cells()),
        "waves": concat(scale(fourier(("age",), 4), 0.5), hermite(("age",), 2)),
        "hashes": race(("age",), 2, 3),
        "by sex": by_label(fourier(("age",), 2), "sex", 2),
    }
    if protects != "replace one row":
        maps["count"] = Count()
    blocks = tuple(aq.PlannedBlock(n, m, 1 / len(maps)) for n, m in maps.items())
    plan = aq.Plan(schema, blocks)
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False, **options}
    return aq.sketch(rows(number), schema, plan=plan, **options)


@pytest.fixture(scope="module")
def release():
    return release_of()


@pytest.fixture(scope="module")
def content(release):
    return to_bytes(release)


def opened(content):
    return from_file(io.BytesIO(content), len(content), "x.aqt")


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, compression=zipfile.ZIP_STORED):
    """Make a zip of (name, bytes) pairs, in order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compression)
    return buffer.getvalue()


def forged(content, edit=lambda manifest: None, *, arrays=None, card=None, raw=None):
    """Alter a release as a careful forger would, with checksums that match again."""
    members = members_of(content)
    if arrays is not None:
        members[ARRAYS] = arrays
    if card is not None:
        members[CARD] = card
    manifest = json.loads(members[MANIFEST])
    for name in (ARRAYS, CARD):
        digest = hashlib.sha256(members[name]).hexdigest()
        manifest["members"][name] = {"bytes": len(members[name]), "sha256": digest}
    edit(manifest)
    members[MANIFEST] = json.dumps(manifest).encode() if raw is None else raw(manifest)
    return zipped(members.items())


def refusal(content):
    """Open what has to be refused, quickly, in one printable line; give what was said."""
    begun = time.monotonic()
    with pytest.raises(ReleaseError) as caught:
        opened(content)
    assert time.monotonic() - begun < 5
    said = str(caught.value)
    assert said.startswith("x.aqt is not a valid release: ")
    assert len(said) < 1000
    assert said.isprintable(), "a stranger's file must not write control characters"
    return said


def opened_or_refused(content):
    """Give the release, or None if it is refused in one printable line; nothing else may happen."""
    said = ""
    try:
        return opened(content)
    except ReleaseError as error:
        said = str(error)
    assert said.isprintable(), repr(said)
    return None


def same(one, other):
    """Compare every field of two releases."""
    for name in ("schema", "statement", "rows", "created", "versions"):
        assert getattr(one, name) == getattr(other, name), name
    assert len(one.blocks) == len(other.blocks)
    for a, b in zip(one.blocks, other.blocks, strict=True):
        assert (a.name, a.map, a.scales, a.noise) == (b.name, b.map, b.scales, b.noise)
        assert a.integers.dtype == b.integers.dtype == np.int64
        assert (a.integers == b.integers).all()
    return True


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


# --- damage -------------------------------------------------------------------------------------


def test_a_file_cut_short_anywhere_is_refused(content):
    for length in [*range(0, len(content), 97), len(content) - 1]:
        refusal(content[:length])


def test_a_flipped_bit_is_refused_or_makes_no_difference(content, release):
    """300 places: a flip in a time stamp or another slack of the zip may pass, and then changes
    nothing that is read."""
    refused = 0
    for place in np.linspace(0, len(content) - 1, 300).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (int(place) % 8)
        found = opened_or_refused(bytes(damaged))
        refused += found is None
        assert found is None or same(found, release)
    assert refused > 280


def test_bytes_that_are_no_zip_are_refused():
    for junk in (b"", b"PK", b"PK\x05\x06" + bytes(18), b"\x00" * 1000, b"# a text\n" * 100):
        refusal(junk)


# --- hostile zips -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda m: [*m, ("more.txt", b"x")],
        lambda m: [*m, m[0]],
        lambda m: m[:2],
        lambda m: m[::-1],
        lambda m: [("../manifest.json", m[0][1]), *m[1:]],
        lambda m: [("/etc/passwd", m[0][1]), *m[1:]],
        lambda m: [("MANIFEST.JSON", m[0][1]), *m[1:]],
        lambda m: [*m[:2], ("README.md/", m[2][1])],
        lambda m: [*m[:2], ("arrays.pkl", m[2][1])],
    ],
    ids=["extra", "twice", "lacking", "order", "up", "absolute", "case", "folder", "renamed"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_other_members_are_refused(content, change):
    assert "in this order" in refusal(zipped(change(list(members_of(content).items()))))


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_members_are_refused(content, compression):
    assert "compressed" in refusal(zipped(members_of(content).items(), compression))


def test_a_zip_bomb_is_refused_without_being_unpacked(content):
    members = members_of(content)
    members[CARD] = bytes(50 << 20)
    bomb = zipped(members.items(), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 20
    assert "compressed" in refusal(bomb)


def central_directory(content, number):
    """Find the place of a member's entry in the central directory."""
    place = -1
    for _ in range(number + 1):
        place = content.index(b"PK\x01\x02", place + 1)
    return place


def patched(content, place, data):
    return content[:place] + data + content[place + len(data) :]


def test_an_encrypted_member_is_refused(content):
    place = central_directory(content, 1) + 8
    assert "encrypted" in refusal(patched(content, place, struct.pack("<H", 1)))


@pytest.mark.parametrize("declared", [len(b"x") << 30, 0xFFFFFFF0, 0xFFFFFFFF])
def test_huge_declared_sizes_are_refused_before_reading(content, declared):
    place = central_directory(content, 1) + 20
    huge = patched(content, place, struct.pack("<LL", declared, declared))
    refusal(huge)


def test_a_stored_member_that_says_it_is_larger_unpacked_is_refused(content):
    place = central_directory(content, 2) + 24
    assert "compressed" in refusal(patched(content, place, struct.pack("<L", 1 << 31)))


def test_an_oversized_member_is_refused(content, monkeypatch):
    monkeypatch.setitem(module.LIMITS, CARD, 100)
    assert "larger than allowed" in refusal(content)


def test_an_oversized_file_is_refused_before_it_is_opened(tmp_path):
    path = tmp_path / "x.aqt"
    with path.open("wb") as file:
        file.truncate(5 << 30)  # sparse: takes no room
    with pytest.raises(ReleaseError, match="more than a release may have"):
        load(path)


def test_a_wrong_checksum_of_the_zip_is_refused(content):
    manifest = members_of(content)[MANIFEST]
    wrong = content.replace(
        struct.pack("<L", zlib.crc32(manifest)), struct.pack("<L", zlib.crc32(manifest) ^ 1)
    )
    refusal(wrong)


# --- hostile manifests --------------------------------------------------------------------------


def with_raw_manifest(content, text):
    return forged(content, raw=lambda _: text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b'"aquatint-release"',
        b"{}",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format":"aquatint-release","format_version":' + b"9" * 1_000_000 + b"}",
        b'{"format":"aquatint-release","format_version":1,"rows":' + b"9" * 4_000 + b"}",
        b'{"format":"aquatint-release","format_version":1,"x":"' + b"y" * 10_000_000 + b'"}',
        b'{"format":"aquatint-release","format_version":1,"' + b"y" * 1_000_000 + b'":1}',
        b'{"format":"aquatint-release","format_version":NaN}',
        b'{"format":"aquatint-release","format_version":1e400}',
        b'{"format":["aquatint-release"],"format_version":1}',
        b'{"format":"aquatint-release","format_version":"1"}',
        b'{"format":"aquatint-release","format_version":true}',
        b'{"format":"aquatint-release","format_version":1,"blocks":[' + b"{}," * 10**5 + b"{}]}",
    ],
    ids=range(18),
)
def test_manifests_that_are_none_are_refused(content, text):
    refusal(with_raw_manifest(content, text))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ["epsilon", "delta", "rho"])
def test_numbers_that_are_none_are_refused(content, constant, field):
    def write(manifest):
        manifest["privacy"][field] = "HERE"
        return json.dumps(manifest).replace('"HERE"', constant).encode()

    refusal(forged(content, raw=write))


def test_a_newer_version_says_to_install_a_newer_aquatint(content):
    said = refusal(forged(content, lambda m: m.update(format_version=2)))
    assert "format version 2" in said
    assert "install a newer Aquatint" in said


@pytest.mark.parametrize("version", [0, -1, None, "2", 1.5, [2]])
def test_an_impossible_version_is_refused_without_that_advice(content, version):
    said = refusal(forged(content, lambda m: m.update(format_version=version)))
    assert "install a newer" not in said


def test_an_unknown_field_is_refused(content):
    assert "more" in refusal(forged(content, lambda m: m.update(more=1)))


@pytest.mark.parametrize("key", ["new\nline", "\x1b[31mred\x1b[0m", "bell\x07", "\u202ereversed"])
def test_a_field_with_control_characters_does_not_reach_the_terminal(content, key):
    refusal(forged(content, lambda m: m.update({key: 1})))


@pytest.mark.parametrize("name", ["new\nline", "\x1b]0;title\x07", "\x1b[2J"])
def test_a_schema_error_does_not_carry_control_characters_to_the_terminal(content, name):
    def edit(manifest):
        manifest["schema"]["columns"][name] = {"kind": "nonsense"}

    refusal(forged(content, edit))


# --- hostile feature maps -----------------------------------------------------------------------


def nested(depth):
    spec = {"kind": "count"}
    for _ in range(depth):
        spec = {"kind": "scaled", "inner": spec, "weight": 2.0}
    return spec


def wide(number):
    return {"kind": "concat", "parts": [{"kind": "count"}] * number}


FOURIER = {
    "kind": "fourier",
    "columns": ["age"],
    "features": 2,
    "length_scales": [0.2],
    "kernel": "gaussian",
    "seed": 0,
    "digest": "0" * 16,
}


@pytest.mark.parametrize(
    "spec",
    [
        {**FOURIER, "features": 10**12},
        {**FOURIER, "features": 10**4000},
        {**FOURIER, "features": -2},
        {**FOURIER, "features": "2"},
        {**FOURIER, "length_scales": [1e-300]},
        {**FOURIER, "columns": ["age"] * 10**5},
        {**FOURIER, "columns": "age"},
        {**FOURIER, "kernel": "os.system"},
        {"kind": "hermite", "columns": ["age"], "order": 10**9, "rho": 0.3, "span": 2.0},
        {"kind": "hermite", "columns": ["age"], "order": 1, "rho": 2.0, "span": 2.0},
        {"kind": "race", "columns": ["age"], "repetitions": 10**9, "buckets": 10**9},
        {"kind": "marginals", "columns": [["age", 10**12]], "sets": [[0]]},
        {"kind": "marginals", "columns": [["age", 5]], "sets": [[7]]},
        {"kind": "marginals", "columns": [["age", 5]], "sets": [[0]] * 10**5},
        {"kind": "marginals", "columns": [["age", -5]], "sets": [[0]]},
        {"kind": "by_label", "inner": {"kind": "count"}, "label": "sex", "classes": 10**12},
        {"kind": "by_label", "inner": {"kind": "count"}, "label": "sex", "classes": -1},
        {"kind": "scaled", "inner": {"kind": "count"}, "weight": 1e308},
        {"kind": "scaled", "inner": {"kind": "count"}, "weight": 5e-324},
        {"kind": "scaled", "inner": {"kind": "count"}, "weight": 0},
        {"kind": "scaled", "inner": {"kind": "count"}, "weight": "2"},
        {"kind": "product", "left": FOURIER, "right": {"kind": "count"}},
        {"kind": "__import__"},
        {"kind": ["count"]},
        {"kind": None},
        {},
        nested(100),
        nested(800),
        wide(10**5),
        wide(0),
    ],
    ids=range(30),
)
def test_absurd_feature_maps_are_refused(content, spec):
    def edit(manifest):
        manifest["blocks"][0]["map"] = spec

    refusal(forged(content, edit))


def blocks_by_name(manifest):
    return {block["name"]: block for block in manifest["blocks"]}


@pytest.mark.parametrize(
    "edit",
    [
        lambda b: b["columns"]["map"]["columns"][1].__setitem__(1, 5.0),
        lambda b: b["by sex"]["map"].__setitem__("classes", 2.0),
        lambda b: b["waves"]["map"]["parts"][1].__setitem__("order", 2.0),
        lambda b: b["hashes"]["map"].__setitem__("repetitions", 2.0),
        lambda b: b["hashes"]["map"].__setitem__("seed", "0"),
    ],
    ids=["cells", "classes", "order", "repetitions", "seed"],
)
def test_a_count_that_is_no_whole_number_is_refused_or_still_usable(content, release, edit):
    """2.0 equals 2 in Python, so it slips through comparisons; using it must not fail later."""
    altered = forged(content, lambda m: edit(blocks_by_name(m)))
    try:
        found = opened(altered)
    except ReleaseError:
        return
    for block in found.blocks:
        assert len(block.sum) == len(block.stderr) == block.map.dim
    assert to_bytes(found) == to_bytes(release)


def test_negative_cells_that_multiply_to_a_positive_number_are_refused(content):
    def edit(manifest):
        blocks = blocks_by_name(manifest)
        blocks["by sex"]["map"] = {
            "kind": "marginals",
            "columns": [["sex", -2], ["age", -2]],
            "sets": [[0, 1]],
        }
        part = {"coordinates": 4, "l1": 2**20, "l2_squared": 2**40, "steps": 2.0**20}
        blocks["by sex"]["parts"] = [{**part, "scale": 1e12}]
        manifest["privacy"].update(epsilon=50.0)

    refusal(forged(content, settled(edit)))


def test_a_map_that_reads_a_column_the_schema_lacks_is_refused(content):
    def edit(manifest):
        spec = blocks_by_name(manifest)["columns"]["map"]
        spec["columns"][0][0] = "salary"

    refusal(forged(content, edit))


def test_a_map_with_other_cells_than_the_schema_is_refused(content):
    def edit(manifest):
        manifest["schema"]["columns"]["age"]["bins"] = 50

    refusal(forged(content, edit))


def settled(edit):
    """Apply an edit, then state the losses that follow from it, so that only the edit is odd."""
    from aquatint.accounting import Noised, gaussian_loss, zcdp_epsilon

    def both(manifest):
        edit(manifest)
        parts = [part for block in manifest["blocks"] for part in block["parts"]]
        noised = [Noised(p["coordinates"], p["scale"], p["l2_squared"], p["l1"]) for p in parts]
        rho = gaussian_loss(noised).rho
        stated = zcdp_epsilon(rho, manifest["privacy"]["delta"])
        manifest["privacy"].update(rho=rho, zcdp_epsilon=stated)

    return both


# --- broken promises ----------------------------------------------------------------------------


def test_a_smaller_noise_scale_breaks_the_promise(content):
    def edit(manifest):
        for block in manifest["blocks"]:
            for part in block["parts"]:
                part["scale"] *= 0.99

    assert "but its noise only gives" in refusal(forged(content, settled(edit)))


def test_one_scale_set_to_almost_nothing_is_refused(content):
    refusal(forged(content, lambda m: m["blocks"][0]["parts"][0].update(scale=1e-300)))


def test_a_larger_noise_scale_contradicts_the_stated_loss(content):
    said = refusal(forged(content, lambda m: m["blocks"][0]["parts"][0].update(scale=1e12)))
    assert "otherwise than follows from its contents" in said


def test_a_smaller_epsilon_breaks_the_promise(content):
    said = refusal(forged(content, lambda m: m["privacy"].update(epsilon=0.5)))
    assert "promises epsilon = 0.5, but its noise only gives 1" in said


def test_a_smaller_delta_breaks_the_promise(content):
    assert "noise only gives" in refusal(forged(content, lambda m: m["privacy"].update(delta=1e-9)))


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.0])
def test_a_delta_that_cannot_be_is_refused(content, delta):
    refusal(forged(content, lambda m: m["privacy"].update(delta=delta)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rho", 0.001),
        ("rho", None),
        ("zcdp_epsilon", 0.1),
        ("protects", "replace one row"),
        ("unit", "person"),
        ("rows_per_unit", 2),
        ("noise", "discrete laplace"),
    ],
)
def test_other_statements_than_follow_from_the_noise_are_refused(content, field, value):
    refusal(forged(content, lambda m: m["privacy"].__setitem__(field, value)))


@pytest.mark.parametrize("field", ["l1", "l2_squared", "steps", "coordinates"])
def test_other_sensitivities_than_follow_from_the_map_are_refused(content, field):
    def edit(manifest):
        part = manifest["blocks"][0]["parts"][0]
        part[field] = part[field] * 2

    refusal(forged(content, edit))


def test_another_unit_of_protection_changes_the_sensitivity_and_is_refused(content):
    def edit(manifest):
        privacy = {"protects": "all rows of one person", "person": "id", "max_rows": 5}
        manifest["schema"]["privacy"] = privacy

    refusal(forged(content, edit))


def test_a_public_row_count_under_add_remove_is_refused(content):
    assert "number of rows" in refusal(forged(content, lambda m: m.update(rows=400)))


@pytest.mark.parametrize("number", [10**400, 2**63, -1, 1.5, "400"], ids=range(5))
def test_an_impossible_row_count_is_refused_or_usable(number):
    swapped = to_bytes(release_of(protects="replace one row"))
    try:
        found = opened(forged(swapped, lambda m: m.update(rows=number)))
    except ReleaseError:
        return
    assert found.count == float(number)


@pytest.mark.parametrize("member", [ARRAYS, CARD])
def test_an_altered_checksum_is_refused(content, member):
    def edit(manifest):
        manifest["members"][member]["sha256"] = "0" * 64

    assert f"the checksum of {member} does not match" in refusal(forged(content, edit))


@pytest.mark.parametrize("member", [ARRAYS, CARD])
def test_a_lacking_checksum_is_refused(content, member):
    assert "checksum" in refusal(forged(content, lambda m: m["members"].pop(member)))


def test_an_altered_card_is_refused(content):
    members = members_of(content)
    members[CARD] = members[CARD].replace(b"epsilon: 1.0", b"epsilon: 0.1")
    assert "the checksum of README.md" in refusal(zipped(members.items()))


def test_altered_numbers_are_refused(content):
    members = members_of(content)
    members[ARRAYS] = members[ARRAYS][:-1] + bytes([members[ARRAYS][-1] ^ 1])
    assert "the checksum of arrays.safetensors" in refusal(zipped(members.items()))


def test_what_is_not_caught(release, content):
    """The manifest has no checksum over itself and the file no signature: on record, not a virtue.

    The zip's CRC catches accidents. A forger who writes a new CRC can drop the "simulated" mark,
    promise a larger epsilon than the noise gives, replace the numbers, or rename the data. What the
    manifest lists as public is text for people: it is shown as recomputed, whatever the file says.
    """
    simulated = to_bytes(release_of(simulate=1))
    assert not opened(simulated).private
    assert opened(forged(simulated, lambda m: m["privacy"].update(simulated=False))).private
    assert (
        opened(forged(content, lambda m: m["privacy"].update(epsilon=9.0))).statement.epsilon == 9
    )
    zeros = save_arrays({b.name: np.zeros_like(b.integers) for b in release.blocks})
    assert not opened(forged(content, arrays=zeros)).blocks[0].integers.any()
    assert opened(forged(content, lambda m: m["schema"].update(name="x"))).schema.name == "x"
    opened(forged(content, lambda m: m["privacy"].update(public=["nothing"])))


def test_dropping_the_simulated_mark_without_a_new_crc_is_caught():
    simulated = to_bytes(release_of(simulate=1))
    assert b'"simulated":true' in simulated
    refusal(simulated.replace(b'"simulated":true', b'"simulated":null'))


# --- hostile arrays -----------------------------------------------------------------------------


def arrays_of(release, change):
    arrays = {block.name: np.array(block.integers) for block in release.blocks}
    change(arrays)
    return save_arrays(arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(columns=a["columns"].astype(np.float64)),
        lambda a: a.update(columns=a["columns"].astype(np.int32)),
        lambda a: a.update(columns=a["columns"].view(np.uint64)),
        lambda a: a.update(columns=np.zeros(7, np.float16)),
        lambda a: a.update(columns=a["columns"][:-1]),
        lambda a: a.update(columns=a["columns"][None]),
        lambda a: a.update(columns=np.zeros(0, np.int64)),
        lambda a: a.update(columns=np.array(7, np.int64)),
        lambda a: a.update(more=np.zeros(3, np.int64)),
        lambda a: a.pop("columns"),
        lambda a: a.clear(),
    ],
    ids=range(11),
)
def test_arrays_of_another_type_shape_or_name_are_refused(content, release, change):
    refusal(forged(content, arrays=arrays_of(release, change)))


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def object_array():
    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "payload",
    [
        pickle.dumps(Evil()),
        object_array(),
        b"",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        b"\x00" * 8,
    ],
    ids=["pickle", "object", "empty", "header", "none", "list", "deep", "zero"],
)
def test_payloads_that_are_no_arrays_are_refused(content, payload):
    refusal(forged(content, arrays=payload))


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "BOOL", "I64", "NOPE"])
@pytest.mark.parametrize("offsets", [[0, 16], [0, 2**62], [8, 0], [-8, 0]])
def test_headers_that_lie_about_the_arrays_are_refused(content, dtype, offsets):
    header = json.dumps({"columns": {"dtype": dtype, "shape": [2], "data_offsets": offsets}})
    payload = struct.pack("<Q", len(header)) + header.encode() + bytes(16)
    refusal(forged(content, arrays=payload))


# --- fuzz ---------------------------------------------------------------------------------------

FUZZ = settings(
    max_examples=150,
    deadline=10_000,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63), 10**30, 0, 1, 2]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


def places(data, prefix=()):
    """List every place in nested data."""
    yield prefix
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(value, (*prefix, key))


def put(data, place, value):
    for key in place[:-1]:
        data = data[key]
    data[place[-1]] = value


@FUZZ
@given(data=st.data())
def test_mutated_manifests_raise_nothing_but_a_release_error(content, data):
    def edit(manifest):
        for _ in range(data.draw(st.integers(1, 3))):
            known = list(places(manifest))[1:]
            put(manifest, data.draw(st.sampled_from(known)), data.draw(values))

    only_release_errors(forged(content, edit))


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes_raise_nothing_but_a_release_error(junk):
    only_release_errors(junk)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=20))
def test_damaged_bytes_raise_nothing_but_a_release_error(content, changes):
    damaged = bytearray(content)
    for place, value in changes:
        damaged[place % len(damaged)] = value
    only_release_errors(bytes(damaged))


@FUZZ
@given(st.binary(max_size=200))
def test_random_arrays_raise_nothing_but_a_release_error(content, junk):
    only_release_errors(forged(content, arrays=junk))


def only_release_errors(content):
    """Open it, and use it if it opens: nothing but a ReleaseError in one printable line comes."""
    found = opened_or_refused(content)
    if found is None:
        return
    assert np.isfinite(found.count)
    for block in found.blocks:
        assert len(block.sum) == len(block.stderr) == block.map.dim


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
