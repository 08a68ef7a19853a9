"""One Spark session for the tests of transactions that need no process of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events import ctas
from spark_events.ctas import fault_points
from tests.support.spark import local_spark


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="package")
def session(java: str, warehouse: Path) -> Iterator[Any]:
    database = "spark.sql.catalog.db"
    conf = {
        "spark.master": "local[4]",
        database: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{database}.url": f"jdbc:derby:;databaseName={warehouse}/.database;create=true",
        f"{database}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
        "spark.events.ctas.replaced-files.retention": "1h",
        "spark.events.ctas.lock.timeout": "20s",
        "spark.events.ctas.abort.timeout": "60s",
    }
    with local_spark("ctas", warehouse, conf) as session:
        yield session


@pytest.fixture
def collect(session: Any) -> Callable[[], None]:
    """Let the time of those who still read replaced tables be over."""

    def now() -> None:
        transactions = ctas.transactions_of(session)
        for left in transactions.journal.unfinished():
            table = transactions.table_of(left.to_json())
            assert table.transaction.collect_after_ms
            table.collect()

    return now


@pytest.fixture
def spark(session: Any, collect: Callable[[], None]) -> Iterator[Any]:
    """The session, without tables of the tests before."""
    yield session
    fault_points.observers.clear()
    for table in session.catalog.listTables():
        session.sql(f"DROP TABLE {table.name}")
    collect()


@pytest.fixture
def folders(warehouse: Path) -> Callable[[], list[str]]:
    """Return the names of the tables whose folders are there, one for each folder."""

    def found() -> list[str]:
        names = (name for name in os.listdir(warehouse) if not name.startswith("."))
        return sorted(name.rsplit("-", 2)[0] for name in names)

    return found
