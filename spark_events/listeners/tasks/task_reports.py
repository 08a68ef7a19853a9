"""What the user's own code reports from inside tasks: metrics, events and spans of ``spark_events.task``."""

from __future__ import annotations

import collections
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_events.api import (
    AttributeValue,
    Counter,
    Event,
    Failure,
    Gauge,
    Histogram,
    MetricGroup,
    Severity,
    Span,
)
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity, Place
from spark_events.listeners.listener import Handlers, early
from spark_events.listeners.record_fields import JOB_ID
from spark_events.listeners.record_types import ApplicationEndRecord, JobEndRecord, QueryStartedRecord
from spark_events.listeners.tasks.failed_tasks import code_of, details_of
from spark_events.listeners.tasks.looped_names import without_numbers
from spark_events.listeners.tasks.task_counters import TaskCounters
from spark_events.runtime.event_names import of_users
from spark_events.runtime.log_once import logger
from spark_events.task.local_properties import JOB_GROUP

CLASS_SCOPE = "spark_events.task"
VALUES = "values"
DROPPED = ("series", VALUES, "events", "spans")
_WRONG_VALUES = (
    "tasks report values that are dropped and counted: they are no numbers (NaN, say), or more than the "
    "limits allow (a 51st attribute, say); the executors' logs say which"
)
OF_FAILED = "_failed_attempts"
"""What the names of metrics of failed attempts end with."""
_MOST_SERIES = 10_000
_MOST_SERIES_OF_NAME, _FEWEST_SERIES_OF_NAME = 2_000, 10
_MOST_EVENT_NAMES = 1_000
_MOST_NAMES_OF_ONE = 100
"""How many names a query, or a stage that belongs to none, may bring: more seem to differ in each row. And
how many may differ in numbers alone: the next run of the same code is another stage."""
_FEWEST_NAMES_OF_ONE = 10
"""How many it may bring though others have used up all of the application's, up to twice as many in all."""
_SHOWN = 100
_MOST_WARNINGS = 20
_MOST_STAGES = 1_000
_MOST_EARLY = 1_000
_TAKEN_LABELS = frozenset(("app_name", "query_name", "le", "quantile", "job", "instance"))
_BOUNDS = tuple(sign * 10.0**power for power in range(-3, 7) for sign in (1, 2.5, 5))
PlaceOfStage = Callable[[int, Mapping[str, str | None]], Place]
_Key = tuple[str, str, tuple[tuple[str, str], ...], str]


class _LastLowestHighest:
    """A gauge of all tasks: the last value, the lowest and the highest."""

    def __init__(self) -> None:
        self.last: float | None = None
        self.lowest: float | None = None
        self.highest: float | None = None

    def take(self, lowest: float, highest: float, last: float) -> None:
        """Called with those of one task."""
        self.last = last
        self.lowest = lowest if self.lowest is None else min(self.lowest, lowest)
        self.highest = highest if self.highest is None else max(self.highest, highest)


