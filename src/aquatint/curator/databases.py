"""Queries in: PostgreSQL through ADBC, and DuckDB for SQL over local files or its own databases.

Rows stream through a connection that can only read. PostgreSQL sends them as it finds them (the
COPY protocol, which ADBC uses, needs no cursor and holds nothing back), inside one transaction with
one snapshot, so that a second pass sees the same rows. What a driver says about a query is shown;
what it says about rows is not, because that may hold a value, and neither is any password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from aquatint.curator.files import CSV, NULLS, PARQUET
from aquatint.curator.parts import find_parts
from aquatint.curator.source import BATCH_ROWS, Source, of_batches, require
from aquatint.errors import DataError
from aquatint.extras import need

_POSTGRES = ("postgresql:", "postgres:")
_DUCKDB = {".duckdb", ".ddb"}
_SNAPSHOT = "set transaction isolation level repeatable read, read only"


@dataclass(frozen=True, repr=False)
class Query:
    """Rows that a database gives.

    Attributes
    ----------
    address
        ``postgresql://…``, a DuckDB database (``duckdb:path`` or a file that ends in .duckdb), or
        CSV or Parquet files, which the query calls ``data``.
    sql
        One select.
    """

    address: str
    sql: str

    @property
    def shown(self) -> str:
        """The address without a user, a password or options."""
        if not self.address.startswith(_POSTGRES):
            return self.address
        found = urlsplit(self.address)
        return f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"

    def __repr__(self) -> str:
        return f"Query({self.shown!r})"


def asked(data: Any, sql: str | None) -> Any:
    """Give the data as it is, or as a query to it; a database without a query is refused."""
    named = isinstance(data, (str, Path))
    if sql is not None and not named:
        msg = (
            f"a query needs a database or files, not {type(data).__name__}: give an address or path"
        )
        raise DataError(msg)
    if sql is not None:
        return Query(str(data), sql)
    if named and (str(data).startswith((*_POSTGRES, "duckdb:")) or _is_duckdb(str(data))):
        msg = "a database needs a query: give a select with sql, or --sql on the command line"
        raise DataError(msg)
    return data


def _is_duckdb(path: str) -> bool:
    return Path(path).suffix.lower() in _DUCKDB


def query_source(query: Query, wanted: list[str]) -> Source:
    """Open a query; its connection is kept until the source is closed."""
    open_one = _postgres if query.address.startswith(_POSTGRES) else _duckdb
    held: list[Any] = []

    def batches() -> Iterator[pa.RecordBatch]:
        if not held:
            held.append(open_one(query))
        with _streaming(query):
            reader = held[0].reader()
            require(reader.schema.names, wanted)
            yield from of_batches(reader, wanted)

    def close() -> None:
        while held:
            held.pop().close()

    return Source(batches, repeatable=True, close=close)


@dataclass(frozen=True, repr=False)
class _Connection:
    """An open connection: start the query, and close it all."""

    reader: Callable[[], Any]
    close: Callable[[], None]


def _postgres(query: Query) -> _Connection:
    driver = need("adbc_driver_postgresql.dbapi", extra="sql")
    try:
        connection = driver.connect(query.address)
    except driver.Error:
        msg = (
            f"cannot connect to {query.shown}: check the address, the name of the database, user "
            "and password, and that the server runs"
        )
        raise DataError(msg) from None
    cursor = connection.cursor()
    cursor.execute(_SNAPSHOT)

    def reader() -> Any:
        cursor.execute(query.sql)
        return cursor.fetch_record_batch()

    def close() -> None:
        cursor.close()
        connection.close()

    return _Connection(reader, close)


def _duckdb(query: Query) -> _Connection:
    duckdb = need("duckdb", extra="sql")
    statements = _parsed(duckdb, query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        msg = "give one select: nothing is written to a database"
        raise DataError(msg)
    path = query.address.removeprefix("duckdb:").removeprefix("//")
    stored = query.address.startswith("duckdb:") or _is_duckdb(path)
    # Private rows are never spilt to disk, and nothing is fetched from elsewhere.
    settings = {"temp_directory": "", "autoinstall_known_extensions": "false"}
    try:
        connection = (
            duckdb.connect(path, read_only=True, config=settings)
            if stored
            else duckdb.connect(config=settings)
        )
    except duckdb.Error:
        msg = f"cannot open {path}: it is not a DuckDB database, or another process writes to it"
        raise DataError(msg) from None
    if not stored:
        connection.execute(_view(query.address))
    return _Connection(
        lambda: connection.sql(query.sql).to_arrow_reader(BATCH_ROWS), connection.close
    )


def _parsed(duckdb: Any, query: Query) -> list[Any]:
    try:
        return list(duckdb.extract_statements(query.sql))
    except duckdb.Error as error:
        msg = f"the query is not SQL that DuckDB knows: {_first_line(str(error))}"
        raise DataError(msg) from None


def _view(address: str) -> str:
    parts = find_parts(address)
    kinds = {part.kind for part in parts}
    if not all(part.local for part in parts) or not (kinds <= PARQUET or kinds <= CSV):
        msg = "SQL over files takes CSV or Parquet files of this machine, of one kind"
        raise DataError(msg)
    files = "[" + ", ".join(_quoted(part.place) for part in parts) + "]"
    if kinds <= PARQUET:
        return f"create view data as from read_parquet({files}, hive_partitioning = true)"
    nulls = "[" + ", ".join(map(_quoted, NULLS)) + "]"
    return (
        f"create view data as from read_csv({files}, nullstr = {nulls}, hive_partitioning = true)"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def _streaming(query: Query) -> Iterator[None]:
    """Turn what a driver raises into one sentence that carries neither a value nor a password."""
    try:
        yield
    except (DataError, GeneratorExit):
        raise
    except Exception as error:  # drivers raise errors of many kinds
        raise DataError(_without_values(query, error)) from None


def _without_values(query: Query, error: Exception) -> str:
    code = str(getattr(error, "sqlstate", None) or "")
    about_the_query = {"BinderException", "CatalogException", "ParserException", "SyntaxException"}
    if code[:2] == "42" or code == "25006" or type(error).__name__ in about_the_query:
        return f"{query.shown} refuses the query: {_first_line(str(error))}"
    state = f" (SQLSTATE {code})" if code else ""
    return (
        f"{query.shown} broke off{state}, perhaps because the connection was lost or a value does "
        "not fit its type: nothing was spent; run it again, or run the query by itself to see why"
    )


def _first_line(message: str) -> str:
    found = re.search(r"(?:ERROR|Error):\s*(.+)", message)
    return (found.group(1) if found else message.splitlines()[0])[:200]
