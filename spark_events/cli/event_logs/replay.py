"""The command ``replay``; what it needs is imported when it runs."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from spark_events.api import JobStatus
from spark_events.api.errors import UsageError
from spark_events.api.toolkit.formatting import duration, path_without_secrets, size
from spark_events.cli.terminal.console import (
    FAILED,
    INTERRUPTED,
    NOTHING_TO_READ,
    err,
    log_to_terminal,
    out,
    plain,
    print_error,
    print_warnings,
    say,
    show_table,
)
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.sources.event_log.summary import Delivered, Outcomes, Summary, lost_sentences
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.sources.event_log.on_spark import ReplayOutput


_AGAIN = "run it again: the ids stay the same, so nothing is duplicated"


class FileFormat(enum.Enum):
    """In which files the events of a fleet are written."""

    PARQUET = "parquet"
    JSON = "json"


class SaveMode(enum.Enum):
    """What to do where there are files already: Spark's save modes."""

    ERROR = "error"
    OVERWRITE = "overwrite"
    APPEND = "append"


def replay(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="A Spark event log, a folder of logs, or a glob: a local path or any fsspec URL.",
        ),
    ],
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark", help="Run as a PySpark job with one task per log, and write the events as files."
        ),
    ] = False,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="With --on-spark: folder or URL for the events.")
    ] = None,
    file_format: Annotated[
        FileFormat,
        typer.Option("--format", metavar="parquet|json", help="With --on-spark: the format of the files."),
    ] = FileFormat.PARQUET,
    mode: Annotated[
        SaveMode,
        typer.Option(
            metavar="error|overwrite|append", help="With --on-spark: what to do if the output exists."
        ),
    ] = SaveMode.ERROR,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --on-spark: the master, as for spark-submit.")
    ] = None,
) -> None:
    """Report the events and spans of past applications from their Spark event logs.

    They have the same ids as when reported live, so you can repeat a replay. Exits 1 if events were lost or a
    log could not be read, 4 if there is nothing to read. Damaged records are counted, and do not change that.
    """
    given, _ = read_conf(properties_file, conf or ())
    log_to_terminal()
    if on_spark != (output is not None):
        raise UsageError("--on-spark and --output need each other: events are written to files, not sent")
    if output is not None:
        from spark_events.sources.event_log.on_spark import ReplayOutput

        target = ReplayOutput(output, file_format.value, mode.value)
        raise typer.Exit(_replay_on_spark(paths, given, target, master))
    raise typer.Exit(_replay_here(paths, given))


def _replay_on_spark(
    paths: Sequence[str], conf: Mapping[str, str], target: ReplayOutput, master: str | None
) -> int:
    """Return the exit code: 0, or FAILED where a log could not be read."""
    from spark_events.sources.event_log.on_spark import replay_on_spark

    summary = replay_on_spark(paths, conf, {**conf, "spark.master": master} if master else conf, target)
    print_summary(summary)
    say(f"written to {plain(path_without_secrets(target.path))}", err)
    return FAILED if summary.unreadable or summary.unprocessed or not summary.logs else 0


def _replay_here(paths: Sequence[str], conf: Mapping[str, str]) -> int:
    """Return the exit code: 0, FAILED where something was lost or could not be read, or INTERRUPTED."""
    from spark_events.sources.event_log.reading.files import LogFiles
    from spark_events.sources.event_log.replay import Replay, StalledError

    replaying = Replay(conf)
    print_warnings(replaying.warnings)
    logs = [(files, log) for files in map(LogFiles, paths) for log in files.find()]
    read, began, code, problem = 0, time.monotonic(), 0, ""
    try:
        with _progress() as progress:
            task = progress.add_task("", total=sum(log.size for _, log in logs))
            for block in replaying.run(logs):
                read += block
                progress.update(task, completed=read)
    except StalledError as error:
        code, problem = FAILED, f"{error}; {_AGAIN}"
    except KeyboardInterrupt:
        code, problem = INTERRUPTED, f"interrupted; {_AGAIN}"
    summary = replaying.summary
    print_summary(summary)
    complete = print_delivered(replaying.delivered)
    say(f"[dim]{size(read)} in {duration(1_000 * (time.monotonic() - began))}[/]")
    if not problem and not summary.logs:
        code = NOTHING_TO_READ
        problem = f"no event log at {', '.join(map(path_without_secrets, paths))}"
    if problem:
        print_error(problem)
    whole = not summary.unreadable and not summary.unprocessed
    return code or (0 if complete and summary.logs and whole else FAILED)


def _progress() -> Progress:
    return Progress(
        TextColumn("replaying"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


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
        show_table(_outcomes_table(summary.outcomes))
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
