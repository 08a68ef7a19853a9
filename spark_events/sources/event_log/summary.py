"""What came of a replay: of each log, of all of them together, and of what was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_events.api import ApplicationInfo
from spark_events.runtime.stats import LOSS_CAUSES
from spark_events.sources.event_log.outcomes import Outcomes
from spark_events.sources.event_log.records import NO_RECORD, NOT_JSON, RecordCounts

_MOST_NOTES = 20


@dataclass(slots=True)
class ReplayedLog:
    """What came of one log.

    Attributes:
        path: of the log.
        application: whose it is; None where it does not say.
        spark_version: that wrote it; empty where it does not say.
        ended: whether the application's end is in it.
        counts: what became of its lines.
        outcomes: the last statuses, and how many events there were.
        notes: what else there is to say, a sentence each.
        unreadable: whether a part of its bytes could not be read.
    """

    path: str
    application: ApplicationInfo | None = None
    spark_version: str = ""
    ended: bool = False
    counts: RecordCounts = field(default_factory=RecordCounts)
    outcomes: Outcomes = field(default_factory=Outcomes)
    notes: list[str] = field(default_factory=list)
    unreadable: bool = False

    @property
    def is_event_log(self) -> bool:
        """Whether any line was a record of Spark's."""
        counts = self.counts
        strange = counts.skipped[NOT_JSON] + counts.skipped[NO_RECORD] + sum(counts.unknown.values())
        return self.application is not None or counts.read > strange


@dataclass(slots=True)
class Delivered:
    """What became of the events and spans of one reporter, over all logs.

    Attributes:
        reported: how many it delivered.
        lost: how many it did not, by cause.
        waiting: how many its journal still holds.
    """

    reported: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    waiting: int = 0


@dataclass(slots=True)
class Summary:
    """What came of all logs together.

    Attributes:
        logs: how many event logs were read.
        applications: the ids of their applications.
        versions: how many logs each version of Spark wrote.
        counts: what became of their lines.
        outcomes: last statuses, and how many events there were.
        notes: what is to be said of single logs.
        notes_left_out: how many notes there are beyond those.
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
            self.note(f"{log.path}: no event log")
            return
        self.logs += 1
        self.unreadable += log.unreadable
        if log.application is not None:
            self.applications.add(log.application.id)
            self.versions[log.spark_version or "unknown"] += 1
        self.counts.add(log.counts)
        self.outcomes.add(log.outcomes)
        for note in log.notes:
            self.note(f"{log.path}: {note}")

    def merge(self, other: Summary) -> None:
        """Add those of another part of the logs."""
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
        """Keep a sentence, of many the first ones."""
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(sentence)
        else:
            self.notes_left_out += 1


def lost_sentences(delivered: Mapping[str, Delivered]) -> Iterator[str]:
    """Say what was lost, a sentence for each reporter and cause."""
    causes = {**LOSS_CAUSES, "failed": "the reporter raised on them"}
    for title, items in delivered.items():
        for cause, count in items.lost.items():
            yield f"{title}: {count} item(s) lost: {causes.get(cause, cause)}"
