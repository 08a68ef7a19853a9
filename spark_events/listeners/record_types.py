"""The fields of records that the listeners read: Spark's, as its ``JsonProtocol`` writes them, and ours.

Each may be missing: versions of Spark differ, and a log can be damaged. The tests hold stored
logs against it.
"""

from __future__ import annotations

from typing import Any, TypedDict

Properties = dict[str, str]

# -- Spark's --------------------------------------------------------------------------------------------

ApplicationStart = TypedDict(
    "ApplicationStart",
    {
        "App Name": str,
        "App ID": str,
        "App Attempt ID": str,
        "Timestamp": int,
        "SparkEventsInteractive": bool,
        "SparkEventsQueriesOnly": bool,
    },
    total=False,
)


class ApplicationEnd(TypedDict, total=False):
    """``SparkListenerApplicationEnd``; what begins with ``SparkEvents`` is a source's."""

    Timestamp: int
    ExitCode: int | None
    Exception: str | None
    SparkEventsOutcomeAssumed: bool
    SparkEventsExitSignal: str | None
    SparkEventsCause: str


EnvironmentUpdate = TypedDict(
    "EnvironmentUpdate", {"Spark Properties": Properties, "Hadoop Properties": Properties}, total=False
)
ExecutorInfo = TypedDict(
    "ExecutorInfo", {"Host": str, "Total Cores": int, "Resource Profile Id": int}, total=False
)
ExecutorAdded = TypedDict(
    "ExecutorAdded", {"Timestamp": int, "Executor ID": str, "Executor Info": ExecutorInfo}, total=False
)
ExecutorRemoved = TypedDict(
    "ExecutorRemoved", {"Timestamp": int, "Executor ID": str, "Removed Reason": str}, total=False
)
ResourceProfileAdded = TypedDict(
    "ResourceProfileAdded",
    {"Resource Profile Id": int, "Executor Resource Requests": dict[str, dict[str, Any]]},
    total=False,
)
StageInfo = TypedDict(
    "StageInfo",
    {
        "Stage ID": int,
        "Stage Attempt ID": int,
        "Stage Name": str,
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
StageSubmitted = TypedDict("StageSubmitted", {"Stage Info": StageInfo, "Properties": Properties}, total=False)
StageCompleted = TypedDict("StageCompleted", {"Stage Info": StageInfo}, total=False)


class PythonCall(TypedDict, total=False):
    """In a JobStart; see ``spark_records.PYTHON_CALL``."""

    file: str
    line: int
    function: str
    atMs: int


JobStart = TypedDict(
    "JobStart",
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


JobEnd = TypedDict("JobEnd", {"Job ID": int, "Completion Time": int, "Job Result": JobResult}, total=False)
SQLExecutionStart = TypedDict(
    "SQLExecutionStart",
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
SQLExecutionEnd = TypedDict(
    "SQLExecutionEnd",
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


class QueryStarted(TypedDict, total=False):
    """``StreamingQueryListener.QueryStartedEvent``; what is below ``timestamp`` is a source's."""

    id: str
    runId: str
    name: str | None
    timestamp: str
    triggerIntervalMs: int
    checkpointLocation: str | None
    bounded: bool
    SparkEventsFoundRunning: bool
    SparkEventsResumedAfter: int


class Progress(TypedDict, total=False):
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


class QueryProgress(TypedDict, total=False):
    """``StreamingQueryListener.QueryProgressEvent``."""

    progress: Progress


class QueryIdle(TypedDict, total=False):
    """``StreamingQueryListener.QueryIdleEvent``."""

    id: str
    runId: str
    timestamp: str


class QueryTerminated(TypedDict, total=False):
    """``StreamingQueryListener.QueryTerminatedEvent``."""

    id: str
    runId: str
    exception: str | None
    errorClassOnException: str | None


# -- Ours; see ``spark_records`` --------------------------------------------------------------------------


class QueryNotStarted(TypedDict, total=False):
    """A query whose ``start`` raised an exception."""

    id: str
    runId: str
    name: str | None
    checkpointLocation: str | None
    bounded: bool
    SparkEventsFoundRunning: bool
    SparkEventsResumedAfter: int
    exception: str
    errorClass: str | None
    place: tuple[str, int, str]


class TableTransition(TypedDict, total=False):
    """A step of a transaction of ``spark_events.ctas``."""

    transaction: dict[str, Any]


class ApplicationDead(TypedDict, total=False):
    """See ``spark_records.APPLICATION_DEAD``."""

    Reason: str
    SparkEventsRestarted: bool
    SparkEventsOutcomeAssumed: bool


StageTasks = TypedDict(
    "StageTasks",
    {
        "Stage ID": int,
        "Stage Attempt ID": int,
        "Number of Tasks": int,
        "Change": int,
        "Running": int,
        "Finished": int,
        "Failed": int,
        "Status": str | None,
        "Thrown By Task": dict[str, str] | None,
        "Task Statistics": dict[str, Any],
        "Lagging Task": dict[str, Any],
    },
    total=False,
)
ExecutorMetrics = TypedDict(
    "ExecutorMetrics",
    {"Heartbeats": dict[str, dict[str, int]], "Task Peaks": dict[str, dict[str, int]]},
    total=False,
)


class ExecutorSources(TypedDict, total=False):
    """See ``spark_records.EXECUTOR_SOURCES``."""

    Executors: dict[str, dict[str, Any]]


ExecutorTasks = TypedDict(
    "ExecutorTasks",
    {"Executor ID": str, "Running Tasks": int, "Stage IDs": list[int], "Shuffle Bytes Written": int},
    total=False,
)


class SparkStatus(TypedDict, total=False):
    """See ``spark_records.SPARK_STATUS``."""

    Driver: dict[str, Any]
    Executors: dict[str, dict[str, Any]]
    Stages: list[dict[str, Any]]
    Jobs: list[dict[str, Any]]
