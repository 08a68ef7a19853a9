"""One Spark session, with a few tables, for all tests of what is found in plans."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lineage.shown import Shown, shown

TABLES = {
    "orders": "id INT, customer INT, amount DECIMAL(10,2), day DATE, tags ARRAY<STRING>",
    "customers": "id INT, name STRING, country STRING",
    "totals": "name STRING, total DECIMAL(20,2), n BIGINT",
}


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="package")
def spark(java: str, warehouse: Path) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("lineage")
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.log.level": "OFF",
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    for name, columns in TABLES.items():
        partitioned = "PARTITIONED BY (day)" if name == "orders" else ""
        session.sql(f"CREATE TABLE {name} ({columns}) USING parquet {partitioned}")
    session.sql("CREATE VIEW loud AS SELECT id, upper(name) AS loud_name, country FROM customers")
    yield session
    session.stop()


@pytest.fixture
def lineage(spark: Any) -> Any:
    """Return the lineage of a statement that is not run, short enough to be read in a test."""
    from spark_events.lineage import lineage_of

    def read(statement: Any) -> Shown:
        return shown(lineage_of(spark, statement))

    return read
