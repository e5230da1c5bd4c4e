"""The schema: what it reads, what it refuses, and its bins."""

import datetime as dt
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aquatint.columns import bin_edges
from aquatint.curator.encode import Encoder, Notes
from aquatint.errors import SchemaError
from aquatint.schema import PROTECTS, Schema

EVERY_KIND = """
name = "everything"
label = "sex"

[privacy]
protects = "all rows of one person"
person = "patient"
max_rows = 3

[columns.height]
kind = "numeric"
bounds = [0.5, 2.5]
bins = 8

[columns.weight]
kind = "numeric"
bounds = [0, 200]
bins = [0, 50, 75.5, 200]

[columns.age]
kind = "integer"
bounds = [17, 90]
missing = true

[columns.born]
kind = "date"
bounds = [1900-01-01, 2024-12-31]
bins = 10

[columns.seen]
kind = "datetime"
bounds = [2020-01-01T00:00:00, 2024-12-31T23:59:59Z]
bins = 4

[columns.sex]
kind = "categorical"
categories = ["F", "M"]
other = true
missing = true

[columns.code]
kind = "categorical"
categories = [1, 2, 5]

[columns.grade]
kind = "ordered"
categories = ["low", "middle", "high"]

[columns.note]
kind = "text"
categories = ["fine", "not so fine"]

[columns.ill]
kind = "boolean"
"""


def schema_with(column, **more):
    data = {
        "name": "x",
        "privacy": {"protects": "add or remove one row"},
        "columns": {"age": column, "sex": {"kind": "boolean"}},
        **more,
    }
    return Schema.from_dict(data)


def from_text(tmp_path, text):
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return Schema.from_toml(path)


def test_every_kind_is_read_from_toml_and_comes_back(tmp_path):
    schema = from_text(tmp_path, EVERY_KIND)
    kinds = {column.kind for column in schema.columns.values()}
    assert kinds == {
        "numeric", "integer", "date", "datetime", "categorical", "ordered", "text", "boolean",
    }  # fmt: skip
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.label == "sex"
    assert schema.privacy.rows_per_unit == 3
    assert schema.privacy.unit == "person"
    assert schema.columns["born"].bounds == (dt.date(1900, 1, 1), dt.date(2024, 12, 31))
    assert schema.columns["seen"].limits == (1577836800.0, 1735689599.0)


def test_cells_count_categories_other_and_missing(tmp_path):
    schema = from_text(tmp_path, EVERY_KIND).with_bins({"age": 7})
    assert schema.cells() == {
        "height": 8, "weight": 3, "age": 8, "born": 10, "seen": 4, "sex": 4, "code": 3,
        "grade": 3, "note": 3, "ill": 2,
    }  # fmt: skip
    assert schema.cell_names("sex") == ["F", "M", "(other)", "(missing)"]
    assert schema.cell_names("note") == ["fine", "not so fine", "(other)"]
    assert schema.cell_names("ill") == ["false", "true"]
    assert schema.cell_names("code") == ["1", "2", "5"]
    for name, count in schema.cells().items():
        assert len(schema.cell_names(name)) == count


def test_unsettled_bins_have_no_cells(tmp_path):
    with pytest.raises(SchemaError, match="a plan does that"):
        from_text(tmp_path, EVERY_KIND).cells()


def test_with_bins_leaves_declared_bins_alone(tmp_path):
    schema = from_text(tmp_path, EVERY_KIND)
    settled = schema.with_bins(dict.fromkeys(schema.columns, 5))
    assert settled.columns["age"].bins == 5
    assert settled.columns["height"].bins == 8
    assert settled.columns["weight"].bins == [0, 50, 75.5, 200]
    assert schema.columns["age"].bins is None


