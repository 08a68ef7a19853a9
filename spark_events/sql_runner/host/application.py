"""The program that spark-submit runs: an application that hosts streaming queries."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

# spark-submit puts this file's folder first, whose modules must not stand for others of their names.
if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    del sys.path[0]

import typer

from spark_events import attach
from spark_events.api import ConfigError
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.host.host import DriverGone, QueryHost
from spark_events.sql_runner.store.lease import LeaseLost
from spark_events.sql_runner.store.store import Store, StoreError


def host_queries(
    store: Annotated[str, typer.Option(help="The store's URL.")],
    host: Annotated[str, typer.Option(help="The application's name for deployers.")],
    single: Annotated[bool, typer.Option("--single", help="End with the one query.")] = False,
    poll_ms: Annotated[int, typer.Option(help="How often to look for orders, in ms.")] = 1_000,
    lease_ms: Annotated[int, typer.Option(help="How long it may be silent, in ms.")] = 30_000,
) -> None:
    """Host queries until somebody asks it to end."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Py4J tells of each object that it lets go.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    attach(spark)
    queries = QueryHost(spark, Store(store), host, single=single, poll_s=poll_ms / 1000, lease_ms=lease_ms)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: queries.end())
    code = _run(queries)
    spark.stop()
    sys.exit(code)


def _run(queries: Any) -> int:
    try:
        return 0 if queries.run() else 1
    except (ConfigError, StoreError, LeaseLost, DriverGone) as error:
        logger.error("%s", error)
        return 2 if isinstance(error, ConfigError) else 1


if __name__ == "__main__":
    typer.run(host_queries)
