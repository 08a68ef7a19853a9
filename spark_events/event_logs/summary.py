"""What a replay prints: applications, versions, last statuses, what was sent, what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from spark_events.api import JobStatus
from spark_events.sources.event_log.application import Outcomes
from spark_events.sources.event_log.records import RecordCounts
from spark_events.sources.event_log.replay import Delivered, ReplayedLog, lost_sentences
from spark_events.texts import plain

_KINDS = ("application", "query", "job")
_MOST_NOTES = 20


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

    def print(self, out: Console) -> None:
        """Print it all but the deliveries."""
        versions = ", ".join(
            version if count == self.logs else f"{version} ({count})"
            for version, count in sorted(self.versions.items())
        )
        spark = f", Spark {versions}" if versions else ""
        out.print(
            f"[bold]{_count(len(self.applications), 'application')}[/] in {_count(self.logs, 'event log')}"
            + plain(spark),
            soft_wrap=True,
        )
        if self.outcomes.counts:
            out.print(self._outcomes())
        counts = self.counts
        out.print(
            f"{_count(counts.read, 'record')}, {counts.tasks:,} of tasks: "
            f"{_count(self.outcomes.events, 'event')}",
            soft_wrap=True,
        )
        for sentence in self.outcomes.failures:
            out.print(f"[red]failed[/] {plain(sentence)}", soft_wrap=True)
        if self.outcomes.more_failures:
            out.print(f"[red]failed[/] and {self.outcomes.more_failures:,} more", soft_wrap=True)
        lost = counts.lost()
        if lost:
            out.print(f"[yellow]skipped[/] {_count(sum(lost.values()), 'record')}:")
            for reason, count in lost.most_common():
                out.print(f"  {count:,} {plain(reason)}", soft_wrap=True)
        for note in self.notes:
            out.print(f"[yellow]note[/] {plain(note)}", soft_wrap=True)
        if self.notes_left_out:
            out.print(f"[yellow]note[/] and {self.notes_left_out:,} more", soft_wrap=True)

    def _outcomes(self) -> Table:
        found = self.outcomes.counts
        statuses = [status.value for status in JobStatus if any(key[1] == status.value for key in found)]
        table = Table("kind", *statuses)
        for column in table.columns[1:]:
            column.justify = "right"
        for kind in _KINDS:
            if any(key[0] == kind for key in found):
                table.add_row(kind, *(f"{found[kind, status]:,}" for status in statuses))
        return table


def print_delivered(delivered: Mapping[str, Delivered], out: Console) -> bool:
    """Print what became of what was reported, and tell whether all of it was delivered."""
    for title, of in delivered.items():
        waiting = f", {of.waiting:,} wait in its journal" if of.waiting else ""
        out.print(f"{plain(title)}: {of.reported:,} sent{waiting}", soft_wrap=True)
    lost = list(lost_sentences(delivered))
    for sentence in lost:
        out.print(f"[bold red]lost[/] {plain(sentence)}", soft_wrap=True)
    return not lost


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
