"""Output of a replay: applications, versions, last statuses, what was sent, what was skipped."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from spark_events.api import JobStatus
from spark_events.cli.console import out, plain, say
from spark_events.sources.event_log.summary import Delivered, Outcomes, Summary, lost_sentences

_KINDS = ("application", "query", "job")


def print_summary(summary: Summary) -> None:
    """Print what came of the logs."""
    versions = ", ".join(
        version if count == summary.logs else f"{version} ({count})"
        for version, count in sorted(summary.versions.items())
    )
    spark = f", Spark {versions}" if versions else ""
    say(
        f"[bold]{_count(len(summary.applications), 'application')}[/] in {_count(summary.logs, 'event log')}"
        + plain(spark),
    )
    if summary.outcomes.counts:
        out.print(_outcomes_table(summary.outcomes))
    counts = summary.counts
    say(
        f"{_count(counts.read, 'record')}, {counts.tasks:,} of tasks: "
        f"{_count(summary.outcomes.events, 'event')}",
    )
    for sentence in summary.outcomes.failures:
        say(f"[red]failed[/] {plain(sentence)}")
    if summary.outcomes.more_failures:
        say(f"[red]failed[/] and {summary.outcomes.more_failures:,} more")
    lost = counts.lost()
    if lost:
        out.print(f"[yellow]skipped[/] {_count(sum(lost.values()), 'record')}:")
        for reason, count in lost.most_common():
            say(f"  {count:,} {plain(reason)}")
    for note in summary.notes:
        say(f"[yellow]note[/] {plain(note)}")
    if summary.notes_left_out:
        say(f"[yellow]note[/] and {summary.notes_left_out:,} more")


def _outcomes_table(outcomes: Outcomes) -> Table:
    counts = outcomes.counts
    statuses = [status.value for status in JobStatus if any(key[1] == status.value for key in counts)]
    table = Table("kind", *statuses)
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in _KINDS:
        if any(key[0] == kind for key in counts):
            table.add_row(kind, *(f"{counts[kind, status]:,}" for status in statuses))
    return table


def print_delivered(delivered: Mapping[str, Delivered]) -> bool:
    """Print what became of what was reported, and tell whether all of it was delivered."""
    for title, of in delivered.items():
        waiting = f", {of.waiting:,} waiting in its journal" if of.waiting else ""
        say(f"{plain(title)}: {of.reported:,} sent{waiting}")
    lost = list(lost_sentences(delivered))
    for sentence in lost:
        say(f"[bold red]lost[/] {plain(sentence)}")
    return not lost


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
