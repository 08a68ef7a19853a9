"""The tables and queries of TPC-H and TPC-DS, out of DuckDB's extensions, in Spark's SQL."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Suite:
    """A benchmark.

    Attributes:
        tables: for each table the types of its columns, by name.
        queries: SQL by number.
    """

    tables: dict[str, dict[str, str]]
    queries: dict[int, str]

    def create(self, spark: Any) -> None:
        """Make the tables in the session's database; they are empty."""
        for table, columns in self.tables.items():
            listed = ", ".join(f"{column} {of_type}" for column, of_type in columns.items())
            spark.sql(f"CREATE TABLE {table} ({listed}) USING parquet")


def load(name: str, scale: float = 0, into: Path | None = None) -> Suite:
    """Return ``tpch`` or ``tpcds``.

    Args:
        name: of the benchmark.
        scale: how much data there is, in GB.
        into: a folder to write the data to, a Parquet file for each table; None writes none.

    Raises:
        ImportError: duckdb, its extension or sqlglot is not installed.
    """
    import duckdb
    import sqlglot

    package = importlib.import_module(f"duckdb_extension_{name}")
    extension = next(Path(str(package.__file__)).parent.rglob("*.duckdb_extension"))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL {'dbgen' if name == 'tpch' else 'dsdgen'}(sf={scale})")
    tables: dict[str, dict[str, str]] = {}
    for table, column, of_type in connection.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "ORDER BY 1, ordinal_position"
    ).fetchall():
        spark_type = sqlglot.exp.DataType.build(of_type, dialect="duckdb").sql("spark")
        tables.setdefault(table, {})[column] = spark_type
    for table in tables if into else ():
        connection.execute(f"COPY {table} TO '{into}/{table}.parquet'")
    given = connection.execute(f"SELECT query_nr, query FROM {name}_queries() ORDER BY 1").fetchall()
    queries = {number: sqlglot.transpile(sql, read="duckdb", write="spark")[0] for number, sql in given}
    return Suite(tables, queries)