AGE = {"kind": "integer", "bounds": [17, 90]}
MISTAKES = {
    "no kind": ({"bounds": [0, 1]}, r"columns\.age: declare the kind"),
    "unknown kind": ({"kind": "number", "bounds": [0, 1]}, r"columns\.age.*'number'"),
    "no bounds": ({"kind": "numeric"}, r"columns\.age\.bounds: declare bounds.*never read off"),
    "blank bounds": ({"kind": "numeric", "bounds": []}, r"columns\.age\.bounds.*declare bounds"),
    "one bound": ({"kind": "numeric", "bounds": [1]}, r"columns\.age\.bounds.*declare bounds"),
    "bounds reversed": ({"kind": "integer", "bounds": [9, 1]}, r"columns\.age: .*low < high"),
    "bounds equal": ({"kind": "numeric", "bounds": [1, 1]}, r"columns\.age: .*low < high"),
    "dates reversed": (
        {"kind": "date", "bounds": ["2024-01-01", "2020-01-01"]}, r"columns\.age: .*low < high"
    ),
    "endless bounds": ({"kind": "numeric", "bounds": [0, float("inf")]}, r"columns\.age\.bounds"),
    "bounds too far apart": ({"kind": "numeric", "bounds": [-1e308, 1e308]}, r"1e100"),
    "bounds too close": ({"kind": "numeric", "bounds": [0, 5e-324]}, r"1e-100"),
    "fraction as an integer bound": ({"kind": "integer", "bounds": [0.5, 3]}, r"columns\.age\.b"),
    "no categories": ({"kind": "categorical"}, r"columns\.age\.categories: declare categories"),
    "blank categories": (
        {"kind": "ordered", "categories": []}, r"columns\.age\.categories: declare categories"
    ),
    "repeated categories": ({"kind": "text", "categories": ["a", "a"]}, r"age: .*must not repeat"),
    "mixed categories": ({"kind": "ordered", "categories": ["a", 1]}, r"all text or all whole"),
    "reserved category": ({"kind": "categorical", "categories": ["(other)"]}, r"reserved"),
    "control characters": ({"kind": "ordered", "categories": ["a\x1b[31m", "b"]}, r"control char"),
    "misspelt setting": ({**AGE, "mising": True}, r"columns\.age\.mising: is not a known setting"),
    "other on ordered": (
        {"kind": "ordered", "categories": ["a", "b"], "other": True}, r"other: is not a known"
    ),
    "bins above the values": ({**AGE, "bins": 75}, r"age: bins = 75 is more than the 74 values"),
    "no bins": ({**AGE, "bins": 0}, r"columns\.age\.bins.*greater than or equal to 1"),
    "falling edges": ({**AGE, "bins": [17, 50, 40, 90]}, r"age: bin edges must rise strictly"),
    "edges inside": ({**AGE, "bins": [20, 50, 90]}, r"age: bin edges must rise strictly"),
    "one edge": ({**AGE, "bins": [17]}, r"age: bin edges must rise strictly"),
}  # fmt: skip


@pytest.mark.parametrize(("column", "says"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_in_a_column_gets_one_sentence(column, says):
    with pytest.raises(SchemaError, match=says) as caught:
        schema_with(column)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


BOOLEAN = {"kind": "boolean"}
WHOLE = {
    "name": "x",
    "privacy": {"protects": "replace one row"},
    "columns": {"age": BOOLEAN, "sex": BOOLEAN},
}


def without(key):
    return {k: v for k, v in WHOLE.items() if k != key}


PERSON = "all rows of one person"
TOP = {
    "no name": (without("name"), r'name = "people"'),
    "empty name": ({**WHOLE, "name": ""}, r"^name: "),
    "name with control characters": ({**WHOLE, "name": "a\nb"}, r"control characters|name"),
    "no privacy": (without("privacy"), r"privacy: declare what is protected.*replace one row"),
    "no protects": ({**WHOLE, "privacy": {}}, r'protects: declare "add or remove one row"'),
    "blank protects": ({**WHOLE, "privacy": {"protects": ""}}, r'declare "add or remove one row"'),
    "no person": ({**WHOLE, "privacy": {"protects": PERSON}}, r'person = "patient_id"'),
    "person by row": (
        {**WHOLE, "privacy": {"protects": "replace one row", "person": "id"}}, r"go with protects"
    ),
    "no rows for a person": (
        {**WHOLE, "privacy": {"protects": PERSON, "person": "id", "max_rows": 0}}, r"max_rows"
    ),
    "person among the columns": (
        {**WHOLE, "privacy": {"protects": PERSON, "person": "age"}}, r"'age' names the person"
    ),
    "no columns": (without("columns"), r"columns: declare at least one column"),
    "empty columns": ({**WHOLE, "columns": {}}, r"columns: declare at least one column"),
    "label not a column": ({**WHOLE, "label": "income"}, r"label 'income' is not among"),
    "misspelt table": ({**WHOLE, "column": {}}, r"column: is not a known setting"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "says"), TOP.values(), ids=TOP.keys())
def test_a_mistake_at_the_top_gets_one_sentence(data, says):
    with pytest.raises(SchemaError, match=says) as caught:
        Schema.from_dict(data)
    assert "\n" not in str(caught.value)


def test_there_is_no_default_for_what_is_protected():
    for protects in PROTECTS[:2]:
        assert Schema.from_dict({**WHOLE, "privacy": {"protects": protects}})
    with pytest.raises(SchemaError):
        Schema.from_dict(without("privacy"))


def test_several_mistakes_are_counted():
    with pytest.raises(SchemaError, match=r"\(and 1 more\)"):
        schema_with({**AGE, "one": 1, "two": 2})


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    with pytest.raises(SchemaError, match=r"schema\.toml: .*columns\.age\.bounds"):
        from_text(tmp_path, EVERY_KIND.replace("bounds = [17, 90]", ""))


def test_broken_toml_and_unreadable_files_are_said_in_one_sentence(tmp_path):
    with pytest.raises(SchemaError, match=r"not valid TOML.*line 2"):
        from_text(tmp_path, 'name = "x"\nlabel = = 3\n')
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(SchemaError, match="not valid TOML"):
        Schema.from_toml(tmp_path / "latin.toml")
    with pytest.raises(SchemaError, match=r"cannot read the schema .*No such file"):
        Schema.from_toml(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match=r"cannot read the schema .*Is a directory"):
        Schema.from_toml(tmp_path)


def test_a_schema_cannot_be_changed():
    schema = Schema.from_dict(WHOLE)
    with pytest.raises(ValueError, match="frozen"):
        schema.label = "age"


names = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Cc", "Cf"]),
    min_size=1,
    max_size=8,
).filter(str.isprintable)
texts = st.lists(names, min_size=1, max_size=5, unique=True)
whole = st.lists(st.integers(-50, 50), min_size=1, max_size=5, unique=True)
numbers = st.lists(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), min_size=2, max_size=5,
                   unique=True).map(sorted)  # fmt: skip
