"""All queries of TPC-H and TPC-DS: their tables and columns against another reader of SQL, sqlglot."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.lineage import lineage_of
from tests.support.requirements import missing
from tests.support.tpc import Suite, load

QUERIES = {"tpch": 22, "tpcds": 99}
GROUPING = "GROUPING(column) tells the grouping set of a row: Spark computes it from no column's values"
DIFFERENT = {
    ("tpcds", 70, "lochierarchy"): GROUPING,
    ("tpcds", 70, "rank_within_parent"): GROUPING,
    ("tpcds", 86, "lochierarchy"): GROUPING,
    ("tpcds", 86, "rank_within_parent"): GROUPING,
}
"""Where sqlglot finds other columns, and why that is right as well."""

Found = dict[str, set[tuple[str, str]]]


def found_by_sqlglot(suite: Suite, query: str) -> Found:
    from sqlglot import exp
    from sqlglot.lineage import lineage

    found: Found = {}
    for name, root in lineage(None, query, schema=suite.tables, dialect="spark").items():
        found[name] = {
            (node.expression.name.lower(), node.name.split(".")[-1].strip("`").lower())
            for node in root.walk()
            if not node.downstream and isinstance(node.expression, exp.Table)
        }
    return found


def tables_by_sqlglot(suite: Suite, query: str) -> set[str]:
    import sqlglot

    named = {
        table.name.lower() for table in sqlglot.parse_one(query, read="spark").find_all(sqlglot.exp.Table)
    }
    return named & set(suite.tables)


@pytest.fixture(scope="module", params=list(QUERIES))
def suite(request: pytest.FixtureRequest, spark: Any) -> Any:
    try:
        suite = load(request.param)
    except ImportError as error:
        missing(f"{error.name} is not installed; pip install --group test")
    spark.sql(f"CREATE DATABASE {request.param}")
    spark.sql(f"USE {request.param}")
    suite.create(spark)
    yield request.param, suite
    spark.sql("USE default")


@pytest.mark.spark
@pytest.mark.parametrize("share", ["a tenth", pytest.param("all", marks=pytest.mark.thorough)])
def test_queries_have_the_tables_and_columns_that_sqlglot_finds(spark: Any, suite: Any, share: str) -> None:
    name, of_suite = suite
    assert len(of_suite.queries) == QUERIES[name]
    wrong: dict[tuple[str, int, str], str] = {}
    odd = {number for of, number, _ in DIFFERENT if of == name}
    for number, query in of_suite.queries.items():
        if share != "all" and number % 10 and number not in odd:
            continue
        graph = lineage_of(spark, f"INSERT OVERWRITE DIRECTORY '/nowhere' USING json {query}")
        tables = {dataset.table for vertex in graph.sources for dataset in vertex.datasets}
        assert tables == tables_by_sqlglot(of_suite, query), (name, number)
        (sink,) = graph.sinks
        ours = graph.column_edges(sink)
        schema = [field.name for field in sink.datasets[0].facets["schema"].fields]
        theirs = found_by_sqlglot(of_suite, query)
        assert len(schema) == len(theirs), (name, number)
        for column, (their_name, expected) in zip(schema, theirs.items(), strict=True):
            if their_name.startswith("_col_"):
                # What has no name in the query has none there, and is not looked into.
                expected = found_by_sqlglot(of_suite, _named(query, their_name)).get("named", expected)
            mine = {(source.dataset.table, source.column.lower()) for source in ours.get(column, ())}
            if mine != expected:
                wrong[name, number, column.lower()] = f"ours {mine - expected}, sqlglot's {expected - mine}"
    assert set(wrong) == {key for key in DIFFERENT if key[0] == name}, wrong


def _named(query: str, column: str) -> str:
    """Give the column without a name one."""
    import sqlglot

    place = int(column.removeprefix("_col_"))
    tree = sqlglot.parse_one(query, read="spark")
    selected = tree.selects[place]
    selected.replace(sqlglot.exp.alias_(selected.copy(), "named"))
    return tree.sql("spark")
