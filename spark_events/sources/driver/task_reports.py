"""Receives what ``spark_events.task`` reports from tasks: by an accumulator, with the results of tasks."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from spark_events.listeners.spark_records import TASK_REPORT
from spark_events.task import VARIABLE

Record = dict[str, Any]
_MOST_WAITING = 20_000


class _IntoQueue:
    """The accumulator's parameter, which hands on what tasks add.

    It is called on a thread of PySpark's, which must neither wait nor see an exception.
    """

    def __init__(self, reports: TaskReports) -> None:
        self._reports = reports

    def zero(self, value: Any) -> Any:
        """Return what a worker that deserialises the accumulator begins with."""
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - PySpark's names
        """Take one task's report."""
        if isinstance(value2, dict):
            self._reports._take(value2)
        return None


class TaskReports:
    """What tasks have reported and nobody has fetched yet.

    Workers that start from now on know of it; those of queries and of jobs that run already do not.

    Args:
        spark_context: PySpark's SparkContext.

    Attributes:
        dropped: how many reports were too many.
    """

    def __init__(self, spark_context: Any) -> None:
        self._environment = spark_context.environment
        self._waiting: deque[Record] = deque()
        self._lock = threading.Lock()
        self.dropped = 0
        # PySpark's registry keeps it, also after the end: a task that ends late must find it.
        self._accumulator = spark_context.accumulator(None, _IntoQueue(self))
        self._environment[VARIABLE] = str(self._accumulator.aid)

    def records(self) -> list[Record]:
        """Return a record for each task that has reported since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        return [{"Event": TASK_REPORT, **report} for report in waiting]

    def close(self) -> None:
        """Tell workers that are started from now on that nobody listens."""
        self._environment.pop(VARIABLE, None)

    def _take(self, report: Record) -> None:
        with self._lock:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(report)
            else:
                self.dropped += 1