columns = st.one_of(
    st.builds(
        lambda n, m: {"kind": "numeric", "bounds": [n[0], n[-1]], "bins": n, "missing": m},
        numbers, st.booleans(),
    ),
    st.builds(
        lambda low, size, bins: {
            "kind": "integer", "bounds": [low, low + size], "bins": min(bins, size + 1)
        },
        st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(1, 50),
    ),
    st.builds(
        lambda low, size: {"kind": "date", "bounds": [low, low + dt.timedelta(days=size)]},
        st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), st.integers(1, 10_000),
    ),
    st.builds(
        lambda low, size: {"kind": "datetime", "bounds": [low, low + dt.timedelta(seconds=size)]},
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1),
                     timezones=st.none() | st.just(dt.UTC)), st.integers(1, 10**8),
    ),
    st.builds(
        lambda c, o, m: {"kind": "categorical", "categories": c, "other": o, "missing": m},
        texts | whole, st.booleans(), st.booleans(),
    ),
    st.builds(lambda c: {"kind": "ordered", "categories": c}, texts | whole),
    st.builds(lambda c: {"kind": "text", "categories": c}, texts),
    st.builds(lambda m: {"kind": "boolean", "missing": m}, st.booleans()),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, columns, min_size=1, max_size=4), st.data())
def test_plain_data_comes_back_as_the_same_schema(chosen, data):
    schema = Schema.from_dict(
        {
            "name": data.draw(names),
            "label": data.draw(st.none() | st.sampled_from(sorted(chosen))),
            "privacy": {"protects": data.draw(st.sampled_from(PROTECTS[:2]))},
            "columns": chosen,
        }
    )
    assert Schema.from_dict(schema.to_dict()) == schema


def codes_of(column, values):
    schema = schema_with(column)
    encode = Encoder(schema, frozenset({"age"}), frozenset())
    return encode(pa.record_batch({"age": pa.array(values)}), Notes()).codes["age"].tolist()


def place(edges, value):
    """The bin that the edges say: closed below, open above, but for the last."""
    inside = [i for i, (a, b) in enumerate(pairwise(edges)) if a <= value < b]
    return inside[0] if inside else len(edges) - 2


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 19, 20, [-3, 0, 1, 10, 16]])
def test_integer_bins_are_where_their_edges_say(bins):
    column = {"kind": "integer", "bounds": [-3, 16], "bins": bins}
    edges = bin_edges(schema_with(column).columns["age"])
    values = list(range(-3, 17))
    found = codes_of(column, values)
    assert found == [place(edges, v) for v in values]
    assert set(found) == set(range(len(edges) - 1))


def test_the_names_of_integer_bins_say_what_is_in_them():
    column = {"kind": "integer", "bounds": [0, 9], "bins": 3}
    assert schema_with(column).cell_names("age") == ["[0, 4)", "[4, 7)", "[7, 10)"]
    assert codes_of(column, [3, 4, 6, 7, 9]) == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("bins", [1, 4, 12, 366, [18262, 18300, 18627]])
def test_date_bins_are_where_their_edges_say(bins):
    column = {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"], "bins": bins}
    edges = bin_edges(schema_with(column).columns["age"])
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(366)]
    since = [(day - dt.date(1970, 1, 1)).days for day in days]
    assert codes_of(column, days) == [place(edges, v) for v in since]


@pytest.mark.parametrize("bins", [1, 4, 16, [0.5, 0.7, 1.9, 2.5]])
def test_numeric_bins_are_where_their_edges_say(bins):
    column = {"kind": "numeric", "bounds": [0.5, 2.5], "bins": bins}
    edges = bin_edges(schema_with(column).columns["age"])
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    assert codes_of(column, middles) == list(range(len(edges) - 1))
    assert codes_of(column, edges) == [*range(len(edges) - 1), len(edges) - 2]


def test_datetime_bins_are_where_their_edges_say():
    column = {
        "kind": "datetime",
        "bounds": ["2020-01-01T00:00:00", "2020-01-02T00:00:00"],
        "bins": 24,
    }
    hours = [dt.datetime(2020, 1, 1, h) for h in range(24)]  # no zone: taken as UTC
    assert codes_of(column, hours) == list(range(24))
    assert codes_of(column, [dt.datetime(2020, 1, 2)]) == [23]
