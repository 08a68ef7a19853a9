"""Lineage of random queries against what happens to their results if the values of a column change."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from spark_events.lineage import lineage_of
from tests.support.random_queries import SQL_TYPES, TABLES, Grammar, Query

pytestmark = pytest.mark.spark
ROWS, MOST_ROWS, CHANGES = 7, 3_000, 1


class Data:
    """The tables, and views of them in which one column has other values."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        values = Grammar(0)
        self.rows = {
            table: [[values.value(kind) for kind in columns.values()] for _ in range(ROWS)]
            for table, columns in TABLES.items()
        }
        self.changed: dict[str, tuple[str, str]] = {}
        for table, columns in TABLES.items():
            spark.sql(f"CREATE TABLE {table} USING parquet AS {self._select(table, self.rows[table])}")
            self._view(f"{table}_as_is", table, self.rows[table])
            for place, (column, kind) in enumerate(columns.items()):
                for change in range(CHANGES):
                    rows = [[*row[:place], values.value(kind), *row[place + 1 :]] for row in self.rows[table]]
                    name = f"{table}_{column}_{change}"
                    self._view(name, table, rows)
                    self.changed[name] = (table, column)

    def _view(self, name: str, table: str, rows: list[list[str]]) -> None:
        self.spark.sql(f"CREATE TEMP VIEW {name} AS {self._select(table, rows)}")

    def _select(self, table: str, rows: list[list[str]]) -> str:
        return " UNION ALL ".join(
            "SELECT "
            + ", ".join(
                f"CAST({value} AS {SQL_TYPES[kind]}) AS {column}"
                for value, (column, kind) in zip(row, TABLES[table].items(), strict=True)
            )
            for row in rows
        )

    def values(self, query: Query, **others: str) -> dict[str, Counter[str]] | None:
        """Return how often each column has each value; None if there are too many rows, or Spark cannot plan it."""
        from py4j.protocol import Py4JJavaError

        tables = {table: f"{table}_as_is" for table in TABLES}
        try:
            rows = self.spark.sql(query.of(**tables | others)).limit(MOST_ROWS).collect()
        except Py4JJavaError as error:
            if "NoSuchElementException: key not found" not in str(error):
                raise
            return None  # Spark's own rules leave a lateral join's columns behind in a lambda function
        if len(rows) == MOST_ROWS:
            return None
        return {
            column: Counter(str(row[place]) for row in rows) for place, column in enumerate(query.columns)
        }

    def dependent(self, query: Query) -> dict[str, set[str]]:
        """Return which columns of the result have other values if a column of a table does."""
        as_is = self.values(query)
        found: dict[str, set[str]] = {column: set() for column in query.columns}
        for view, (table, column) in self.changed.items():
            changed = self.values(query, **{table: view}) if as_is and table in query.tables else None
            for made, values in (changed or {}).items():
                if as_is is not None and values != as_is[made]:
                    found[made].add(f"default.{table}.{column}")
        return found


@pytest.fixture(scope="module")
def data(spark: Any) -> Data:
    return Data(spark)


def missing(data: Data, query: Query) -> dict[str, set[str]]:
    """Return what a column depends on, and its lineage does not say."""
    graph = lineage_of(data.spark, f"INSERT OVERWRITE DIRECTORY '/nowhere/out' USING parquet {query.of()}")
    assert not graph.incomplete, graph.incomplete
    told = graph.column_edges(graph.sinks[0])
    of_rows = {str(column) for edge in graph.relations for column in edge.influences}
    found = {}
    for column, inputs in data.dependent(query).items():
        untold = inputs - of_rows - {str(source) for source in told.get(column, ())}
        if untold:
            found[column] = untold
    return found


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(6))
def test_no_source_is_missing(data: Data, seed: int) -> None:
    grammar = Grammar(seed)
    for depth in (1, 2):
        query = grammar.query(depth)
        assert missing(data, query) == {}, query.of()


@pytest.mark.thorough
def test_no_source_is_missing_at_random(data: Data) -> None:
    seed = random.randrange(1_000_000)
    grammar = Grammar(seed)
    for _ in range(20):
        query = grammar.query(depth=3)
        assert missing(data, query) == {}, f"seed {seed}: {query.of()}"
