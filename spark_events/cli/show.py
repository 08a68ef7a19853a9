"""The command ``show``: stored events as people read them, one line each."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import orjson
import typer

from spark_events.api import Severity
from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.api.toolkit.formatting import moment, some_names
from spark_events.cli.terminal.console import (
    INTERRUPTED,
    has_all_characters,
    out,
    plain,
    print_warnings,
    say,
)
from spark_events.cli.terminal.options import App, From, Query, Until
from spark_events.history.asked_time import time_of
from spark_events.history.reading.event_lines import EventLines, StoredEvent
from spark_events.runtime.event_names import ALL_SUBTASKS_STATUS_CHANGE, JOB_FAILURE, JOB_STATUS_CHANGE

_MISSED = (
    "{number:,} files of events were deleted before they were read: the file log keeps too few "
    "(retention.max-files), or too small ones (rotate.max-bytes)"
)
_LOOK_EVERY_S = 0.5
_STYLES = {"WARN": "yellow", "ERROR": "bold red", "FATAL": "bold red"}
_WIDEST_SEVERITY = 5
_SUBJECT = (
    "job_kind",
    "app_name",
    "app_id",
    "app_attempt_id",
    "run_id",
    "job_id",
    "stage_id",
    "stage_attempt_id",
)
"""The attributes that say what an event is about."""
_MOST_KNOWN = 1_000
_TOGETHER_MS = 1_000
"""How long after a change of status its failure may come."""
_NAMED = {
    "--app": "applications",
    "--query": "queries",
    "--name": "events",
    "--severity": "severities",
}
"""What there is of each option that names something."""
_STARTED = {
    "NOT_ALL_RUNNING_OR_FINISHED": "not all tasks have started",
    "ALL_RUNNING_OR_FINISHED": "all tasks have started",
}
"""What Spark's words for the tasks of a stage mean; the second is a part of the first."""


def show(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Stored events: files, folders or globs of a file log or a collector's file exporter.",
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also show events as they are added, until Ctrl-C.")
    ] = False,
    app: App = None,
    query: Query = None,
    name: Annotated[
        str | None, typer.Option(metavar="EVENT", help="Only events of this name, such as JobFailureEvent.")
    ] = None,
    severity: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="Only events of this severity or above, such as warn or error."),
    ] = None,
    begin: From = None,
    until: Until = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event whole, as one JSON object per line.")
    ] = False,
) -> None:
    """Show stored events, oldest first, one per line: time (UTC), severity, what happened, application.

    What happened ends with the place in your code where that is known. Exits 4 if there are no events, or
    none that match.
    """
    since_ms = 0 if begin is None else time_of("--from", begin)
    until_ms = float("inf") if until is None else time_of("--until", until)
    least = _severity("--severity", severity or Severity.TRACE.name)
    lines = EventLines(paths, follow)
    if not follow:
        lines.demand_some()

    known = _Known()

    def matches(event: StoredEvent) -> bool:
        known.see(event)
        return (
            (app is None or app in (event.attributes.get("app_name"), event.attributes.get("app_id")))
            and (query is None or query == event.attributes.get("query_name"))
            and (name is None or name == event.name)
            and (Severity.of(event.severity) or Severity.INFO) >= least
            and since_ms <= event.time_ms <= until_ms
        )

    for file in lines.left_out:
        print_warnings([f"{file} is left out: show cannot read this compression; unpack it"])
    try:
        failures = _Failures() if name is None else None
        printed, read = _show_new(lines, matches, as_json, failures)
        while follow:
            sys.stdout.flush()
            time.sleep(_LOOK_EVERY_S)
            missed = lines.missed
            _show_new(lines, matches, as_json, failures)
            if lines.missed > missed:
                print_warnings([_MISSED.format(number=lines.missed - missed)])
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if lines.cut:
        print_warnings(
            [f"files that cannot be read to their end: {len(lines.cut):,} (one is {lines.cut[0]})"]
        )
    if lines.skipped:
        print_warnings([f"lines that are not events, skipped: {lines.skipped:,}"])
    if not printed:
        given = {"--app": app, "--query": query, "--name": name, "--severity": severity}
        given |= {"--from": begin, "--until": until}
        raise NothingToReadError(
            known.none_of(read, {option: text for option, text in given.items() if text is not None})
            if read
            else "the files have no events"
        )


