"""Replays a fleet's event logs as a PySpark job, one task per log; writes Parquet or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_events.api import ApplicationInfo, ConfigError, Event
from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.listeners.settings import declared_settings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.sources.assembly import StartUp, assemble, for_event_logs, read_checked
from spark_events.sources.configuration import read_configuration
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.replay import LogReplay, Tap
from spark_events.sources.event_log.summary import ReplayedLog, Summary
from spark_events.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "eventId string, eventName string, time timestamp, severityText string, scope string, body string, "
    "appName string, appId string, appAttemptId string, sparkVersion string, "
    "attributes map<string,string>, date date"
)
"""Of what is written, partitioned by ``date`` (UTC); variables are among the attributes, as in OTLP."""
_REDACTION = "spark.redaction."
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
Row = tuple[Any, ...]


class ReplayOutput(NamedTuple):
    """Where the events go.

    Attributes:
        path: for Spark.
        format: ``parquet`` or ``json``.
        mode: Spark's save mode.
    """

    path: str
    format: str
    mode: str


def replay_on_spark(
    paths: Sequence[str], conf: Mapping[str, str], spark_conf: Mapping[str, str], output: ReplayOutput
) -> Summary:
    """Replay logs on a cluster.

    Args:
        paths: logs, folders or globs; executors have to be able to read them, too.
        conf: Spark's configuration, from which only the listeners' settings are used.
        spark_conf: the configuration of the job's own session.
        output: where the events go.

    Returns:
        What came of the logs.

    Raises:
        ConfigError: the configuration is invalid, there is nothing at a path, or the output is unusable.
    """
    read_checked(conf)
    places = [(path, log) for path in paths for log in LogFiles(path).find()]
    if not places:
        raise NothingToReadError(f"no event log at {', '.join(map(path_without_secrets, paths))}")
    # The largest logs first, as they take longest.
    places.sort(key=lambda place: -place[1].size)
    session = start_session("replay", spark_conf)
    try:
        return _write(session, places, _settings_of(conf), output)
    finally:
        session.stop()


def rows_of(
    path: str, log: EventLog, conf: Mapping[str, str], on_done: Callable[[ReplayedLog], None]
) -> Iterator[Row]:
    """Replay one log, in a task.

    Args:
        path: as ``LogFiles`` takes it.
        conf: the listeners' settings.
        on_done: called with what came of it.

    Yields:
        A row of ``SCHEMA`` for each event.
    """
    events: list[Event] = []

    def start(application: ApplicationInfo, tap: Tap, own: Mapping[str, str]) -> SparkListeners:
        wanted = {**own, **conf}
        configuration = for_event_logs(read_configuration(wanted, application))
        return assemble(wanted, application, configuration, StartUp(tap=tap)).listeners

    replay = LogReplay(LogFiles(path), log, start, events.append)
    # If a log's last line has no line end, its events only come after the last block.
    for _ in chain(replay.run(), [0]):
        version = replay.result.spark_version
        yield from (_row(event, version) for event in events)
        events.clear()
    on_done(replay.result)


def _write(
    session: SparkSession, places: list[tuple[str, EventLog]], conf: Mapping[str, str], output: ReplayOutput
) -> Summary:
    from pyspark import AccumulatorParam

    class Summaries(AccumulatorParam[Summary]):  # type: ignore[misc]
        def zero(self, value: Summary) -> Summary:
            return Summary()

        def addInPlace(self, value1: Summary, value2: Summary) -> Summary:  # noqa: N802 - PySpark's name
            value1.merge(value2)
            return value1

    context = session.sparkContext
    # A task that is rerun is counted twice here, but its rows are not duplicated.
    total = context.accumulator(Summary(), Summaries())

    def add_to_total(log: ReplayedLog) -> None:
        summary = Summary()
        summary.add(log)
        total.add(summary)

    def replay(part: Iterable[tuple[str, EventLog]]) -> Iterator[Row]:
        for path, log in part:
            yield from rows_of(path, log, conf, add_to_total)

    rows = context.parallelize(places, len(places)).mapPartitions(replay)
    # Write files of a reasonable size instead of one or more per log.
    frame = session.createDataFrame(rows, SCHEMA, verifySchema=False).hint("rebalance", "date")
    _save(frame, output)
    summary: Summary = total.value
    return summary


def _save(frame: DataFrame, output: ReplayOutput) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PythonException

    try:
        frame.write.partitionBy("date").mode(output.mode).format(output.format).save(output.path)
    except AnalysisException as error:
        shown = path_without_secrets(output.path)
        raise ConfigError(f"--output {shown}: {error}; or give --mode overwrite or --mode append") from error
    except (Py4JJavaError, PythonException) as error:
        missing = _NO_MODULE.search(str(error))
        if missing is None:
            raise
        raise ConfigError(
            f"the executors' Python has no {missing.group(1)}: install 'spark-events[eventlog]' there, or "
            "ship an environment that has it (spark.archives, PYSPARK_PYTHON)"
        ) from error


def _settings_of(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the listeners' settings without any reporters: tasks have none."""
    declared = list(declared_settings())
    keys = {setting.option.name for setting in declared if not setting.placeholder}
    prefixes = (_REDACTION, *(setting.option.name for setting in declared if setting.placeholder))
    return {key: value for key, value in conf.items() if key in keys or key.startswith(prefixes)}


def _row(event: Event, version: str) -> Row:
    variables = event.variables
    time = datetime.fromtimestamp(event.time_ms / 1000, timezone.utc)
    return (
        event.id,
        event.name,
        time,
        event.severity.name,
        event.class_scope,
        event.body,
        variables.get("app_name"),
        variables.get("app_id"),
        variables.get("app_attempt_id"),
        version,
        {key: _text(value) for key, value in event.all_attributes.items()},
        time.date(),
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
