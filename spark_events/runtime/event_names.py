"""The names of our own events, for what reports them and for what reads them."""

from __future__ import annotations

import functools

from spark_events.runtime.log_once import logger

JOB_STATUS_CHANGE = "JobStatusChangeEvent"
JOB_FAILURE = "JobFailureEvent"
CHECKPOINT = "CheckpointEvent"
ALL_SUBTASKS_STATUS_CHANGE = "AllSubtasksStatusChangeEvent"
CHECKPOINT_OVERDUE = "CheckpointOverdueEvent"
BATCH_WILL_MISS_SLA = "BatchWillMissSlaEvent"
SOURCE_IDLE = "SourceIdleEvent"
TABLE_TRANSACTION = "TableTransactionEvent"
EXECUTOR_LOST = "ExecutorLostEvent"
PERFORMANCE_ISSUE = "PerformanceIssueEvent"
TASK_COUNTER = "TaskCounterEvent"
HEARTBEAT = "HeartbeatEvent"
RECORDS_DROPPED = "RecordsDroppedEvent"


@functools.cache
def all_names() -> frozenset[str]:
    """Return all of them; an event of another name is one of the users' own code."""
    return frozenset(text for name, text in globals().items() if name.isupper())


def of_users(name: str) -> str:
    """Return the name under which an event of the users' own code is reported: it is none of ours.

    Reports, alerts and dashboards conclude from the names of ours that something has failed, say.
    """
    return _exported(name) if name in all_names() else name


@functools.cache  # says it once for each name
def _exported(name: str) -> str:
    logger.warning(
        "event %r of your own is reported as 'exported_%s': spark-events has events of that name", name, name
    )
    return f"exported_{name}"
