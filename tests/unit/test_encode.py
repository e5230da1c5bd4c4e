"""Record batches to encoded rows, by the schema alone."""

import datetime as dt
import json
import zipfile
from decimal import Decimal
from math import inf, isnan, nan

import numpy as np
import pyarrow as pa
import pytest

from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.sketch import sketch
from aquatint.errors import DataError
from aquatint.schema import Schema

NUMBER = {"kind": "numeric", "bounds": [0, 10], "bins": 5}
WHOLE = {"kind": "integer", "bounds": [0, 9], "bins": 5}
DATE = {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"], "bins": 366}
MOMENT = {
    "kind": "datetime",
    "bounds": ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"],
    "bins": 24,
}
COLOURS = {"kind": "categorical", "categories": ["red", "green"]}
CODES = {"kind": "categorical", "categories": [1, 2, 5]}
GRADE = {"kind": "ordered", "categories": ["low", "middle", "high"]}
TEXT = {"kind": "text", "categories": ["fine", "not so fine"]}
FLAG = {"kind": "boolean"}
HAS_ORDER = {"numeric", "integer", "date", "datetime", "ordered", "boolean"}


def encoded(column, values, kind=None, notes=None, **settings):
    column = {**column, **settings}
    schema = Schema.from_dict(
        {
            "name": "x",
            "privacy": {"protects": "add or remove one row"},
            "columns": {"a": column},
        }
    )
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    read = frozenset({"a"})
    encoder = Encoder(schema, read, read if column["kind"] in HAS_ORDER else frozenset())
    return encoder(pa.record_batch({"a": array}), Notes() if notes is None else notes)


def codes(*args, **settings):
    return encoded(*args, **settings).codes["a"].tolist()


def values(*args, **settings):
    return encoded(*args, **settings).values["a"].tolist()


NUMERIC_TYPES = [
    pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(),
    pa.float64(), pa.decimal128(5, 1), pa.decimal256(5, 1), pa.string(), pa.large_string(),
    pa.string_view(), pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int32(), pa.string()),
]  # fmt: skip


def as_type(kind):
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    numbers = [0, 3, 9, 4]
    if pa.types.is_decimal(plain):
        made = pa.array([Decimal(n) for n in numbers], plain)
    elif pa.types.is_float16(plain):
        made = pa.array(np.array(numbers, np.float16))
    elif pa.types.is_string(plain) or pa.types.is_large_string(plain) or plain == pa.string_view():
        made = pa.array([str(n) for n in numbers], plain)
    else:
        made = pa.array(numbers, plain)
    return made.dictionary_encode() if pa.types.is_dictionary(kind) else made


@pytest.mark.parametrize("kind", NUMERIC_TYPES, ids=str)
@pytest.mark.parametrize("column", [NUMBER, WHOLE], ids=["numeric", "integer"])
def test_numbers_of_any_type_encode_alike(column, kind):
    assert codes(column, as_type(kind)) == [0, 1, 4, 2]


def test_numeric_values_take_their_place_in_the_unit_interval():
    assert values(NUMBER, [0.0, 2.5, 10.0]) == [0.0, 0.25, 1.0]
    assert values(WHOLE, [0, 9]) == [0.0, 1.0]


def test_values_lie_on_the_grid():
    rng = np.random.default_rng(0)
    for column in ({**NUMBER, "bounds": [-3.7, 11.1]}, {**WHOLE, "bounds": [-7, 90]}):
        whole = column["kind"] == "integer"
        raw = rng.integers(-7, 90, 500) if whole else rng.normal(3, 5, 500)
        steps = encoded(column, pa.array(raw)).values["a"].double() * 2**20
        assert (steps == steps.round()).all()
        assert 0 <= steps.min() <= steps.max() <= 2**20


def test_what_is_outside_is_clipped_and_noted_nowhere_else():
    notes = Notes()
    rows = encoded(NUMBER, [-5.0, 0.0, 10.0, 10.5, inf, -inf, 1e308], notes=notes)
    assert rows.codes["a"].tolist() == [0, 0, 4, 4, 4, 0, 4]
    assert rows.values["a"].tolist() == [0, 0, 1, 1, 1, 0, 1]
    assert dict(notes.clipped) == {"a": 5}
    assert not notes.other
    assert not notes.missing


def test_unknown_categories_go_to_other_and_are_noted():
    notes = Notes()
    assert codes(COLOURS, ["red", "blue", "", "RED"], other=True, notes=notes) == [0, 2, 2, 2]
    assert dict(notes.other) == {"a": 3}
    assert not notes.clipped


def test_unknown_categories_are_refused_without_other():
    with pytest.raises(DataError, match=r"outside its declared categories.*other = true") as caught:
        codes(COLOURS, ["red", "secret"])
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="declare them"):
        codes(GRADE, ["low", "lowest"])


