"""Receives what ``spark_events.task`` reports from tasks: by an accumulator, with the results of tasks."""

from __future__ import annotations

import tempfile
import threading
import zipfile
from collections import deque
from pathlib import Path
from typing import Any

import spark_events
from spark_events.api import Counter
from spark_events.listeners.spark_records import TASK_REPORT
from spark_events.runtime.registry import Registry
from spark_events.task import VARIABLE

Record = dict[str, Any]
_MOST_WAITING = 20_000
CAUSES = {"queue_full": "more came at once than are kept"}


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
        registry: counts what nobody fetched in time.
        ship: whether to send the module that tasks import to executors.
    """

    def __init__(self, spark_context: Any, registry: Registry, ship: bool) -> None:
        self._environment = spark_context.environment
        self._waiting: deque[Record] = deque()
        self._lock = threading.Lock()
        name = {"app_name": str(spark_context.appName)}
        group = registry.driver.child("task_reports", ("task_reports",), name)
        described = "Reports of tasks that were dropped, because too many came at once."
        self._dropped = group.register("dropped", Counter("{report}", described))
        registry.losses.watch("reports of tasks", group, self._dropped_by_cause, CAUSES)
        # PySpark's registry keeps it, also after the end: a task that ends late must find it.
        self._accumulator = spark_context.accumulator(None, _IntoQueue(self))
        if ship:
            spark_context.addPyFile(_archive())
        self._environment[VARIABLE] = str(self._accumulator.aid)

    def records(self) -> list[Record]:
        """Return a record for each task that has reported since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        return [{"Event": TASK_REPORT, **report} for report in waiting]

    def close(self) -> None:
        """Tell workers that are started from now on that nobody listens."""
        self._environment.pop(VARIABLE, None)

    def _dropped_by_cause(self) -> dict[str, int]:
        return {"queue_full": self._dropped.count}

    def _take(self, report: Record) -> None:
        with self._lock:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(report)
            else:
                self._dropped.inc()


def _archive() -> str:
    """Return the path of an archive with the module alone, and the package that it is in."""
    path = Path(tempfile.mkdtemp(prefix="spark-events-")) / "spark_events_task.zip"
    package = Path(spark_events.__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("__init__.py", "task/__init__.py"):
            archive.write(package / name, f"spark_events/{name}")
    return str(path)
