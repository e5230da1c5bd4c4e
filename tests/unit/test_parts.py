"""Many files are one table: the same integers for any cut, order, packing and place."""

import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from scaling import plan_of, same

from aquatint.accounting import Budget
from aquatint.curator.draft import draft
from aquatint.curator.ledger import Ledger
from aquatint.curator.parts import Position, find_parts
from aquatint.curator.read import read
from aquatint.curator.sketch import accumulate, sketch
from aquatint.errors import DataError

COUNT = 3000


@pytest.fixture
def plan(schema):
    return plan_of(schema)


@pytest.fixture
def table(kit):
    return kit.raw_table(COUNT)


@pytest.fixture
def wanted(plan, table):
    return accumulate(table, plan, workers=1)


def cuts(table, parts, seed=0):
    """Cut a table into so many parts of random sizes."""
    inside = sorted(random.Random(seed).sample(range(1, table.num_rows), parts - 1))
    edges = [0, *inside, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


def write(table, folder, parts=7, ending="parquet", seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(cuts(table, parts, seed)):
        path = folder / f"part-{number:03}.{ending}"
        if ending == "parquet":
            pq.write_table(part, path, row_group_size=50)
        elif ending == "arrow":
            feather.write_feather(part, path)
        else:
            with pa.output_stream(str(path), compression="detect") as stream:
                pacsv.write_csv(part, stream)
    return folder


ENDINGS = ["parquet", "arrow", "csv", "csv.gz", "csv.zst"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_folders_patterns_and_addresses_give_the_same_integers(
    ending, plan, table, wanted, tmp_path
):
    folder = write(table, tmp_path / "data", ending=ending)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.csv").write_text("nothing")
    everything = (folder, str(folder), f"{folder}/part-*.{ending}", f"file://{folder}")
    for data in (*everything, f"file://{folder}/part-*.{ending}"):
        assert same(accumulate(data, plan), wanted), data


def test_shuffled_files_give_the_same_integers(plan, table, wanted, tmp_path):
    shuffled = table.take(random.Random(1).sample(range(COUNT), COUNT))
    for seed, data in enumerate((table, shuffled)):
        folder = write(data, tmp_path / str(seed), parts=12, seed=seed)
        names = sorted(folder.iterdir())
        others = random.Random(2).sample(names, len(names))
        for name, other in zip(names, others, strict=True):
            name.rename(folder / f"new-{other.name}")
        assert same(accumulate(folder, plan), wanted)


def test_folders_give_columns_as_hive_names_them(plan, table, wanted, tmp_path):
    for sex in ("F", "M", "X"):
        rows = table.filter(pa.compute.equal(table["sex"], sex)).drop_columns(["sex"])
        write(rows, tmp_path / "data" / f"sex={sex}", parts=2)
    assert same(accumulate(tmp_path / "data", plan), wanted)
    assert same(accumulate(f"{tmp_path}/data/*/*.parquet", plan), wanted)
    (tmp_path / "data" / "sex=X").rename(tmp_path / "data" / "sex=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(DataError, match="'sex' has missing values"):
        accumulate(tmp_path / "data", plan)


def test_a_walk_can_begin_anywhere(plan, table, tmp_path):
    for ending in ENDINGS:
        folder = write(table, tmp_path / ending, parts=3, ending=ending)
        files = read(folder, plan.schema, ["age", "sex"]).files
        steps = list(files.walk())
        assert files.share() == pytest.approx(1.0)
        whole = pa.Table.from_batches([batch for _, batch in steps])
        for parts, rows in [(0, 0), (0, 1), (0, 61), (1, 7), *(p for p, _ in steps)]:
            rest = [batch for _, batch in files.walk(Position(parts, rows))]
            done = sum(len(part) for part in cuts(table, 3)[:parts]) + rows
            left = pa.Table.from_batches(rest, whole.schema) if rest else whole.slice(0, 0)
            assert left.combine_chunks().equals(whole.slice(done).combine_chunks())


def test_a_damaged_part_is_named_and_nothing_is_spent(plan, schema, table, tmp_path):
    folder = write(table, tmp_path / "data")
    broken = folder / "part-004.parquet"
    content = bytearray(broken.read_bytes())
    content[40 : len(content) // 2] = bytes(len(content) // 2 - 40)
    broken.write_bytes(content)
    book = Ledger(tmp_path / "ledger.db")
    book.open_account("people", Budget(1.0, 1e-6), schema.privacy.protects)
    with pytest.raises(DataError, match=r"part-004\.parquet"):
        sketch(folder, schema, epsilon=1, delta=1e-6, plan=plan, output=tmp_path / "x.aqt",
               ledger=tmp_path / "ledger.db", dataset="people")  # fmt: skip
    account = book.account("people")
    assert (account.spent, account.reserved, account.releases) == (0, 0, 0)
    assert not (tmp_path / "x.aqt").exists()


def test_a_part_without_a_column_is_named(plan, table, tmp_path):
    folder = write(table, tmp_path / "data")
    pq.write_table(table.drop_columns(["height"]), folder / "part-005.parquet")
    with pytest.raises(DataError, match=r"part-005\.parquet: .*no column 'height'"):
        accumulate(folder, plan)


def test_what_cannot_be_found_says_so_without_a_password(plan, tmp_path):
    (tmp_path / "empty").mkdir()
    for data, said in [
        (tmp_path / "empty", "holds no file"),
        (f"{tmp_path}/*.parquet", "no file matches"),
        (f"file://{tmp_path}/none", "no such file"),
        ("gopher://me:hunter2@example.org/x.csv", "cannot open"),
    ]:
        with pytest.raises(DataError, match=said) as caught:
            accumulate(data, plan)
        assert "hunter2" not in str(caught.value)
    (tmp_path / "empty" / "notes.docx").write_text("x")
    with pytest.raises(DataError, match="cannot tell what"):
        accumulate(tmp_path / "empty", plan)


def test_draft_reads_the_first_part(table, tmp_path):
    folder = write(table, tmp_path / "data")
    assert '[columns."height"]' in draft(folder)
    assert [part.name[-11:] for part in find_parts(folder)][:2] == ["000.parquet", "001.parquet"]