def test_missing_is_refused_or_a_cell_of_its_own():
    cases = {
        "numeric": (NUMBER, [1.0, None], 5),
        "integer": (WHOLE, [1, None], 5),
        "date": (DATE, [dt.date(2020, 1, 1), None], 366),
        "datetime": (MOMENT, [dt.datetime(2020, 1, 1), None], 24),
        "categorical": (COLOURS, ["red", None], 2),
        "whole categories": (CODES, [1, None], 3),
        "ordered": (GRADE, ["low", None], 3),
        "text": (TEXT, ["fine", None], 3),
        "boolean": (FLAG, [True, None], 2),
    }
    for column, data, cell in cases.values():
        with pytest.raises(DataError, match="missing values in 1 rows"):
            encoded(column, data)
        notes = Notes()
        rows = encoded(column, data, missing=True, notes=notes)
        assert rows.codes["a"][1] == cell
        assert dict(notes.missing) == {"a": 1}
        if rows.values:
            assert isnan(rows.values["a"][1])
            assert not isnan(rows.values["a"][0])


def test_a_column_of_nothing_but_nulls_is_all_missing():
    for column in (NUMBER, WHOLE, DATE, MOMENT, COLOURS, CODES, GRADE, TEXT, FLAG):
        rows = encoded(column, pa.nulls(3), missing=True)
        assert len(set(rows.codes["a"].tolist())) == 1


def test_not_a_number_is_missing():
    assert codes(NUMBER, [nan, 1.0], missing=True) == [5, 0]
    with pytest.raises(DataError, match="missing values"):
        codes(NUMBER, [nan, 1.0])


def test_fractions_in_an_integer_column_are_refused():
    with pytest.raises(DataError, match='holds fractions: declare kind = "numeric"'):
        codes(WHOLE, [1.0, 2.5])
    assert codes(WHOLE, [1.0, 2.0, inf]) == [0, 1, 4]


@pytest.mark.parametrize(
    ("column", "data", "wanted"),
    [
        (NUMBER, ["1", "secret"], "a number"),
        (WHOLE, ["1", "secret"], "a whole number"),
        (DATE, ["2020-01-01", "secret"], "a date"),
        (DATE, [1.5], "a date"),
        (MOMENT, ["2020-01-01 00:00:00", "secret"], "a date and time"),
        (NUMBER, [[1.0]], "a number"),
        (CODES, ["1", "secret"], "whole numbers"),
        (CODES, [1.5], "whole numbers"),
        (COLOURS, [{"secret": 1}], "text"),
        (FLAG, ["yes", "secret"], "true/false"),
        (FLAG, [0, 7], "true/false"),
    ],
)
def test_the_wrong_sort_of_value_is_named_but_not_shown(column, data, wanted):
    with pytest.raises(DataError, match=wanted) as caught:
        codes(column, data)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


TEXT_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()),
]  # fmt: skip


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_text_of_any_type_encodes_alike(kind):
    def made(words):
        return pa.array(words, pa.string()).cast(kind)

    assert codes(COLOURS, made(["green", "red", "green"])) == [1, 0, 1]
    assert codes(GRADE, made(["high", "low"])) == [2, 0]
    assert codes(TEXT, made(["not so fine", " fine ", "x"])) == [1, 0, 2]


def test_spaces_count_in_categories_but_not_around_text():
    with pytest.raises(DataError, match="spaces count"):
        codes(COLOURS, ["red "])
    assert codes(TEXT, ["\tfine\n", "notso fine"]) == [0, 2]


@pytest.mark.parametrize(
    "data",
    [
        pa.array([5, 1], pa.int8()),
        pa.array([5, 1], pa.uint64()),
        pa.array([5.0, 1.0]),
        pa.array(["5", "1"]),
        pa.array(["5.0", "1"]),
        pa.array([5, 1]).dictionary_encode(),
    ],
    ids=lambda a: str(a.type),
)
def test_whole_categories_of_any_type_encode_alike(data):
    assert codes(CODES, data) == [2, 0]


def test_ordered_categories_have_a_rank():
    assert values(GRADE, ["low", "middle", "high"]) == [0.0, 0.5, 1.0]
    assert values({"kind": "ordered", "categories": ["only"]}, ["only"]) == [0.0]
    assert values(FLAG, [False, True]) == [0.0, 1.0]


def test_unordered_categories_have_no_values():
    schema = Schema.from_dict(
        {"name": "x", "privacy": {"protects": "replace one row"}, "columns": {"a": COLOURS}}
    )
    encoder = Encoder(schema, frozenset(), frozenset({"a"}))
    with pytest.raises(DataError, match="has no order"):
        encoder(pa.record_batch({"a": ["red"]}), Notes())


@pytest.mark.parametrize(
    "data",
    [
        pa.array([True, False, True]),
        pa.array([1, 0, 1]),
        pa.array([1.0, 0.0, 1.0]),
        pa.array(["yes", "no", "Y"]),
        pa.array(["TRUE", "False", "t"]),
        pa.array(["1", "0", " 1 "]),
        pa.array(["true", "f", "true"]).dictionary_encode(),
        pa.array(["y", "n", "yes"], pa.large_string()),
    ],
    ids=lambda a: f"{a.type} {a[0]}",
)
def test_truth_is_told_in_several_ways(data):
    assert codes(FLAG, data) == [1, 0, 1]


