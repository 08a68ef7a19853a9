"""Metrics, events and spans of your own Python code in Spark's tasks: ``from spark_events import task``.

They work in RDD functions, UDFs of all kinds, ``mapInPandas``, ``applyInPandas``, UDTFs and ``foreach``, in
batch and in streaming. Outside a task, and where nothing is attached, they do nothing.

What a task reports travels with its result, by PySpark's accumulators: no port, no thread, and each task
counts once, however often it was tried. Only the report of a task that fails takes a connection of its own.
This package needs nothing but Python's standard library.
"""

from __future__ import annotations

from spark_events.task.events import EventHandler, TraceContextFilter, event
from spark_events.task.instruments import (
    Metrics,
    TaskCounter,
    TaskGauge,
    TaskHistogram,
    TaskMetric,
    metrics,
)
from spark_events.task.measured_functions import measured
from spark_events.task.spans import TaskSpan, span, traceparent

counter, gauge, histogram = metrics.counter, metrics.gauge, metrics.histogram

__all__ = [
    "EventHandler",
    "Metrics",
    "TaskCounter",
    "TaskGauge",
    "TaskHistogram",
    "TaskMetric",
    "TaskSpan",
    "TraceContextFilter",
    "counter",
    "event",
    "gauge",
    "histogram",
    "measured",
    "metrics",
    "span",
    "traceparent",
]
