"""A report for Python and notebooks: ``spark_events.report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from spark_events.api.errors import UsageError
from spark_events.api.option_types import DURATION
from spark_events.history.asked_time import time_of
from spark_events.history.options import Engine, ReportOptions, Sla
from spark_events.history.report import Report
from spark_events.history.run import make_report, open_database
from spark_events.history.selection import Selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    sla: str | Mapping[str, str] | None = None,
    app: str = "",
    query: str = "",
    since: str | None = None,
    until: str | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Return the report of stored events, as ``spark-events report`` shows it.

    Args:
        paths: files, folders or globs of stored events.
        sla: how long a query may go without committing, such as ``60s``: for all, or by the query's name;
            ``""`` is the name for all others. By default, as long as its application had set by
            ``spark.events.checkpoint.sla``, or 60 s.
        app: only the applications of this name, or the one of this id.
        query: only the streaming query of this name.
        since: only from this time on: ``2026-11-25``, ``2026-11-25T14:30`` (UTC), or ``7d`` (ago).
        until: only until this time, given in the same way; ``now`` extends the last known state to the
            present. By default the report ends with the last event.
        spark: reads with Spark what one machine cannot; by default, DuckDB reads in this process.

    Example::

        report = spark_events.report("/var/log/spark-reports", until="now")
        report.tables.failures       # a list of rows
        report.to_pandas("uptime")   # a frame

    Raises:
        NothingToReadError: there is no event, or none that matches.
        UsageError: an argument cannot be used.
        ConfigError: DuckDB is not installed.
    """
    given = [fspath(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]
    if "" in given:
        raise UsageError("paths: one is empty; expected files, folders or globs of stored events")
    selection = Selection(
        app,
        query,
        since_ms=None if since is None else time_of("since", since),
        until_ms=None if until in (None, "now") else time_of("until", str(until)),
        until_now=until == "now",
    )
    options = ReportOptions(tuple(given), _sla(sla), selection)
    if spark is not None:
        from spark_events.history.reading.on_spark import Spark

        return make_report(Spark(spark), options)
    with open_database(options, Engine.LOCAL) as database:
        return make_report(database, options)


def _sla(sla: str | Mapping[str, str] | None) -> Sla:
    """Return the SLAs.

    Raises:
        ConfigError: one is not a duration.
    """
    by_query = {"": sla} if isinstance(sla, str) else dict(sla or {})
    read = {name: DURATION.read("sla", text) for name, text in by_query.items()}
    return Sla(read.pop("", None), read)
