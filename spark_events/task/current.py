"""The report of the task, or of the ``foreachBatch`` function, that runs now; and wrong calls."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from spark_events.task.driver_link import driver_link
from spark_events.task.failed_tasks import report_failures
from spark_events.task.report import TaskReport, accumulators
from spark_events.task.traces import enter_trace
from spark_events.task.values import MOST_ATTRIBUTES, Value, attributes_of, number_of

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
    if _is_child_of_task:
        say_once("spark_events.task", _LOST)
        return None
    registry = accumulators()
    report = registry.get(link.accumulator)
    if isinstance(report, TaskReport):
        return report
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        say_once("spark_events.task", _LOST)
        return None
    report = registry[link.accumulator] = TaskReport(link, context)
    if link.port:
        report_failures()
    report.entered = enter_trace(report.place)
    return report


_LOST = (
    "what is reported outside of a task, or in a process that a task has started, is lost: "
    "return it to the task, and report it there"
)
_is_child_of_task = False


def _after_fork() -> None:
    """Have no report in a process that a task has forked, for nobody would take it there."""
    global _is_child_of_task
    with suppress(Exception):  # of PySpark's
        link = driver_link()
        if link is None:
            return
        from pyspark import TaskContext

        _is_child_of_task = TaskContext.get() is not None  # PySpark's daemon, which forks workers, has none
        report = accumulators().pop(link.accumulator, None)
        for metric in report.metrics.values() if isinstance(report, TaskReport) else ():
            metric.take()  # they go on counting by themselves


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_MOST_SAID = 100
_LOG = logging.getLogger("spark_events.task")
_said: set[str] = set()


def say_once(what: str, why: str) -> None:
    """Log a mistake, unless there was one of the same kind in this process.

    Args:
        what: its kind.
        why: a sentence.
    """
    if what in _said or len(_said) >= _MOST_SAID:
        return
    _said.add(what)
    with suppress(Exception):  # a handler or a filter may be the user's own
        _LOG.warning("%s: %s (said once)", what, why)


def drop_value(what: str, value: Any, why: str = "is not a finite number") -> None:
    """Count a value that cannot be reported, and say it once.

    Args:
        what: it was for.
        value: only its type is shown.
        why: it cannot.
    """
    if (report := current_report()) is not None:
        report.drop("values")
    say_once(what, f"what was given ({type(value).__name__}) {why}; it is dropped, and counted")


def attributes_for(what: str, given: dict[str, Any]) -> dict[str, Value]:
    """Return attributes that the driver can take; those beyond the limit are counted, and that is said once.

    Args:
        what: they are of.
        given: by the user's code.
    """
    beyond = len(given) - MOST_ATTRIBUTES
    if beyond > 0 and (report := current_report()) is not None:
        report.drop("values", beyond)
        say_once(f"{what} (attributes)", f"it has more than {MOST_ATTRIBUTES}; they are dropped, and counted")
    return attributes_of(given)


def leave_out(what: str, others: Sequence[Any]) -> None:
    """Say once that a call was given more than it takes.

    Args:
        what: is called.
        others: what is left out.
    """
    if others:
        say_once(f"{what} (arguments)", "it was given more values without a name than it takes; left out")


def finite_of(value: Any) -> float | None:
    """Return a finite number as Python's own, whichever library it is of; None if it is none."""
    try:
        number = number_of(value)
        if number is None and hasattr(type(value), "__float__"):  # Decimal, say, but no text
            number = float(value)
        return number if number is not None and math.isfinite(number) else None
    except Exception:  # a library may raise anything; an int may exceed a float's range
        return None
