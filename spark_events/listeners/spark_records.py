"""The names of the records that the listeners handle: Spark's own, and those that our sources add."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final

from spark_events.listeners.record_fields import (
    COMPLETION_TIME,
    STAGE_ATTEMPT_ID,
    STAGE_ID,
    STAGE_INFO,
    SUBMISSION_TIME,
    TIMESTAMP,
)

_SQL = "org.apache.spark.sql.execution.ui."
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"

LOG_START = "SparkListenerLogStart"
APPLICATION_START = "SparkListenerApplicationStart"
APPLICATION_END = "SparkListenerApplicationEnd"
ENVIRONMENT_UPDATE = "SparkListenerEnvironmentUpdate"
EXECUTOR_ADDED = "SparkListenerExecutorAdded"
RESOURCE_PROFILE_ADDED = "SparkListenerResourceProfileAdded"
EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
JOB_START = "SparkListenerJobStart"
JOB_END = "SparkListenerJobEnd"
STAGE_SUBMITTED = "SparkListenerStageSubmitted"
STAGE_COMPLETED = "SparkListenerStageCompleted"
UNPERSIST_RDD = "SparkListenerUnpersistRDD"
SQL_EXECUTION_START = _SQL + "SparkListenerSQLExecutionStart"
SQL_EXECUTION_REPLANNED = _SQL + "SparkListenerSQLAdaptiveExecutionUpdate"
SQL_DRIVER_METRICS = _SQL + "SparkListenerDriverAccumUpdates"
SQL_EXECUTION_END = _SQL + "SparkListenerSQLExecutionEnd"
QUERY_STARTED = _STREAMING + "QueryStartedEvent"
QUERY_PROGRESS = _STREAMING + "QueryProgressEvent"
QUERY_IDLE = _STREAMING + "QueryIdleEvent"
QUERY_TERMINATED = _STREAMING + "QueryTerminatedEvent"

# Ours, posted to Spark's listener bus, so that event logs contain them, too.

APPLICATION_EXIT = "io.sparkevents.ApplicationExit"
"""A mark in an event log: how the application's driver ended."""
TABLE_TRANSITION = "io.sparkevents.ctas.TableTransition"
"""A transaction of ``spark_events.ctas`` has come to another state."""

# Ours, made by a source.

STAGE_TASKS = "SparkEventsStageTasks"
"""How a stage attempt's tasks stand."""
LATE_TASKS = "SparkEventsLateTasks"
"""What tasks have taken that end after their stage attempt, since the last record of it."""
ALL_RUNNING = "ALL_RUNNING_OR_FINISHED"
"""In a STAGE_TASKS: the status of an attempt all of whose tasks run or have finished."""
THROWN_BY_TASK: Final = "Thrown By Task"
"""In the last STAGE_TASKS of a failed attempt: what Spark's own record of the failure does not say, the
``Class`` that its task threw, or the executor that shuffle data could not be ``Fetched From``."""
LISTENER_QUEUES = "SparkEventsListenerQueues"
"""How many events each queue of Spark's listeners has dropped, how many wait, and how long listeners took."""
EXECUTOR_METRICS = "SparkEventsExecutorMetrics"
"""What executors have measured since the record before, by heartbeats and by the ends of tasks."""
EXECUTOR_SOURCES = "SparkEventsExecutorSources"
"""What Spark's metrics system has sent from the driver and the executors."""
TASK_REPORT = "SparkEventsTaskReport"
"""What the user's own code has reported from inside a task that succeeded."""
SPARK_STATUS = "SparkEventsStatus"
"""What Spark's status store and metrics system know of the driver, executors, stages and jobs."""
EXECUTOR_TASKS = "SparkEventsExecutorTasks"
"""What an executor was running when it was removed; comes right before its ExecutorRemoved."""
APPLICATION_DEAD = "SparkEventsApplicationDead"
"""An event log without an end is no longer written, and for which reason."""
RESTARTED: Final = "SparkEventsRestarted"
"""In an APPLICATION_DEAD: its cluster has begun another attempt of the application."""
APPLICATION_ALIVE = "SparkEventsApplicationAlive"
"""Such a log is written again after all."""
LOG_READ = "SparkEventsLogRead"
"""A log without an end was read to its last record: issues are told as they are now."""
NESTED_EXECUTION = "SparkEventsNestedExecution"
"""The event-log source's name of a SQLExecutionStart that is a part of another."""
FOUND_RUNNING: Final = "SparkEventsFoundRunning"
"""In a QueryStarted: the query ran already when the source began, so its first batch tells nothing."""
RESUMED_AFTER: Final = "SparkEventsResumedAfter"
"""In a QueryStarted: the last batch that earlier runs committed to its checkpoint, -1 if unknown."""
STOPPED: Final = "SparkEventsStopped"
"""In a QueryTerminated of a live driver: the program has stopped the query."""
QUERY_NOT_STARTED = "SparkEventsQueryNotStarted"
"""A streaming query's ``start`` has raised an exception, so that Spark knows of no query."""
PYTHON_CALL: Final = "SparkEventsPythonCall"
"""In a JobStart: where the driver's Python waited for the JVM, as ``file``, ``line`` and ``function``, and
when (``atMs``, in ms since the epoch). It is the job's action if the job ran on after that."""
QUERIES_ONLY: Final = "SparkEventsQueriesOnly"
"""In an ApplicationStart: only the streaming queries are this process's own, as with Spark Connect."""
INTERACTIVE: Final = "SparkEventsInteractive"
"""In an ApplicationStart of a live driver: whether somebody types the program, as in a notebook."""
ATTACHMENT: Final = "SparkEventsAttachment"
"""In an ApplicationStart: which attachment to the application this is, from 2 on."""
NOT_STARTED: Final = "SparkEventsNotStarted"
"""In an ApplicationStart: the SparkContext could not start, so the application never ran."""
ATTACHED: Final = "SparkEventsAttached"
"""And when it was made, in ms since the epoch."""
OUTCOME_ASSUMED: Final = "SparkEventsOutcomeAssumed"
"""In an ApplicationEnd: whether it is not known how the application ended, and what it says is a guess."""
SPARK_RUNS_ON: Final = "SparkEventsSparkRunsOn"
"""In an ApplicationEnd: whether Spark has not stopped yet, so that what runs may still come to its end."""
EXIT_SIGNAL: Final = "SparkEventsExitSignal"
"""In an ApplicationEnd: the name of the signal that ended the application's process."""
END_CAUSE: Final = "SparkEventsCause"
"""In an ApplicationEnd, from the driver bridge: who ended the application; see ``EndCause.java``."""
HEARTBEAT = "SparkEventsHeartbeat"
"""The application's driver lives: made by live sources alone, each ``spark.events.heartbeat.interval``."""
UPTIME = "SparkEventsUptime"
"""In a heartbeat: how long its source has lived, in ms, by a clock that nobody sets."""

