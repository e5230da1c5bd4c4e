"""Whatever the data comes in, the sums are the same integers; what cannot be read says why."""

import gzip
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import torch
from pyarrow import feather, ipc

from aquatint.curator import files
from aquatint.curator.read import read
from aquatint.curator.sketch import accumulate
from aquatint.curator.source import BATCH_ROWS
from aquatint.errors import DataError
from aquatint.features import Count, fourier, onehot
from aquatint.planning import Plan, PlannedBlock

COUNT = 500


@pytest.fixture
def plan(schema, kit):
    maps = (Count(), onehot(kit.cells), fourier(["age", "height", "weight", "grade"], 10))
    return Plan(schema, tuple(PlannedBlock(m.kind, m, 1 / 3) for m in maps))


@pytest.fixture
def table(kit):
    spare = pa.array([f"spare {i}" for i in range(COUNT)])
    return kit.raw_table(COUNT).append_column("spare", spare)


def write_csv(table, path, delimiter=","):
    pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter=delimiter))
    return path


def write_gz(table, path):
    plain = write_csv(table, path.with_suffix(""))
    path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=77)
    return path


def write_ipc(table, path, stream=False):
    with (ipc.new_stream if stream else ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=120)
    return path


def write_feather(table, path):
    feather.write_feather(table, path, compression="zstd")
    return path


def pandas_categories(table):
    frame = table.to_pandas()
    return frame.astype({"sex": "category", "job": "category", "grade": "category"})


