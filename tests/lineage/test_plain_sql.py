"""Statements of one real application that name databases, secrets and relative paths."""

from __future__ import annotations

import getpass
from typing import Any

import pytest

from spark_events.lineage.job_logs import read_job_logs
from tests.support.applications import App, cli
from tests.support.lineage_shop import Shop, listeners
from tests.support.paths import APPS

pytestmark = pytest.mark.spark
SECRET = "S3CRET"
URL = f"jdbc:derby:memory:plain;create=true;user=admin;password={SECRET}"
CATALOG = "spark.sql.catalog.db"
VERBS = ("INSERT:", "CREATE:", "LOAD:")
STATEMENTS = (
    "INSERT OVERWRITE DIRECTORY 'out/rows' USING parquet SELECT id AS k, 'x' AS c FROM range(5)",
    "INSERT OVERWRITE DIRECTORY 'out/hive' STORED AS orc SELECT * FROM parquet.`out/rows`",
    "INSERT OVERWRITE LOCAL DIRECTORY 'out/local' STORED AS orc SELECT * FROM parquet.`out/rows`",
    "CREATE TABLE located USING parquet LOCATION 'out/located' AS SELECT * FROM parquet.`out/rows`",
    "CREATE TABLE loaded (k BIGINT, c STRING) STORED AS parquet",
    "LOAD DATA LOCAL INPATH 'out/rows' INTO TABLE loaded",
    "LOAD DATA INPATH 'out/missing' INTO TABLE loaded",
    "CREATE NAMESPACE db.S",
    "CREATE TABLE db.S.x AS SELECT * FROM parquet.`out/rows`",
    f"CREATE TEMPORARY VIEW jv USING jdbc OPTIONS(url '{URL}', password '{SECRET}', dbtable '\"S\".\"x\"')",
    "INSERT OVERWRITE DIRECTORY 'out/from_database' USING parquet SELECT * FROM db.S.x",
)


@pytest.fixture(scope="module")
def plain(java: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("plain")
    conf = {
        **listeners(folder),
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(folder / "events"),
        "spark.traces.reporter.f.factory.class": "file_log",
        "spark.traces.reporter.f.path": str(folder / "events"),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        CATALOG: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{CATALOG}.url": "jdbc:derby:memory:plain;create=true",
        f"{CATALOG}.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }
    command = cli("run", "--master", "local[2]", str(APPS / "plain_sql.py"), *STATEMENTS)
    run = App(command, conf, folder).end()
    assert run.code == 0, run.out[-2000:] + run.err[-2000:]
    assert [line.split(":")[0] for line in run.out.splitlines() if line.startswith(VERBS)] == ["LOAD"]
    return Shop.read(run, folder)


def test_no_secret_is_told(plain: Shop) -> None:
    files = [path for path in plain.folder.rglob("*.jsonl") if path.is_file()]
    texts = {path: path.read_text() for path in files}
    assert any("CREATE TEMPORARY VIEW jv USING jdbc OPTIONS(url '******'" in text for text in texts.values())
    assert [path.name for path, text in texts.items() if SECRET in text] == []


def sides(plain: Shop, start: str) -> tuple[list[str], list[str]]:
    """Return the names of what a statement reads and writes, as they are told last."""
    (created,) = [event for event in plain.jobs if event.get("statement", "").startswith(start)]
    told = [event for event in plain.jobs if event["jobId"] == created["jobId"] and "lineage" in event][-1]
    return names(told["lineage"]["sources"]), names(told["lineage"]["sinks"])


def names(vertices: list[dict[str, Any]]) -> list[str]:
    return [f"{data['namespace']} {data['name']}" for vertex in vertices for data in vertex["datasets"]]


@pytest.mark.parametrize(
    ("start", "read", "written"),
    [
        ("INSERT OVERWRITE DIRECTORY 'out/rows'", [], ["out/rows"]),
        ("INSERT OVERWRITE DIRECTORY 'out/hive'", ["out/rows"], ["out/hive"]),
        ("INSERT OVERWRITE LOCAL DIRECTORY 'out/local'", ["out/rows"], ["out/local"]),
        ("CREATE TABLE located", ["out/rows"], ["warehouse/out/located"]),
        ("LOAD DATA LOCAL", ["out/rows"], ["warehouse/loaded"]),
    ],
)
def test_paths_are_absolute(plain: Shop, start: str, read: list[str], written: list[str]) -> None:
    expected = [[f"file {plain.folder}/{path}" for path in paths] for paths in (read, written)]
    assert list(sides(plain, start)) == expected


@pytest.mark.parametrize(
    ("name", "written"), [("relative", "out/streamed"), ("insert.out.second", "out/second")]
)
def test_paths_of_dataframes_and_streams_are_absolute(plain: Shop, name: str, written: str) -> None:
    graph = plain.of(name)[0]["lineage"]
    assert names(graph["sources"]) == [f"file {plain.folder}/out/rows"]
    assert names(graph["sinks"]) == [f"file {plain.folder}/{written}"]


def test_load_data_looks_where_spark_does(plain: Shop) -> None:
    """As Hive does, Spark takes a relative path without LOCAL from the user's folder."""
    ((source,), _) = sides(plain, "LOAD DATA INPATH")
    assert source == f"file /user/{getpass.getuser()}/out/missing"


def test_a_new_table_of_a_database_is_one_table(plain: Shop) -> None:
    flow = read_job_logs([plain.folder])
    tables = [key for key, title in flow.titles.items() if title == "db.S.x"]
    assert tables == [("derby:memory:plain", "S.x")]
    assert flow.find("db.S.x") == tables[0]
    assert not [pair for pair, jobs in flow.flows.items() if not jobs]
    ((_, jobs),) = flow.sources_of(tables[0])
    assert [job.job for job in jobs] == ["plain.ctas.db.S.x"]
    assert len(flow.sinks_of(tables[0])) == 1
