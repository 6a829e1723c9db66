"""The same tables in DuckDB, for many runs: quick aggregates, and Parquet files. Needs the `query` extra.

DuckDB is given a database file of its own, opened read-only, without access to any other file, and one SELECT.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from deskcert.audit.query import DEFINITION
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    import duckdb

__all__ = ["TABLES", "asked_in_columns", "parquet_of"]

TABLES: Final = ("runs", "records", "steps", "network", "oracle")
_TYPES: Final = {"text": "VARCHAR", "int": "BIGINT"}


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as exc:
        raise UsageError("DuckDB is not installed; get it with: pip install 'deskcert[query]'") from exc
    return duckdb


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(table: str) -> dict[str, str]:
    """Name → DuckDB's type, read off the SQL view's own definition."""
    empty = sqlite3.connect(":memory:")
    empty.executescript(DEFINITION)
    return {name: _TYPES[kind.lower()] for _, name, kind, *_ in empty.execute(f"pragma table_info({table})")}


def _move(base: sqlite3.Connection, table: str, into: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """By way of a file of JSON lines, which DuckDB reads many times quicker than it takes rows."""
    columns = _columns(table)
    lines = folder / f"{table}.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        for row in base.execute(f"select * from {table}"):  # noqa: S608 - one of TABLES
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
    told = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in columns.items())
    source = f"read_json({_quoted(str(lines))}, format = 'newline_delimited', columns = {{{told}}}"
    into.execute(f"create table {table} as select * from {source}, maximum_object_size = 1073741824)")  # noqa: S608
    lines.unlink()


@contextlib.contextmanager
def _filled(base: sqlite3.Connection, tables: Sequence[str]) -> Iterator[tuple[Any, Path]]:
    duckdb = _duckdb()
    with TemporaryDirectory(prefix="deskcert-query-") as name:
        folder = Path(name)
        with duckdb.connect(str(folder / "tables.duckdb")) as into:
            for table in tables:
                _move(base, table, into, folder)
        yield duckdb, folder


def parquet_of(base: sqlite3.Connection, table: str) -> bytes:
    """One table as a Parquet file, compressed with Snappy, which every reader knows."""
    with _filled(base, [table]) as (duckdb, folder), duckdb.connect(str(folder / "tables.duckdb")) as tables:
        out = folder / "out.parquet"
        tables.execute(f"copy {table} to {_quoted(str(out))} (format parquet)")
        return out.read_bytes()


@contextlib.contextmanager
def asked_in_columns(base: sqlite3.Connection, sql: str) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
    """Column names and rows of one SELECT. Raises `UsageError` for anything else."""
    with _filled(base, TABLES) as (duckdb, folder):
        try:
            # `SELECT_STATEMENT` in DuckDB 1, `SELECT` in DuckDB 2
            kinds = [statement.type.name.partition("_")[0] for statement in duckdb.extract_statements(sql)]
            if kinds != ["SELECT"]:
                raise UsageError("the query: only one SELECT is possible: the evidence is not changed")
            settings = {"enable_external_access": "false", "lock_configuration": "true"}
            with duckdb.connect(str(folder / "tables.duckdb"), read_only=True, config=settings) as tables:
                cursor = tables.execute(sql)
                yield [c[0] for c in cursor.description or ()], iter(cursor.fetchone, None)
        except duckdb.Error as exc:
            raise UsageError(f"the query: {str(exc).splitlines()[0]}") from exc
