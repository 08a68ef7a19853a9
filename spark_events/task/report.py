"""What one task has reported so far, and how it gets to the driver."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any, Protocol

from spark_events.task.driver_link import DriverLink
from spark_events.task.local_properties import BATCH_ID, EXECUTION, JOB_GROUP
from spark_events.task.open_spans import OpenSpans
from spark_events.task.traces import TracePlace, digest, is_sampled, leave_trace, new_span_id
from spark_events.task.values import error_of

MOST_SERIES = 500
MOST_EVENTS = 100
MOST_SPANS = 200
_OF_EACH_NAME = 10
"""So many has each name, even if others have used up all that there are; in all, at most as many again."""
MOST_TASK_SPANS = 200
"""How many partitions of a stage have spans, the first ones."""
_PROPERTIES = (JOB_GROUP, BATCH_ID, EXECUTION)

Key = tuple[str, str, tuple[tuple[str, str], ...]]


class Measured(Protocol):
    """A metric that has a value in this task."""

    def begin_or_add(self, first: Any) -> None:
        """Begin with a value, or add it to the one that there is."""

    def take(self) -> Any:
        """Return the value, and have none any more."""


class TaskReport:
    """What one task has reported so far; it stands in PySpark's registry in the place of an accumulator.

    Attributes:
        link: to the driver.
        ids: of the task: its stage, partition, number of the attempt, attempt of all, and local properties.
        metrics: those that have a value, by kind, name and labels.
        events: those of this task.
        spans: those of this task, open ones included.
        open: which of them are open.
        span_id: of the task's own span; empty if it has none, or only if it fails.
        begun_ns: when the task first reported something, in ns since the epoch.
        dropped: how much was too much, by kind.
        crowding: of the kinds that were at their limit, the name that most had by then; empty if that
            were few.
        delivered: whether the task has succeeded; a worker keeps its report until another task begins.
        entered: the token of OpenTelemetry's context that the task is in; None if there is none.
        in_driver: whether it is not of a task, but of a ``foreachBatch`` function, one of several threads.
    """

    def __init__(self, link: DriverLink, context: Any, in_driver: bool = False) -> None:
        self.link = link
        self.in_driver = in_driver
        self.begun_ns = time.time_ns()
        self._stage = int(context.stageId())
        self._properties = {key: context.getLocalProperty(key) for key in _PROPERTIES}
        self.ids = {
            "stage": self._stage,
            "partition": context.partitionId(),
            "attempt": context.attemptNumber(),
            "task": context.taskAttemptId(),
            "properties": self._properties,
        }
        self.delivered = False
        self.entered: Any = None
        first = self.ids["partition"] < MOST_TASK_SPANS
        self.span_id = new_span_id() if link.task_spans and link.trace_id and first else ""
        self.metrics: dict[Key, Measured] = {}
        self.events: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        # PySpark runs tasks in a worker's main thread, but what first reports something may be another one.
        own_thread = threading.current_thread() if in_driver else threading.main_thread()
        self.open = OpenSpans(own_thread.ident)
        self.dropped: dict[str, int] = {}
        self.crowding: dict[str, str] = {}
        self._of_names: dict[str, dict[str, int]] = {}

    @property
    def _value(self) -> dict[str, Any] | None:
        """Read by PySpark at the end of a task that has succeeded, before the worker gets another."""
        try:
            return self._delivered()
        except Exception:  # the task has succeeded: it shall not fail of what it has reported
            return None

    def _delivered(self) -> dict[str, Any] | None:
        self.delivered = True
        if self.entered is not None:
            leave_trace(self.entered)
        if not (self.span_id or self.metrics or self.events or self.spans or self.dropped):
            return None
        values = self.values()
        cut_to_fit(values)
        return values

    def values(self, failed_by: BaseException | None = None) -> dict[str, Any]:
        """Return all of it in plain values, and take the metrics'.

        Args:
            failed_by: why the task has failed, which ends its open spans; None leaves those out.
        """
        now_ns = time.time_ns()
        if failed_by is not None:
            for span in list(self.spans):
                if "end_ns" not in span:
                    span |= {"end_ns": now_ns, "error": error_of(failed_by)}
        return {
            **self.ids,
            "metrics": self._values_of_metrics(),
            "events": self.events,
            "spans": [span for span in self.spans if "end_ns" in span],
            "dropped": self.dropped,
            "crowding": self.crowding,
            "span": (self.span_id, self.begun_ns, now_ns) if self.span_id else None,
        }

    def _values_of_metrics(self) -> list[tuple[Any, ...]]:
        values = [(*key, metric.take()) for key, metric in list(self.metrics.items())]
        for value in values:
            if value[-1] is None:
                self.drop("values")
        return [value for value in values if value[-1] is not None]

    def has_room(self, kind: str, name: str, number: int, most: int) -> bool:
        """Return whether there is room for one more, and count it, or count that it is dropped.

        Args:
            kind: as in ``dropped``.
            name: its name.
            number: how many there are, of all names.
            most: how many there may be.
        """
        of_names = self._of_names.setdefault(kind, {})
        of_name = of_names.get(name, 0)
        if number < most or (of_name < _OF_EACH_NAME and number < 2 * most):
            of_names[name] = of_name + 1
            return True
        if kind not in self.crowding:
            busiest = max(of_names, key=lambda each: of_names[each])
            # Where all names differ, none of them is to blame.
            self.crowding[kind] = busiest if of_names[busiest] > _OF_EACH_NAME else ""
        self.drop(kind)
        return False

    def drop(self, kind: str, number: int = 1) -> None:
        """Count what is too many."""
        self.dropped[kind] = self.dropped.get(kind, 0) + number

    def place(self) -> TracePlace | None:
        """Return where in a trace the task is now: in its innermost span, its own, or that of its stage.

        A task is not told the attempt of its stage, so after a retry this is the span of the first.
        """
        link = self.link
        if not link.trace_id:
            return None
        around = self._around()
        span_id = self.open.innermost or self.span_id or around.span_id
        return TracePlace(around.trace_id, span_id, around.sampled)

    def _around(self) -> TracePlace:
        link, batch = self.link, self._properties[BATCH_ID]
        stage_span = digest(8, *link.application, "stage", f"{self._stage}.0", "span", "Stage")
        if batch is None:
            return TracePlace(link.trace_id, stage_span, link.sampled)
        query = (*link.application, "query", str(self._properties[JOB_GROUP]))
        trace_id = digest(16, *query, "trace", "Checkpoint", batch)
        span_id = stage_span if link.stages_of_queries else digest(8, *query, "span", "Checkpoint", batch)
        return TracePlace(trace_id, span_id, is_sampled(trace_id, link.sampling_ratio))


def accumulators() -> dict[int, Any]:
    """Return PySpark's registry: it is empty when a task begins, and sent when the task has succeeded."""
    from pyspark.accumulators import _accumulatorRegistry

    registry: dict[int, Any] = _accumulatorRegistry
    return registry


