"""The command ``init``: writes a first configuration, after three questions or from options."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from spark_events.api import ConfigError, is_http_url
from spark_events.api.errors import UsageError
from spark_events.api.option_types import PORTS
from spark_events.api.toolkit.local_disk import decoded, write_whole
from spark_events.cli.terminal.console import err, plain, print_warnings, say
from spark_events.cli.terminal.options import duration_of
from spark_events.configuration.first_lines import (
    DESTINATIONS,
    FILES,
    FILES_PATH,
    OTLP,
    PROMETHEUS,
    FirstLines,
    default_file,
    is_found,
    not_yet_in,
    text_of,
)
from spark_events.spark.conf import read_properties

_FOLDER = Path("events")


def init(
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DESTINATION",
            help=f"Where to report: {', '.join(DESTINATIONS)}; files by default. Repeatable, or with commas.",
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the event files; `events` by default.")
    ] = None,
    sla: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long a streaming query may go without committing, such as 60s; no limit by default.",
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            metavar="PORTS",
            help="Port that serves metrics for Prometheus; by default the first free one of 9249-9260.",
        ),
    ] = None,
    endpoint: Annotated[
        str, typer.Option(metavar="URL", help="URL of the OTLP collector; by default, one on this machine.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="What to write; by default spark-defaults.conf in SPARK_CONF_DIR, in SPARK_HOME/conf, or "
            "in a folder conf here.",
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add the lines to the file, if it is there already.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, if it is there already.")] = False,
) -> None:
    """Write a first configuration, and say what to do next.

    On a terminal, it asks for whatever the options do not give. An existing file is kept unless you give
    --append or --force.
    """
    asks = sys.stdin.isatty() and err.is_terminal
    file = output or default_file()
    _check_destinations(_destinations(to))
    append = append or (asks and not force and file.exists() and _may_append(file))
    if file.exists() and not append and not force:
        raise UsageError(f"{file}: exists already; --append adds the lines to it, --force replaces it")
    adds = append and file.exists()
    path = read_properties(file).get(FILES_PATH, "") if adds and folder is None else ""
    wanted = _wanted(to, folder, sla, asks, port or "", endpoint, path)
    settings = wanted.settings()
    before = ""
    if adds:
        settings, before = not_yet_in(file, settings), file.read_text(encoding="utf-8")
    if settings:
        _write(file, text_of(settings, before))
    _say_next(file, wanted, settings)


def _may_append(file: Path) -> bool:
    return typer.confirm(f"{file} exists already. Add lines to it?", err=True)


def _destinations(to: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in to or (FILES,) for name in text.split(",")]


def _check_destinations(names: Sequence[str]) -> None:
    for name in names:
        if name not in DESTINATIONS:
            raise UsageError(f"--to {name}: expected one or more of {', '.join(DESTINATIONS)}")


def _wanted(
    to: Sequence[str] | None,
    folder: Path | None,
    sla: str | None,
    asks: bool,
    port: str,
    endpoint: str,
    path: str,
) -> FirstLines:
    """Return what is wanted, by the options, the answers, and the path that the file has.

    Raises:
        UsageError: one cannot be used.
    """
    if to is None and asks:
        to = [typer.prompt(f"Where to report ({', '.join(DESTINATIONS)})", default=FILES, err=True)]
    names = _destinations(to)
    _check_destinations(names)
    if folder is None and not path and asks and FILES in names:
        folder = Path(typer.prompt("Folder for the event files", default=str(_FOLDER.absolute()), err=True))
    if sla is None and asks:
        question = "How long may a streaming query go without committing (such as 60s; empty: no limit)"
        sla = typer.prompt(question, default="", show_default=False, err=True)
    if sla:
        duration_of("--sla", sla)
    if port:
        _check_ports(port)
    # A line feed would begin another setting.
    if endpoint and not (endpoint.isprintable() and is_http_url(endpoint)):
        raise UsageError(f"--endpoint {endpoint!r}: expected a URL such as http://localhost:4317")
    for option, given, of in (
        ("--folder", folder, FILES),
        ("--port", port, PROMETHEUS),
        ("--endpoint", endpoint, OTLP),
    ):
        if given and of not in names:
            raise UsageError(
                f"{option} {given}: only applies to --to {of}, and --to has {', '.join(names)}; add --to {of}"
            )
    folder = Path(os.path.expanduser(folder or _FOLDER))  # no shell does it in an answer
    return FirstLines(names, folder, sla or "", port, endpoint, path)


def _check_ports(port: str) -> None:
    try:
        PORTS.read("--port", port)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"{file}: cannot be written: {reason}; name another file with --output") from error


def _say_next(file: Path, wanted: FirstLines, written: dict[str, str]) -> None:
    """Say what was written, what is missing for it, and which commands come next."""
    from spark_events.configuration.check import check

    say(f"written to {plain(str(file))}:" if written else f"{plain(str(file))} has these lines already")
    width = max(map(len, written), default=0)
    for key, value in written.items():
        say(f"  {plain(f'{key:<{width}}')}  {plain(value)}")
    say("\nNext:")
    if not is_found(file) and file.name == "spark-defaults.conf":
        say(f"  export SPARK_CONF_DIR={plain(quote(str(file.absolute().parent)))}")
    # A file of another name is nowhere that Spark looks, and what is there must not be overwritten.
    option = (
        ""
        if is_found(file) or file.name == "spark-defaults.conf"
        else f" --properties-file {plain(quote(str(file)))}"
    )
    say(f"  spark-events check{option} --connect")
    say(f"  spark-events run{option} app.py    [dim]# or spark_events.attach(spark) in a notebook[/]")
    if FILES in wanted.destinations:
        folder = decoded(wanted.path).removeprefix("file://") or str(wanted.folder.absolute())
        say(f"  spark-events show {plain(quote(folder))}")
    print_warnings(check(wanted.settings(), connect=False).problems)
