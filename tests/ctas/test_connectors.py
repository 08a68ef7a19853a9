"""Tables of Delta's and Iceberg's real catalogs, and of one that cannot stage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from spark_events import ctas
from spark_events.ctas import fault_points
from spark_events.ctas.transactions.transaction import Level
from tests.support.lakehouse import CONNECTORS
from tests.support.servers import jars
from tests.support.spark import local_spark

pytestmark = [
    pytest.mark.spark,
    CONNECTORS,
]
TEN = "SELECT id, id % 2 AS p FROM range(10)"
PLAIN_CATALOG = """
package tests;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** Delta's catalog without what it has for staging: a catalog that creates a table, and then lets it be written. */
public class PlainCatalog implements TableCatalog {
    private String name;

    public void initialize(String name, org.apache.spark.sql.util.CaseInsensitiveStringMap options) {
        this.name = name;
    }

    private TableCatalog delta() {
        return (TableCatalog) ((org.apache.spark.sql.classic.SparkSession)
            org.apache.spark.sql.SparkSession.active()).sessionState().catalogManager().catalog("spark_catalog");
    }

    public String name() { return name; }
    public Identifier[] listTables(String[] namespace) throws Exception { return delta().listTables(namespace); }
    public Table loadTable(Identifier identifier) throws Exception { return delta().loadTable(identifier); }
    public Table createTable(Identifier identifier, Column[] columns, Transform[] partitions, Map properties)
        throws Exception { return delta().createTable(identifier, columns, partitions, properties); }
    public Table alterTable(Identifier identifier, TableChange[] changes) throws Exception {
        return delta().alterTable(identifier, changes); }
    public boolean dropTable(Identifier identifier) { return delta().dropTable(identifier); }
    public void renameTable(Identifier from, Identifier to) throws Exception { delta().renameTable(from, to); }
}
"""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lakehouse")


@pytest.fixture(scope="module")
def lake(java: str, warehouse: Path) -> Iterator[Any]:
    ice = "spark.sql.catalog.ice"
    conf = {
        "spark.jars": ",".join(map(str, jars("lakehouse"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        ice: "org.apache.iceberg.spark.SparkCatalog",
        f"{ice}.type": "hadoop",
        f"{ice}.warehouse": str(warehouse / "ice"),
        "spark.sql.catalog.plain": "tests.PlainCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    with local_spark("lakehouse", warehouse, conf) as session:
        thread = session._jvm.java.lang.Thread.currentThread()
        compiler = session._jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(thread.getContextClassLoader())
        compiler.cook(PLAIN_CATALOG)
        thread.setContextClassLoader(compiler.getClassLoader())
        yield session


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    fault_points.observers.clear()


@pytest.mark.parametrize("table", ["delta", "ice.db.t"])
def test_a_catalog_that_stages_takes_its_own_way(lake: Any, table: str) -> None:
    using = "USING delta" if table == "delta" else ""
    done = ctas.sql(lake, f"CREATE TABLE {table} {using} PARTITIONED BY (p) AS {TEN}", require="atomic")
    assert (done.level, lake.table(table).count()) == (Level.NATIVE, 10)
    again = ctas.sql(lake, f"CREATE OR REPLACE TABLE {table} {using} AS SELECT 1 AS a")
    assert lake.table(table).collect() == [(1,)]
    properties = {row.key: row.value for row in lake.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["ctas.txid"] == again.txid
    rows = "SELECT if(id > 3, raise_error('too much'), id) AS a FROM range(10)"
    with pytest.raises(Exception, match="too much"):
        ctas.sql(lake, f"CREATE OR REPLACE TABLE {table} {using} AS {rows}")
    assert lake.table(table).collect() == [(1,)]
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        ctas.sql(lake, f"CREATE TABLE {table} {using} AS {TEN}")


def test_nothing_can_be_checked_before_such_a_catalog_publishes(lake: Any) -> None:
    with pytest.raises(ctas.NotAtomicError, match="nothing can be checked in between"):
        ctas.sql(lake, f"CREATE TABLE checked USING delta AS {TEN}", checks=[ctas.row_count()])
    assert not lake.catalog.tableExists("checked")


def test_tables_of_files_beside_delta(lake: Any) -> None:
    done = ctas.sql(lake, f"CREATE TABLE files USING parquet AS {TEN}")
    assert (done.level, lake.table("files").count()) == (Level.POINTER, 10)


def test_a_catalog_that_cannot_stage(lake: Any, warehouse: Path) -> None:
    text = f"CREATE TABLE plain.default.slow USING delta AS {TEN}"
    with pytest.raises(
        ctas.NotAtomicError, match=r"level 'recoverable'.*its catalog supports no other level"
    ):
        ctas.sql(lake, text, require="atomic")
    assert ctas.sql(lake, text).level is Level.RECOVERABLE
    assert lake.table("slow").count() == 10

    def fail(point: str) -> None:
        if point == "after_write":
            assert lake.catalog.tableExists("half")
            raise ConnectionError("gone")

    fault_points.observers.append(fail)
    with pytest.raises(ConnectionError):
        ctas.sql(lake, f"CREATE TABLE plain.default.half USING delta AS {TEN}")
    assert not lake.catalog.tableExists("half")
    assert "half" not in os.listdir(warehouse)
