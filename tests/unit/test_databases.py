"""Rows from PostgreSQL and DuckDB: the same integers, read only, and no secret in any message."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from postgres import PASSWORD, running_postgres
from scaling import plan_of, same
from typer.testing import CliRunner

from aquatint.accounting import Budget
from aquatint.cli import app
from aquatint.curator.databases import Query
from aquatint.curator.ledger import Ledger
from aquatint.curator.sketch import accumulate, sketch
from aquatint.errors import AquatintError, DataError
from aquatint.schema import Schema

duckdb = pytest.importorskip("duckdb", reason="pip install 'aquatint[sql]'")
dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="pip install 'aquatint[sql]'")
COUNT = 2000
KINDS = {"int64": "bigint", "double": "double precision", "string": "text", "bool": "boolean"}


@pytest.fixture(scope="module")
def server():
    with running_postgres() as address:
        yield address


@pytest.fixture
def plan(schema):
    return plan_of(schema)


@pytest.fixture
def table(kit):
    who = pa.array(np.random.default_rng(3).integers(0, 400, COUNT))
    return kit.raw_table(COUNT).append_column("who", who)


@pytest.fixture
def postgres(server, table):
    """A server that holds the table as `people`."""
    columns = ", ".join(f'"{f.name}" {KINDS[str(f.type)]}' for f in table.schema)
    with dbapi.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists people")
        cursor.execute(f"create table people ({columns})")
        cursor.adbc_ingest("people", table, mode="append")
        connection.commit()
    return server


def person_plan(schema_dict):
    schema_dict["privacy"] = {
        "protects": "all rows of one person", "person": "who", "max_rows": 2
    }  # fmt: skip
    return plan_of(Schema.from_dict(schema_dict))


def test_postgres_gives_the_same_integers(plan, table, postgres):
    wanted = accumulate(table, plan, workers=1)
    for sql in (
        "select * from people",
        "select ill, grade, job, sex, weight::numeric, height, age::smallint from people",
    ):
        assert same(accumulate(Query(postgres, sql), plan), wanted)


def test_persons_are_gathered_over_several_passes(schema_dict, table, postgres, monkeypatch):
    from aquatint.curator import persons

    plan = person_plan(schema_dict)
    wanted = accumulate(table, plan)
    monkeypatch.setattr(persons, "RESIDENT_ROWS", 700)
    assert same(accumulate(Query(postgres, "select * from people"), plan), wanted)


def test_a_snapshot_does_not_see_what_is_written_meanwhile(plan, table, postgres):
    from aquatint.curator.databases import query_source

    source = query_source(Query(postgres, "select * from people"), ["sex"])
    first = sum(batch.num_rows for batch in source.open())
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("delete from people where sex = 'F'")
        connection.commit()
    assert sum(batch.num_rows for batch in source.open()) == first == COUNT
    source.close()


def test_nothing_can_be_written(plan, postgres):
    for sql in (
        "drop table people",
        "delete from people returning *",
        "with gone as (delete from people returning *) select * from gone",
        "select * from people; drop table people",
        "commit",
    ):
        with pytest.raises(DataError):
            accumulate(Query(postgres, sql), plan)
    assert accumulate(Query(postgres, "select * from people"), plan).rows == COUNT


def test_a_lost_connection_is_an_error_and_spends_nothing(plan, schema, postgres, tmp_path):
    book = Ledger(tmp_path / "ledger.db")
    book.open_account("people", Budget(1.0, 1e-6), schema.privacy.protects)
    slow = "select p.* from people p, generate_series(1, 200) i, pg_sleep(0.00001)"

    def kill():
        with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
            for _ in range(100):
                cursor.execute(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity where "
                    "query like '%generate_series(1, 200)%' and pid <> pg_backend_pid() "
                    "and state = 'active' and now() - query_start > interval '0.3 s'"
                )
                if cursor.fetchone()[0]:
                    return True
                connection.commit()
                time.sleep(0.05)
        return False

    from threading import Thread

    killer = Thread(target=kill)
    killer.start()
    with pytest.raises(DataError, match="broke off") as caught:
        sketch(postgres, schema, epsilon=1, delta=1e-6, plan=plan, sql=slow,
               ledger=tmp_path / "ledger.db", dataset="people",
               output=tmp_path / "x.aqt")  # fmt: skip
    killer.join()
    assert PASSWORD not in str(caught.value)
    account = book.account("people")
    assert (account.spent, account.reserved, account.releases) == (0, 0, 0)
    assert not (tmp_path / "x.aqt").exists()


def test_messages_carry_neither_values_nor_passwords(plan, postgres):
    secret = "select 'SECRET-' || age as age, * from people"
    wrong = postgres.replace(PASSWORD, "wr0ng-Passw0rd")
    for address, sql, said in [
        (postgres, "select nothing from people", 'column "nothing" does not exist'),
        (postgres, "selec * from people", "syntax error"),
        (postgres, "select *, (job || ' SECRET')::int as extra from people", "broke off"),
        (postgres, secret.replace("*", "nothing"), "does not exist"),
        (wrong, "select * from people", "cannot connect"),
        (postgres.replace("/postgres", "/none"), "select 1", "cannot connect"),
        ("postgresql://me:hunter2@127.0.0.1:1/none?password=hunter2", "select 1", "cannot connect"),
    ]:
        with pytest.raises(AquatintError, match=said) as caught:
            accumulate(Query(address, sql), plan)
        shown = f"{caught.value} {caught.value!r} {Query(address, sql)!r}"
        assert caught.value.__cause__ is None
        for hidden in (PASSWORD, "wr0ng", "hunter2", "d e"):
            assert hidden not in shown
        assert "SECRET" not in shown or "SECRET" in sql


def test_the_command_line_sketches_a_database(schema, postgres, tmp_path):
    import aquatint as aq

    (tmp_path / "people.toml").write_text(
        'name = "people"\n[privacy]\nprotects = "add or remove one row"\n'
        '[columns.sex]\nkind = "categorical"\ncategories = ["F", "M", "X"]\n'
    )
    out = tmp_path / "x.aqt"
    words = ["sketch", postgres, "--sql", "select sex from people", "-o", str(out),
             "--schema", str(tmp_path / "people.toml"),
             "--epsilon", "1", "--delta", "1e-6"]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert PASSWORD not in done.output
    assert PASSWORD.encode() not in out.read_bytes()
    release = aq.load(out)
    assert abs(release.count - COUNT) < 10 * release.block("count").stderr[0]


def test_a_database_needs_a_query_and_a_query_a_database(schema, table):
    for address in ("postgresql://me:hunter2@db/x", "duckdb:x.db", "people.duckdb"):
        with pytest.raises(DataError, match="needs a query") as caught:
            sketch(address, schema, epsilon=1, delta=1e-6)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(DataError, match="needs a database or files, not Table"):
        sketch(table, schema, epsilon=1, delta=1e-6, sql="select 1")


# --- DuckDB ---------------------------------------------------------------------------------------


def test_duckdb_gives_the_same_integers(plan, table, tmp_path):
    wanted = accumulate(table, plan, workers=1)
    for number in range(4):
        part = table.slice(number * 500, 500)
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
        pacsv.write_csv(part, tmp_path / f"part-{number}.csv")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("create table people as from rows")
    for address, sql in [
        (f"{tmp_path}/part-*.parquet", "select * from data"),
        (f"{tmp_path}/part-*.parquet", "from data order by weight"),
        (f"{tmp_path}/part-*.csv", "select * from data"),
        (f"duckdb:{tmp_path}/people.duckdb", "select * from people"),
        (f"{tmp_path}/people.duckdb", "select * from people where true"),
    ]:
        assert same(accumulate(Query(address, sql), plan), wanted), address


def test_duckdb_gathers_persons_and_filters_rows(schema_dict, table, tmp_path):
    pq.write_table(table, tmp_path / "x.parquet")
    few = table.filter(pa.compute.equal(table["sex"], "F"))
    query = Query(str(tmp_path / "x.parquet"), "select * from data where sex = 'F'")
    plan = person_plan(schema_dict)
    assert same(accumulate(query, plan), accumulate(few, plan))


def test_duckdb_writes_nothing_and_tells_no_values(plan, table, tmp_path):
    pq.write_table(table, tmp_path / "x.parquet")
    for sql, said in [
        (f"copy data to '{tmp_path}/y.csv'", "one select"),
        ("select 1; select 2", "one select"),
        ("attach ':memory:' as other", "one select"),
        ("select nothing from data", "nothing"),
        ("selec", "syntax error"),
        ("select job::int as age, * exclude age from data", "broke off"),
    ]:
        with pytest.raises(DataError, match=said) as caught:
            accumulate(Query(str(tmp_path / "x.parquet"), sql), plan)
        assert "d e" not in str(caught.value)
    assert not (tmp_path / "y.csv").exists()
    for address in (f"duckdb:{tmp_path}/none.duckdb", f"duckdb:{tmp_path}/x.parquet"):
        with pytest.raises(DataError, match="cannot open"):
            accumulate(Query(address, "select 1"), plan)
    assert not (tmp_path / "none.duckdb").exists()
