"""The outcome of a replay: of each log, of all logs together, and of what was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from spark_events.api import ApplicationInfo, Event, JobStatus
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime import event_names
from spark_events.runtime.workers.stats import LOSS_CAUSES
from spark_events.sources.event_log.records import (
    MALFORMED,
    NO_RECORD,
    NOT_JSON,
    STUMBLED,
    TOO_LONG,
    RecordCounts,
)

_MOST_NOTES = 20
_MOST_FAILURES = 10
_TERMINAL = {status.value for status in JobStatus if status.terminal}


class Outcomes:
    """Counts of the last status of each application, query and job, and the first failures.

    Attributes:
        events: how many events there were.
        failures: what failed, one sentence each; if there are many, only the first.
        more_failures: how many failures there are beyond those.
    """

    def __init__(self) -> None:
        self.events = 0
        self.failures: list[str] = []
        self.more_failures = 0
        self._ended: Counter[tuple[str, str]] = Counter()
        self._running: dict[tuple[str, ...], str] = {}

    def take(self, event: Event) -> None:
        """Called for each event."""
        self.events += 1
        if event.name == event_names.JOB_FAILURE:
            self._add_failures([_failure_sentence(event)])
        if event.name != event_names.JOB_STATUS_CHANGE:
            return
        kind, status = str(event.attributes["job_kind"]), str(event.attributes["newJobStatus"])
        ids = (event.variables.get(name, "") for name in ("app_id", "app_attempt_id", "run_id", "job_id"))
        key = (kind, *ids)
        if status in _TERMINAL:
            self._running.pop(key, None)
            self._ended[kind, status] += 1
        else:
            self._running[key] = status

    def add(self, other: Outcomes) -> None:
        """Add the outcomes of another application."""
        self.events += other.events
        self._ended += other.counts
        self._add_failures(other.failures)
        self.more_failures += other.more_failures

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How many there are of each kind in each status."""
        return self._ended + Counter((key[0], status) for key, status in self._running.items())

    def _add_failures(self, sentences: list[str]) -> None:
        room = _MOST_FAILURES - len(self.failures)
        self.failures += sentences[:room]
        self.more_failures += len(sentences[room:])


@dataclass(slots=True)
class ReplayedLog:
    """The outcome of one log.

    Attributes:
        application: the log's application; None if the log does not name it.
        spark_version: the version that wrote the log; empty if it does not say.
        ended: whether the application's end is in it.
        notes: further remarks, one sentence each.
        unreadable: whether a part of it is missing, or could not be read.
        compacted: a sentence on what Spark has left out of it on purpose; empty if it has not.
    """

    path: str
    application: ApplicationInfo | None = None
    spark_version: str = ""
    ended: bool = False
    counts: RecordCounts = field(default_factory=RecordCounts)
    outcomes: Outcomes = field(default_factory=Outcomes)
    notes: list[str] = field(default_factory=list)
    unreadable: bool = False
    compacted: str = ""

    @property
    def is_event_log(self) -> bool:
        """Whether any line was one of Spark's records."""
        counts = self.counts
        strange = counts.skipped[NOT_JSON] + counts.skipped[NO_RECORD] + sum(counts.unknown.values())
        return self.application is not None or counts.read > strange


@dataclass(slots=True)
class Delivered:
    """The fate of one reporter's events and spans, over all logs.

    Attributes:
        reported: how many it delivered.
        lost: how many it did not deliver, by cause.
        waiting: how many are still in its journal.
    """

    reported: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    waiting: int = 0


@dataclass(slots=True)
class Summary:
    """The outcome of all logs together.

    Attributes:
        logs: how many event logs were read.
        applications: the ids of their applications.
        versions: how many logs each version of Spark wrote.
        notes: remarks about single logs.
        notes_left_out: how many more remarks there are.
        unreadable: how many logs could not be read to their end.
    """

    logs: int = 0
    applications: set[str] = field(default_factory=set)
    versions: Counter[str] = field(default_factory=Counter)
    counts: RecordCounts = field(default_factory=RecordCounts)
    outcomes: Outcomes = field(default_factory=Outcomes)
    notes: list[str] = field(default_factory=list)
    notes_left_out: int = 0
    unreadable: int = 0

    def add(self, log: ReplayedLog) -> None:
        """Add one log."""
        if not log.is_event_log and not log.unreadable:
            self.note(f"{log.path}: not an event log")
            return
        self.logs += 1
        self.unreadable += log.unreadable
        if log.application is not None:
            self.applications.add(log.application.id)
            self.versions[log.spark_version or "unknown"] += 1
        self.counts.add(log.counts)
        self.outcomes.add(log.outcomes)
        for note in (*log.notes, log.compacted):
            if note:
                self.note(f"{log.path}: {note}")

    @property
    def unprocessed(self) -> int:
        """How many records could not be made events of although they are whole, and Spark's."""
        return sum(self.counts.skipped[reason] for reason in (STUMBLED, MALFORMED, TOO_LONG))

    def merge(self, other: Summary) -> None:
        """Add the summary of another part of the logs."""
        self.logs += other.logs
        self.applications |= other.applications
        self.versions += other.versions
        self.counts.add(other.counts)
        self.outcomes.add(other.outcomes)
        for note in other.notes:
            self.note(note)
        self.notes_left_out += other.notes_left_out
        self.unreadable += other.unreadable

    def note(self, sentence: str) -> None:
        """Keep a sentence, unless there are too many already."""
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(sentence)
        else:
            self.notes_left_out += 1


def lost_sentences(delivered: Mapping[str, Delivered]) -> Iterator[str]:
    """Yield a sentence for each reporter and cause of loss."""
    causes = {**LOSS_CAUSES, "failed": "the reporter raised an error"}
    for title, items in delivered.items():
        for cause, count in items.lost.items():
            yield f"{title}: {counted(count, 'item')} lost: {causes.get(cause, cause)}"


def _failure_sentence(event: Event) -> str:
    """Return a sentence saying when, in which application and how something failed."""
    return f"{iso_time(event.time_ms)} {event.variables.get('app_id', '')} {event.body}"


def iso_time(time_ms: int) -> str:
    """Return a time, given in ms since the epoch, in readable form, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
