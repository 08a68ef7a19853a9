"""One Spark session, with a few tables, for all tests of what is found in plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS
from tests.support.shown_lineage import Shown, shown
from tests.support.spark import local_spark

TABLES = {
    "orders": "id INT, customer INT, amount DECIMAL(10,2), day DATE, tags ARRAY<STRING>",
    "customers": "id INT, name STRING, country STRING",
    "totals": "name STRING, total DECIMAL(20,2), n BIGINT",
}
_PLACE = "STRUCT<x: DOUBLE, at: STRUCT<y: STRING>>"
TABLES |= dict.fromkeys(
    ("places", "places_kept"), f"place {_PLACE}, spots ARRAY<{_PLACE}>, by_name MAP<STRING, {_PLACE}>"
)


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="package")
def spark(java: str, warehouse: Path) -> Iterator[Any]:
    with local_spark("lineage", warehouse) as session:
        for name, columns in TABLES.items():
            partitioned = "PARTITIONED BY (day)" if name == "orders" else ""
            session.sql(f"CREATE TABLE {name} ({columns}) USING parquet {partitioned}")
        session.sql("CREATE VIEW loud AS SELECT id, upper(name) AS loud_name, country FROM customers")
        session.sql("CREATE VIEW boxed AS SELECT struct(name AS n, country AS c) AS box, id FROM customers")
        yield session


@pytest.fixture
def lineage(spark: Any) -> Any:
    """Return the lineage of a statement that is not run, short enough to be read in a test."""
    from spark_events.lineage import lineage_of

    def read(statement: Any) -> Shown:
        return shown(lineage_of(spark, statement))

    return read


@pytest.fixture(scope="package")
def shop(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """tests/apps/lineage.py, with a file log and OpenLineage listening."""
    folder = tmp_path_factory.mktemp("shop")
    parent = "airflow/load.shop/0197d6ab-0000-7000-8000-000000000001"
    conf = {
        **listeners(folder),
        "spark.job-status-changed.listener.openlineage.parent": parent,
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").as_uri(),
    }
    (folder / "event-log").mkdir()
    run = App(cli("run", "--master", "local[2]", str(APPS / "lineage.py"), str(folder)), conf, folder).end()
    return Shop.read(run, folder)
