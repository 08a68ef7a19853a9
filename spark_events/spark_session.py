"""Starts a Spark session for a command of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_events.api import ConfigError
from spark_events.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(command: str, conf: Mapping[str, str]) -> SparkSession:
    """Start a session.

    Args:
        command: what needs it, for the error and the application's name.
        conf: Spark's configuration; without ``spark.master``, Spark's own default holds.

    Raises:
        ConfigError: there is no PySpark or no Java, or Spark cannot be started so.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise ConfigError(f"{command} needs PySpark: pip install 'spark-events[spark]'") from error
    ensure_java()
    builder = SparkSession.builder.appName(f"spark-events {command}")
    for key, value in conf.items():
        builder = builder.config(key, value)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError

    if str(conf.get("spark.master", "local")).startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session: SparkSession = builder.getOrCreate()
    except Py4JJavaError as error:
        raise ConfigError(f"Spark could not be started: {error.java_exception.toString()}") from error
    except PySparkRuntimeError as error:  # the JVM ended at once, and has said why on stderr
        raise ConfigError(f"Spark could not be started: {error}") from error
    return session
