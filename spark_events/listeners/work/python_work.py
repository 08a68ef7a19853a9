"""What Python functions cost, by Spark's own metrics of Python workers (SPARK-34265, SPARK-50499)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_events.api import Counter, MetricGroup
from spark_events.diagnosis.earlier_runs.grown_metrics import GrownMetrics
from spark_events.listeners.context import ListenerContext

_METRICS = {
    "time to start Python workers": ("pythonBootTime", "ms", "Time to start Python workers."),
    "time to initialize Python workers": ("pythonInitTime", "ms", "Time to initialize Python workers."),
    "time to run Python workers": ("pythonTotalTime", "ms", "Time that tasks spent in Python workers."),
    "time to execute Python code": ("pythonProcessingTime", "ms", "Time in Python functions alone."),
    "data sent to Python workers": ("pythonDataSent", "By", "Data that Python workers got."),
    "data returned from Python workers": ("pythonDataReceived", "By", "Data that Python workers returned."),
}
"""By Spark's name of the SQL metric: ours, its unit, and a description."""


class PythonWork:
    """Adds up the metrics of Python workers for the application, and for each query that has some."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._of_application = _registered(context.scopes.application())
        self._of_queries: dict[str, tuple[MetricGroup, dict[str, Counter]]] = {}
        self._grown = GrownMetrics(_METRICS)

    def stage_completed(self, info: Mapping[str, Any], of_query: Mapping[str, str]) -> None:
        """Called with a stage that has ended, and the variables of the query that it belongs to."""
        for spark_name, amount in self._grown.of_stage(info):
            name, _, _ = _METRICS[spark_name]
            self._of_application[name].inc(amount)
            if "query_name" in of_query:
                self._of_query(of_query["query_name"])[name].inc(amount)

    def _of_query(self, name: str) -> dict[str, Counter]:
        # The series of a query that has ended are closed, and it may come back.
        group = self._context.scopes.query(name)
        if name not in self._of_queries or self._of_queries[name][0] is not group:
            self._of_queries[name] = group, _registered(group)
        return self._of_queries[name][1]


def _registered(group: MetricGroup) -> dict[str, Counter]:
    return {
        name: group.register(name, Counter(unit, description))
        for name, unit, description in _METRICS.values()
    }