FORMS = {
    "csv": lambda t, d: write_csv(t, d / "x.csv"),
    "csv by its name as text": lambda t, d: str(write_csv(t, d / "x.csv")),
    "txt": lambda t, d: write_csv(t, d / "x.txt"),
    "tsv": lambda t, d: write_csv(t, d / "x.tsv", "\t"),
    "csv.gz": lambda t, d: write_gz(t, d / "x.csv.gz"),
    "parquet": lambda t, d: write_parquet(t, d / "x.parquet"),
    "pq": lambda t, d: write_parquet(t, d / "x.pq"),
    "arrow file": lambda t, d: write_ipc(t, d / "x.arrow"),
    "arrow stream": lambda t, d: write_ipc(t, d / "x.arrow", stream=True),
    "feather": lambda t, d: write_feather(t, d / "x.feather"),
    "pandas": lambda t, _: t.to_pandas(),
    "pandas with Arrow types": lambda t, _: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with categories": lambda t, _: pandas_categories(t),
    "polars": lambda t, _: pl.from_arrow(t),
    "table": lambda t, _: t,
    "table in chunks": lambda t, _: pa.concat_tables([t.slice(0, 9), t.slice(9)]),
    "record batch": lambda t, _: t.combine_chunks().to_batches()[0],
    "iterator of batches": lambda t, _: iter(t.to_batches(max_chunksize=31)),
    "list of batches": lambda t, _: t.to_batches(max_chunksize=31),
    "iterator of tables": lambda t, _: (t.slice(i, 100) for i in range(0, COUNT, 100)),
    "with an empty batch": lambda t, _: iter([t.slice(0, 0), t, t.slice(0, 0)]),
    "reader": lambda t, _: t.to_reader(max_chunksize=50),
    "columns in another order": lambda t, _: t.select(t.column_names[::-1]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_the_data_gives_the_same_integers(form, plan, table, tmp_path):
    wanted = accumulate(table, plan)
    found = accumulate(form(table, tmp_path), plan)
    assert found.rows == wanted.rows == COUNT
    assert found.notes == wanted.notes
    for a, b in zip(found.totals, wanted.totals, strict=True):
        assert torch.equal(a, b)


def test_a_plan_that_only_counts_needs_no_column(schema, table, tmp_path):
    counting = Plan(schema, (PlannedBlock("count", Count(), 1.0),))
    forms = {name: form for name, form in FORMS.items() if "pandas" not in name}
    for name, form in forms.items():
        assert accumulate(form(table, tmp_path), counting).rows == COUNT, name


def one_sentence(caught, *hidden):
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300
    for secret in hidden:
        assert secret not in text


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_missing_column_is_named(form, plan, table, tmp_path):
    with pytest.raises(DataError, match=r"no column 'height'") as caught:
        accumulate(form(table.drop_columns(["height"]), tmp_path), plan)
    one_sentence(caught)


HEADER = "age,height,weight,sex,job,grade,ill\n"
GOOD = "30,1.7,70,F,a,low,true\n"


def csv_of(tmp_path, text, name="x.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_bad_number_is_placed_but_not_shown(plan, tmp_path):
    path = csv_of(tmp_path, HEADER + GOOD + "31,SECRET,71,M,hidden,low,true\n")
    with pytest.raises(DataError, match=r"x\.csv, column .*: a value is not a number") as caught:
        accumulate(path, plan)
    one_sentence(caught, "SECRET", "hidden", "31")
    assert caught.value.__cause__ is None


def test_a_ragged_row_is_refused_but_not_shown(plan, tmp_path):
    for row in ("31,1.8,SECRET\n", "31,1.8,71,M,a,low,true,SECRET\n"):
        with pytest.raises(DataError, match="more or fewer fields than its header") as caught:
            accumulate(csv_of(tmp_path, HEADER + GOOD + row), plan)
        one_sentence(caught, "SECRET", "31")


def test_missing_values_have_several_spellings(plan, tmp_path):
    spellings = ["", "NA", "N/A", "NaN", "nan", "NULL", "null"]
    rows = "".join(f"{s},{s},70,F,{s},low,{s}\n" for s in spellings)
    notes = accumulate(csv_of(tmp_path, HEADER + rows), plan).notes
    assert set(notes.missing.values()) == {len(spellings)}
    assert set(notes.missing) == {"age", "height", "job", "ill"}


def test_a_declared_category_is_never_taken_as_missing(schema_dict, tmp_path):
    from aquatint.schema import Schema

    schema_dict["columns"] = {"job": {"kind": "categorical", "categories": ["NA", "b"]}}
    schema_dict["label"] = None
    schema = Schema.from_dict(schema_dict)
    maps = (Count(), onehot(schema.cells()))
    made = Plan(schema, tuple(PlannedBlock(m.kind, m, 0.5) for m in maps))
    assert accumulate(csv_of(tmp_path, "job\nNA\nb\nNA\n"), made).totals[1].tolist() == [
        2 * 2**20,
        2**20,
    ]


def test_a_file_without_rows_is_refused(plan, table, tmp_path):
    with pytest.raises(DataError, match=r"x\.csv is empty"):
        accumulate(csv_of(tmp_path, ""), plan)
    nothing = table.slice(0, 0)
    for empty in (csv_of(tmp_path, HEADER), nothing, iter([]), nothing.to_pandas()):
        with pytest.raises(DataError, match="no rows"):
            accumulate(empty, plan)
    with pytest.raises(DataError, match="no rows"):
        accumulate(write_parquet(nothing, tmp_path / "x.parquet"), plan)


def test_a_folder_a_missing_file_and_an_unknown_kind_are_refused(plan, tmp_path):
    with pytest.raises(DataError, match="holds no file"):
        accumulate(tmp_path, plan)
    with pytest.raises(DataError, match="does not exist"):
        accumulate(tmp_path / "none.csv", plan)
    for name in ("x.xlsx", "x", "x.csv.exe"):
        with pytest.raises(DataError, match="cannot tell what"):
            accumulate(csv_of(tmp_path, HEADER + GOOD, name), plan)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather", "x.csv.gz"])
def test_a_damaged_file_is_refused(plan, table, tmp_path, name):
    writers = {".parquet": write_parquet, ".arrow": write_ipc, ".feather": write_feather}
    path = tmp_path / name
    writers.get(path.suffix, write_gz)(table, path)
    whole = path.read_bytes()
    torn = bytearray(whole)
    for place in range(0, len(torn), 7):
        torn[place] ^= 0x5A
    for broken in (b"", b"SECRET", whole[: len(whole) // 2], bytes(torn)):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"cannot read .*damaged|is empty") as caught:
            accumulate(path, plan)
        one_sentence(caught, "SECRET")


def test_things_that_are_no_table_are_refused(plan, table):
    for thing in (7, None, 1.5):
        with pytest.raises(DataError, match="give a path, a pandas or polars frame"):
            accumulate(thing, plan)
    for thing in ([1, 2], [table.to_pandas()], {"a": 1}):
        with pytest.raises(DataError, match="give Arrow record batches"):
            accumulate(thing, plan)


def test_an_iterator_is_read_as_it_goes(plan, table):
    taken, seen = [], []
    batches = table.to_batches(max_chunksize=10)

    def stream():
        for number, batch in enumerate(batches):
            taken.append(number)
            yield batch

    source = read(stream(), plan.schema, ["age"])
    assert taken == []
    for batch in source.open():
        seen.append(batch.num_rows)
        assert len(taken) == len(seen)
    assert sum(seen) == COUNT


def test_files_are_read_in_batches(plan, kit, tmp_path):
    once = kit.raw_table(1000)
    big = pa.concat_tables([once] * 150)
    for path in (
        write_csv(big, tmp_path / "x.csv"),
        write_parquet(big, tmp_path / "x.parquet"),
        write_ipc(big, tmp_path / "x.arrow"),
    ):
        source = read(path, plan.schema, ["age", "sex"])
        sizes = [batch.num_rows for batch in source.open()]
        assert sum(sizes) == 150_000
        assert max(sizes) <= 2 * BATCH_ROWS
        assert len(sizes) > 1


def test_only_the_columns_that_are_wanted_are_read(plan, table, tmp_path):
    for form in FORMS.values():
        batch = next(iter(read(form(table, tmp_path), plan.schema, ["sex", "age"]).open()))
        assert batch.schema.names == ["sex", "age"]


def test_frames_can_be_read_again_and_streams_cannot(plan, table, tmp_path):
    again = {"csv", "parquet", "arrow file", "pandas", "polars", "table", "record batch"}
    once = {"iterator of batches", "reader"}
    for name in again | once:
        source = read(FORMS[name](table, tmp_path), plan.schema, ["age"])
        assert source.repeatable is (name in again)
        if source.repeatable:
            first, second = (sum(b.num_rows for b in source.open()) for _ in range(2))
            assert first == second == COUNT


def test_an_error_of_the_reader_carries_no_row_when_it_is_pickled(plan, tmp_path):
    path = csv_of(tmp_path, HEADER + GOOD + "31,SECRET,71,M,hidden,low,true\n")
    with pytest.raises(DataError) as caught:
        accumulate(path, plan)
    assert b"SECRET" not in pickle.dumps(caught.value)


def test_pandas_missing_values_are_missing(plan, table):
    frame = table.to_pandas()
    assert np.isnan(frame["age"]).any()
    assert accumulate(frame, plan).notes.missing["age"] == table["age"].null_count


def test_a_category_that_spells_null_does_not_concern_other_columns(tmp_path):
    from aquatint.schema import Schema

    schema = Schema.from_dict(
        {
            "name": "t",
            "privacy": {"protects": "replace one row"},
            "columns": {
                "country": {"kind": "categorical", "categories": ["NA", "SA"], "missing": True},
                "age": {"kind": "integer", "bounds": [0, 9], "bins": 10, "missing": True},
                "sex": {"kind": "categorical", "categories": ["F", "M"], "missing": True},
            },
        }
    )
    path = tmp_path / "t.csv"
    path.write_text("country,age,sex\nNA,NA,NA\n,3,F\nSA,null,M\n", encoding="utf-8")
    cells = schema.cells()
    sums = accumulate(path, Plan(schema, (PlannedBlock("columns", onehot(cells), 1.0),)))
    one = sums.totals[0][sums.totals[0] > 0].min()
    counts = (sums.totals[0] // one).tolist()
    country, age, sex = counts[:3], counts[3:14], counts[14:]
    assert country == [1, 1, 1]
    assert age == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2]
    assert sex == [1, 1, 1]


def test_a_file_that_is_written_anew_while_it_is_read_is_refused(
    plan, table, tmp_path, monkeypatch
):
    path = write_csv(table, tmp_path / "data.csv")
    check = files._inside

    def written_anew(part, have, wanted):
        found = check(part, have, wanted)
        path.write_text("other\n1\n", encoding="utf-8")
        return found

    monkeypatch.setattr(files, "_inside", written_anew)
    with pytest.raises(DataError, match=r"data\.csv changed while it was read: try again"):
        accumulate(path, plan)


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_the_header_of_a_long_file_is_read_from_memory(plan, kit, tmp_path, monkeypatch, name):
    table = kit.raw_table(40_000)
    path = (write_gz if name.endswith("gz") else write_csv)(table, tmp_path / name)
    opened = []
    plain = files.pacsv.open_csv

    def spy(source, **options):
        opened.append(source)
        return plain(source, **options)

    monkeypatch.setattr(files.pacsv, "open_csv", spy)
    found, wanted = accumulate(path, plan), accumulate(table, plan)
    assert all(torch.equal(a, b) for a, b in zip(found.totals, wanted.totals, strict=True))
    in_memory = [isinstance(source, pa.BufferReader) for source in opened]
    assert in_memory[-1] is False
    assert all(in_memory[:-1])
    sizes = [source.size() for source in opened[:-1]]
    assert all(1_000_000 < size <= files._HEADER for size in sizes)
