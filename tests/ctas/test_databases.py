"""Tables of a database through Spark's JDBC catalog; Derby's here, PostgreSQL's in test_crashes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from spark_events import ctas
from spark_events.ctas import fault_points
from spark_events.ctas.transactions.transaction import Level

pytestmark = pytest.mark.spark
SCHEMA = "db.shop"
MARKS = "spark_events_ctas"


@pytest.fixture
def database(spark: Any) -> Any:
    if not spark.sql("SHOW NAMESPACES IN db LIKE 'shop'").count():
        spark.sql(f"CREATE NAMESPACE {SCHEMA}")
    yield spark
    for name in tables(spark):
        spark.sql(f"DROP TABLE {SCHEMA}.`{name}`")


def tables(spark: Any) -> list[str]:
    names = (row.tableName for row in spark.sql(f"SHOW TABLES IN {SCHEMA}").collect())
    return sorted(name for name in names if name != MARKS)


def test_a_table_is_there_when_it_is_whole(database: Any) -> None:
    seen: list[list[str]] = []
    fault_points.observers.append(lambda point: seen.append(tables(database)))
    done = ctas.sql(
        database,
        f"CREATE TABLE {SCHEMA}.t AS SELECT id, 'x' AS name FROM range(10)",
        checks=[ctas.row_count(10, 10), ctas.each_row("id < 10")],
        require="atomic",
    )
    assert (done.level, done.created) == (Level.TRANSACTIONAL, True)
    assert database.table(f"{SCHEMA}.t").count() == 10
    assert all("t" not in names for names in seen[: fault_points.POINTS.index("after_catalog")])
    assert tables(database) == ["t"]


def test_a_failing_replacement_leaves_the_old_table(database: Any) -> None:
    ctas.sql(database, f"CREATE TABLE {SCHEMA}.t AS SELECT id FROM range(10)")
    with pytest.raises(Exception, match="too much"):
        ctas.sql(
            database,
            f"CREATE OR REPLACE TABLE {SCHEMA}.t AS SELECT if(id > 2, raise_error('too much'), id) AS id "
            "FROM range(5)",
        )
    assert database.table(f"{SCHEMA}.t").count() == 10
    ctas.sql(database, f"CREATE OR REPLACE TABLE {SCHEMA}.t AS SELECT id FROM range(3)")
    assert database.table(f"{SCHEMA}.t").count() == 3
    assert tables(database) == ["t"]


def test_names_that_are_taken_and_names_that_are_odd(database: Any) -> None:
    odd = f'{SCHEMA}.`a "name" \'s`'
    ctas.sql(database, f"CREATE TABLE {odd} AS SELECT 1 AS a")
    assert not ctas.sql(database, f"CREATE TABLE IF NOT EXISTS {odd} AS SELECT 2 AS a").created
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        ctas.sql(database, f"CREATE TABLE {odd} AS SELECT 2 AS a")
    assert database.table(odd).collect() == [(1,)]


def test_a_commit_after_an_abort_fails_in_the_database(database: Any) -> None:
    """Even where the journal would let it: an abort leaves its mark first."""

    def abort(point: str) -> None:
        if point == "before_catalog":
            transactions = ctas.transactions_of(database)
            (now,) = (one for one in transactions.journal.unfinished() if one.path.name == "late")
            java = transactions.entry.database("db")
            java.discard("shop", "nothing", "late", now.txid)

    fault_points.observers.append(abort)
    with pytest.raises(Exception, match=r"duplicate key|constraint"):
        ctas.sql(database, f"CREATE TABLE {SCHEMA}.late AS SELECT 1 AS a")
    assert tables(database) == []


def test_a_database_that_is_not_known_to_do_it(database: Any) -> None:
    catalog = "spark.sql.catalog.other"
    database.conf.set(catalog, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    url = "jdbc:derby:memory:other;create=true"
    database.conf.set(f"{catalog}.url", url)
    database.conf.set(f"{catalog}.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    from spark_events.ctas.tables import jdbc_tables

    kept = jdbc_tables._TRANSACTIONAL.pop("jdbc:derby:")
    try:
        with pytest.raises(ctas.NotAtomicError, match="known to work for PostgreSQL, but not for jdbc:derby"):
            ctas.sql(database, "CREATE TABLE other.APP.t AS SELECT 1 AS a")
    finally:
        jdbc_tables._TRANSACTIONAL["jdbc:derby:"] = kept
