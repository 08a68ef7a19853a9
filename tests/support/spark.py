"""Spark in the process of the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For sessions that plan very much and read a few rows: Spark would spend half of its time with compiling.

Not for sessions that use Spark's catalog, whose objects it cannot make so.
"""
_OF_THE_JVM = ("spark.jars", "spark.driver.")
_BASE_CONF = {
    "spark.sql.codegen.wholeStage": "false",  # of a few rows, it costs more than it saves
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def local_spark(name: str, warehouse: Path, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Give a Spark session in this process that says nothing.

    Args:
        name: of the application.
        warehouse: where its tables are.
        conf: more of Spark's keys.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkContext._gateway is None:
        # What a JVM is begun with is the default of all its sessions: what it needs at its begin, and no more.
        beginning = SparkConf(loadDefaults=False)
        beginning.setAll([item for item in (conf or {}).items() if item[0].startswith(_OF_THE_JVM)])
        SparkContext._ensure_initialized(conf=beginning)
    builder = SparkSession.builder.master("local[2]").appName(name)
    own = {"spark.sql.warehouse.dir": str(warehouse), "spark.log.level": "OFF"}
    for key, value in {**_BASE_CONF, **own, **(conf or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def stop_between_batches(query: Any) -> None:
    """Stop a query: within a batch, that would cancel its job, whose end comes after that of the query."""
    for _ in range(500):
        if not query.status["isTriggerActive"]:
            break
        query.awaitTermination(0.01)
    query.stop()
