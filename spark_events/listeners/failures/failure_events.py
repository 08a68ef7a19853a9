"""Reports failures, with the labels of all enrichers, and counts them by what was thrown."""

from __future__ import annotations

import re

from spark_events.api import CodePlace, Counter, Event, Failure, FailureContext, Gauge, MetricGroup, Severity
from spark_events.listeners.emitter import Emitter, Entity
from spark_events.listeners.executors.executor_ends import ExecutorEnds, FailedStage, exit_code, reason_class
from spark_events.listeners.executors.memory_limits import MemoryLimits
from spark_events.listeners.failures.enrichers import Enrichers
from spark_events.listeners.failures.python_crash import ended_without_a_word, explained
from spark_events.listeners.failures.python_errors import TRACEBACK
from spark_events.listeners.tasks.failed_tasks import FailedTasks
from spark_events.runtime import event_names
from spark_events.runtime.scope import ScopeGroup

CLASS_SCOPE = "spark_events.listeners.JobFailure"
_MOST_ERRORS = 50
_OTHER = "other"


class FailureMetrics:
    """The failures of one application by kind of job, query, error and type."""

    def __init__(self, series: ScopeGroup) -> None:
        self._series = series
        self._counters: dict[tuple[str, ...], tuple[Counter, ScopeGroup]] = {}
        self._last_ms: dict[tuple[str, str], int] = {}
        self._lasts: dict[tuple[str, str], ScopeGroup] = {}

    def count(self, failure: Failure, failure_type: str, entity: Entity, time_ms: int) -> None:
        """Count a failure; its type is the value of the label ``type``, empty if no enricher set it."""
        whose = (entity.kind, entity.query_name)
        key = (*whose, self._error(failure, whose), failure_type)
        if key not in self._counters:
            labels = dict(zip(("job_kind", "query_name", "error", "failure_type"), key, strict=True))
            group = self._series.child(components=("failures", *key), variables=labels)
            counter = Counter("{failure}", "Failures by kind of job, error and type.")
            self._counters[key] = (group.register("failures", counter), group)
        self._counters[key][0].inc()
        self._last_ms[whose] = max(time_ms, self._last_ms.get(whose, 0))
        if whose not in self._lasts:
            labels = dict(zip(("job_kind", "query_name"), whose, strict=True))
            self._lasts[whose] = group = self._series.child(components=("failures", *whose), variables=labels)
            last = Gauge(lambda: self._last_ms[whose], "ms", "When the last failure was.")
            group.register("lastFailureTimestamp", last)

    def forget(self, query_name: str) -> None:
        """Called when the metrics of a query have been removed."""
        for key in [key for key in self._counters if key[1] == query_name]:
            self._counters.pop(key)[1].close()
        for whose in [whose for whose in self._lasts if whose[1] == query_name]:
            self._lasts.pop(whose).close()

    def _error(self, failure: Failure, whose: tuple[str, str]) -> str:
        """Return the error's condition or class, or the overflow label after too many different ones."""
        thrown = failure.error_class or (failure.exception_type or "").rsplit(".", 1)[-1]
        known = {key[2] for key in self._counters if key[:2] == whose}
        return thrown if thrown in known or len(known) < _MOST_ERRORS else _OTHER


