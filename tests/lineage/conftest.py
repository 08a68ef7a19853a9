"""One Spark session, with a few tables, for all tests of what is found in plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lineage.shown import Shown, shown
from tests.support import APPS, App, AppRun, cli, local_spark

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
    with local_spark("lineage", warehouse) as session:
        for name, columns in TABLES.items():
            partitioned = "PARTITIONED BY (day)" if name == "orders" else ""
            session.sql(f"CREATE TABLE {name} ({columns}) USING parquet {partitioned}")
        session.sql("CREATE VIEW loud AS SELECT id, upper(name) AS loud_name, country FROM customers")
        yield session


@pytest.fixture
def lineage(spark: Any) -> Any:
    """Return the lineage of a statement that is not run, short enough to be read in a test."""
    from spark_events.lineage import lineage_of

    def read(statement: Any) -> Shown:
        return shown(lineage_of(spark, statement))

    return read


@dataclass
class Shop:
    """An application, and what its job status listeners wrote down."""

    run: AppRun
    folder: Path
    jobs: list[dict[str, Any]]
    openlineage: list[dict[str, Any]]

    @classmethod
    def read(cls, run: AppRun, folder: Path) -> Shop:
        """Read what the listeners of an application wrote below its folder."""
        files = (folder / "jobs").iterdir()
        jobs = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        lines = (folder / "openlineage.jsonl").read_text().splitlines()
        return cls(run, folder, jobs, [json.loads(line) for line in lines])

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return the events of the jobs of a name."""
        return [event for event in self.jobs if event["jobName"] == name]

    def lineage(self, name: str) -> tuple[list[str], list[str]]:
        """Return what such a job reads and writes, as it was last told: paths below the folder, or names."""
        told = [event["lineage"] for event in self.of(name) if "lineage" in event][-1]

        def short(vertices: list[dict[str, Any]]) -> list[str]:
            names = [dataset["name"] for vertex in vertices for dataset in vertex["datasets"]]
            return [one.removeprefix(f"{self.folder}/") for one in names]

        return short(told["sources"]), short(told["sinks"])

    def statuses(self, name: str) -> list[str]:
        """Return the statuses of such jobs, one after the other."""
        return [
            "CREATED" if event["event"] == "JobCreatedEvent" else event["newStatus"]
            for event in self.of(name)
            if event["event"] != "JobLineageEvent"
        ]


def listeners(folder: Path) -> dict[str, str]:
    """Return the configuration of a file log and of OpenLineage, which write below a folder."""
    listener = "spark.job-status-changed.listener"
    return {
        f"{listener}.log.factory.class": "file_log",
        f"{listener}.log.path": str(folder / "jobs"),
        f"{listener}.openlineage.factory.class": "openlineage",
        f"{listener}.openlineage.transport.type": "file",
        f"{listener}.openlineage.transport.path": str(folder / "openlineage.jsonl"),
        # Relative, as Spark's default is: below the folder in which the application begins.
        "spark.sql.warehouse.dir": "warehouse",
    }


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
