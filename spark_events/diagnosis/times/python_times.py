"""How long the tasks of each stage waited for Python, by Spark's SQL metrics (SPARK-34265, SPARK-50499)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.diagnosis.earlier_runs.grown_metrics import GrownMetrics
from spark_events.diagnosis.measured import NO_PYTHON, PythonTimes, TasksMeasured

_ALL = "time to run Python workers"
_START, _INITIALIZE = "time to start Python workers", "time to initialize Python workers"
_FUNCTIONS = "time to execute Python code"
"""All of them in ms. The first is all that a task spends with its worker, so it has the others in it; but
where another task has used the worker before, "time to initialize" is how long it waited for this task."""
_LONGEST_INITIALIZATION = 2
_PYTHON_RDD = "PythonRDD"


class StagesInPython:
    """Tells of each stage of one application how long its tasks waited for Python."""

    def __init__(self) -> None:
        self._grown = GrownMetrics(frozenset((_ALL, _START, _INITIALIZE, _FUNCTIONS)))

    def of_stage(self, info: Mapping[str, Any], measured: TasksMeasured | None) -> PythonTimes:
        """Return that of a stage that has ended; it has to be asked for each stage, in their order.

        Args:
            info: the ``Stage Info`` of its StageCompleted.
            measured: what its tasks measured; None if unknown.
        """
        grown = dict.fromkeys((_ALL, _START, _INITIALIZE, _FUNCTIONS), 0)
        for name, grown_ms in self._grown.of_stage(info):
            grown[name] += grown_ms
        if measured is None:
            return NO_PYTHON
        if grown[_ALL]:
            return _of_metrics(grown, measured)
        return _of_rdd(measured) if _is_of_rdd(info) else NO_PYTHON


def python_with_late_tasks(
    info: Mapping[str, Any], measured: TasksMeasured, known: PythonTimes
) -> PythonTimes:
    """Return that of a stage of which tasks have ended after it.

    Args:
        info: the ``Stage Info`` of its StageCompleted.
        measured: what its tasks measured, those among them.
        known: what was known of it at its end. SQL metrics say nothing of what ends later.
    """
    return _of_rdd(measured) if _is_of_rdd(info) else known


def _of_metrics(grown: Mapping[str, int], measured: TasksMeasured) -> PythonTimes:
    all_ms = min(grown[_ALL], measured.run.total)
    if grown[_FUNCTIONS]:
        run_ms = min(grown[_FUNCTIONS], all_ms)
        return PythonTimes(run_ms, all_ms - run_ms)
    # Before Spark 4.2, nobody knows which of it new workers took: some times of what they took to start.
    initialize_ms = min(grown[_INITIALIZE], _LONGEST_INITIALIZATION * grown[_START])
    start_ms = min(all_ms, grown[_START] + initialize_ms)
    return PythonTimes(all_ms - start_ms, start_ms)


def _is_of_rdd(info: Mapping[str, Any]) -> bool:
    return any(rdd.get("Name") == _PYTHON_RDD for rdd in info.get("RDD Info") or ())


def _of_rdd(measured: TasksMeasured) -> PythonTimes:
    spreads = measured.spreads
    besides_ms = spreads["JVM GC Time"].total + spreads["Fetch Wait Time"].total
    return PythonTimes(max(0, measured.run.total - besides_ms), 0, True)