class _Names:
    """The names that came so far, and how many of them whose code has brought."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._brought: collections.Counter[str] = collections.Counter()
        self._alike: collections.Counter[str] = collections.Counter()

    def take(self, name: str, whose: str, most: int) -> bool:
        """Return whether a name may be used: it is known, or there may be one more."""
        if name in self._known:
            return True
        alike, brought = without_numbers(name), self._brought[whose]
        if max(brought, self._alike[alike]) >= _MOST_NAMES_OF_ONE:
            return False
        if len(self._known) >= (most if brought >= _FEWEST_NAMES_OF_ONE else 2 * most):
            return False
        self._known.add(name)
        self._brought[whose] += 1
        self._alike[alike] += 1
        return True


class TaskReportListener:
    """Adds up what tasks report: each partition of a stage counts once, however often it was computed.

    Args:
        context: what the listeners share.
        place_of_stage: returns the place below which a stage's tasks have their spans, by its id and by
            the local properties of its tasks.
    """

    def __init__(self, context: ListenerContext, place_of_stage: PlaceOfStage) -> None:
        self._context = context
        self._place_of_stage = place_of_stage
        # By stage and partition: the task attempt that counts, and how many reports of it have come.
        self._counted: OrderedDict[int, dict[int, tuple[int, int]]] = OrderedDict()
        self._series: dict[_Key, Any] = {}
        self._series_of: collections.Counter[str] = collections.Counter()
        self._warned: set[tuple[str, str]] = set()
        self._warnings = 0
        self._names_of = {kind: _Names() for kind in ("series", "events")}
        self._early: list[dict[str, Any]] = []
        self._counters = TaskCounters(context)
        group = context.scopes.task("")
        described = "What tasks reported beyond the limits, by kind."
        self._dropped = {
            kind: group.child(components=("dropped", kind), variables={"kind": kind}).register(
                "dropped", Counter(description=described)
            )
            for kind in DROPPED
        }

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.JOB_END: self.on_job_end,
            spark_records.QUERY_STARTED: self.on_query_started,
            spark_records.QUERY_TERMINATED: early(self._counters.on_query_terminated),
            spark_records.TASK_REPORT: self.on_report,
            spark_records.APPLICATION_END: early(self.on_application_end),
        }

    def on_job_end(self, record: JobEndRecord, time_ms: int) -> None:
        """Handle JobEnd: none of its partitions is computed again."""
        job = self._context.run.jobs.get(int(record[JOB_ID]))
        for stage in job.stages if job is not None else ():
            self._counted.pop(stage, None)

    def on_query_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted: reports of its ``foreachBatch`` function may have come before it."""
        self._counters.on_query_started(record, time_ms)
        reports, self._early = self._early, []
        for report in reports:
            self.on_report(report, time_ms)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd: what is of a query that nobody knows counts for the application."""
        for report in self._early:
            self._take(report)
        self._counters.on_application_end(record, time_ms)

    def tick(self, now_ms: int) -> None:
        """Report from time to time what was counted."""
        self._counters.tick(now_ms)

    def on_report(self, record: dict[str, Any], time_ms: int) -> None:
        """Handle the report of a task that has succeeded or failed, or of a ``foreachBatch`` function."""
        run_id = str(record["properties"].get(JOB_GROUP))
        is_early = record.get("batch") is not None and run_id not in self._context.run.queries
        if is_early and len(self._early) < _MOST_EARLY:
            self._early.append(record)
        else:
            self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        stage, partition = int(record["stage"]), int(record["partition"])
        failed, batch = record.get("failed"), record.get("batch")
        run_id = str(record["properties"].get(JOB_GROUP))
        of_query = self._context.run.query_of(run_id)
        if batch is not None:
            occasion: tuple[str, ...] = ("batch", str(batch))
            entity, group = self._counters.subject(run_id, of_query)
        else:
            # Two reports of one task attempt are of its two workers; a failed one has one, and may be any.
            report = None if failed else self._number_of(stage, partition, int(record["task"]))
            if report is None and not failed:
                return
            occasion = ("failed", str(record["task"]), str(failed["time_ns"])) if failed else (str(report),)
            title = f"task {partition} of stage {stage}"
            entity = Entity("task", f"{stage}.{partition}", title, of_query.get("query_name", ""))
            group = self._context.scopes.task_run(stage, partition, int(record["attempt"]), of_query)
        for kind, name, pairs, value in record["metrics"]:
            counted = f"{name}{OF_FAILED}" if failed or record.get("raised") else name
            labels = tuple((label, text) for label, text in pairs)
            kept = self._add_metric(kind, counted, labels, value, of_query.get("query_name", ""), stage)
            if kept and kind == "counter":
                self._counters.grow(counted, labels, value, run_id, of_query)
        for number, event in enumerate(record["events"]):
            whose = of_query.get("query_name") or str(stage)
            self._emit(event, (*occasion, str(number)), entity, group, whose)
        self._report_traces(record, occasion, entity, group)
        for kind, number in record["dropped"].items():
            if kind in self._dropped:
                self._drop(kind, int(number), str((record.get("crowding") or {}).get(kind, "")))

    def _number_of(self, stage: int, partition: int, attempt: int) -> int | None:
        """Return which report of its task attempt this is; None if another attempt counts for its partition.

        A task has a worker, and so a report, for each kind of Python function in its stage. Spark may compute
        a partition again, for a shuffle that was lost, or speculatively.
        """
        if stage not in self._counted:
            self._counted[stage] = {}
            if len(self._counted) > _MOST_STAGES:
                self._counted.popitem(last=False)
        counted, reports = self._counted[stage].get(partition, (attempt, 0))
        if counted != attempt:
            return None
        self._counted[stage][partition] = attempt, reports + 1
        return reports

    def _drop(self, kind: str, number: int = 1, name: str = "", whose: str = "") -> None:
        """Count what is dropped, and say so once for each kind, and for whatever is at a limit.

        Args:
            kind: one of ``DROPPED``.
            number: how much.
            name: an example, if that says something.
            whose: which query or stage brings names like that; empty if it is that name alone.
        """
        if number <= 0:
            return
        # The next run of a job is another stage, with names that differ in numbers.
        about = {(kind, without_numbers(name)), (kind, whose or name)}
        if self._warned.isdisjoint(about) and self._warnings < _MOST_WARNINGS:
            self._warned |= about
            self._warnings += 1
            named = f"{' with other names, such as' if whose else ' named'} {name[:_SHOWN]!r}" if name else ""
            too_many = (
                f"tasks report too many {kind}{named}; what is beyond the limits is dropped and counted: "
                "names and labels are for what has few values"
            )
            logger.warning("%s", _WRONG_VALUES if kind == VALUES else too_many)
        self._dropped[kind].inc(number)

    def _add_metric(
        self,
        kind: str,
        name: str,
        labels: tuple[tuple[str, str], ...],
        value: Any,
        query_name: str,
        stage: int,
    ) -> bool:
        """Add to a metric, and return whether there is one: not beyond the limit."""
        key = kind, name, labels, query_name
        metric = self._series.get(key)
        if metric is None:
            whose, alike = query_name or str(stage), without_numbers(name)
            of_name = self._series_of[alike]
            most = _MOST_SERIES if of_name >= _FEWEST_SERIES_OF_NAME else 2 * _MOST_SERIES
            if of_name >= _MOST_SERIES_OF_NAME or len(self._series) >= most:
                self._drop("series", name=name)
                return False
            if not self._names_of["series"].take(name, whose, _MOST_SERIES):
                self._drop("series", name=name, whose=whose)
                return False
            self._series_of[alike] += 1
            clean = self._context.redact_name
            group = self._group(tuple((label, clean(text)) for label, text in labels), query_name)
            metric = self._series[key] = _registered(kind, clean(name), group)
        if isinstance(metric, Counter):
            metric.inc(value)
        elif isinstance(metric, Histogram):
            for each in value:
                metric.update(each)
        elif value:
            metric.take(*value)
        return True

    def _group(self, labels: tuple[tuple[str, str], ...], query_name: str) -> MetricGroup:
        variables = {f"exported_{key}" if key in _TAKEN_LABELS else key: text for key, text in labels}
        components = tuple(part for pair in variables.items() for part in pair)
        return self._context.scopes.task(query_name).child(components=components, variables=variables)

    def _emit(
        self,
        event: Mapping[str, Any],
        number: tuple[str, ...],
        entity: Entity,
        group: MetricGroup,
        whose: str,
    ) -> None:
        name = str(event["name"])
        if not self._names_of["events"].take(name, whose, _MOST_EVENT_NAMES):
            self._drop("events", name=name, whose=whose)
            return
        builder = (
            Event.builder(CLASS_SCOPE, of_users(name))
            .set_severity(Severity[event["severity"]])
            .set_body(str(event["body"]) or f"{entity.title}: {name}")
            .set_attributes(event["attributes"])
        )
        time_ms = int(event["time_ns"]) // 1_000_000
        self._context.emitter.emit(builder, entity, group, time_ms, ("task", *number))

    def _report_traces(
        self, record: dict[str, Any], occasion: tuple[str, ...], entity: Entity, group: MetricGroup
    ) -> None:
        """Report the span of a task if it has one, and those that its code has made."""
        failed, task_span = record.get("failed"), record.get("span")
        if not (record["spans"] or failed or task_span):
            return
        place = self._place_of_stage(int(record["stage"]), record["properties"])
        if task_span:
            place = Place(place.trace_id, str(task_span[0]), place)
        elif failed:
            place = self._context.traces.below(place, "Task", entity, *occasion)
        if failed:
            self._report_failed(failed, place, entity, group)
        elif task_span:
            self._report_task(task_span[1:], None, place, entity, group)
        self._report_spans(record["spans"], place, entity, group)

    def _report_failed(
        self, failed: Mapping[str, Any], place: Place, entity: Entity, group: MetricGroup
    ) -> None:
        """Report the span of a failed task, with what it raised and where."""
        self._context.failures.failed_tasks.put(failed)
        failure = Failure(str(failed["message"]), str(failed["type"]), code=code_of(failed))
        times_ns = failed["begun_ns"], failed["time_ns"]
        self._report_task(times_ns, failure, place, entity, group, details_of(failed))

    def _report_task(
        self,
        times_ns: Sequence[int],
        failure: Failure | None,
        place: Place,
        entity: Entity,
        group: MetricGroup,
        details: Mapping[str, AttributeValue] | None = None,
    ) -> None:
        start_ms, end_ms = (int(time_ns) // 1_000_000 for time_ns in times_ns)
        end_ms = max(start_ms, end_ms)
        span = Span.builder(CLASS_SCOPE, "Task").set_times_ms(start_ms, end_ms).set_failure(failure, end_ms)
        span.set_attributes(details or {})
        self._context.traces.report(span, place, entity, group)

    def _report_spans(
        self, spans: list[dict[str, Any]], place: Place, entity: Entity, group: MetricGroup
    ) -> None:
        traces, places = self._context.traces, dict[str | None, Place]()
        for span in spans:  # one that is inside another comes after it
            parent = places.get(span["parent"], place)
            own = places[span["id"]] = Place(parent.trace_id, str(span["id"]), parent)
            start_ms, end_ms = (int(span[key]) // 1_000_000 for key in ("start_ns", "end_ns"))
            builder = Span.builder(CLASS_SCOPE, span["name"]).set_times_ms(start_ms, max(start_ms, end_ms))
            builder.set_attributes(span["attributes"])
            if "error" in span:
                builder.set_error(": ".join(span["error"]))
            traces.report(builder, own, entity, group)


def _registered(kind: str, name: str, group: MetricGroup) -> Any:
    """Return a metric of a kind that is registered, or what is behind the gauges of one."""
    if kind == "counter":
        return group.register(name, Counter(description="Counted by tasks."))
    if kind == "histogram":
        return group.register(name, Histogram(_BOUNDS, description="Measured by tasks."))
    seen = _LastLowestHighest()
    group.register(name, Gauge(lambda: seen.last, description="The last value of a task."))
    group.register(f"{name}_min", Gauge(lambda: seen.lowest, description="The lowest value of a task."))
    group.register(f"{name}_max", Gauge(lambda: seen.highest, description="The highest value of a task."))
    return seen