CORE_EVENTS = (
    LOG_START,
    APPLICATION_START,
    APPLICATION_END,
    ENVIRONMENT_UPDATE,
    EXECUTOR_ADDED,
    RESOURCE_PROFILE_ADDED,
    EXECUTOR_REMOVED,
    JOB_START,
    JOB_END,
    STAGE_SUBMITTED,
    STAGE_COMPLETED,
    UNPERSIST_RDD,
)
"""What is taken of the records of the application itself, its executors, jobs and stages: from event logs
as they are, from the listener bus by a method of ``DriverBridge`` for each."""
OTHER_EVENTS = (
    QUERY_STARTED,
    QUERY_PROGRESS,
    QUERY_IDLE,
    QUERY_TERMINATED,
    SQL_EXECUTION_START,
    SQL_EXECUTION_REPLANNED,
    SQL_DRIVER_METRICS,
    SQL_EXECUTION_END,
    TABLE_TRANSITION,
    APPLICATION_EXIT,
)
"""What is taken from Spark's listener bus and from event logs besides: ``DriverBridge`` gets these names."""


def stage_attempt(info: Mapping[str, Any]) -> tuple[int, int]:
    """Return the stage, and the number of its attempt, of a ``Stage Info`` or a record about tasks."""
    return int(info[STAGE_ID]), int(info.get(STAGE_ATTEMPT_ID) or 0)


def total_cores(info: Mapping[str, Any]) -> int:
    """Return the cores of an ``Executor Info``.

    Raises:
        ValueError, TypeError: the value is no number of cores, which are an int of Java's.
    """
    cores = int(info.get("Total Cores") or 0)
    if not 0 <= cores < 2**31:
        raise ValueError(f"an executor cannot have {cores} cores")
    return cores


LATEST_MS = (2**63 - 1) // 1_000_000
"""The last time whose ns a signed 64-bit number holds: the year 2262."""


def parse_timestamp_ms(text: str) -> int:
    """Return a time like ``2026-11-21T04:38:42.694Z`` in ms since the epoch."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


class ImpossibleTime(ValueError):  # noqa: N818 - it says what is wrong with a record
    """A record has a time at which nothing can have happened."""


def record_time_ms(record: dict[str, Any]) -> int | None:
    """Return the time that a record itself gives for what happened; None if it gives none.

    Raises:
        ImpossibleTime: it is before 1970, or does not fit into nanoseconds (2262).
        ValueError, TypeError, KeyError: the value is not a time.
    """
    time_ms = _written_time_ms(record)
    if time_ms is not None and not 0 <= time_ms <= LATEST_MS:
        raise ImpossibleTime(f"a time of {time_ms} ms since the epoch is out of range")
    return time_ms


def _written_time_ms(record: dict[str, Any]) -> int | None:
    for key in (TIMESTAMP, SUBMISSION_TIME, COMPLETION_TIME, "timestamp", "time", "Time"):
        value = record.get(key)
        if isinstance(value, (int, float)):  # the latter where it is damaged: it has too many digits
            return int(value)
        if isinstance(value, str):
            return parse_timestamp_ms(value)
    progress = record.get("progress")
    if progress is not None:
        took_ms = (progress.get("durationMs") or {}).get("triggerExecution") or 0
        return parse_timestamp_ms(progress["timestamp"]) + int(took_ms)
    info = record.get(STAGE_INFO)
    if info is not None:
        name = COMPLETION_TIME if record.get("Event", "").endswith("Completed") else SUBMISSION_TIME
        time_ms: int | None = info.get(name) or info.get(SUBMISSION_TIME)
        return time_ms
    return None