MOST_BYTES = 512 << 10
"""How much of a task's report Spark carries."""
_KINDS = {"metrics": "series", "spans": "spans", "events": "events"}
"""The parts of a report that grow, and as what it is counted if some of them are left out."""


def cut_to_fit(report: dict[str, Any], most: int = MOST_BYTES) -> None:
    """Leave out some of the largest part, until the report is small enough; ``dropped`` says how much.

    Of the metrics, those are values of histograms first; of all, the last of names that have many.

    Args:
        report: the plain values; gets ``bytes``, how large these parts are.
        most: how large they may be, in bytes.
    """
    sizes = {part: _size(report[part]) for part in _KINDS}
    while (total := sum(sizes.values())) > most:
        part = max(sizes, key=lambda name: sizes[name])
        # The others keep what they have, but no part gets less than its third.
        share = max(most - (total - sizes[part]), most // len(_KINDS)) / sizes[part]
        if not (part == "metrics" and _shorten_histograms(report, share)):
            _shorten(report, part, share)
        sizes[part] = _size(report[part])
    report["bytes"] = total


def _size(part: list[Any]) -> int:
    return len(pickle.dumps(part, pickle.HIGHEST_PROTOCOL)) if part else 0


def _shorten(report: dict[str, Any], part: str, share: float) -> None:
    """Keep a share of a part: of each name the first ones, before more of those that have many."""
    all_of_it = report[part]
    of_names: dict[str, int] = {}
    first: list[int] = []
    more: list[int] = []
    for place, item in enumerate(all_of_it):
        name = item[1] if part == "metrics" else item["name"]
        of_names[name] = of_names.get(name, 0) + 1
        (first if of_names[name] <= _OF_EACH_NAME else more).append(place)
    kept = sorted([*first, *more][: int(len(all_of_it) * share)])
    report[part] = [all_of_it[place] for place in kept]
    _count(report, _KINDS[part], len(all_of_it) - len(kept))


def _shorten_histograms(report: dict[str, Any], share: float) -> int:
    """Return how many values are left out; 0 if each histogram has only one."""
    dropped, metrics = 0, []
    for kind, name, labels, value in report["metrics"]:
        kept = value
        if kind == "histogram":
            kept = value[: max(1, int(len(value) * share))]
            dropped += len(value) - len(kept)
        metrics.append((kind, name, labels, kept))
    report["metrics"] = metrics
    _count(report, "values", dropped)
    return dropped


def _count(report: dict[str, Any], kind: str, number: int) -> None:
    if number:
        report["dropped"][kind] = report["dropped"].get(kind, 0) + number