@dataclass(slots=True)
class _Known:
    """What there is to ask for, by the option that asks for it."""

    values: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    first_ms: int = sys.maxsize
    last_ms: int = 0

    def see(self, event: StoredEvent) -> None:
        """Called with each event."""
        seen = {
            "--app": event.attributes.get("app_name"),
            "--query": event.attributes.get("query_name"),
            "--name": event.name,
            "--severity": event.severity,
        }
        for option, value in seen.items():
            if value and len(self.values[option]) < _MOST_KNOWN:
                self.values[option].add(str(value))
        self.first_ms, self.last_ms = min(self.first_ms, event.time_ms), max(self.last_ms, event.time_ms)

    def none_of(self, read: int, given: Mapping[str, str]) -> str:
        """Return what to say where no event matches the options that were given."""
        asked = " ".join(f"{option} {text}" for option, text in given.items())
        there = [
            f"{_NAMED[option]}: {some_names(self.values[option])}" for option in given if option in _NAMED
        ]
        if given.keys() - _NAMED.keys():
            there.append(f"they are from {moment(self.first_ms)} to {moment(self.last_ms)} UTC")
        return f"none of {read:,} events matches {asked}; {'; '.join(there)}"


def _severity(option: str, text: str) -> Severity:
    severity = Severity.of(text)
    if severity is None:
        raise UsageError(
            f"{option} {text}: expected one of {', '.join(each.name.lower() for each in Severity)}"
        )
    return severity


def _show_new(
    lines: EventLines, matches: Callable[[StoredEvent], bool], as_json: bool, failures: _Failures | None
) -> tuple[int, int]:
    """Print the events that were added, and return how many match and how many were read.

    Args:
        failures: those printed before; None to print what repeats them, too.
    """
    matching = read = 0

    def those_that_match() -> Iterator[StoredEvent]:
        nonlocal matching, read
        for event in lines.read():
            read += 1
            if matches(event):
                matching += 1
                yield event

    chosen = those_that_match()
    for event in chosen if failures is None or as_json else failures.once(chosen):
        if not as_json:
            say(_line(event), out)
            continue
        try:
            sys.stdout.write(_as_json(event) + "\n")
        except RecursionError:  # it is nested deeper than Python writes JSON
            lines.skipped += 1
    return matching, read


def _as_json(event: StoredEvent) -> str:
    if not has_all_characters():
        return json.dumps(event.record, separators=(",", ":"))
    try:
        return orjson.dumps(event.record).decode(errors="replace")
    except orjson.JSONEncodeError:  # it is nested deeper than orjson writes, which reads more
        return json.dumps(event.record, ensure_ascii=False, separators=(",", ":"))


class _Failures:
    """Leaves out the changes of status to FAILED that say nothing more than a failure, which has the reason.

    The one may be before or after the other.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], None] = {}

    def once(self, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield events, in their order; what comes after a change of status waits for its failure."""
        held: deque[StoredEvent] = deque()
        for event in events:
            held.append(event)
            subject = _subject(event)
            if event.name == JOB_FAILURE:
                before = next((each for each in held if _is_end(each) and _subject(each) == subject), None)
                if before is None:
                    self._told[subject] = None
                else:
                    held.remove(before)
            elif _is_end(event) and self._told.pop(subject, True) is None:
                held.pop()
            if len(self._told) > _MOST_KNOWN:
                del self._told[next(iter(self._told))]
            while held and (not _is_end(held[0]) or event.time_ms - held[0].time_ms > _TOGETHER_MS):
                yield held.popleft()
        yield from held


def _is_end(event: StoredEvent) -> bool:
    return event.name == JOB_STATUS_CHANGE and event.attributes.get("newJobStatus") == "FAILED"


def _subject(event: StoredEvent) -> tuple[str, ...]:
    return tuple(str(event.attributes.get(name)) for name in _SUBJECT)


def _in_words(event: StoredEvent) -> str:
    """Return the first line of what happened; of the tasks of a stage, in words of Spark's."""
    body = (event.body or event.name).split("\n", 1)[0]
    if event.name == ALL_SUBTASKS_STATUS_CHANGE:
        for status, words in _STARTED.items():
            body = body.replace(status, words)
    return body


def _place(event: StoredEvent, said: str) -> str:
    """Return the place in the user's code, as a report has it; empty if there is none, or it is said."""
    file, line, function = (
        str(event.attributes.get(f"code.{part}") or "")
        for part in ("file.path", "line.number", "function.name")
    )
    if not file or f"{file.rpartition('/')[2]}:{line}" in said:
        return ""
    return f" ({file}{line and f':{line}'}{function and f', in {function}'})"


def _line(event: StoredEvent) -> str:
    said = _in_words(event)
    body = plain(said + _place(event, said))
    style = _STYLES.get(event.severity)
    severity = plain(f"{event.severity:<{_WIDEST_SEVERITY}}")
    marked = f"[{style}]{severity}[/] {body}" if style else f"{severity} {body}"
    app = plain(str(event.attributes.get("app_name", "")))
    return f"[dim]{moment(event.time_ms)}Z[/] {marked}" + (f"  [dim]({app})[/]" if app else "")
