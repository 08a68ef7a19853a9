"""Tables of streams that end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_events import ctas
from tests.support.applications import App
from tests.support.ctas_catalogs import configuration
from tests.support.paths import APPS

Folders = Callable[[], list[str]]
pytestmark = [pytest.mark.spark, pytest.mark.extended]
NOW = {"availableNow": True}


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Any:
    for number in range(3):
        spark.range(10 * number, 10 * number + 10).write.mode("append").parquet(str(tmp_path / "in"))
    reader = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(tmp_path / "in")).selectExpr("id", "id % 2 AS p")


def test_the_table_is_there_at_the_end_and_is_a_table_as_others_are(
    spark: Any, stream: Any, folders: Folders, warehouse: Path
) -> None:
    seen: list[bool] = []

    def look(data: Any, written: ctas.Written) -> None:
        seen.append(spark.catalog.tableExists("t"))

    checks = [ctas.row_count(30, 30), look]
    done = ctas.create_table_as(stream, "t", format="parquet", partition_by=["p"], trigger=NOW, checks=checks)
    assert (done.created, seen, spark.table("t").count()) == (True, [False], 30)
    spark.sql("INSERT INTO t VALUES (100, 7)")
    assert spark.table("t").where("p = 7").count() == 1
    assert not list((warehouse / ".ctas").glob("*.checkpoint"))
    assert folders() == ["t"]


def test_a_stream_that_fails_leaves_nothing(
    spark: Any, stream: Any, folders: Folders, warehouse: Path
) -> None:
    data = stream.selectExpr("if(id = 25, raise_error('too much'), id) AS id")
    with pytest.raises(Exception, match="too much"):
        ctas.create_table_as(data, "t", format="parquet", trigger=NOW)
    assert (spark.catalog.tableExists("t"), folders()) == (False, [])
    assert not list((warehouse / ".ctas").glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"whose trigger \(none\) never ends"),
        ({"trigger": {"processingTime": "1s"}}, r"\(processingTime='1s'\) never ends"),
        ({"trigger": NOW, "location": "/tmp/nowhere"}, "leave out LOCATION and buckets"),
        ({"trigger": NOW, "bucket_by": (2, ["id"])}, "leave out LOCATION and buckets"),
    ],
)
def test_streams_that_are_refused(stream: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ctas.NotAtomicError, match=message):
        ctas.create_table_as(stream, "t", format="parquet", **arguments)


def test_a_stream_in_sql_is_refused(spark: Any, stream: Any) -> None:
    stream.createOrReplaceTempView("streamed")
    with pytest.raises(ctas.NotAtomicError, match="which has no end in SQL"):
        ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT * FROM streamed")
    spark.catalog.dropTempView("streamed")


@pytest.mark.thorough
def test_a_killed_stream_goes_on_from_its_checkpoint(java: str, tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    conf = configuration("hive", tmp_path)
    command = [sys.executable, str(APPS / "ctas_stream.py"), str(tmp_path)]
    killed = App([*command, "kill"], conf, tmp_path).end()
    assert killed.code == -signal.SIGKILL, killed.err[-2000:]
    assert [name.rsplit("-", 2)[0] for name in os.listdir(tmp_path / "warehouse") if name != ".ctas"] == ["t"]
    ended = App([*command, "end"], conf, tmp_path).end()
    assert ended.code == 0, ended.err[-2000:]
    assert ended.out.splitlines() == ["120 rows, 120 different, from batch n on"]
    assert not list((tmp_path / "warehouse" / ".ctas").glob("*.checkpoint"))