DAYS = [dt.date(2020, 1, 1), dt.date(2020, 3, 1), dt.date(2020, 12, 31)]


@pytest.mark.parametrize(
    "data",
    [
        pa.array(DAYS),
        pa.array(DAYS, pa.date64()),
        pa.array([dt.datetime(d.year, d.month, d.day, 13, 59) for d in DAYS]),
        pa.array([dt.datetime(d.year, d.month, d.day, 1) for d in DAYS], pa.timestamp("ns", "UTC")),
        pa.array([d.isoformat() for d in DAYS]),
        pa.array([d.isoformat() + " 12:00:00" for d in DAYS], pa.large_string()),
        pa.array([d.isoformat() for d in DAYS]).dictionary_encode(),
    ],
    ids=lambda a: str(a.type),
)
def test_dates_of_any_type_encode_alike(data):
    assert codes(DATE, data) == [0, 60, 365]
    assert values(DATE, data)[::2] == [0.0, 1.0]


HOURS = [dt.datetime(2020, 1, 1, h, 30) for h in (0, 7, 23)]


@pytest.mark.parametrize(
    "data",
    [
        pa.array(HOURS, pa.timestamp("s")),
        pa.array(HOURS, pa.timestamp("ns")),
        pa.array(HOURS, pa.timestamp("us", "UTC")),
        pa.array([h.replace(tzinfo=dt.UTC) for h in HOURS], pa.timestamp("us", "Asia/Tokyo")),
        pa.array([h.isoformat() for h in HOURS]),
        pa.array([h.isoformat() + "Z" for h in HOURS]),
        pa.array([h.isoformat(" ") + "+00:00" for h in HOURS]),
        pa.array([(h + dt.timedelta(hours=2)).isoformat() + "+02:00" for h in HOURS]),
    ],
    ids=lambda a: f"{a.type} {a[0]}",
)
def test_moments_of_any_type_encode_alike(data):
    assert codes(MOMENT, data) == [0, 7, 23]


def test_dates_and_moments_outside_are_clipped():
    notes = Notes()
    assert codes(DATE, ["1066-10-14", "2099-01-01"], notes=notes) == [0, 365]
    assert codes(MOMENT, ["1066-10-14T00:00:00", "2099-01-01T00:00:00"], notes=notes) == [0, 23]
    assert notes.clipped["a"] == 4


def test_codes_are_always_cells_whatever_the_numbers():
    extremes = [1e308, -1e308, 5e-324, -0.0, inf, -inf, 1e16, 10.0, 9.999999999999998]
    for column in ({**NUMBER, "bins": 7}, {**NUMBER, "bounds": [-1e99, 1e99]}):
        rows = encoded(column, extremes)
        top = column["bins"] - 1
        assert 0 <= rows.codes["a"].min() <= rows.codes["a"].max() <= top
        assert 0 <= rows.values["a"].min() <= rows.values["a"].max() <= 1


def test_an_empty_batch_encodes_to_no_rows():
    for column in (NUMBER, DATE, MOMENT, FLAG, COLOURS):
        assert len(encoded(column, pa.nulls(0), missing=True)) == 0


def test_only_what_the_maps_read_is_encoded(kit, schema):
    batch = kit.raw_table(5).to_batches()[0]
    rows = Encoder(schema, frozenset({"sex"}), frozenset({"age"}))(batch, Notes())
    assert set(rows.codes) == {"sex"}
    assert set(rows.values) == {"age"}
    assert len(rows) == 5


def test_the_notes_are_private_to_look_at_and_add_up():
    notes, more = Notes(), Notes()
    notes.clipped["age"], more.clipped["age"], more.other["job"] = 4321, 2, 7
    assert repr(notes) == str(notes) == "Notes(private)"
    both = notes.merge(more)
    assert both.clipped["age"] == 4323
    assert both.other["job"] == 7
    assert notes.clipped["age"] == 4321


def test_the_notes_never_reach_the_release(kit, schema, tmp_path):
    seen = []
    table = kit.raw_table(777)
    release = sketch(table, schema, epsilon=1, delta=1e-6, progress=False, notes=seen.append)
    release.save(tmp_path / "out.aqt")
    clipped = seen[0].clipped["height"]
    assert clipped > 0
    assert seen[0].other["job"] > 0
    assert seen[0].missing["age"] > 0
    with zipfile.ZipFile(tmp_path / "out.aqt") as archive:
        manifest, card = archive.read("manifest.json").decode(), archive.read("README.md").decode()
    assert json.loads(manifest)["rows"] is None
    for word in ("clipped", "notes", "missing values"):
        assert word not in manifest + card + repr(release)
    assert not any(isinstance(value, Notes) for value in vars(release).values())
