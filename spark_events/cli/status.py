"""The command ``status``: what is up now, since when, and how often it was restarted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.api.toolkit.formatting import duration, moment
from spark_events.cli.terminal.console import (
    FAILED,
    STATE_COLORS,
    err,
    plain,
    print_json,
    print_warnings,
    show_table,
)
from spark_events.cli.terminal.options import App, Query, secret_of
from spark_events.history.options import UNSET_SLA_MS, Engine, ReportOptions, Sla
from spark_events.history.selection import Selection

if TYPE_CHECKING:
    from spark_events.history.current import Current

_URLS = ("http://", "https://")


def status(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Stored events, as for report; or one URL that serves metrics for Prometheus, such as "
            "http://localhost:9249.",
        ),
    ],
    app: App = None,
    query: Query = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            help="The token that the URL asks for: env:NAME, file:PATH or (visible in the process list) the "
            "token itself.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which applications and queries are up now, since when, and how often they were restarted.

    If an application is killed and nothing is left to report its end, it counts as RUNNING until three
    heartbeats are missing (3 min by default), then as UNKNOWN, and after ten as LOST.

    Only stored events tell how often an application was restarted: a driver does not know of those before it.

    Exits 1 if one is down, silent or lost, or the last run of a batch application failed; 4 if there is
    nothing to read.
    """
    from spark_events.history.current import of_endpoint
    from spark_events.history.figures.timeline import BAD_STATES

    if any(path.startswith(_URLS) for path in paths):
        if len(paths) > 1:
            raise UsageError(f"{', '.join(paths)}: give one URL, or paths of stored events")
        current = _selected(
            of_endpoint(paths[0], None if token is None else secret_of("--token", token).reveal()), app, query
        )
    else:
        current = _stored(paths, Selection(app or "", query or "", until_now=True))
    if as_json:
        print_json([each._asdict() for each in current])
    else:
        show_table(_table(current))
    raise typer.Exit(FAILED if any(each.state in BAD_STATES for each in current) else 0)


def _selected(current: list[Current], app: str | None, query: str | None) -> list[Current]:
    """Return those of an application and of a query.

    Raises:
        NothingToReadError: there are none.
    """
    chosen = [each for each in current if app in (None, each.app_name) and query in (None, each.query_name)]
    if not chosen:
        raise NothingToReadError("nothing that is served matches --app and --query")
    return chosen


def _stored(paths: list[str], selection: Selection) -> list[Current]:
    from spark_events.history.current import of_report
    from spark_events.history.run import make_report, open_database

    any_sla = Sla(UNSET_SLA_MS)  # none is shown, so that there is nothing to say about one that nobody set
    options = ReportOptions(tuple(paths), any_sla, selection)
    with err.status("reading events"), open_database(options, Engine.LOCAL) as database:
        report = make_report(database, options)
    print_warnings(report.notes)
    return of_report(report)


def _table(current: list[Current]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("application / query", overflow="fold")
    for heading in ("status", "since (UTC)", "for", "restarts", "last heard"):
        is_number = heading in ("for", "restarts")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=True)
    now_ms = time.time_ns() // 1_000_000
    for each in current:
        color = STATE_COLORS.get(each.state, "dim")
        table.add_row(
            plain(each.name),
            f"[{color}]{plain(each.status)}[/]",
            "" if each.since_ms is None else moment(each.since_ms),
            "" if each.since_ms is None else _short(now_ms - each.since_ms),
            "-" if each.restarts is None else f"{each.restarts:,}",
            "now" if each.last_heard_ms is None else f"{_short(now_ms - each.last_heard_ms)} ago",
        )
    return table


def _short(ms: int) -> str:
    """Return a duration in its largest unit."""
    return " ".join(duration(max(0, ms)).split(" ")[:2])