class FailureEvents:
    """Builds a JobFailureEvent out of a failure, and counts it.

    Attributes:
        metrics: the counts.
        failed_tasks: what workers have sent of failed tasks, for the failures of their stages and jobs.
        executor_ends: of what executors ended, for the failures that follow from it.
        limits: what executors may use of memory; None while that is not known.
    """

    def __init__(self, emitter: Emitter, enrichers: Enrichers) -> None:
        self._emitter = emitter
        self._enrichers = enrichers
        self.metrics = FailureMetrics(emitter.series)
        self.failed_tasks = FailedTasks()
        self.executor_ends = ExecutorEnds()
        self.limits: MemoryLimits | None = None
        self._of_lost: tuple[str, tuple[str, str] | None] = "", None
        """What failed last because an executor was lost, in its words, and the executor and how it ended."""

    def report(
        self,
        failure: Failure,
        entity: Entity,
        group: MetricGroup,
        time_ms: int,
        *,
        can_restart: bool | None = None,
        is_global: bool | None = None,
        occasion: str = "",
        code: CodePlace | None = None,
        stage: FailedStage | None = None,
    ) -> None:
        """Report one failure.

        Args:
            failure: what was thrown.
            entity: what failed.
            group: the group whose variables the event carries.
            time_ms: when, in ms since the epoch.
            can_restart: whether Spark tries again by itself; None if unknown.
            is_global: whether the whole job failed, rather than a single task; None if unknown.
            occasion: what distinguishes it from the entity's other failures, in the id.
            code: the place in the user's code that called what failed, where the failure has none.
            stage: the one that failed, or that failed last in what failed.
        """
        details = self.failed_tasks.details(failure)
        of_worker = ended_without_a_word(failure)
        failure = explained(failure, self.limits)
        labels = self._enrichers.labels(failure, FailureContext(entity.kind, group.all_variables))
        event = (
            Event.builder(CLASS_SCOPE, event_names.JOB_FAILURE)
            .set_severity(Severity.WARN if can_restart else Severity.ERROR)
            .set_body(f"{entity.title} failed: {in_one_line(failure)}")
            .set_attribute("canRestart", _word(can_restart))
            .set_attribute("isGlobalFailure", _word(is_global))
            .set_attributes({f"failureLabel.{key}": value for key, value in labels.items()})
            .set_attribute("exception.type", failure.exception_type)
            .set_attribute("exception.message", failure.message)
            .set_attribute("exception.stacktrace", failure.stacktrace)
            .set_attribute("errorClass", failure.error_class)
            .set_attribute("sqlState", failure.sql_state)
            .set_attribute("exitCode", failure.exit_code)
            .set_attribute("exitSignal", failure.exit_signal)
        )
        if place := failure.code or code:
            event.set_attributes(place.attributes)
        event.set_attributes(details)
        if of_worker and self.limits is not None:
            event.set_attributes(self.limits.attributes)
        if lost := self._cause_of(failure, stage):
            executor, sentence = lost
            event.set_attribute("executorLost.id", executor)
            event.set_attribute("executorLost.reason", reason_class(sentence) if sentence else None)
            event.set_attribute("executorLost.exitCode", exit_code(sentence))
        self._emitter.emit(event, entity, group, time_ms, ("failure", occasion), "FAILED")
        self.metrics.count(failure, labels.get("type", ""), entity, time_ms)

    def _cause_of(self, failure: Failure, stage: FailedStage | None) -> tuple[str, str] | None:
        """Return the executor with whose end something failed, and how it ended, in Spark's words.

        Of a query or the application, no stage is known: it fails with what its job failed of.
        """
        lost = self.executor_ends.cause_of(failure, stage)
        said = f"{failure.exception_type}: {failure.message}"
        if lost is not None:
            self._of_lost = said, lost
        elif stage is None and said == self._of_lost[0]:
            return self._of_lost[1]
        return lost


def _word(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


_LONGEST = 1_000
_MOST_LINES = 100
_OF_PYSPARK = "pyspark.errors."


def in_one_line(failure: Failure) -> str:
    """Return ``KeyError: 'customer'``: the class, not said twice, and the first line that says anything."""
    said, thrown = _first_words(failure.message), _class_name(failure)
    full = failure.exception_type or ""
    if not thrown or (said and (_begins(said, thrown) or _begins(said, full))):
        return said or "it said nothing"
    return f"{thrown}: {said}" if said else thrown


def _first_words(message: str) -> str:
    """Return the first line that is not blank; after one that ends with a colon, the next one as well."""
    lines = (line.strip() for line in message[:_LONGEST].split("\n", _MOST_LINES))
    said = ""
    for line in filter(None, lines):
        said = f"{said} {line}" if said else line
        if not said.endswith(":"):
            break
    return said


def _class_name(failure: Failure) -> str:
    """Return a class of Java's or PySpark's by its own name alone, others of Python's as tracebacks do."""
    name = failure.exception_type or ""
    if name.startswith(_OF_PYSPARK) or not _is_of_python(name, failure.stacktrace or ""):
        return name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    return name


def _is_of_python(name: str, text: str) -> bool:
    # From the first traceback on: a message may quote others. It is below the frames, if there are any; what
    # Java threw is below other text, or frames that begin with a tab.
    _, traceback, raised = text.partition(TRACEBACK)
    below = rf"(?:\A|^[ |][^\n]*)\n[ |]*{re.escape(name)}(?::|\s*$)"
    return bool(traceback) and re.search(below, raised, re.MULTILINE) is not None


def _begins(said: str, name: str) -> bool:
    return said.startswith(name) and not said[len(name) : len(name) + 1].isalnum()
