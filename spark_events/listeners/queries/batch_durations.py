"""How long a query's last micro-batches took: why one is slower, and whether one will be in time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from spark_events.api import Event, Severity
from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.earlier_runs.regression import Changes, is_regression, regression, what_changed
from spark_events.diagnosis.earlier_runs.usual import LEAST_COMPARED as _LEAST
from spark_events.diagnosis.earlier_runs.usual import Usual, usual
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.issues.issue_events import IssueEvents, Subject
from spark_events.listeners.queries.checkpoint import input_rows
from spark_events.listeners.queries.query_run import QueryRun
from spark_events.listeners.queries.watches import CHECKPOINT_WATCH, LATE_RECORDS_MS
from spark_events.runtime import event_names

_SURE = 0.9
_LEAST_ALIKE = 2
_LEAST_PHASE_MS = 1_000


class _Batch(NamedTuple):
    """A micro-batch that has ended: how long it and its phases took, in ms, and what it had to do."""

    since_begin_ms: int | None
    duration_ms: int
    phases: Mapping[str, int]
    figures: Mapping[str, int]


class _Forecast(NamedTuple):
    """From when on a batch that still runs will probably miss its SLA, and how long it will take then."""

    from_ms: int
    batch: int
    begun_ms: int
    due_ms: int
    expected_ms: int
    alike: int


class BatchDurations:
    """The last micro-batches of one query, over all its runs in this application."""

    def __init__(self, context: ListenerContext, events: IssueEvents) -> None:
        self._context = context
        self._events = events
        self._thresholds = context.settings.thresholds
        self._last: deque[_Batch] = deque(maxlen=self._thresholds.past_runs)
        self._begun_ms: int | None = None
        self._forecast: _Forecast | None = None

    def begun(self, batch: int, time_ms: int, due_ms: int | None) -> None:
        """Called when a micro-batch has begun.

        Args:
            batch: its id.
            time_ms: when, in ms since the epoch.
            due_ms: when it has to be over by the SLA; None without one, or if that is reported already.
        """
        self._begun_ms = time_ms
        known = sorted(each.since_begin_ms for each in self._last if each.since_begin_ms is not None)
        self._forecast = None if due_ms is None else _forecast(known, batch, time_ms, due_ms)

    def completed(self, run: QueryRun, progress: Mapping[str, Any], time_ms: int) -> None:
        """Called when a micro-batch has committed: report one that took much longer than those before.

        That it ran on is what a replay, which has no clock, learns only now; live, it is known already.
        """
        self.tick(run, time_ms)
        phases = {str(name): int(ms) for name, ms in progress["durationMs"].items()}
        batch = _Batch(
            None if self._begun_ms is None else max(0, time_ms - self._begun_ms),
            phases.pop("triggerExecution", 0),
            phases,
            _figures(progress),
        )
        if len(self._last) >= _LEAST:
            before = usual(each.duration_ms for each in self._last)
            if is_regression(batch.duration_ms, before, self._thresholds):
                self._report(run, int(progress["batchId"]), batch, before, time_ms)
        self._last.append(batch)
        self.ended()

    def ended(self) -> None:
        """Called when no micro-batch runs any more."""
        self._begun_ms = self._forecast = None

    def failed(self, run: QueryRun, time_ms: int) -> None:
        """Called when the run has failed."""
        self._warn(run, time_ms)
        self.ended()

    def tick(self, run: QueryRun, now_ms: int) -> None:
        """Report a running batch that will miss its SLA, allowing a second for records on their way."""
        self._warn(run, now_ms - LATE_RECORDS_MS)

    def _warn(self, run: QueryRun, time_ms: int) -> None:
        forecast = self._forecast
        if forecast is None or time_ms <= forecast.from_ms:
            return
        self._forecast = None
        running_ms = forecast.from_ms - forecast.begun_ms
        late_ms = forecast.begun_ms + forecast.expected_ms - forecast.due_ms
        event = (
            Event.builder(CHECKPOINT_WATCH, event_names.BATCH_WILL_MISS_SLA)
            .set_severity(Severity.WARN)
            .set_body(
                f"{run.entity.title}: batch {forecast.batch} will probably complete "
                f"{duration(late_ms)} too late: {forecast.alike} earlier ones that were still running after "
                f"so long took {duration(forecast.expected_ms)} at the median"
            )
            .set_attribute("checkpointId", forecast.batch)
            .set_attribute("slaMs", self._context.settings.sla_ms_for(run.name))
            .set_attribute("runningMs", running_ms)
            .set_attribute("expectedMs", forecast.expected_ms)
            .set_attribute("expectedLateMs", late_ms)
            .set_attribute("compared", forecast.alike)
        )
        occasion = "will miss", str(forecast.batch), str(forecast.begun_ms)
        self._context.emitter.emit(event, run.entity, run.group, forecast.from_ms, occasion)

    def _report(self, run: QueryRun, number: int, batch: _Batch, before: Usual, time_ms: int) -> None:
        changes = what_changed(batch.figures, [each.figures for each in self._last])
        changes = _with_slowest_phase(changes, batch.phases, [each.phases for each in self._last])
        issue = regression(batch.duration_ms, before, changes, f"the last {before.compared} batches")
        if self._events.matters(issue, batch.duration_ms):
            issue = replace(
                issue, cause=f"{issue.cause} of batch {number}", sentence=f"batch {number} {issue.sentence}"
            )
            subject = Subject(run.entity, run.group, "its time", batch.duration_ms, {"checkpointId": number})
            self._events.report(issue, subject, time_ms)


def _forecast(known_ms: list[int], batch: int, begun_ms: int, due_ms: int) -> _Forecast | None:
    """Return from when on a batch will miss its SLA, by how long others took; None if that cannot be said.

    A batch that has run for a while can be compared only with those that took longer than that. It will be
    late as soon as nine of ten of these would be.
    """
    if len(known_ms) < _LEAST:
        return None
    for running_ms in (0, *known_ms):
        alike = [each for each in known_ms if each > running_ms]
        late = sum(begun_ms + each > due_ms for each in alike)
        if len(alike) < _LEAST_ALIKE or begun_ms + running_ms >= due_ms:
            return None
        if late >= _SURE * len(alike):
            expected_ms = usual(alike).median_ms
            return _Forecast(begun_ms + running_ms, batch, begun_ms, due_ms, expected_ms, len(alike))
    return None


def _figures(progress: Mapping[str, Any]) -> dict[str, int]:
    return {
        "inputRows": input_rows(progress),
        "stateRows": sum(int(each.get("numRowsTotal") or 0) for each in progress.get("stateOperators") or ()),
    }


def _with_slowest_phase(
    changes: Changes, phases: Mapping[str, int], past: list[Mapping[str, int]]
) -> Changes:
    """Return changes with the phase of the batch that has grown most."""
    medians = {name: usual(each.get(name, 0) for each in past).median_ms for name in phases}
    name = max(phases, key=lambda phase: phases[phase] - medians[phase], default=None)
    if name is None or phases[name] - medians[name] < _LEAST_PHASE_MS:
        return changes
    words = [*changes.words, f"{name}: {duration(phases[name])}, usually {duration(medians[name])}"]
    evidence = {
        **changes.evidence,
        "phase": name,
        "phaseDurationMs": phases[name],
        "usual.phaseDurationMs": medians[name],
    }
    return changes._replace(words=words, evidence=evidence)
