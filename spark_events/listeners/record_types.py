"""The fields of records that the listeners read: Spark's, as its ``JsonProtocol`` writes them, and ours.

Each may be missing: versions of Spark differ, and a log can be damaged. The tests hold stored
logs against it.
"""

from __future__ import annotations

from typing import Any, TypedDict

Properties = dict[str, str]

# -- Spark's --------------------------------------------------------------------------------------------

ApplicationStartRecord = TypedDict(
    "ApplicationStartRecord",
    {
        "App Name": str,
        "App ID": str,
        "App Attempt ID": str,
        "Timestamp": int,
        "SparkEventsInteractive": bool,
        "SparkEventsQueriesOnly": bool,
        "SparkEventsAttachment": int,
        "SparkEventsAttached": int,
    },
    total=False,
)


class ApplicationEndRecord(TypedDict, total=False):
    """``SparkListenerApplicationEnd``; what begins with ``SparkEvents`` is a source's."""

    Timestamp: int
    ExitCode: int | None
    Exception: str | None
    SparkEventsOutcomeAssumed: bool
    SparkEventsSparkRunsOn: bool
    SparkEventsExitSignal: str | None
    SparkEventsCause: str


EnvironmentUpdateRecord = TypedDict(
    "EnvironmentUpdateRecord", {"Spark Properties": Properties, "Hadoop Properties": Properties}, total=False
)
ExecutorInfo = TypedDict(
    "ExecutorInfo", {"Host": str, "Total Cores": int, "Resource Profile Id": int}, total=False
)
ExecutorAddedRecord = TypedDict(
    "ExecutorAddedRecord", {"Timestamp": int, "Executor ID": str, "Executor Info": ExecutorInfo}, total=False
)
ExecutorRemovedRecord = TypedDict(
    "ExecutorRemovedRecord", {"Timestamp": int, "Executor ID": str, "Removed Reason": str}, total=False
)
ResourceProfileAddedRecord = TypedDict(
    "ResourceProfileAddedRecord",
    {"Resource Profile Id": int, "Executor Resource Requests": dict[str, dict[str, Any]]},
    total=False,
)
StageInfo = TypedDict(
    "StageInfo",
    {
        "Stage ID": int,
        "Stage Attempt ID": int,
        "Stage Name": str,
        "Details": str,
        "Number of Tasks": int,
        "Parent IDs": list[int],
        "RDD Info": list[dict[str, Any]],
        "Submission Time": int,
        "Completion Time": int,
        "Failure Reason": str,
        "Accumulables": list[dict[str, Any]],
    },
    total=False,
)
StageSubmittedRecord = TypedDict(
    "StageSubmittedRecord", {"Stage Info": StageInfo, "Properties": Properties}, total=False
)
StageCompletedRecord = TypedDict("StageCompletedRecord", {"Stage Info": StageInfo}, total=False)
UnpersistRDDRecord = TypedDict("UnpersistRDDRecord", {"RDD ID": int}, total=False)


class PythonCall(TypedDict, total=False):
    """In a JobStart; see ``spark_records.PYTHON_CALL``."""

    file: str
    line: int
    function: str
    atMs: int


JobStartRecord = TypedDict(
    "JobStartRecord",
    {
        "Job ID": int,
        "Submission Time": int,
        "Stage Infos": list[StageInfo],
        "Stage IDs": list[int],
        "Properties": Properties,
        "SparkEventsPythonCall": PythonCall,
    },
    total=False,
)


class JobResult(TypedDict, total=False):
    """How a job ended."""

    Result: str
    Exception: dict[str, Any]


JobEndRecord = TypedDict(
    "JobEndRecord", {"Job ID": int, "Completion Time": int, "Job Result": JobResult}, total=False
)
SQLExecutionStartRecord = TypedDict(
    "SQLExecutionStartRecord",
    {
        "executionId": int,
        "rootExecutionId": int | None,
        "description": str,
        "sparkPlanInfo": dict[str, Any],
        "time": int,
        "Plan Shape": str,
    },
    total=False,
)
SQLExecutionEndRecord = TypedDict(
    "SQLExecutionEndRecord",
    {
        "executionId": int,
        "time": int,
        "errorMessage": str | None,
        "Plans": list[Any],
        "Driver Metrics": dict[Any, Any],
        "Files": dict[str, Any],
        "Parts Time": int,
    },
    total=False,
)


