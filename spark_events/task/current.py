"""The report of the task, or of the ``foreachBatch`` function, that runs now."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from spark_events.task.driver_link import driver_link
from spark_events.task.failed_tasks import report_failures
from spark_events.task.report import TaskReport, accumulators
from spark_events.task.trace_context import enter_trace

in_batch: ContextVar[Callable[[], TaskReport | None] | None] = ContextVar("in_batch", default=None)
"""In the driver, returns the report of the ``foreachBatch`` function that runs in this thread."""


def current_report() -> TaskReport | None:
    """Return the report of the task that runs now; None outside a task, or if nothing is attached.

    It never raises: what calls it stands in the user's code.
    """
    try:
        return _current_report()
    except Exception:  # of PySpark's, or of what somebody has put into the environment
        return None


def _current_report() -> TaskReport | None:
    link = driver_link()
    if link is None:
        of_batch = in_batch.get()
        return of_batch() if of_batch else None
    registry = accumulators()
    report = registry.get(link.accumulator)
    if isinstance(report, TaskReport):
        return report
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return None
    report = registry[link.accumulator] = TaskReport(link, context)
    if link.port:
        report_failures()
    report.entered = enter_trace(report.place)
    return report
