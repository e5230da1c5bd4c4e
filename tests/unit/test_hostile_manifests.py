"""Hostile manifests: maps that are none, promises that the noise does not keep."""

import json

import numpy as np
import pytest
from release_files import (
    forged,
    members_of,
    opened,
    refusal,
    release_of,
    zipped,
)
from safetensors.numpy import save as save_arrays

from aquatint.errors import ReleaseError
from aquatint.release.archive import ARRAYS, CARD, to_bytes

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
