"""The command ``show``: stored events as people read them, one line each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Annotated

import orjson
import typer

from spark_events.api import Severity
from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.api.toolkit.formatting import moment
from spark_events.cli.terminal.console import INTERRUPTED, out, plain, print_warnings, say
from spark_events.cli.terminal.options import App, From, Query, Until
from spark_events.history.asked_time import time_of
from spark_events.history.reading.event_lines import EventLines, StoredEvent

_LOOK_EVERY_S = 0.5
_STYLES = {"WARN": "yellow", "ERROR": "bold red", "FATAL": "bold red"}
_WIDEST_SEVERITY = 5


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

    Exits 4 if there are no events, or none that match.
    """
    since_ms = 0 if begin is None else time_of("--from", begin)
    until_ms = float("inf") if until is None else time_of("--until", until)
    least = _severity("--severity", severity or Severity.TRACE.name)
    lines = EventLines(paths)
    if not follow:
        lines.demand_some()

    def matches(event: StoredEvent) -> bool:
        return (
            (app is None or app in (event.attributes.get("app_name"), event.attributes.get("app_id")))
            and (query is None or query == event.attributes.get("query_name"))
            and (name is None or name == event.name)
            and (Severity.of(event.severity) or Severity.INFO) >= least
            and since_ms <= event.time_ms <= until_ms
        )

    for file in lines.left_out:
        print_warnings([f"{file} is left out: show reads no such packed file; unpack it"])
    try:
        shown, read = _show_new(lines, matches, as_json)
        while follow:
            sys.stdout.flush()
            time.sleep(_LOOK_EVERY_S)
            _show_new(lines, matches, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if lines.cut:
        print_warnings(
            [f"files that cannot be read to their end: {len(lines.cut):,} (one is {lines.cut[0]})"]
        )
    if lines.skipped:
        print_warnings([f"lines that are not events, skipped: {lines.skipped:,}"])
    if not shown:
        raise NothingToReadError(
            f"none of {read:,} events matches --app, --query, --name, --severity, --from and --until"
            if read
            else "the files have no events"
        )


def _severity(option: str, text: str) -> Severity:
    severity = Severity.of(text)
    if severity is None:
        raise UsageError(
            f"{option} {text}: expected one of {', '.join(each.name.lower() for each in Severity)}"
        )
    return severity


def _show_new(lines: EventLines, matches: Callable[[StoredEvent], bool], as_json: bool) -> tuple[int, int]:
    """Print the events that were added, and return how many were printed and how many read."""
    shown = read = 0
    for event in lines.read():
        read += 1
        if matches(event):
            shown += 1
            if not as_json:
                say(_line(event), out)
                continue
            try:
                sys.stdout.write(_as_json(event) + "\n")
            except RecursionError:  # it is nested deeper than Python writes JSON
                lines.skipped += 1
    return shown, read


def _as_json(event: StoredEvent) -> str:
    try:
        return orjson.dumps(event.record).decode(errors="replace")
    except orjson.JSONEncodeError:  # it is nested deeper than orjson writes, which reads more
        return json.dumps(event.record, ensure_ascii=False, separators=(",", ":"))


def _line(event: StoredEvent) -> str:
    body = plain((event.body or event.name).split("\n", 1)[0])
    style = _STYLES.get(event.severity)
    severity = plain(f"{event.severity:<{_WIDEST_SEVERITY}}")
    marked = f"[{style}]{severity}[/] {body}" if style else f"{severity} {body}"
    app = plain(str(event.attributes.get("app_name", "")))
    return f"[dim]{moment(event.time_ms)}Z[/] {marked}" + (f"  [dim]({app})[/]" if app else "")
