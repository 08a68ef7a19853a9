"""The event of an executor that is gone: why, what it was doing, and how full its memory was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_events.api import Event, Severity
from spark_events.api.toolkit.formatting import duration, size
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.executors.executor_ends import (
    EXPECTED,
    OF_EXIT_CODES,
    exit_code,
    exit_meaning,
)
from spark_events.listeners.executors.executor_metrics import GAUGES, Measure, Readings
from spark_events.listeners.executors.memory_limits import MemoryLimits
from spark_events.runtime import event_names

CLASS_SCOPE = "spark_events.listeners.ExecutorLost"
_HEAP = GAUGES[0]
_PROCESSES = tuple(measure for measure in GAUGES if measure.of_all.startswith("executorProcess"))
_NEAR = 0.9
"""From this share of a limit on, memory counts as nearly used up."""


@dataclass(frozen=True, slots=True)
class LostExecutor:
    """An executor that is gone.

    Attributes:
        reason: why, in one word.
        sentence: why, as Spark says it; empty where it says nothing.
        lifetime_ms: how long it lived; None if it died before it registered with the driver.
        running_tasks: how many tasks it ran when it went; None where that is not known.
        stages: whose tasks they were.
        shuffle_bytes: what its tasks had written for shuffles; without a shuffle service, that is lost.
        gauges: what it measured last.
        peaks: the highest of each value.
    """

    id: str
    host: str
    reason: str
    sentence: str
    lifetime_ms: int | None
    running_tasks: int | None
    stages: tuple[int, ...]
    shuffle_bytes: int | None
    gauges: Readings
    peaks: Readings

    @property
    def exit_code(self) -> int | None:
        """Its exit code, as far as Spark says it."""
        return exit_code(self.sentence)


class ExecutorLosses:
    """Reports an ExecutorLostEvent for each executor that is gone."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def report(self, lost: LostExecutor, limits: MemoryLimits | None, time_ms: int) -> None:
        """Report one.

        Args:
            lost: the executor.
            limits: what an executor may use of memory; None where that is not known.
            time_ms: when it was removed, in ms since the epoch.
        """
        code = lost.exit_code
        event = (
            Event.builder(CLASS_SCOPE, event_names.EXECUTOR_LOST)
            .set_severity(Severity.INFO if lost.reason in EXPECTED else Severity.WARN)
            .set_body(_sentence(lost, limits))
            .set_attribute("reason", lost.reason)
            .set_attribute("reasonMessage", lost.sentence or None)
            .set_attribute("exitCode", code)
            .set_attribute("exitMeaning", exit_meaning(code, lost.reason) if code is not None else None)
            .set_attribute("lifetimeMs", lost.lifetime_ms)
            .set_attribute("runningTasks", lost.running_tasks)
            .set_attribute("runningStages", ",".join(map(str, lost.stages)) or None)
            .set_attribute("shuffleBytesWritten", lost.shuffle_bytes)
        )
        for measure in GAUGES:
            name = _attribute(measure)
            event.set_attribute(f"{name}.last", lost.gauges.get(measure))
            event.set_attribute(f"{name}.highest", lost.peaks.get(measure))
        if limits is not None:
            event.set_attributes(limits.attributes)
        entity = Entity("executor", lost.id, f"executor {lost.id}")
        group = self._context.scopes.executor_run(lost.id, lost.host)
        self._context.emitter.emit(event, entity, group, time_ms, ("lost",), lost.reason)


def _attribute(measure: Measure) -> str:
    """Return ``heapUsed`` of ``executorHeapUsed``."""
    name = measure.of_all.removeprefix("executor")
    return name[0].lower() + name[1:]


def _sentence(lost: LostExecutor, limits: MemoryLimits | None) -> str:
    """Return what a person at 3 a.m. has to know first."""
    why, code = lost.reason.replace("_", " "), lost.exit_code
    if code is not None:
        cause = None if lost.reason in OF_EXIT_CODES else why
        why = ", ".join(filter(None, (cause, f"exit code {code}", exit_meaning(code, lost.reason))))
    where = f" on {lost.host}" if lost.host else ""
    parts = [f"Executor {lost.id}{where} is gone: {why}"]
    if lost.lifetime_ms is not None:
        parts.append(f"it lived for {duration(lost.lifetime_ms)}")
    else:
        parts.append("it died before it registered with the driver")
    if lost.running_tasks:
        parts.append(f"it ran {lost.running_tasks} task" + ("s" if lost.running_tasks > 1 else ""))
    heap = lost.peaks.get(_HEAP)
    if heap is not None:
        parts.append(f"its heap reached {size(heap)}" + (f" of {size(limits.heap)}" if limits else ""))
    if limits is not None and lost.reason not in EXPECTED:
        parts += _near_limits(lost, limits)
    return "; ".join(parts)


def _near_limits(lost: LostExecutor, limits: MemoryLimits) -> Iterator[str]:
    """Yield which memory was nearly used up when it was measured last, whatever it died of."""
    heap = lost.gauges.get(_HEAP, 0)
    if heap >= _NEAR * limits.heap:
        yield f"when last measured, its heap was near its limit ({size(heap)} of {size(limits.heap)})"
    processes = sum(lost.gauges.get(measure, 0) for measure in _PROCESSES)
    if limits.container is not None and processes >= _NEAR * limits.container:
        yield (
            "when last measured, its processes were near the limit of its container "
            f"({size(processes)} of {size(limits.container)})"
        )
