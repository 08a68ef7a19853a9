"""The command ``why``; what it needs is imported when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from spark_events.api.errors import NothingToReadError, UsageError, needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.cli.terminal.console import FAILED, INTERRUPTED, err, out, plain, print_warnings, say
from spark_events.cli.terminal.options import App, Conf, Html, Json, PropertiesFile
from spark_events.cli.terminal.outputs import STDOUT, check_files, write_file
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.why.explanation import Explanation


def why(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Spark event logs, or stored events: files, folders or globs, local or at any fsspec URL.",
        ),
    ],
    app: App = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Spark event log of another run, to compare with the run at PATH."),
    ] = None,
    html: Html = None,
    json: Json = None,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Show where the time of an application went, what made it slow, and what to do.

    Reads the event log of any Spark since 2.0. Stored events contain the issues; where the time went is known
    only if spans are stored with them. Exits 1 if a part could not be read, 4 if there is nothing to read.
    """
    from spark_events.cli.why.tables import print_comparison, print_explanation
    from spark_events.why.comparison import compare
    from spark_events.why.explanation import unknown_of_events
    from spark_events.why.written import as_json, page

    check_files({"--html": html, "--json": json})
    given, _ = read_conf(properties_file, conf or ())
    try:
        explanations, notes = _explained(paths, given, app)
        others, of_others = _explained([against], given, app) if against is not None else ([], [])
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    if not explanations:
        print_warnings(notes)
        named = f" named {app}" if app else ""
        raise NothingToReadError(f"no application{named} at {', '.join(map(path_without_secrets, paths))}")
    is_shown = STDOUT not in (html, json)
    for explanation in explanations if is_shown else ():
        print_explanation(explanation, out)
    if is_shown and (unknown := unknown_of_events(explanations)):
        say(f"\n[dim]{plain(unknown)}[/]", out)
    compared = None
    if against is not None:
        compared = compare(*_only_runs(explanations, paths, others, against))
        if is_shown:
            print_comparison(compared, out)
    notes += of_others
    print_warnings(notes)
    if html is not None:
        write_file(html, page(explanations, compared).encode("utf-8", "replace"))
    if json is not None:
        write_file(json, as_json(explanations, compared))
    raise typer.Exit(FAILED if notes else 0)


def _only_runs(
    explanations: list[Explanation], paths: list[str], others: list[Explanation], against: str
) -> tuple[Explanation, Explanation]:
    """Return the two runs to compare.

    Raises:
        UsageError: there is not exactly one on each side, or one is of stored events.
    """
    shown = ", ".join(map(path_without_secrets, paths))
    for path, runs in ((shown, explanations), (path_without_secrets(against), others)):
        if len(runs) != 1:
            raise UsageError(f"--against compares one run with one other; at {path} there are {len(runs)}")
        if runs[0].figures is None:
            raise UsageError(f"--against needs event logs; at {path} there are stored events")
    return explanations[0], others[0]


def _explained(
    paths: list[str], conf: dict[str, str], app: str | None
) -> tuple[list[Explanation], list[str]]:
    with needs_extra("eventlog,report", "fsspec", "reading event logs and stored events"):
        from spark_events.why.reading.read_events import explain_events, stored_events_among

    events = stored_events_among(paths)
    logs = [path for path in paths if path not in events]
    explanations: list[Explanation] = []
    notes: list[str] = []
    if events:
        explanations, notes = explain_events(events, app)
    if logs:
        from spark_events.why.reading.read_logs import explain_logs  # it needs an extra of its own

        with _progress() as progress:
            task = progress.add_task("", total=None)
            of_logs, of_these = explain_logs(
                logs, conf, app, lambda read, size: progress.update(task, completed=read, total=size)
            )
        explanations, notes = [*explanations, *of_logs], [*notes, *of_these]
    return explanations, notes


def _progress() -> Progress:
    return Progress(
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
