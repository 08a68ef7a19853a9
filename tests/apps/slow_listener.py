"""Runs small jobs for some seconds, while a listener of its own rests at the end of each task.

slow_listener.py SECONDS MS
"""

from __future__ import annotations

import sys
import time
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession


class Resting:
    """A SparkListener that rests for so many ms, and does nothing else."""

    def __init__(self, rest_ms: int) -> None:
        self._rest_ms = rest_ms

    def onTaskEnd(self, _event: Any) -> None:  # noqa: N802
        """Handle the end of a task."""
        time.sleep(self._rest_ms / 1_000)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on"):
            raise AttributeError(name)
        return lambda _event: None

    class Java:
        """What py4j has to know."""

        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)


def main(seconds: float, rest_ms: int) -> None:
    """Run jobs for so many seconds."""
    spark = SparkSession.builder.appName("slow-listener").getOrCreate()
    context = spark.sparkContext
    ensure_callback_server_started(context._gateway)
    context._jsc.sc().addSparkListener(Resting(rest_ms))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        context._jsc.parallelize(list(range(4)), 4).count()
        time.sleep(0.2)
    spark.stop()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
