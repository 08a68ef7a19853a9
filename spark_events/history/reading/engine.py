"""Chooses where a report is computed: in this process, or by Spark."""

from __future__ import annotations

import re
from importlib.util import find_spec

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError, install, needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.history.options import Engine, ReportOptions

MOST_LOCAL_BYTES = 20 << 30
"""Beyond this size of the stored events, Spark reads them by default."""
_LOCAL = re.compile(r"^(file:|/|(?![a-zA-Z][\w+.-]*:))")


def choose(options: ReportOptions, told_of_spark: bool) -> tuple[Engine, str]:
    """Return where a report is computed, and why; the reason is empty where the user has said so.

    Args:
        options: of the report; with a choice other than AUTO, that is it.
        told_of_spark: whether a master or Spark's configuration was given for it.

    Raises:
        ConfigError: there is nothing at a path; a folder cannot be written from here; or Spark is needed,
            and PySpark is not installed.
    """
    if options.engine is Engine.LOCAL:
        for folder in filter(None, (options.store, options.parquet)):
            if not _LOCAL.match(folder):
                shown = path_without_secrets(folder)
                raise UsageError(f"{shown}: --engine local writes to this machine; use --engine spark")
    if options.engine is not Engine.AUTO:
        return options.engine, ""
    if told_of_spark:
        return Engine.SPARK, ""
    reason = _reason_for_spark(options)
    if not reason:
        return Engine.LOCAL, ""
    if find_spec("pyspark") is None:
        raise ConfigError(f"{reason}, and PySpark is not installed: {install('spark')}")
    return Engine.SPARK, reason


def _reason_for_spark(options: ReportOptions) -> str:
    """Return why the report needs Spark; empty where it does not."""
    for folder in filter(None, (options.store, options.parquet)):
        if not _LOCAL.match(folder):
            return f"{path_without_secrets(folder)}: is written by Spark"
    if find_spec("duckdb") is None:
        return f"DuckDB is not installed ({install('report')}): Spark reads the events"
    with needs_extra("report", "fsspec", "reading stored events without Spark"):
        from spark_events.history.reading.local_files import stored_files
        from spark_events.spark.file_systems import open_file_system
    for path in options.paths:
        try:
            open_file_system(path, path)
        except ConfigError as error:
            return f"{error}: Spark reads it"
    files = stored_files(options.paths)
    if files.compressed:
        return f"{path_without_secrets(files.compressed)}: Spark decompresses it"
    if files.size > MOST_LOCAL_BYTES:
        return f"{files.size / 1e9:.1f} GB of events: Spark reads them (--engine local reads them here)"
    return ""
