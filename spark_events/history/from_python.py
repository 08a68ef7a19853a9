"""A report for Python and notebooks: ``spark_events.report``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from os import PathLike, fspath
from typing import TYPE_CHECKING

from spark_events.api.errors import ConfigError, UsageError
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
    since: str | datetime | None = None,
    until: str | datetime | None = None,
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
        since: only from this time on: ``2026-11-25``, ``2026-11-25T14:30`` (UTC), or a datetime, which is of
            UTC unless it has a zone; or only so much before the end of the report, such as ``7d``.
        until: only until this time, given in the same way, or so long ago; ``now`` extends the last known
            state to the present. By default the report ends with the last event.
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
    given = _paths(paths)
    for name, value in {"app": app, "query": query}.items():
        if not isinstance(value, str):
            raise UsageError(f"{name}: {value!r} is not valid; expected a name")
    if spark is not None and not hasattr(spark, "createDataFrame"):
        raise UsageError(f"spark: {spark!r} is not valid; expected a SparkSession")
    span_ms = _duration_ms(since)
    selection = Selection(
        app,
        query,
        span_ms,
        since_ms=None if since is None or span_ms is not None else time_of("since", str(since)),
        until_ms=None if until in (None, "now") else time_of("until", str(until)),
        until_now=until == "now",
    )
    options = ReportOptions(tuple(given), _sla(sla), selection)
    if spark is not None:
        from spark_events.history.reading.on_spark import Spark

        return make_report(Spark(spark), options)
    with open_database(options, Engine.LOCAL) as database:
        return make_report(database, options)


def _duration_ms(since: str | datetime | None) -> int | None:
    span_ms = None
    with suppress(ConfigError):
        span_ms = DURATION.read("since", str(since))
    if span_ms is not None and span_ms <= 0:
        raise UsageError(f"since {since}: must be longer than 0, such as 12h or 7d")
    return span_ms


def _paths(paths: object) -> list[str]:
    """Return the paths that are given, one or several.

    Raises:
        UsageError: there is none, or one is none.
    """
    several = [paths] if isinstance(paths, str | PathLike) else paths
    expected = "expected files, folders or globs of stored events"
    if not isinstance(several, Iterable):
        raise UsageError(f"paths: {paths!r} is not valid; {expected}")
    given = list(several)
    if not given:
        raise UsageError(f"paths: none is given; {expected}")
    if odd := [path for path in given if not isinstance(path, str | PathLike)]:
        raise UsageError(f"paths: {odd[0]!r} is not valid; {expected}")
    if "" in given:
        raise UsageError(f"paths: one is empty; {expected}")
    return [str(fspath(path)) for path in given]


def _sla(sla: str | Mapping[str, str] | None) -> Sla:
    """Return the SLAs.

    Raises:
        UsageError: it is neither a text nor texts by names.
        ConfigError: one is not a duration.
    """
    by_query = {"": sla} if isinstance(sla, str) else dict(sla) if isinstance(sla, Mapping) else {}
    if (sla is not None and not isinstance(sla, str | Mapping)) or not all(
        isinstance(text, str) for text in by_query.values()
    ):
        raise UsageError(f"sla: {sla!r} is not valid; expected '60s', or {{'orders': '60s', '': '5min'}}")
    read = {name: DURATION.read("sla", text) for name, text in by_query.items()}
    return Sla(read.pop("", None), read)
