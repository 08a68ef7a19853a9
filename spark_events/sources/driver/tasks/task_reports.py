"""Receives what ``spark_events.task`` reports: from tasks, failed ones included, and ``foreachBatch``."""

from __future__ import annotations

import secrets
import threading
import zipfile
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_events.api import Counter
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_records import TASK_REPORT
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import read_patterns
from spark_events.runtime.registry import Registry
from spark_events.sources.driver.tasks import failed_tasks
from spark_events.sources.driver.tasks.failed_tasks import FailedTaskReceiver
from spark_events.sources.driver.tasks.foreach_batches import ForeachBatches
from spark_events.sources.driver.tasks.udfs import UdfsOfAttachment
from spark_events.spark.temporary_folders import TemporaryFolder
from spark_events.task.driver_link import VARIABLE, DriverLink
from spark_events.task.failed_tasks import MOST_BYTES

Record = dict[str, Any]
_MOST_WAITING, _MOST_WAITING_BYTES = 20_000, 64 << 20
CAUSES = {"queue_full": "more came at once than are kept", **failed_tasks.CAUSES}
_LOOPBACK = "127.0.0.1"


class _IntoQueue:
    """The accumulator's parameter, which hands on what tasks add.

    It is called on a thread of PySpark's, which must neither wait nor see an exception.
    """

    def __init__(self, reports: TaskReports) -> None:
        self._reports = reports

    def zero(self, value: Any) -> Any:
        """Return what a worker that deserializes the accumulator begins with."""
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - PySpark's names
        """Take one task's report."""
        if isinstance(value2, dict):
            self._reports._take(value2)
        return None


class _Dropped(Counter):
    """Counts the reports that were dropped, of all causes."""

    def __init__(self, reports: TaskReports, unit: str, description: str) -> None:
        super().__init__(unit, description)
        self._reports = reports

    @property
    def of_queue(self) -> int:
        """Those that came when too many were waiting."""
        return self._count

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self._reports._dropped_by_cause().values())


class TaskReports:
    """What tasks have reported and nobody has fetched yet.

    Workers that start from now on know of it; those of queries and of jobs that run already do not.

    Args:
        spark_context: PySpark's SparkContext.
        registry: counts what nobody fetched in time.
        settings: say whether to send the package that tasks import to executors, and where to listen for
            reports of those that fail.
        link: to hand to workers, completed by the accumulator and by the place that reports go to.
        conf: of the SparkContext.
    """

    def __init__(
        self,
        spark_context: Any,
        registry: Registry,
        settings: ListenerSettings,
        link: DriverLink,
        conf: Mapping[str, str],
    ) -> None:
        self._environment = spark_context.environment
        self._waiting: deque[Record] = deque()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        self._closed = False
        self._receiver: FailedTaskReceiver | None = None
        name = {"app_name": str(spark_context.appName)}
        group = registry.driver.child("task_reports", ("task_reports",), name)
        described = "Reports of tasks that were dropped: too many came at once, or the receiver refused them."
        self._dropped = group.register("dropped", _Dropped(self, "{report}", described))
        registry.losses.watch("reports of tasks", group, self._dropped_by_cause, CAUSES)
        # PySpark's registry keeps it, also after the end: a task that ends late must find it.
        self._accumulator = spark_context.accumulator(None, _IntoQueue(self))
        if settings.ship_task_module:
            spark_context.addPyFile(_archive())
        secret_names, _, _ = read_patterns(conf)
        link = replace(link, accumulator=self._accumulator.aid, masked=secret_names.pattern)
        if settings.failed_task_reports:
            link = self._listen(link, settings.failed_task_ports or range(1), conf)
        self._environment[VARIABLE] = link.text()
        self._batches = ForeachBatches(link, self._take)
        self._batches.begin()
        self._udfs = UdfsOfAttachment()
        self._udfs.begin()

    def records(self) -> list[Record]:
        """Return a record for each task that has reported since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            self._waiting_bytes = 0
        return [{**report, "Event": TASK_REPORT} for report in waiting]

    def close(self) -> None:
        """Tell workers that are started from now on that nobody listens."""
        self._environment.pop(VARIABLE, None)
        with self._lock:  # PySpark's registry keeps this object
            self._closed = True
            self._waiting.clear()
        self._batches.end()
        self._udfs.end()
        if self._receiver is not None:
            self._receiver.close()

    def _listen(self, link: DriverLink, ports: range, conf: Mapping[str, str]) -> DriverLink:
        """Listen for reports of failed tasks, and return the link with the place where."""
        token = secrets.token_urlsafe(16)
        host = conf.get("spark.driver.host", _LOOPBACK).strip("[]")  # of an IPv6 address
        listened = (conf.get("spark.driver.bindAddress") or host).strip("[]")
        if conf.get("spark.master", "local").startswith("local"):
            host = listened = _LOOPBACK
        problem: OSError | None = None
        for port in ports:
            try:
                self._receiver = FailedTaskReceiver(listened, port, token, self._take)
            except OSError as error:
                problem = error
                continue
            return replace(link, host=host, port=self._receiver.port, token=token)
        logger.error(
            "cannot receive reports of failed tasks at %s: %s; set spark.events.task.failures.port to a port "
            "that is free, or spark.events.task.failures.enabled to false",
            listened,
            problem,
        )
        return link

    def _dropped_by_cause(self) -> dict[str, int]:
        of_receiver = self._receiver.dropped if self._receiver is not None else {}
        return {"queue_full": self._dropped.of_queue, **of_receiver}

    def _take(self, report: Record) -> None:
        with self._lock:
            if self._closed:
                return
            said = report.get("bytes")  # whoever has the token may say anything
            size = self._waiting_bytes + (said if type(said) is int and said >= 0 else MOST_BYTES)
            if len(self._waiting) < _MOST_WAITING and size <= _MOST_WAITING_BYTES:
                self._waiting.append(report)
                self._waiting_bytes = size
            else:
                self._dropped.inc()


def _archive() -> str:
    """Return the path of an archive with the package that tasks import, and the one that it is in.

    It stays until this process ends, for executors that start late: Spark's driver hands out this file.
    """
    archived = TemporaryFolder("task").path / "spark_events_task.zip"
    package = Path(__file__).parents[3]
    with zipfile.ZipFile(archived, "w") as archive:
        for path in (package / "__init__.py", *sorted((package / "task").glob("*.py"))):
            archive.write(path, f"spark_events/{path.relative_to(package)}")
    return str(archived)
