"""Whether Spark's driver is still there."""

from __future__ import annotations

from typing import Any

from spark_events.api import SparkEventsError


class DriverGone(SparkEventsError):  # noqa: N818 - says what happened, and no fault of the caller's
    """The error of a process that is left after Spark has ended."""


def demand_driver(spark: Any, application: str) -> None:
    """Raise if Spark has ended.

    Args:
        spark: the application's session.
        application: its name, for the error.

    Raises:
        DriverGone: it has.
    """
    try:
        stopped = spark.sparkContext._jsc.sc().isStopped()
    except Exception as error:  # the JVM is gone, or the context has let go of it
        raise DriverGone(f"application {application}: Spark's driver is gone: {error}") from error
    if stopped:
        raise DriverGone(f"application {application}: Spark's context was stopped")
