"""One application as its event log tells it: listeners and reporters of its own, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from spark_events.api import ApplicationInfo, Event, JobStatus
from spark_events.listeners.application import application_info
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_records import (
    APPLICATION_END,
    APPLICATION_EXIT,
    APPLICATION_START,
    LOG_START,
    OUTCOME_ASSUMED,
)
from spark_events.listeners.translator import SparkListeners
from spark_events.sources.event_log.files import EventLog, LogFiles
from spark_events.sources.event_log.tail import LogTail

Start = Callable[[ApplicationInfo], SparkListeners]
_TICK_MS = 1_000
_MOST_FAILURES = 10
BEFORE_START = "before the application's start record"
STUMBLED = "a record that a listener could not take"
_OVER = {status.value for status in JobStatus if status.terminal}


class Outcomes:
    """The last status of each application, query and job, counted; and what failed first.

    Attributes:
        events: how many events there were.
        failures: what failed, a sentence each, of many the first ones.
        more_failures: how many there are beyond those.
    """

    def __init__(self) -> None:
        self.events = 0
        self.failures: list[str] = []
        self.more_failures = 0
        self._over: Counter[tuple[str, str]] = Counter()
        self._going_on: dict[tuple[str, ...], str] = {}

    def take(self, event: Event) -> None:
        """Take one event."""
        self.events += 1
        if event.name == "JobFailureEvent":
            self._fail([_sentence(event)])
        if event.name != "JobStatusChangeEvent":
            return
        kind, status = str(event.attributes["job.kind"]), str(event.attributes["newJobStatus"])
        ids = (event.variables.get(name, "") for name in ("app_id", "app_attempt_id", "run_id", "job_id"))
        key = (kind, *ids)
        if status in _OVER:
            self._going_on.pop(key, None)
            self._over[kind, status] += 1
        else:
            self._going_on[key] = status

    def add(self, other: Outcomes) -> None:
        """Add those of another application."""
        self.events += other.events
        self._over += other.counts
        self._fail(other.failures)
        self.more_failures += other.more_failures

    def _fail(self, sentences: list[str]) -> None:
        room = _MOST_FAILURES - len(self.failures)
        self.failures += sentences[:room]
        self.more_failures += len(sentences[room:])

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How many there are of each kind in each status."""
        return self._over + Counter((key[0], status) for key, status in self._going_on.items())


class LoggedApplication:
    """Feeds the records of one log to listeners, which are made when the log says whose it is.

    Args:
        files: where the log is.
        log: the log.
        start: makes the listeners of an application.
        resume: a position up to which an earlier process has read; None where there was none.
        resumed: told when that has been reached.

    Attributes:
        application: whose log it is; None before its start record.
        spark_version: as the log says.
        tail: reads the log.
        listeners: take the records; None before the start record.
    """

    def __init__(
        self,
        files: LogFiles,
        log: EventLog,
        start: Start,
        resume: tuple[int, int] | None = None,
        resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = log.name
        self._start = start
        self.application: ApplicationInfo | None = None
        self.spark_version = log.spark_version
        self.tail = LogTail(files, self._take, resume, resumed)
        self.listeners: SparkListeners | None = None
        self._exit: dict[str, Any] = {}
        self._ticked_ms = 0

    @property
    def ended(self) -> bool:
        """Whether the end of the application was seen."""
        return self.listeners is not None and self.listeners.ended

    @property
    def clock_ms(self) -> int:
        """The latest time that a record told, in ms since the epoch."""
        return self.listeners.clock_ms if self.listeners else 0

    def close(self) -> None:
        """Take that nothing more will come."""
        if self.listeners is not None:
            self.listeners.close()
            if self.listeners.stumbled:
                self.tail.reader.counts.skipped[STUMBLED] += self.listeners.stumbled

    def _take(self, record: dict[str, Any]) -> None:
        name = record["Event"]
        if self.listeners is None:
            if name == LOG_START:
                self.spark_version = str(record.get("Spark Version") or "")
                return
            if name != APPLICATION_START:
                # Spark 1 tells of the first executors before it tells of the application.
                if name != "SparkListenerExecutorAdded":
                    self.tail.reader.counts.skipped[BEFORE_START] += 1
                return
            record = self._begin(record)
        listeners = self.listeners
        assert listeners is not None
        if name == APPLICATION_EXIT:
            self._exit = record
            return
        if name == APPLICATION_END:
            if listeners.ended:
                return
            record = _with_exit(record, self._exit)
        listeners.on_record(record)
        if listeners.clock_ms >= self._ticked_ms + _TICK_MS:
            self._ticked_ms = listeners.clock_ms
            listeners.tick(self._ticked_ms)

    def _begin(self, record: dict[str, Any]) -> dict[str, Any]:
        # Before Spark 1.1 an application did not say its id.
        record = {**record, "App ID": record.get("App ID") or self._name}
        self.application = application_info(
            record.get("App Name"), record["App ID"], record.get("App Attempt ID")
        )
        self.listeners = self._start(self.application)
        self.tail.reader.sum_metrics(self.listeners.wants_sums)
        self.listeners.on_record({"Event": LOG_START, "Spark Version": self.spark_version})
        return record


def _with_exit(end: dict[str, Any], mark: dict[str, Any]) -> dict[str, Any]:
    """Return an ApplicationEnd with what the mark of ``spark-events run`` says of it.

    Spark's own exit code is 0 whatever Python did; where it is another one, Spark knows.
    """
    if end.get("ExitCode"):
        return end
    exit_code = mark.get("exitCode")
    how = {"ExitCode": exit_code, "Exception": mark.get("exception")}
    return {**end, **how, OUTCOME_ASSUMED: exit_code is None}


def _sentence(event: Event) -> str:
    """Return when and in which application something failed, and how."""
    app, body = event.variables.get("app_id", ""), event.body
    kind = event.attributes.get("exception.type")
    return f"{iso_time(event.observed_time_ms)} {app} {body}" + (f" ({kind})" if kind else "")


def iso_time(time_ms: int) -> str:
    """Return a time of ms since the epoch as a person reads it, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_state(settings: ListenerSettings) -> ListenerSettings:
    """Return listener settings for logs: each tells all that is known, so a repetition tells the same."""
    return replace(settings, state_dir=None)
