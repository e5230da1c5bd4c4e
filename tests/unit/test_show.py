"""What people read: the promise in words, the card, the registry entry, and plain data."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import aquatint as aq
from aquatint import show
from aquatint.release.card import NOT_PRIVATE, card, promise, protected_change, registry_entry
from aquatint.show import (
    preview_data,
    preview_text,
    release_data,
    release_text,
    verified_data,
    verified_text,
)

ROW, SWAP, PERSON = "add or remove one row", "replace one row", "all rows of one person"


def release_of(protects=ROW, *, name="people", delta=1e-6, simulate=None, **privacy):
    schema = aq.Schema.from_dict(
        {
            "name": name,
            "privacy": {"protects": protects, **privacy},
            "columns": {"sex": {"kind": "categorical", "categories": ["F", "M"]}},
        }
    )
    table = pa.table({"sex": ["F", "M"] * 200, "id": np.arange(400) % 100})
    return aq.sketch(table, schema, epsilon=1.5, delta=delta, simulate=simulate, progress=False)


@pytest.fixture(scope="module")
def plain():
    return release_of()


@pytest.fixture(scope="module")
def simulated():
    return release_of(simulate=1)


# --- the promise --------------------------------------------------------------------------------


def test_the_promise_states_epsilon_and_delta(plain):
    assert promise(plain).startswith("This release is (1.5, 1e-06)-differentially private")


def test_a_pure_promise_states_epsilon_alone():
    said = promise(release_of(delta=0.0))
    assert said.startswith("This release is 1.5-differentially private")


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        ({"protects": ROW}, "whether any one row was added or left out"),
        ({"protects": SWAP}, "whether any one row was replaced by any other"),
        (
            {"protects": PERSON, "person": "id"},
            "whether any one person, with all their rows, was in the data or not",
        ),
        (
            {"protects": PERSON, "person": "id", "max_rows": 3},
            "whether any one person, who counts for at most 3 rows, with all their rows, was in",
        ),
    ],
    ids=["row", "swap", "person", "rows of a person"],
)
def test_the_protected_change_is_said_in_words(privacy, words):
    release = release_of(**privacy)
    assert protected_change(release).startswith(words)
    assert words in promise(release)


# --- simulated noise ----------------------------------------------------------------------------


def test_a_simulated_release_promises_nothing(simulated):
    assert promise(simulated) == NOT_PRIVATE


@pytest.mark.parametrize("write", [release_text, verified_text])
def test_a_simulated_release_is_shown_as_not_private(simulated, write, capsys):
    write(simulated)
    said = capsys.readouterr().out
    assert NOT_PRIVATE in said
    assert "-differentially private" not in said


def test_a_simulated_release_is_not_private_in_its_card_and_data(simulated):
    assert NOT_PRIVATE in card(simulated)
    assert "\nprivate: false\n" in card(simulated)
    assert release_data(simulated)["private"] is False
    assert verified_data(simulated)["private"] is False
    assert registry_entry(simulated)["is_private"] is False


def test_a_real_release_is_not_shown_as_simulated(plain, capsys):
    release_text(plain)
    verified_text(plain)
    assert "NOT PRIVATE" not in capsys.readouterr().out + card(plain)
    assert "\nprivate: true\n" in card(plain)


# --- text ---------------------------------------------------------------------------------------


def test_the_text_has_the_facts(plain, capsys):
    release_text(plain)
    said = capsys.readouterr().out
    for fact in ("people", ROW, "discrete gaussian", "1.5, 1e-06", "rho (zCDP)", "about", "count"):
        assert fact in said


def test_the_text_of_a_pure_release_has_no_rho(capsys):
    release = release_of(delta=0.0)
    release_text(release)
    verified_text(release)
    said = capsys.readouterr().out
    assert "rho" not in said
    assert "discrete laplace" in said
    assert "epsilon          1.5 at delta 0" in said


def test_a_public_row_count_is_shown_as_public(capsys):
    release = release_of(SWAP)
    release_text(release)
    said = capsys.readouterr().out
    assert "400 (public)" in said
    assert "the number of rows" in said


def test_a_private_row_count_is_rounded_and_not_listed_as_public(plain, capsys):
    release_text(plain)
    said = capsys.readouterr().out
    assert f"about {plain.count:,.0f}" in said
    assert "\n  the number of rows\n" not in said


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "[link=http://x]y[/link]"])
def test_names_are_shown_as_they_are_and_not_as_markup(name, capsys):
    release = release_of(name=name)
    named = replace(release, blocks=tuple(replace(b, name=name + b.name) for b in release.blocks))
    release_text(named)
    said = capsys.readouterr().out
    assert said.count(name) == 1 + len(named.blocks)


def test_control_characters_cannot_reach_the_terminal_through_a_name():
    for name in ("\x1b[2J", "a\nb", "bell\x07", "\u202e"):
        with pytest.raises(aq.AquatintError):
            release_of(name=name)


def test_markup_in_a_name_stays_out_of_the_card():
    said = card(release_of(name="<script>x</script>"))
    heading = next(line for line in said.splitlines() if line.startswith("# "))
    assert "<" not in heading


def test_long_lines_are_not_broken_where_there_is_no_terminal(plain, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    release_text(plain)
    assert promise(plain) in capsys.readouterr().out


def test_table_cells_are_not_broken_where_there_is_no_terminal(plain, capsys, monkeypatch):
    """Output into a file or a pipe is for programs such as grep: one row, one line."""
    monkeypatch.delenv("COLUMNS", raising=False)
    seen = aq.preview(aq.plan(plain.schema), rows=400, epsilon=1.0, delta=1e-6)
    preview_text(seen)
    said = capsys.readouterr().out
    for expected in seen.expected:
        assert expected.question in said


def test_the_terminal_is_looked_for_when_it_is_written_to(plain, capsys, monkeypatch):
    """Not when the module is loaded: programs put another stream in its place, and close it."""
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(show, "stdout", gone, raising=False)
    release_text(plain)
    assert promise(plain) in capsys.readouterr().out


# --- plain data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("protects", [ROW, SWAP])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_everything_is_plain_json(protects, delta):
    release = release_of(protects, delta=delta)
    for data in (release_data(release), verified_data(release), registry_entry(release)):
        assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_data_repeat_the_statement(plain):
    data = release_data(plain)
    assert data["privacy"]["epsilon"] == 1.5
    assert data["privacy"]["rho"] == plain.loss.rho
    assert data["count"] == plain.count
    assert data["count_is_public"] is False
    assert [b["name"] for b in data["blocks"]] == [b.name for b in plain.blocks]


def test_the_verified_epsilon_is_the_recomputed_one(plain):
    data = verified_data(plain)
    assert data["epsilon_recomputed"] == plain.loss.epsilon(1e-6)
    assert data["epsilon_recomputed"] <= data["epsilon_promised"] == 1.5


def test_the_registry_entry_has_the_fields_of_the_registry(plain):
    entry = registry_entry(plain)
    for field in (
        "dp_flavor",
        "privacy_loss",
        "privacy_unit",
        "unprotected_quantities",
        "model",
        "composition",
        "post_processing",
        "mechanisms",
        "implementation",
    ):
        assert entry[field], field
    assert len(entry["mechanisms"]) == len(plain.blocks)


def test_a_preview_is_plain_data_and_text(plain, capsys):
    seen = aq.preview(aq.plan(plain.schema), rows=400, epsilon=1.0, delta=1e-6)
    assert preview_data(seen)["rows"] == 400
    preview_text(seen)
    assert "how many rows are there" in capsys.readouterr().out


def test_the_preview_foretells_the_noise_of_the_release(plain):
    seen = aq.preview(aq.plan(plain.schema), rows=400, epsilon=1.5, delta=1e-6)
    foretold = {block.name: block.noise for block in seen.blocks}
    assert foretold == {b.name: pytest.approx(b.stderr[0]) for b in plain.blocks}


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("rows", [30, 400, 20_000])
def test_the_preview_foretells_the_noise_of_both_rounds(rows, delta):
    """With a public number of rows to the digit, since the shares are settled by it."""
    columns = {f"c{i}": {"kind": "boolean"} for i in range(4)}
    schema = aq.Schema.from_dict(
        {"name": "x", "privacy": {"protects": SWAP}, "columns": columns, "label": "c0"}
    )
    table = pa.table({name: np.arange(rows) % 3 == 0 for name in columns})
    release = aq.sketch(table, schema, epsilon=1.0, delta=delta, progress=False)
    seen = aq.preview(aq.plan(schema), rows=rows, epsilon=1.0, delta=delta)
    assert [b.name for b in seen.blocks] == ["columns", "pairs by label"]
    for foretold, block in zip(seen.blocks, release.blocks, strict=True):
        assert foretold.noise == pytest.approx(block.stderr[0], rel=1e-9)
        assert foretold.numbers >= block.map.dim  # before cells are merged
        assert foretold.at_most is (block.name != "columns")


def test_numbers_before_merging_are_shown_as_the_most_there_can_be(capsys):
    columns = {f"c{i}": {"kind": "boolean"} for i in range(3)}
    schema = aq.Schema.from_dict({"name": "x", "privacy": {"protects": ROW}, "columns": columns})
    preview_text(aq.preview(aq.plan(schema), rows=400, epsilon=1.0, delta=1e-6))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "marginals" in line]
    assert lines[0][:3] == ["columns", "marginals", "6"]
    assert lines[1][:5] == ["pairs", "marginals", "at", "most", "12"]


def test_a_merged_block_is_shown_with_the_numbers_it_holds(capsys):
    columns = {f"c{i}": {"kind": "numeric", "bounds": [0, 1]} for i in range(3)}
    schema = aq.Schema.from_dict({"name": "x", "privacy": {"protects": ROW}, "columns": columns})
    table = pa.table({name: np.linspace(0, 1, 200) for name in columns})
    release = aq.sketch(table, schema, epsilon=1.0, delta=1e-6, progress=False)
    joint = release.block("pairs")
    assert joint.map.groups
    assert release_data(release)["blocks"][2]["numbers"] == len(joint.integers)
    assert verified_data(release)["numbers"] == sum(len(b.integers) for b in release.blocks)
    assert f"- pairs: marginals, {len(joint.integers):,} numbers" in card(release)
    release_text(release)
    assert f"{joint.map.dim:,}" in capsys.readouterr().out


# --- the card -----------------------------------------------------------------------------------


def test_the_card_opens_with_facts_for_programs(plain):
    lines = card(plain).splitlines()
    assert lines[0] == "---"
    head = lines[1 : lines.index("---", 1)]
    facts = dict(line.split(": ", 1) for line in head)
    assert json.loads(facts["name"]) == "people"
    assert float(facts["epsilon"]) == 1.5
    assert float(facts["delta"]) == 1e-6


def test_the_card_says_what_is_not_covered(plain):
    said = card(plain)
    assert "## Taken as public, and not protected" in said
    assert "## Not covered by the promise" in said
    assert "timing" in said
