"""Damaged and hostile files: one clear refusal each, and nothing else."""

import io
import json
import pickle
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_files import (
    forged,
    members_of,
    opened_or_refused,
    refusal,
    same,
    zipped,
)
from safetensors.numpy import save as save_arrays

from aquatint.errors import ReleaseError
from aquatint.release import archive as module
from aquatint.release.archive import CARD, MANIFEST, load

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
