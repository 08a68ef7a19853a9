"""The names of our own events, for what reports them and for what reads them."""

from __future__ import annotations

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


def all_names() -> frozenset[str]:
    """Return all of them; an event of another name is one of the users' own code."""
    return frozenset(text for name, text in globals().items() if name.isupper())
