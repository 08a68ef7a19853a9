"""The command line of ``report``; its dependencies are imported when it runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api import ConfigError, ServerAuthentication, ServerTls
from spark_events.api.option_types import DURATION, SECRET
from spark_events.api.urls import path_without_secrets, text_without_url_secrets
from spark_events.cli.console import INTERRUPTED, err, out, plain, print_warnings, say
from spark_events.cli.options import Conf, SlaOption
from spark_events.cli.reading_bar import reading_bar
from spark_events.history.options import Engine, Sla
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.spark.conf import read_conf

if TYPE_CHECKING:
    from spark_events.history.options import ReportOptions

_LAST_PORT = 65_535


def report(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Stored events: files, folders or globs, on any file system of fsspec or Hadoop, of a "
            "file log, replay --on-spark or a collector's file exporter."
        ),
    ] = None,
    sla: SlaOption = None,
    since: Annotated[
        str | None, typer.Option(help="Report only this much time before the last event: 7d, 12h.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures as JSON.")] = None,
    parquet: Annotated[str | None, typer.Option(help="Write the tables as Parquet into this folder.")] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Add the events to this folder, and report on everything in it."),
    ] = None,
    retain: Annotated[
        str | None,
        typer.Option(help="With --store: drop days that ended longer before the last event than this: 400d."),
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Assume the last known state until now.")] = False,
    earliest: Annotated[
        datetime, typer.Option(help="Leave out events before this day (UTC), because their clock was wrong.")
    ] = datetime(2009, 1, 1),
    latest: Annotated[
        datetime | None, typer.Option(help="Leave out events after this time; by default a day from now.")
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Read with DuckDB in this process (local) or with Spark. auto: with Spark if --master or "
            "--conf is given, a path needs Hadoop, or there is more than 20 GiB."
        ),
    ] = Engine.AUTO,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve the page over HTTP, up to date, until Ctrl-C; on this machine's loopback address "
            "unless a host is given.",
        ),
    ] = None,
    serve_every: Annotated[str, typer.Option(help="With --serve: how often to look for new events.")] = "5s",
    serve_token: Annotated[
        str | None,
        typer.Option(
            help="With --serve: a token that requests must have, as env:NAME or file:PATH. Browsers ask for "
            "it as the password of the user 'token'."
        ),
    ] = None,
    serve_username: Annotated[
        str | None, typer.Option(help="With --serve: the user of basic authentication.")
    ] = None,
    serve_password: Annotated[
        str | None, typer.Option(help="With --serve: the user's password, as env:NAME or file:PATH.")
    ] = None,
    serve_certificate: Annotated[
        Path | None, typer.Option(help="With --serve: PEM file of a certificate; the page is then at https.")
    ] = None,
    serve_key: Annotated[
        Path | None, typer.Option(help="With --serve: PEM file of that certificate's key.")
    ] = None,
    serve_client_authorities: Annotated[
        Path | None,
        typer.Option(help="With --serve: PEM file of the authorities whose clients may connect, by TLS."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Read with Spark, on this master, as for spark-submit.")
    ] = None,
    conf: Conf = None,
) -> None:
    """Report uptime, checkpoints against an SLA and failures from stored events.

    Exits 2 for a wrong configuration, or if there is nothing to read.
    """
    from spark_events.history.options import ReportOptions

    if not paths and store is None:
        raise ConfigError("report needs the PATHs of stored events, or --store with a folder that has some")
    if retain is not None and store is None:
        raise ConfigError("--retain drops days of a store: give its folder with --store")
    options = ReportOptions(
        paths=tuple(paths or ()),
        sla=parse_sla(sla or ()),
        span_ms=None if since is None else DURATION.read("--since", since),
        html=html,
        json=json,
        parquet=parquet,
        store=store,
        retain_ms=None if retain is None else DURATION.read("--retain", retain),
        until_now=now,
        times=_times(earliest, latest),
        engine=engine,
        conf={**read_conf(None, conf or ())[0], **({"spark.master": master} if master else {})},
    )
    if serve is None:
        of_serve = {
            "--serve-token": serve_token,
            "--serve-username": serve_username,
            "--serve-password": serve_password,
            "--serve-certificate": serve_certificate,
            "--serve-key": serve_key,
            "--serve-client-authorities": serve_client_authorities,
        }
        for option, value in of_serve.items():
            if value is not None:
                raise ConfigError(f"{option}: only with --serve, which says where to serve the page")
        run_report(options, told_of_spark=bool(master or conf))
    else:
        tls = _tls(serve_certificate, serve_key, serve_client_authorities)
        authentication = _authentication(serve_token, serve_username, serve_password)
        every_ms = DURATION.read("--serve-every", serve_every)
        serve_report(options, serve, every_ms, authentication, tls)


def run_report(options: ReportOptions, told_of_spark: bool = False) -> None:
    """Make a report, print it, and write its files.

    Args:
        options: of the report.
        told_of_spark: whether a master or Spark's configuration was given for it.

    Raises:
        ConfigError: an option cannot be used, or there is nothing to read.
    """
    from spark_events.cli.report_tables import print_report
    from spark_events.history.reading.engine import choose
    from spark_events.history.run import check_outputs, make_report, open_database, write_files

    check_outputs(options)
    chosen, reason = choose(options, told_of_spark)
    if reason:
        say(plain(text_without_url_secrets(reason)))
    try:
        with ExitStack() as opened:
            with err.status("starting Spark" if chosen is Engine.SPARK else "starting"):
                database = opened.enter_context(open_database(options, chosen))
            if chosen is Engine.SPARK:
                _leave_at_ctrl_c()
            with reading_bar(database.progress):
                figures = make_report(database, options)
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    print_report(figures, out)
    for path in write_files(figures, options):
        say(f"written to {plain(str(path))}")
    if options.parquet:
        say(f"tables written to {plain(path_without_secrets(options.parquet))}")


def _tls(certificate: Path | None, key: Path | None, client_authorities: Path | None) -> ServerTls | None:
    if certificate is None and key is None and client_authorities is None:
        return None
    if certificate is None or key is None:
        missing = "--serve-certificate" if certificate is None else "--serve-key"
        raise ConfigError(f"{missing}: missing; TLS needs a certificate and its key")
    try:
        return ServerTls(certificate, key, client_authorities)
    except OSError as error:
        names = ", ".join(str(path) for path in (certificate, key, client_authorities) if path)
        raise ConfigError(f"{names}: cannot be used as PEM files of TLS: {error}") from error


def serve_report(
    options: ReportOptions,
    address: str,
    every_ms: int,
    authentication: ServerAuthentication,
    tls: ServerTls | None,
) -> None:
    """Serve a report until Ctrl-C.

    Args:
        options: of the report.
        address: to listen on, as ``[HOST:]PORT``.
        every_ms: how often to look for new events, in ms.
        authentication: of requests.
        tls: None serves plain HTTP.

    Raises:
        ConfigError: an option cannot be used, a port is taken, or there is nothing to read.
    """
    from spark_events.history.run import check_outputs

    check_outputs(replace(options, html=Path("page.html")))  # it needs what a page needs
    if options.engine is Engine.SPARK or options.html or options.json or options.parquet:
        raise ConfigError("--serve reads with DuckDB and writes no files: leave out --html, --json and so on")
    from spark_events.history.page.live_page import LivePage, View
    from spark_events.history.page.report_server import ReportServer
    from spark_events.history.reading.local_files import state_of_files

    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise ConfigError(f"--serve {address}: expected [HOST:]PORT, with a port from 0 to {_LAST_PORT}")
    page = LivePage(options, every_ms / 1_000, lambda: state_of_files(options.paths))
    try:
        server = ReportServer(host, int(port), page.html, authentication, tls)
    except OSError as error:
        raise ConfigError(f"--serve {address}: {error.strerror or error}") from error
    with err.status("reading events"):
        page.html(View())
    guarded = authentication.needed or (tls is not None and tls.asks_clients)
    if not guarded and not _is_loopback(host):
        print_warnings(["everybody who reaches this port can read the page: see --serve-token"])
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if tls else "http"
    say(f"the report is at {scheme}://{shown}:{server.port}/ (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.server_close()


def _authentication(token: str | None, username: str | None, password: str | None) -> ServerAuthentication:
    if (username is None) != (password is None):
        missing = "--serve-username" if username is None else "--serve-password"
        raise ConfigError(f"{missing}: missing; basic authentication needs a user and a password")
    secrets = {}
    for option, where in (("--serve-token", token), ("--serve-password", password)):
        try:
            secrets[option] = None if where is None else SECRET.parse(where)
        except ValueError:
            raise ConfigError(f"{option}: cannot be used; expected {SECRET.allowed}") from None
    # Browsers ask for a user and a password alone.
    users = ((username or "", secrets["--serve-password"]), ("token", secrets["--serve-token"]))
    passwords = {user: secret for user, secret in users if secret is not None}
    return ServerAuthentication("report", secrets["--serve-token"], passwords)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _leave_at_ctrl_c() -> None:
    """End at once at Ctrl-C, in place of PySpark's handler: the JVM is gone by then, each call would fail.

    That leaves nothing half done: files are written at the end, and a store takes whole days.
    """

    def leave(number: int, frame: object) -> None:
        err.show_cursor()
        err.print("interrupted")
        os._exit(INTERRUPTED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, leave)


def _times(earliest: datetime, latest: datetime | None) -> PossibleTimes:
    limits = [limit.replace(tzinfo=timezone.utc) for limit in (earliest, latest) if limit]
    times = PossibleTimes(*(int(limit.timestamp() * 1_000) for limit in limits))
    if times.latest_ms <= times.earliest_ms:
        raise ConfigError(f"--latest {latest}: must be after --earliest {earliest}")
    return times


def parse_sla(texts: Sequence[str]) -> Sla:
    """Return the SLAs that options give: ``60s``, or ``query=60s``.

    Raises:
        ConfigError: one is no duration, or 0.
    """
    sla_ms: dict[str, int] = {}
    for text in texts:
        query, _, duration = text.rpartition("=")
        sla_ms[query] = DURATION.read("--sla", duration)
        if not sla_ms[query]:
            raise ConfigError(f"--sla {text}: an SLA is longer than 0 ms")
    default_ms = sla_ms.pop("", Sla().default_ms)
    return Sla(default_ms, sla_ms)