class QueryStartedRecord(TypedDict, total=False):
    """``StreamingQueryListener.QueryStartedEvent``; what is below ``timestamp`` is a source's."""

    id: str
    runId: str
    name: str | None
    timestamp: str
    triggerIntervalMs: int
    checkpointLocation: str | None
    bounded: bool
    continuous: bool
    SparkEventsFoundRunning: bool
    SparkEventsResumedAfter: int


class StreamingQueryProgress(TypedDict, total=False):
    """``StreamingQueryProgress``."""

    id: str
    runId: str
    name: str | None
    timestamp: str
    batchId: int
    durationMs: dict[str, int]
    eventTime: dict[str, str]
    stateOperators: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    sink: dict[str, Any]


class QueryProgressRecord(TypedDict, total=False):
    """``StreamingQueryListener.QueryProgressEvent``."""

    progress: StreamingQueryProgress


class QueryIdleRecord(TypedDict, total=False):
    """``StreamingQueryListener.QueryIdleEvent``."""

    id: str
    runId: str
    timestamp: str


class QueryTerminatedRecord(TypedDict, total=False):
    """``StreamingQueryListener.QueryTerminatedEvent``."""

    id: str
    runId: str
    exception: str | None
    errorClassOnException: str | None
    SparkEventsStopped: bool


# -- Ours; see ``spark_records`` --------------------------------------------------------------------------


class QueryNotStartedRecord(TypedDict, total=False):
    """A query whose ``start`` raised an exception."""

    id: str
    runId: str
    name: str | None
    triggerIntervalMs: int
    checkpointLocation: str | None
    bounded: bool
    continuous: bool
    SparkEventsFoundRunning: bool
    SparkEventsResumedAfter: int
    exception: str
    errorClass: str | None
    place: tuple[str, int, str]


class TableTransitionRecord(TypedDict, total=False):
    """A step of a transaction of ``spark_events.ctas``."""

    transaction: dict[str, Any]


class ApplicationDeadRecord(TypedDict, total=False):
    """See ``spark_records.APPLICATION_DEAD``."""

    Reason: str
    SparkEventsRestarted: bool
    SparkEventsOutcomeAssumed: bool


StageTasksRecord = TypedDict(
    "StageTasksRecord",
    {
        "Stage ID": int,
        "Stage Attempt ID": int,
        "Number of Tasks": int,
        "Change": int,
        "Running": int,
        "Finished": int,
        "Failed": int,
        "First Launch Time": int,
        "Status": str | None,
        "Thrown By Task": dict[str, str | None] | None,
        "Task Statistics": dict[str, Any],
        "Lagging Task": dict[str, Any],
    },
    total=False,
)
LateTasksRecord = TypedDict(
    "LateTasksRecord",
    {
        "Stage ID": int,
        "Stage Attempt ID": int,
        "Finished": int,
        "Failed": int,
        "Task Statistics": dict[str, Any],
    },
    total=False,
)
ExecutorMetricsRecord = TypedDict(
    "ExecutorMetricsRecord",
    {"Heartbeats": dict[str, dict[str, int]], "Task Peaks": dict[str, dict[str, int]]},
    total=False,
)


class ExecutorSourcesRecord(TypedDict, total=False):
    """See ``spark_records.EXECUTOR_SOURCES``."""

    Executors: dict[str, dict[str, Any]]


ExecutorTasksRecord = TypedDict(
    "ExecutorTasksRecord",
    {"Executor ID": str, "Running Tasks": int, "Stage IDs": list[int], "Shuffle Bytes Written": int},
    total=False,
)


class LogReadRecord(TypedDict, total=False):
    """See ``spark_records.LOG_READ``."""


class ListenerQueuesRecord(TypedDict, total=False):
    """See ``spark_records.LISTENER_QUEUES``; times in ms, by the classes of listeners."""

    Dropped: dict[str, int]
    Waiting: dict[str, int]
    Listeners: dict[str, int]


class SparkStatusRecord(TypedDict, total=False):
    """See ``spark_records.SPARK_STATUS``."""

    Driver: dict[str, Any]
    Executors: dict[str, dict[str, Any]]
    Stages: list[dict[str, Any]]
    Jobs: list[dict[str, Any]]
