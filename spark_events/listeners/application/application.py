"""The application itself: CREATED, RUNNING, and FINISHED or FAILED."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_events.api import ApplicationInfo, Failure, Gauge, JobStatus
from spark_events.listeners import spark_records
from spark_events.listeners.application.attempts import Attempts
from spark_events.listeners.application.job_status import JobStatusTracker, StatusMetrics
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity, ended_span
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.long_texts import LONGEST_NAME, cut
from spark_events.listeners.record_fields import APP_ID, APP_NAME, EXIT_CODE
from spark_events.listeners.record_types import (
    ApplicationDeadRecord,
    ApplicationEndRecord,
    ApplicationStartRecord,
)
from spark_events.listeners.spark_records import (
    ATTACHED,
    ATTACHMENT,
    EXIT_SIGNAL,
    INTERACTIVE,
    NOT_STARTED,
    OUTCOME_ASSUMED,
    RESTARTED,
)


class ApplicationListener(Timeless):
    """Follows one application from its start record to its end record.

    Args:
        context: what the listeners share.
        spark_version: of the application; empty if unknown.
        timeline: says at the end where its time went; None if no span will have it.
    """

    def __init__(
        self, context: ListenerContext, spark_version: str, timeline: ApplicationTimeline | None
    ) -> None:
        self._context = context
        self._timeline = timeline
        application = context.emitter.application
        self._attempts = Attempts(application.attempt_id)
        entity = Entity("application", "", f"application {application.name!r}")
        self.tracker = JobStatusTracker(context.emitter, entity, context.scopes.application_run())
        series = context.scopes.application()
        enabled = context.settings.status_metrics
        StatusMetrics(series, "application", enabled).watch(self.tracker)
        context.all_subtasks.register(series, "", enabled)
        self._start_ms = 0
        self._spark_version = spark_version
        # Ids change with each run, so only this metric has them as labels.
        ids = {
            "app_id": application.id,
            "app_attempt_id": application.attempt_id,
            "spark_version": spark_version,
        }
        series.child(components=("info",), variables=ids).register(
            "info", Gauge(lambda: 1, description="Always 1; its labels identify the run of the application.")
        )

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.APPLICATION_START: early(self.on_start),
            spark_records.ENVIRONMENT_UPDATE: self._attempts.on_environment,
            spark_records.APPLICATION_END: self.on_end,
            spark_records.APPLICATION_DEAD: self.on_dead,
            spark_records.APPLICATION_ALIVE: early(self.on_alive),
        }

    def on_start(self, record: ApplicationStartRecord, time_ms: int) -> None:
        """Handle ApplicationStart: a started driver counts as up, even while it waits for executors.

        To those who read its events, it ended with the attachment before, and is up again with this one.
        """
        self._start_ms = record.get(ATTACHED, time_ms)
        if ATTACHED not in record:
            self.tracker.change(JobStatus.CREATED, time_ms)
        if NOT_STARTED not in record:
            self.tracker.change(JobStatus.RUNNING, self._start_ms)

    def on_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd, to which sources add what they know of how it came to that."""
        outcome = outcome_of(record, self._context.settings.stop_signals)
        failure = outcome.failure
        if failure is not None:
            self._report(failure, time_ms, self._attempts.has_more)
        self.tracker.change(outcome.status, time_ms, failure=failure, attributes=outcome.attributes)
        self._span(time_ms, failure)

    def on_dead(self, record: ApplicationDeadRecord, time_ms: int) -> None:
        """Called when an unfinished event log is no longer being written."""
        occasion = f"dead since {time_ms}"
        failure = Failure(str(record["Reason"]))
        restarts = True if record.get(RESTARTED) else self._attempts.has_more
        self._report(failure, time_ms, restarts, occasion)
        self.tracker.change(JobStatus.FAILED, time_ms, occasion, failure, assumed_of(record))

    def on_alive(self, record: dict[str, Any], time_ms: int) -> None:
        """Called when that log is written again: the application was wrongly considered dead."""
        self.tracker.revive(time_ms)

    def _report(self, failure: Failure, time_ms: int, restarts: bool | None, occasion: str = "") -> None:
        entity, group = self.tracker.entity, self.tracker.group
        self._context.failures.report(
            failure, entity, group, time_ms, can_restart=restarts, is_global=True, occasion=occasion
        )

    def _span(self, end_ms: int, failure: Failure | None) -> None:
        span = (
            ended_span("Application", self._start_ms, end_ms, failure)
            .set_attribute("jobStatus", self.tracker.status.value if self.tracker.status else None)
            .set_attribute("sparkVersion", self._spark_version or None)
            .set_routine(False)
        )
        for name, value in self._timeline.attributes().items() if self._timeline else ():
            span.set_attribute(name, value)
        traces, tracker = self._context.traces, self.tracker
        traces.report(span, traces.application, tracker.entity, tracker.group)


