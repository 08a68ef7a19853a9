"""Which executors have run tasks before: the first ones wait for what all of them need."""

from __future__ import annotations

from spark_events.diagnosis.measured import TasksMeasured

_MOST_EXECUTORS = 10_000
_WORKERS_KEPT_MS = 60_000
"""As ``PythonWorkerFactory`` has it."""


class WarmExecutors:
    """When each executor last ended a stage, and one in Python."""

    def __init__(self) -> None:
        self._ended_ms: dict[str, int] = {}
        self._ended_python_ms: dict[str, int] = {}

    def take(self, measured: TasksMeasured, in_python: bool) -> bool:
        """Return whether the first tasks of a stage that has ended had to wait for what all of them need.

        Args:
            measured: what it measured.
            in_python: whether it ran functions of an RDD, for which Python workers start: the first time,
                and after the minute for which Spark keeps workers that do nothing.
        """
        executors = {run.executor for run in measured.longest_runs}
        cold = any(executor not in self._ended_ms for executor in executors)
        for executor in executors if in_python else ():
            idle_ms = measured.first_ms - self._ended_python_ms.get(executor, -_WORKERS_KEPT_MS)
            cold = cold or idle_ms >= _WORKERS_KEPT_MS
        for ended_ms in (self._ended_ms, self._ended_python_ms) if in_python else (self._ended_ms,):
            for executor in executors:
                if executor in ended_ms or len(ended_ms) < _MOST_EXECUTORS:
                    ended_ms[executor] = measured.last_ms
        return cold
