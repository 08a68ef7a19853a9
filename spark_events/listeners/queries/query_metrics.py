"""The metrics of streaming queries, shared by all runs of one name, so that they survive a restart."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from spark_events.api import Counter, Gauge, MetricGroup
from spark_events.listeners.application.job_status import StatusMetrics
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.queries.checkpoint import CheckpointStats, SlaMetrics, input_rows
from spark_events.listeners.queries.query_run import PHASES, QueryRun
from spark_events.listeners.spark_records import parse_timestamp_ms
from spark_events.runtime.scope import ScopeGroup

Progress = Mapping[str, Any]

_COUNTERS = {
    "inputRows": ("{row}", "Rows that were read."),
    "outputRows": ("{row}", "Rows that were written, where the sink says."),
    "droppedLateRows": (
        "{row}",
        "Rows that arrived later than the watermark; an aggregation counts its groups of them.",
    ),
    "stateRowsUpdated": ("{row}", "Rows added to or updated in the state."),
    "stateRowsRemoved": ("{row}", "Rows removed from the state."),
    "batchesOverInterval": ("{batch}", "Batches that took longer than the trigger's interval."),
}
_TRIGGER_INTERVAL = "The trigger's interval; absent where triggers follow each other at once."
_GAUGES = {
    "inputRate": ("{row}/s", "Rows a second that arrived, by the last progress."),
    "processingRate": ("{row}/s", "Rows a second that were processed, by the last progress."),
    "lastInputTimestamp": ("ms", "When the last batch that read rows completed."),
    "watermarkLag": (
        "ms",
        "How far the watermark is behind the last trigger; negative if it is ahead.",
    ),
    "watermarkTimestamp": ("ms", "The watermark, by the last progress."),
    "batchDuration": ("ms", "How long the last trigger took."),
    "triggerInterval": ("ms", _TRIGGER_INTERVAL),
    "stateRows": ("{row}", "Rows in the state of all operators."),
    "stateCommitTime": ("ms", "Total time that all tasks took to commit state."),
    "stateMemory": ("By", "Memory used by the state of all operators."),
}


class QuerySeries:
    """The metrics of one query.

    Attributes:
        name: the query's.
        checkpoints: reports them.
        sla: its metrics; None if there is none.
    """

    def __init__(self, context: ListenerContext, name: str) -> None:
        self._context = context
        self.name = name
        self._group = group = context.scopes.query(name)
        self._info: MetricGroup | None = None
        enabled = context.settings.status_metrics
        self._status = StatusMetrics(group, "query", enabled)
        context.all_subtasks.register(group, name, enabled)
        self._metrics = _ProgressMetrics(group)
        sla_ms = context.settings.sla_ms_for(name)
        self.checkpoints = CheckpointStats(context.emitter, group, sla_ms)
        self.sla = None if sla_ms is None else SlaMetrics(group, sla_ms)
        self._restarts: int | None = None  # not yet known, which differs from 0
        group.register(
            "numRestarts", Gauge(lambda: self._restarts, description="How often the query was restarted.")
        )

    def show(self, run: QueryRun, time_ms: int | None = None) -> None:
        """Show the status of a run, the newest that goes on, and name it alone in the metric ``info``.

        Args:
            run: it.
            time_ms: when a newer one has ended, in ms since the epoch; None if it is just beginning.
        """
        self._status.watch(run.tracker, time_ms)
        self._metrics.trigger_interval_ms = run.trigger_interval_ms
        if self._info is not None:
            self._info.close()
        ids = {"query_id": run.query_id, "run_id": run.run_id}
        self._info = info = self._group.detached("", ("info",), ids, {})
        described = "Always 1; its labels identify the run of the query."
        info.register("info", Gauge(lambda: 1, description=described))

    def show_status(self, run: QueryRun) -> None:
        """Show the status of a run."""
        self._status.watch(run.tracker)

    def shows(self, run: QueryRun) -> bool:
        """Return whether it is this run whose status is shown."""
        return self._status.watches(run.tracker)

    def show_restarts(self, restarts: int) -> None:
        """Show how often the query was restarted."""
        self._restarts = restarts

    def restored(self, time_ms: int) -> None:
        """Called when the query resumes from a checkpoint, at a time in ms since the epoch."""
        self.checkpoints.restored(time_ms)

    def batch_began(self) -> None:
        """Called when a micro-batch has begun."""
        self.checkpoints.began()

    def progressed(self, progress: Progress, time_ms: int) -> None:
        """Called with the progress of a trigger, which ended at a time in ms since the epoch."""
        self._metrics.update(progress, time_ms)

    def rested(self) -> None:
        """Called when no batch runs."""
        self.checkpoints.rested()

    def stopped(self, run: QueryRun) -> None:
        """Called when a run has ended."""
        self.rested()
        if self.shows(run):  # else a newer run uses the name
            self._metrics.stop()

    def close(self) -> None:
        """Remove all metrics of the query."""
        if self._info is not None:
            self._info.close()
        self._group.close()
        self._context.emitter.forget(self.name)
        self._context.failures.metrics.forget(self.name)
        self._context.all_subtasks.forget(self.name)


class _ProgressMetrics:
    """The series of one query, over all its runs; gauges show its last progress.

    Attributes:
        trigger_interval_ms: its trigger's interval, in ms; None if it has none or it is unknown.
    """

    def __init__(self, group: ScopeGroup) -> None:
        self._group = group
        self._last: Progress = {}
        self.trigger_interval_ms: int | None = None
        self._last_input_ms: int | None = None
        self._counters = {
            name: group.register(name, Counter(unit, described))
            for name, (unit, described) in _COUNTERS.items()
        }
        self._sources: dict[str, Progress] = {}
        self._rocksdb: set[str] = set()
        for name, read in self._reads().items():
            group.register(name, Gauge(read, *_GAUGES[name]))
        for phase in PHASES:
            described = "How long a phase of the last trigger took."
            labeled = group.child(components=(phase,), variables={"phase": phase})
            labeled.register("phaseDuration", Gauge(partial(self._duration_ms, phase), "ms", described))

    def update(self, progress: Progress, time_ms: int) -> None:
        """Update the metrics by the progress of one trigger, which ended at a time in ms since the epoch."""
        self._last = progress
        if input_rows(progress):
            self._last_input_ms = time_ms
        for number, source in enumerate(progress.get("sources") or ()):
            self._count("inputRows", source.get("numInputRows"))
            self._take_source(f"{number}", source)
        # -1 if the sink does not say.
        self._count("outputRows", (progress.get("sink") or {}).get("numOutputRows"))
        self._count("droppedLateRows", self._sum_of_state("numRowsDroppedByWatermark"))
        self._count("stateRowsUpdated", self._sum_of_state("numRowsUpdated"))
        self._count("stateRowsRemoved", self._sum_of_state("numRowsRemoved"))
        took_ms = self._duration_ms("triggerExecution")
        if took_ms is not None and self.trigger_interval_ms and took_ms > self.trigger_interval_ms:
            self._count("batchesOverInterval", 1)
        for state in self._states():
            for name in state.get("customMetrics") or {}:
                self._register_rocksdb(name)

    def stop(self) -> None:
        """Called when the query has stopped: what was so at its last progress is so no longer."""
        self._last = {}
        self._sources = {number: {} for number in self._sources}

    def _count(self, name: str, amount: Any) -> None:
        self._counters[name].inc(max(0, int(_number(amount) or 0)))

    def _register_rocksdb(self, name: str) -> None:
        """Register one of RocksDB's figures; which ones exist depends on Spark's version."""
        if not name.startswith("rocksdb") or "." in name or name in self._rocksdb:
            return
        self._rocksdb.add(name)
        described = "A figure of the state store RocksDB, over all operators, by the last progress."
        gauge = Gauge(partial(self._of_rocksdb, name), _unit_of(name), described)
        # Prometheus keeps the suffix _count for histograms.
        self._group.register(re.sub("Count$", "Number", name.removesuffix("Ms")), gauge)

    def _of_rocksdb(self, name: str) -> float | None:
        return _sum_of_known((state.get("customMetrics") or {}).get(name) for state in self._states())

    def _reads(self) -> dict[str, Callable[[], float | None]]:
        return {
            "inputRate": partial(self._rate, "inputRowsPerSecond"),
            "processingRate": partial(self._rate, "processedRowsPerSecond"),
            "lastInputTimestamp": lambda: self._last_input_ms,
            "watermarkLag": self._watermark_lag_ms,
            "watermarkTimestamp": self._watermark_ms,
            "batchDuration": partial(self._duration_ms, "triggerExecution"),
            "triggerInterval": lambda: self.trigger_interval_ms,
            "stateRows": partial(self._of_state, "numRowsTotal"),
            "stateCommitTime": partial(self._of_state, "commitTimeMs"),
            "stateMemory": partial(self._of_state, "memoryUsedBytes"),
        }

    def _take_source(self, number: str, source: Progress) -> None:
        if number not in self._sources:
            # The description of a source may change from run to run; its position in the query does not.
            labeled = self._group.child(components=("source", number), variables={"source": number})
            described = (
                "What the source has and the query has not read yet: latest offsets minus end offsets."
            )
            labeled.register("sourceBacklog", Gauge(lambda: backlog(self._sources[number]), "", described))
        self._sources[number] = source

    def _rate(self, field: str) -> float | None:
        return _sum_of_known(source.get(field) for source in self._last.get("sources") or ())

    def _duration_ms(self, phase: str) -> int | None:
        return (self._last.get("durationMs") or {}).get(phase)

    def _states(self) -> Sequence[Progress]:
        return self._last.get("stateOperators") or ()

    def _of_state(self, field: str) -> float | None:
        return self._sum_of_state(field) if self._states() else None

    def _sum_of_state(self, field: str) -> float:
        return sum(_number(state.get(field)) or 0 for state in self._states())

    def _watermark_ms(self) -> int | None:
        watermark = _time_ms((self._last.get("eventTime") or {}).get("watermark"))
        # Spark says 1970 until the first row has come.
        return watermark if watermark else None

    def _watermark_lag_ms(self) -> int | None:
        watermark, now = self._watermark_ms(), _time_ms(self._last.get("timestamp"))
        return None if watermark is None or now is None else now - watermark


def backlog(source: Progress) -> float | None:
    """Return how far the latest offsets are ahead of the end offsets, summed over all partitions.

    Args:
        source: a source's part of a progress record; offsets are numbers, or JSON like Kafka's, with
            numbers by topic and partition.

    Returns:
        The sum; None if the source gives no offsets or they are not numbers.
    """
    latest, end = _numbers(source.get("latestOffset")), _numbers(source.get("endOffset"))
    if not latest or latest.keys() != end.keys():
        return None
    return sum(max(0.0, latest[key] - end[key]) for key in latest)


def _numbers(offset: Any, key: tuple[str, ...] = ()) -> dict[tuple[str, ...], float]:
    """Return the numbers in an offset by their path in it; an empty dict if it contains anything else."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    if isinstance(offset, Mapping):
        numbers: dict[tuple[str, ...], float] = {}
        for name, part in offset.items():
            numbers |= _numbers(part, (*key, str(name)))
        return numbers
    number = None if isinstance(offset, bool) else _number(offset)
    return {} if number is None else {key: number}


def _unit_of(name: str) -> str:
    """Return the unit of one of RocksDB's figures, derived from its name."""
    if "Latency" in name:
        return "ms"
    return "By" if re.search(r"Bytes|Size|Memory", name) else ""


def _number(value: Any) -> float | None:
    """Return a finite number; None for anything else, such as Spark's "NaN" and "Infinity"."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _sum_of_known(values: Iterable[Any]) -> float | None:
    """Return the sum of the values that are numbers; None if none is."""
    known = [number for value in values if (number := _number(value)) is not None]
    return sum(known) if known else None


def _time_ms(text: Any) -> int | None:
    try:
        return parse_timestamp_ms(str(text))
    except ValueError:
        return None
