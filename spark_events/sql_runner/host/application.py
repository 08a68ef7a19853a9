"""The program that spark-submit runs: an application that hosts streaming queries."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path
from typing import Any

# spark-submit puts this file's folder first in sys.path; its modules must not shadow others of their names.
if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    del sys.path[0]

from spark_events import attach
from spark_events.api import ConfigError
from spark_events.runtime.log_once import logger
from spark_events.sql_runner.host.driver import DriverGone
from spark_events.sql_runner.host.host import QueryHost
from spark_events.sql_runner.store.lease import LeaseLost
from spark_events.sql_runner.store.store import Store, StoreError


def host_queries() -> int:
    """Host queries until asked to end, and return the exit code."""
    given = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Py4J logs each object that it releases.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    attach(spark)
    queries = QueryHost(
        spark,
        Store(given.store),
        given.host,
        single=given.single,
        poll_s=given.poll_ms / 1000,
        lease_ms=given.lease_ms,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: queries.end())
    code = _run(queries)
    spark.stop()
    return code


def _arguments() -> argparse.Namespace:
    """Return what ``deploy/launch.py`` has put on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True, help="the store's URL")
    parser.add_argument("--host", required=True, help="the application's name for deployers")
    parser.add_argument("--single", action="store_true", help="end with the one query")
    parser.add_argument("--poll-ms", type=int, default=1_000, help="how often to look for orders")
    parser.add_argument("--lease-ms", type=int, default=30_000, help="how long it may be silent")
    return parser.parse_args()


def _run(queries: Any) -> int:
    try:
        return 0 if queries.run() else 1
    except (ConfigError, StoreError, LeaseLost, DriverGone) as error:
        logger.error("%s", error)
        return 2 if isinstance(error, ConfigError) else 1


if __name__ == "__main__":
    sys.exit(host_queries())