def register_interactive(context: ListenerContext, record: ApplicationStartRecord) -> None:
    """Register whether somebody types the application's program, where the record of its start says so.

    Such an application goes away with its notebook, without a word, and nobody wants to be paged for it.
    """
    if INTERACTIVE in record:
        interactive = int(bool(record[INTERACTIVE]))
        described = "1 if the program is typed, in a Python prompt or a notebook; 0 otherwise."
        gauge = Gauge(lambda: interactive, description=described)
        context.scopes.application().register(INTERACTIVE_METRIC, gauge)


def application_of(record: ApplicationStartRecord) -> ApplicationInfo:
    """Return the application that an ApplicationStart begins."""
    info = application_info(record.get(APP_NAME), record.get(APP_ID), record.get("App Attempt ID"))
    return replace(info, attachment=record.get(ATTACHMENT, 1))


def application_info(name: object, app_id: object, attempt_id: object = "") -> ApplicationInfo:
    """Return the application that the record of its start describes."""
    return ApplicationInfo(cut(str(name or ""), LONGEST_NAME), str(app_id or ""), str(attempt_id or ""))


INTERACTIVE_METRIC = "interactive"
"""The name of the metric that tells notebooks, whose ends nobody wants to be alerted of."""
KILLED = "the driver was killed"
ENDED_BY = "the driver was ended by"
CTRL_C = "SIGINT"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an application.

    Attributes:
        status: FINISHED, FAILED, or CANCELED if a signal ended it that was meant to.
        failure: why it failed; None if it did not.
        assumed: whether it may have ended differently.
        exit_code: of its process; None if unknown.
        exit_signal: the signal that ended it; None if none did.
    """

    status: JobStatus
    failure: Failure | None = None
    assumed: bool = False
    exit_code: int | None = None
    exit_signal: str | None = None

    @property
    def of_what_ran(self) -> JobStatus:
        """The status that whatever the application still ran comes to."""
        return JobStatus.FAILED if self.failure is not None else JobStatus.CANCELED

    @property
    def attributes(self) -> Mapping[str, str | int | None]:
        """What the events of the end carry."""
        return {
            "exitCode": self.exit_code,
            "exitSignal": self.exit_signal,
            **assumed_of({OUTCOME_ASSUMED: self.assumed}),
        }


def assumed_of(record: ApplicationEndRecord | ApplicationDeadRecord) -> Mapping[str, str | int | None]:
    """Return the attribute of the events of an end that says whether it is a guess."""
    return {"outcome": "assumed" if record.get(OUTCOME_ASSUMED) else None}


def outcome_of(record: ApplicationEndRecord, meant: Collection[str] = ()) -> Outcome:
    """Return the outcome that an ApplicationEnd tells.

    Args:
        record: Spark's, which from version 4 has an exit code, with what a source has added.
        meant: the signals that stop an application on purpose.
    """
    code, name = record.get(EXIT_CODE) or None, record.get(EXIT_SIGNAL)
    thrown, assumed = record.get("Exception"), bool(record.get(OUTCOME_ASSUMED))
    if name in meant:
        return Outcome(JobStatus.CANCELED, None, assumed, code, name)
    if not code and not name and not thrown:
        return Outcome(JobStatus.FINISHED, None, assumed)
    failure = parse_failure(thrown) if thrown else Failure(_sentence(code, name))
    if name == CTRL_C and not failure.message:  # Python's KeyboardInterrupt has none
        failure = replace(failure, message=_sentence(code, name))
    failure = replace(failure, exit_code=code, exit_signal=name)
    return Outcome(JobStatus.FAILED, failure, assumed, code, name)


def _sentence(code: int | None, name: str | None) -> str:
    if name is None:
        return f"the application ended with exit code {code}"
    if name == CTRL_C:
        return f"{ENDED_BY} {name} (Ctrl-C)"
    said = f" (exit code {code})" if code else ""
    if name == "SIGKILL":
        return f"{KILLED} by SIGKILL{said}: by hand, or because memory ran out"
    return f"{ENDED_BY} {name}{said}"
