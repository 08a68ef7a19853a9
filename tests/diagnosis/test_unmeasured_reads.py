"""Of which files a real Spark does not count what tasks read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_events.diagnosis.measured import misses_reads
from tests.support.spark import local_spark

FORMATS = ("parquet", "orc", "csv", "json")


def stages_that_scan(log: Path) -> list[dict[str, Any]]:
    records = map(json.loads, log.read_text().splitlines())
    stages = [record["Stage Info"] for record in records if record["Event"] == "SparkListenerStageCompleted"]
    return [stage for stage in stages if any(rdd["Name"] == "FileScanRDD" for rdd in stage["RDD Info"])]


@pytest.mark.spark
def test_by_format(java: str, tmp_path: Path) -> None:
    """Of Parquet alone: the stages are known by the names of their RDDs."""
    (tmp_path / "log").mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "log").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    with local_spark("reads", tmp_path, conf) as spark:
        for of_format in FORMATS:
            spark.range(10).write.format(of_format).save(str(tmp_path / of_format))
            spark.read.schema("id long").format(of_format).load(str(tmp_path / of_format)).collect()
    (log,) = (path for path in (tmp_path / "log").iterdir() if not path.name.startswith("."))

    assert [misses_reads(stage) for stage in stages_that_scan(log)] == [True, False, False, False]
