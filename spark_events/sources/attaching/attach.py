"""Attaches the framework to a running Spark application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_events.sources.driver.bridge_java import compile_meanwhile

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from spark_events.sources.attaching.attachment import Attachment


def attach(
    spark: SparkSession | SparkContext, *, strict: bool = False, conf: Mapping[str, str] | None = None
) -> Attachment:
    """Report on a Spark application, as its own ``spark.*`` configuration says.

    Calling it again for the same application returns the same attachment; until that is closed, asking for
    another configuration is an error. The attachment ends by itself with ``spark.stop()`` or the process. If
    no reporter is configured, nothing is attached: a later call may configure one. Nor is anything where
    ``spark.events.enabled`` is false, even with ``strict``.

    With a Spark Connect session, it reports only on the session's streaming queries: the driver is remote,
    and others may use it, too.

    Args:
        spark: a SparkSession or a SparkContext.
        strict: raise if the configuration is invalid, and wait until each reporter has opened. Otherwise
            errors are logged, the correctly configured reporters start, and the application goes on.
        conf: more keys, which take precedence over those of the application; numbers and booleans may stand
            for their texts.

    Example::

        with spark_events.attach(spark, conf={"spark.events.reporter.file.factory.class": "file_log",
                                              "spark.events.reporter.file.path": "/tmp/reports"}):
            spark.range(1000).count()

    Raises:
        TypeError: ``spark`` is neither, or is a Spark Connect session of PySpark 3.
        ConfigError: only with ``strict``; names each key, its value and what is allowed; or no reporter is
            configured, or the application is attached already with another configuration.
    """
    compile_meanwhile(spark, conf)
    from spark_events.sources.attaching.attachment import attach_to

    return attach_to(spark, strict, conf)
