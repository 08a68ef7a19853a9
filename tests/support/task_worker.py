"""A worker of Spark's that gets one task after the other."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from spark_events.task import current
from spark_events.task.driver_link import VARIABLE, DriverLink
from tests.support.task_context import TaskContextOfOneTask


class Worker:
    """A worker that gets one task after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pyspark = pytest.importorskip("pyspark")
        self._registry: dict[int, Any] = {}
        link = DriverLink(
            5, ("app-1", ""), "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", sampled=True
        )
        monkeypatch.setenv(VARIABLE, link.text())
        monkeypatch.setattr(current, "accumulators", lambda: self._registry)
        monkeypatch.setattr(pyspark.TaskContext, "get", lambda: TaskContextOfOneTask())

    def deliver(self) -> dict[str, Any]:
        """Return what PySpark would send; the worker then waits."""
        return pickle.loads(pickle.dumps(self._registry[5]._value))  # type: ignore[no-any-return]

    def begin_task(self) -> None:
        """Let another task begin."""
        self._registry.clear()

    def end_task(self) -> dict[str, Any]:
        """Return what PySpark would send, and begin another task."""
        sent = self.deliver()
        self.begin_task()
        return sent
